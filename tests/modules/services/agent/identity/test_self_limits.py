"""A SELF.md that is too large or no text costs a line, not a start that never ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.clock import FakeClock
from common.constants import SELF_MAX_BYTES
from common.errors import StorageError
from modules.runtime.home import Home, read_self
from modules.services.agent.identity.history import History
from modules.services.agent.identity.identity import Identity


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"# a\n" * (SELF_MAX_BYTES // 4 + 1), "SELF.md is larger than 256 KiB: living without it"),
        (b"# Rowan \xff", "SELF.md is not UTF-8 text: living without it"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, content: bytes, problem: str) -> None:
    home = Home.at(tmp_path)
    home.self_md.write_bytes(content)
    assert Identity(home=home, agent_name="rowan").extract().warnings == (problem,)
    assert read_self(home) == ""


def test_a_missing_one_and_one_of_the_largest_size_are_told_nothing_of(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    assert Identity(home=home, agent_name="rowan").extract().warnings == ()
    home.self_md.write_bytes(b"#" * SELF_MAX_BYTES)
    assert Identity(home=home, agent_name="rowan").extract().warnings == ()


def test_one_that_is_too_large_is_neither_copied_nor_replaced(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.self_md.write_bytes(b"a" * (SELF_MAX_BYTES + 1))
    with History(home).alone() as history, pytest.raises(StorageError, match="larger than 256 KiB"):
        history.notice(FakeClock().now())
    assert not list((home.memory / "self-history").glob("*.md"))


def test_a_story_that_is_nested_too_deeply_keeps_its_text(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.self_md.write_text("# Rowan\n")
    with History(home).alone() as history:
        version = history.notice(FakeClock().now())
        assert version is not None
        (home.memory / "self-history" / f"{version.name}.json").write_text("[" * 100_000)
        (found,) = history.versions()
        assert (found.reason, history.read(found)) == ("nothing is known about it", b"# Rowan\n")
