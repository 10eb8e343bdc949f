"""A file of records that holds something else is set aside; what is unknown in one survives a save."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.runtime.record_file import FileRecord, RecordFile


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
