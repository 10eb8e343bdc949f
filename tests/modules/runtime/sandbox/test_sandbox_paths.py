"""What the SOUL may read and write by itself; links, swaps and odd names change nothing about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modules.runtime.home import Home
from modules.runtime.sandbox.paths import (
    MAX_READ_BYTES,
    is_path_safe,
    is_writable_path,
    safe_read_file,
    safe_write_file,
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "home")
    (home.memory / "notes").mkdir(parents=True)
    (home.root / ".workrepos" / "a-b").mkdir(parents=True)
    home.env.write_text("AGENT_BLUESKY_PASSWORD=x")
    home.soul.write_text("who I am")
    (tmp_path / "outside.txt").write_text("not mine")
    return home


@pytest.mark.parametrize(
    ("path", "safe", "writable"),
    [
        (".memory/notes/a.md", True, True),
        (".memory/new/deep/a.md", True, True),
        (".workrepos/a-b/src/x.py", True, True),
        ("voice-phrases.json", True, True),
        (".memory/..odd/a", True, True),
        ("..odd", True, False),
        ("SOUL.md", True, False),
        ("SELF.md", True, False),
        ("modules/runtime/sandbox/paths.py", True, False),
        ("sub/voice-phrases.json", True, False),
        (".memory", True, False),
        (".workrepos", True, False),
        (".memory/soul.db", True, False),
        (".memory/soul.db-wal", True, False),
        (".memory/../SOUL.md", True, False),
        (".memoryx/a", True, False),
        (".env", False, False),
        (".memory/../.env", False, False),
        (".memory/atproto_session.json", False, False),
        ("../outside.txt", False, False),
        (".memory/../../outside.txt", False, False),
        ("/etc/passwd", False, False),
        ("", True, False),
    ],
)
def test_a_path_is_judged_by_where_it_leads(home: Home, path: str, *, safe: bool, writable: bool) -> None:
    assert is_path_safe(Path(path), home) is safe
    assert is_writable_path(Path(path), home) is writable
    assert is_path_safe(home.root / path, home) is safe


@pytest.mark.parametrize("target", ["../../outside.txt", "/etc/hostname", "../.env", "../SOUL.md"])
def test_a_link_out_of_memory_is_no_way_out(home: Home, target: str) -> None:
    link = home.memory / "link"
    link.symlink_to(target)
    before = (home.memory / target).read_bytes()
    assert not is_writable_path(link, home)
    assert not safe_write_file(link, "changed", home)
    assert (home.memory / target).read_bytes() == before
    if target != "../SOUL.md":
        assert safe_read_file(link, home) is None


def test_a_folder_that_is_a_link_is_no_way_out(home: Home) -> None:
    (home.memory / "way").symlink_to(home.root.parent)
    assert safe_read_file(home.memory / "way" / "outside.txt", home) is None
    assert not safe_write_file(home.memory / "way" / "new.txt", "x", home)
    assert not (home.root.parent / "new.txt").exists()


def test_a_memory_elsewhere_is_part_of_the_home(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    home = Home.at(tmp_path / "home", tmp_path / "elsewhere")
    home.root.mkdir()
    assert safe_write_file(home.memory / "a" / "b.txt", "hello", home)
    assert safe_read_file(home.memory / "a" / "b.txt", home) == "hello"
    assert not is_writable_path(Path(".memory/a"), home)


def test_what_is_written_is_read_back_and_leaves_nothing_else(home: Home) -> None:
    assert safe_write_file(Path(".memory/notes/deep/a.md"), "grüß", home)
    assert safe_write_file(Path(".memory/notes/deep/a.md"), "gott", home)
    assert safe_read_file(Path(".memory/notes/deep/a.md"), home) == "gott"
    assert [path.name for path in (home.memory / "notes" / "deep").iterdir()] == ["a.md"]


def test_a_hard_link_is_replaced_and_never_written_through(home: Home) -> None:
    os.link(home.soul, home.memory / "twin.md")
    assert safe_write_file(home.memory / "twin.md", "somebody else", home)
    assert home.soul.read_text() == "who I am"


def test_what_is_no_text_file_is_not_read(home: Home) -> None:
    (home.memory / "picture").write_bytes(b"\xff\xd8\xff")
    (home.memory / "huge").write_bytes(b"x" * (MAX_READ_BYTES + 1))
    os.mkfifo(home.memory / "pipe")
    for name in ("picture", "huge", "pipe", "notes", "absent", "absent/too"):
        assert safe_read_file(home.memory / name, home) is None


def test_what_cannot_be_written_leaves_no_crumbs(home: Home) -> None:
    assert not safe_write_file(home.memory / "notes", "a folder stands there", home)
    (home.memory / "file").write_text("x")
    assert not safe_write_file(home.memory / "file" / "below", "a file stands there", home)
    assert sorted(path.name for path in home.memory.iterdir()) == ["file", "notes"]


def test_a_link_put_there_after_the_judgement_leads_nowhere(home: Home) -> None:
    """The race itself: the folder is swapped for a link between the look and the opening."""
    victim = home.root.parent / "victim"
    victim.mkdir()
    (home.memory / "swap").mkdir()

    class Swapping(Home):
        @property
        def database(self) -> Path:
            if not (home.memory / "swap").is_symlink():
                (home.memory / "swap").rmdir()
                (home.memory / "swap").symlink_to(victim)
            return super().database

    swapping = Swapping(home.root, home.memory)
    real = home.memory / "swap" / "a.txt"
    assert is_writable_path(real, home)
    wrote = safe_write_file(real, "x", swapping)
    assert not wrote
    assert list(victim.iterdir()) == []
