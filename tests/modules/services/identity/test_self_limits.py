"""A SELF.md that is too large or no text stops the SOUL with one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.clock import FakeClock
from common.constants import SELF_MAX_BYTES
from common.errors import IdentityError, StorageError
from modules.runtime.home import Home, check_self, read_self
from modules.services.identity.history import SelfHistory


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"# a\n" * (SELF_MAX_BYTES // 4 + 1), "is larger than 256 KiB"), (b"# Rowan \xff", "is not UTF-8 text")],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    home = Home.at(tmp_path)
    home.self_md.write_bytes(content)
    with pytest.raises(IdentityError, match=problem):
        check_self(home)
    assert read_self(home) == ""


@pytest.mark.parametrize("content", [None, b"#" * SELF_MAX_BYTES, b"\xef\xbb\xbf# Rowan"])
def test_a_missing_one_and_one_that_can_be_read_pass(tmp_path: Path, content: bytes | None) -> None:
    home = Home.at(tmp_path)
    if content is not None:
        home.self_md.write_bytes(content)
    check_self(home)
    assert read_self(home).startswith("#") is (content is not None)


def test_one_that_is_too_large_is_neither_copied_nor_replaced(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.self_md.write_bytes(b"a" * (SELF_MAX_BYTES + 1))
    with SelfHistory(home).alone() as history, pytest.raises(StorageError, match="larger than 256 KiB"):
        history.notice(FakeClock().now())
    assert not list((home.memory / "self-history").glob("*.md"))
