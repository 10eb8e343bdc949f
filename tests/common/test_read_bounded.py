"""Proves that a file is read whole or refused at once, whatever has become of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from common.constants import STATE_MAX_BYTES
from common.files import read_bounded
from common.state import load_state, save_state


def test_a_file_of_the_largest_size_is_read_whole_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a" * 2048)
    assert read_bounded(path, 2048) == b"a" * 2048
    with pytest.raises(OSError, match="larger than 1 KiB") as refused:
        read_bounded(path, 2047)
    assert refused.value.errno == errno.EFBIG


def test_a_pipe_that_nobody_writes_to_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(OSError, match="not a regular file"):
        read_bounded(tmp_path / "x", 10)


def test_a_folder_and_nothing_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_bounded(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "x", 10)


def test_a_state_file_that_is_too_large_is_set_aside_whole_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"1" * (STATE_MAX_BYTES + 1))
    loaded = load_state(path, {"a": 1})
    assert loaded.data == {"a": 1}
    (aside,) = tmp_path.glob("x.json.corrupt-*")
    assert aside.stat().st_size == STATE_MAX_BYTES + 1
    assert "larger than 16384 KiB" in loaded.notice
    assert aside.name in loaded.notice
    save_state(path, {"a": 2})
    assert load_state(path, {}).data == {"a": 2}
