"""A room keeps its id wherever it listens, and a member knows it again by that, not by its address."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.space.chatlog import ChatLog
from adapters.space.types import History
from adapters.space.wire import decode_event
from tests.adapters.space.running_room import RoomDriver


def test_the_id_lies_beside_the_record_and_stays(tmp_path: Path) -> None:
    made = ChatLog(tmp_path / "one").room_id()
    kept = tmp_path / "one" / "data" / "room-id"
    assert len(made) >= 16
    assert ChatLog(tmp_path / "one").room_id() == made
    assert ChatLog(tmp_path / "two").room_id() != made
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("found", [b"", b"short\n", b"\xff" * 30, b"two words that are no id\n", b"x" * 5000])
def test_what_is_no_id_is_replaced_by_one(tmp_path: Path, found: bytes) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "room-id").write_bytes(found)
    made = ChatLog(tmp_path).room_id()
    assert made
    assert ChatLog(tmp_path).room_id() == made


def test_a_room_that_cannot_keep_an_id_has_none_and_says_why(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "data").write_text("a file where the folder should be")
    assert ChatLog(tmp_path, report=told.append).room_id() == ""
    (tmp_path / "other" / "data" / "room-id").mkdir(parents=True)
    assert ChatLog(tmp_path / "other", report=told.append).room_id() == ""
    assert len(told) == 2


def test_the_id_is_told_after_the_record_and_a_room_without_one_tells_what_it_always_told() -> None:
    driver = RoomDriver()
    assert driver.texts[driver.join("ada")][-1].endswith('"content":""}]}')
    driver.room.remember(driver.room._state.replay, "a-room-of-its-own")
    told = driver.texts[driver.join("bob")][-1]
    assert told.endswith('"content":""}],"roomId":"a-room-of-its-own"}')
    event = decode_event(told)
    assert isinstance(event, History)
    assert (event.room_id, len(event.entries)) == ("a-room-of-its-own", 2)


@pytest.mark.parametrize("told", [None, 7, ["id"], {"id": 1}])
def test_an_id_that_is_no_text_is_none(told: object) -> None:
    event = decode_event(json.dumps({"type": "history_response", "entries": [], "roomId": told}))
    assert event == History(())
