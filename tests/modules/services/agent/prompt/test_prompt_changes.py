"""Proves that every change of a file is written down once, across restarts, and that nothing else is."""

import hashlib
import json
from pathlib import Path
from typing import Any

from common.clock import FakeClock
from common.constants import LOG_MAX_BYTES
from modules.services.agent.prompt.prompter import Changes, FileSnapshot


def at(folder: Path) -> Changes:
    return Changes(folder / "status" / "bootstrap-changes.jsonl", folder / "status" / "hashes.json", FakeClock())


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "status" / "bootstrap-changes.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def user(text: str) -> dict[str, FileSnapshot]:
    return {"USER.md": FileSnapshot(text.encode(), "static")}


def test_a_change_is_one_line_with_both_hashes_and_sizes(tmp_path: Path) -> None:
    changes = at(tmp_path)
    changes.note(user("one"))
    assert len(changes.note(user("four"))) == 1
    assert changes.note(user("four")) == ()
    assert lines(tmp_path) == [
        {
            "at": "2026-01-05T12:00:00.000Z",
            "file": "USER.md",
            "old": hashlib.sha256(b"one").hexdigest(),
            "new": hashlib.sha256(b"four").hexdigest(),
            "bytes_old": 3,
            "bytes_new": 4,
            "group": "static",
        }
    ]


def test_what_a_file_was_survives_a_restart(tmp_path: Path) -> None:
    at(tmp_path).note(user("one"))
    assert at(tmp_path).note(user("one")) == ()
    changed = at(tmp_path).note(user("two"))
    assert [change.file for change in changed] == ["USER.md"]
    assert at(tmp_path).note(user("two")) == ()


def test_a_file_that_is_not_looked_at_is_not_gone_and_one_that_is_gone_is_a_change_to_nothing(tmp_path: Path) -> None:
    changes = at(tmp_path)
    changes.note(user("one"))
    assert changes.note({"GOALS.md": FileSnapshot(b"", "semi-static")}) == ()
    assert [(change.new, change.bytes_new) for change in changes.note(user(""))] == [("", 0)]
    assert [change.old for change in changes.note(user("one"))] == [""]
    assert [line["file"] for line in lines(tmp_path)] == ["USER.md", "USER.md"]


def test_a_crash_between_the_line_and_the_hash_tells_it_twice_rather_than_never(tmp_path: Path) -> None:
    at(tmp_path).note(user("one"))
    hashes = tmp_path / "status" / "hashes.json"
    before = hashes.read_bytes()
    at(tmp_path).note(user("two"))
    hashes.write_bytes(before)
    at(tmp_path).note(user("two"))
    assert len(lines(tmp_path)) == 2


def test_a_file_that_has_grown_too_large_is_put_aside_once(tmp_path: Path) -> None:
    changes = at(tmp_path)
    changes.note(user("one"))
    path = tmp_path / "status" / "bootstrap-changes.jsonl"
    path.write_text("x" * LOG_MAX_BYTES)
    changes.note(user("two"))
    assert path.with_name(path.name + ".1").stat().st_size == LOG_MAX_BYTES
    assert len(lines(tmp_path)) == 1
