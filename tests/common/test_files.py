"""Writes that a crash cannot tear, and the line the owner reads when the disk refuses."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from common.errors import StorageError
from common.files import storage_error, write_atomic


@pytest.mark.parametrize("content", ["Grüße 👋\n", b"\x00\x01"])
def test_content_arrives_whole_in_folders_that_did_not_exist(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "deep" / "er" / "file"
    write_atomic(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)


def test_nothing_else_is_left_behind(tmp_path: Path) -> None:
    write_atomic(tmp_path / "state.json", "one")
    write_atomic(tmp_path / "state.json", "two")
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_the_file_gets_the_mode_asked_for(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    write_atomic(path, "x", mode=mode)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    versions = {letter * 200_000 for letter in "ab"}
    write_atomic(path, "a" * 200_000)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for version in versions:
                write_atomic(path, version)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert all(path.read_text() in versions for _ in range(200))
    finally:
        stop.set()
        writer.join()


def test_a_failed_write_leaves_the_old_file_and_no_debris(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    (target / "kept").write_text("old")
    with pytest.raises(StorageError, match="folder"):
        write_atomic(target, "a file cannot replace a folder that is not empty")
    assert (target / "kept").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_parent_that_is_a_file_is_reported_as_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError):
        write_atomic(tmp_path / "file" / "below", "x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_names_the_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageError, match="No permission"):
            write_atomic(tmp_path / "file", "x")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("code", "line", "remedy"),
    [
        (errno.ENOSPC, "Disk full", "Free some space"),
        (errno.EDQUOT, "Disk full", "Free some space"),
        (errno.EACCES, "No permission", "write access"),
        (errno.EROFS, "No permission", "write access"),
        (errno.EEXIST, "there is a file where a folder should be", "Move that file away"),
        (errno.ENOTDIR, "there is a file where a folder should be", "another folder"),
        (errno.EISDIR, "there is a folder where a file should be", "Move that folder away"),
        (errno.EIO, "This machine cannot use", "Check the disk"),
        (errno.EMFILE, "This machine cannot use", "limit of open files"),
        (errno.ENOTTY, "Cannot write", "Check the disk"),
    ],
)
def test_each_refusal_of_the_disk_has_its_own_remedy(code: int, line: str, remedy: str) -> None:
    error = storage_error(Path("/home/soul/state.json"), OSError(code, os.strerror(code)))
    assert line in str(error)
    assert "/home/soul/state.json" in str(error)
    assert remedy in error.remedy
