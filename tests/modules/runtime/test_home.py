"""Proves that only one process lives in a home, and that a change of SOUL.md after the start is noticed.

A file of records that holds something else is set aside; unknown fields survive a save.
"""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from common.errors import ConfigError, HomeLocked, IdentityError
from modules.runtime.home import Home, HomeLock, SoulDocument, ensure_self, lock_holder, read_self
from modules.runtime.record_file import FileRecord, RecordFile

NOW = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(tmp_path)


def test_a_second_process_is_told_who_lives_here(home: Home) -> None:
    script = (
        "import sys; from pathlib import Path; from datetime import datetime, UTC\n"
        "from modules.runtime.home import Home, HomeLock\n"
        f"with HomeLock(Home.at(Path({str(home.root)!r})), agent_name='rowan', started_at=datetime.now(UTC)):\n"
        "    print('in', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        assert lock_holder(home) == other.pid
        with (
            pytest.raises(HomeLocked, match=rf"rowan \(pid {other.pid}"),
            HomeLock(home, agent_name="b", started_at=NOW),
        ):
            pass
        other.kill()
        other.wait()
        with HomeLock(home, agent_name="b", started_at=NOW):
            pass
    assert lock_holder(home) is None


def test_the_memory_folder_is_private(home: Home) -> None:
    with HomeLock(home, agent_name="a", started_at=NOW):
        assert home.memory.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "complaint"), [(None, "missing"), (b"", "empty"), (b" \n\t ", "empty"), (b"\xff\xfe\x00", "not UTF-8")]
)
def test_no_life_without_a_readable_soul(home: Home, content: bytes | None, complaint: str) -> None:
    if content is not None:
        home.soul.write_bytes(content)
    with pytest.raises(IdentityError, match=complaint) as caught:
        SoulDocument(home.soul)
    assert caught.value.remedy


@pytest.mark.parametrize("change", [b"another soul", b"", None])
def test_a_soul_that_changes_under_way_is_noticed(home: Home, change: bytes | None) -> None:
    home.soul.write_text("I am.")
    document = SoulDocument(home.soul)
    document.check()
    if change is None:
        home.soul.unlink()
    else:
        home.soul.write_bytes(change)
    with pytest.raises(IdentityError):
        document.check()


def test_self_md_is_made_once_and_never_overwritten(home: Home) -> None:
    assert ensure_self(home, template="# {{AGENT_NAME}} {{DATE}}", agent_name="rowan", today="2026-01-05")
    assert read_self(home) == "# rowan 2026-01-05"
    home.self_md.write_text("mine")
    assert not ensure_self(home, template="other", agent_name="rowan", today="2026-01-05")
    assert read_self(home) == "mine"


def test_a_self_md_that_cannot_be_read_is_an_empty_one(home: Home) -> None:
    home.self_md.write_bytes(b"\xff\xfe")
    assert read_self(home) == ""


def test_a_folder_that_is_set_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        Home.at(tmp_path, Path("disk/memory"))
    (tmp_path / "disk" / "memory").mkdir(parents=True)
    assert Home.at(tmp_path, Path("disk/memory")).memory == tmp_path / "disk" / "memory"


@pytest.mark.parametrize("given", [None, Path("disk")])
def test_an_empty_folder_in_which_a_soul_has_lived_is_no_beginning(tmp_path: Path, given: Path | None) -> None:
    memory = tmp_path / (given or ".memory")
    memory.mkdir()
    with HomeLock(Home.at(tmp_path, given), agent_name="rowan", started_at=NOW):
        (memory / "soul.db").touch()
    Home.at(tmp_path, given)
    (memory / "soul.db").unlink()
    with pytest.raises(ConfigError, match="is empty"):
        Home.at(tmp_path, given)


def test_a_user_without_a_folder_is_told_in_one_line_that_a_path_begins_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not known"):
        Home.at(tmp_path, Path("~no-such-user/memory"))


class Note(FileRecord):
    """A record with one field."""

    text: str


@pytest.mark.parametrize("odd", [[], "notes", 7, None])
def test_a_file_whose_records_are_none_is_set_aside_and_not_overwritten(tmp_path: Path, odd: object) -> None:
    path = tmp_path / "notes.json"
    path.write_text(json.dumps({"notes": odd}), encoding="utf-8")
    file = RecordFile(path, "notes", Note)
    file.records["first"] = Note(text="a word")
    file.save()
    assert "holds values of the wrong kind" in file.notice
    (aside,) = tmp_path.glob("notes.json.corrupt-*")
    assert json.loads(aside.read_text(encoding="utf-8")) == {"notes": odd}


def test_what_cannot_be_read_and_what_is_unknown_survive_a_save(tmp_path: Path) -> None:
    path = tmp_path / "notes.json"
    held = {"notes": {"odd": {"text": 7}, "new": {"text": "kept", "color": "red"}}, "more": [1]}
    path.write_text(json.dumps(held), encoding="utf-8")
    RecordFile(path, "notes", Note).save()
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert {name: saved[name] for name in held} == held
