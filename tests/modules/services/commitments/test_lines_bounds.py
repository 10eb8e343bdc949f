"""Proves that a file of commitments that grew beyond all measure costs its start nothing, and is lost to nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from common.errors import StorageError
from modules.services.commitments.lines import (
    COMMITMENT_LINE_MAX_BYTES,
    COMMITMENTS_MAX_LINES,
    live_in,
    read_commitments,
)
from modules.services.commitments.queue import FILE
from tests.cpu_time import cpu_s

_COMMITMENT = {"id": "c1", "createdAt": "2026-01-05T12:00:00.000Z", "description": "Roofs", "type": "create_issue"}


_TOO_LARGE = pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"a":1}\n' * 2_500_000, "is larger than 16384 KiB"),
        (b"# a\n" * (COMMITMENTS_MAX_LINES + 1), "has more than 20000 lines"),
    ],
    ids=["bytes", "lines"],
)


@_TOO_LARGE
def test_one_that_is_too_large_is_set_aside_whole(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / FILE
    path.write_bytes(content)
    with pytest.raises(StorageError, match=problem):
        live_in(path)
    read = read_commitments(path)
    assert read.commitments == ()
    (aside,) = tmp_path.glob(f"{FILE}.corrupt-*")
    assert aside.read_bytes() == content
    assert problem in read.notice
    assert aside.name in read.notice


@pytest.mark.perf
@_TOO_LARGE
def test_one_that_is_too_large_is_set_aside_at_once(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert cpu_s(lambda: read_commitments(tmp_path / FILE)) < 2.0


def test_a_line_that_is_too_long_is_set_aside_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / FILE
    long = json.dumps({**_COMMITMENT, "id": "c2", "description": "x" * COMMITMENT_LINE_MAX_BYTES})
    path.write_text(f"{long}\n{json.dumps(_COMMITMENT)}\n")
    read = read_commitments(path)
    assert [one.id for one in read.commitments] == ["c1"]
    assert "1 commitments cannot be read" in read.notice
    (aside,) = tmp_path.glob(f"{FILE}.corrupt-*")
    assert aside.read_text() == f"{long}\n"
