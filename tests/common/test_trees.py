"""Folders that others wrote into, on a real disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.files import delete_tree, readable_name, walk


def dig(folder: Path, levels: int) -> None:
    """Nest folders deeper than any path names them, each with a file."""
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
    """A tree with all that a program of others may leave behind."""
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
        assert delete_tree(tree)  # pytest cannot
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
