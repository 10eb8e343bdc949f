"""Tests of writes that a crash cannot tear, and of the line that the owner reads when the disk refuses one.

State files are stamped, kept by every version, and never lost in silence. Folders that others wrote into are tried on
a real disk. Proves that a file is read whole or refused at once, whatever has become of it.
"""

import errno
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.constants import STATE_MAX_BYTES
from common.errors import StorageError
from common.files import (
    MEMORY_VERSION,
    check_jsonl_version,
    delete_tree,
    load_state,
    read_bounded,
    readable_name,
    save_state,
    stamp_jsonl_version,
    storage_error,
    walk,
    write_atomic,
)
from tests.exploration import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=examples(50))
@given(state=st.dictionaries(st.text().filter(lambda key: key != "_memoryVersion"), JSON, max_size=4))
def test_what_was_saved_is_what_is_loaded(tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("state") / "state.json"
    save_state(path, state)
    loaded = load_state(path, {})
    assert (loaded.data, loaded.notice) == (state, "")


def test_half_a_surrogate_pair_survives_too(tmp_path: Path) -> None:
    save_state(tmp_path / "state.json", {"text": "broken \ud83d emoji"})
    assert load_state(tmp_path / "state.json", {}).data == {"text": "broken \ud83d emoji"}


def test_an_absent_file_is_the_default_without_a_word_and_the_default_is_not_shared(tmp_path: Path) -> None:
    default = {"items": 1}
    loaded = load_state(tmp_path / "none.json", default)
    loaded.data["items"] = 2
    assert default == {"items": 1}
    assert loaded.notice == ""


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"{ broken", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[1, 2]", "does not hold a JSON object"),
        (b"\xff\xfe", "could not be read"),
    ],
)
def test_an_unreadable_file_is_set_aside_and_reported(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    loaded = load_state(path, {"fresh": True})
    assert loaded.data == {"fresh": True}
    assert complaint in loaded.notice
    (aside,) = tmp_path.glob("state.json.corrupt-*")
    assert aside.read_bytes() == content
    assert aside.name in loaded.notice
    assert not path.exists()


def test_deep_nesting_cannot_bring_the_process_down(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("[" * 200_000)
    assert load_state(path, {"fresh": True}).data == {"fresh": True}


def test_a_folder_in_place_of_the_file_is_reported_and_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.mkdir()
    loaded = load_state(path, {})
    assert "could not be read" in loaded.notice
    assert not path.exists()


@pytest.mark.parametrize("stamp", [{"_memoryVersion": "0.0.1"}, {}])
def test_the_data_of_another_version_is_kept_and_stamped_with_the_next_change(
    tmp_path: Path, stamp: dict[str, str]
) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"a": 1, **stamp}))
    loaded = load_state(path, {})
    assert (loaded.data, loaded.notice) == ({"a": 1}, "")
    save_state(path, loaded.data)
    assert json.loads(path.read_text()) == {"a": 1, "_memoryVersion": MEMORY_VERSION}


def test_a_file_of_lines_is_of_this_version_only_while_its_sidecar_names_it(tmp_path: Path) -> None:
    lines = tmp_path / "log.jsonl"
    assert not check_jsonl_version(lines)
    stamp_jsonl_version(lines)
    assert check_jsonl_version(lines)
    (tmp_path / "log.jsonl.version").write_text("0.0.1")
    assert not check_jsonl_version(lines)


def test_stamping_a_file_of_lines_writes_the_version_beside_it(tmp_path: Path) -> None:
    stamp_jsonl_version(tmp_path / "log.jsonl")
    assert (tmp_path / "log.jsonl.version").read_text() == MEMORY_VERSION


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


def dig(folder: Path, levels: int) -> None:
    """Nest folders deeper than a path can name, each with a file."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
        os.mkdir("deep", dir_fd=handle)
        below = os.open("deep", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Return a tree with everything that somebody else's program may leave behind."""
    tree = tmp_path / "tree"
    (tree / "closed" / "inner").mkdir(parents=True)
    (tree / "closed" / "inner" / "file").write_text("x")
    (tree / "closed" / "file").write_text("x")
    (tree / "nowhere").symlink_to("not/there")
    (tree / "circle").symlink_to("circle")
    (tree / "out").symlink_to(tmp_path / "kept")
    (tree / "moved-0").write_text("x")
    (tree / os.fsdecode(b"caf\xe9")).mkdir()
    (tree / os.fsdecode(b"caf\xe9") / "file").write_text("x")
    os.mkfifo(tree / "pipe")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    (tree / "closed" / "inner").chmod(0)
    (tree / "closed").chmod(0)
    tree.chmod(0)
    return tree


def test_whatever_a_program_left_is_seen_and_deleted_and_nothing_outside(odd: Path) -> None:
    found = {place: (folders, others) for place, folders, others in walk(odd)}
    assert set(found[""][0]) == {"closed", os.fsdecode(b"caf\xe9")}
    assert set(found[""][1]) == {"nowhere", "circle", "out", "moved-0", "pipe"}
    assert found["closed/inner"] == ([], ["file"])
    assert {readable_name(place) for place in found} >= {"caf\ufffd"}
    (odd / "closed").chmod(0)
    assert delete_tree(odd)
    assert not os.path.lexists(odd)
    assert (odd.parent / "kept" / "file").read_text() == "kept"
    assert delete_tree(odd)


@pytest.mark.slow
def test_folders_deeper_than_a_path_can_name_are_walked_and_deleted(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    dig(tree, 1_100)
    try:
        places = [place for place, _, _ in walk(tree)]
    finally:
        assert delete_tree(tree)  # too deep for pytest to delete
    assert max(map(len, places)) > 4_000
    assert not tree.exists()


def test_a_link_is_deleted_for_itself(tmp_path: Path) -> None:
    link, kept = tmp_path / "link", tmp_path / "kept"
    kept.mkdir()
    link.symlink_to(kept)
    assert delete_tree(link)
    assert not link.is_symlink()
    assert kept.is_dir()


def test_a_walk_does_not_enter_what_its_caller_takes_out(odd: Path) -> None:
    places = []
    for place, folders, _ in walk(odd):
        folders[:] = [name for name in folders if name == "closed"]
        places.append(place)
    assert places == ["", "closed"]
    assert not list(walk(odd / "away"))


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
