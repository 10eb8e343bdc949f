"""A check of the room rests on values that nobody changes: a case and its snapshot."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, timedelta

import pytest

from modules.lives.space.config import SpaceConfig
from modules.lives.space.policy import role_budget
from modules.lives.space.request_parser import parse_request
from modules.lives.space.respond import Case
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.state import MessagesArrived
from modules.lives.space.types import Asked, PeerEvent
from tests.modules.lives.space.soul_in_room import Room, declines


def test_a_case_and_its_snapshot_do_not_change() -> None:
    case = Case(RoomSnapshot(datetime(2026, 3, 2, tzinfo=UTC), "nova"), SpaceConfig())
    for value in (case, case.snapshot):
        for one in fields(value):
            with pytest.raises(FrozenInstanceError):
                setattr(value, one.name, None)


async def test_a_snapshot_holds_what_the_request_asks_for_and_how_the_talk_reads(room: Room) -> None:
    request = 'Please post on Bluesky: "The clock runs again"'
    async with room.soul("marvin", lambda _: declines()) as marvin:
        await room.says(request, marvin)
        await marvin.check()
        life = marvin.space.participation
        snapshot = life.snapshots.build_snapshot(())
        claim = PeerEvent("claim", "rebecca", snapshot.now + timedelta(seconds=1), "post_bluesky", "#The clock")
        life.talk.handle(MessagesArrived((), snapshot.now, (claim,)))
        life.snapshots.advance()
        assert life.snapshots.build_snapshot(()).is_claimed
    assert snapshot.request.content == request
    assert snapshot.asked == parse_request(request) == Asked("post_bluesky", "The clock runs again")
    assert snapshot.is_open
    assert not snapshot.is_claimed
    assert snapshot.budget == role_budget(snapshot.role, snapshot.mode) > 0
    assert [line.partition("] ")[2] for line in snapshot.lines] == [f"host: {request}"]
    assert snapshot.latest_lines == "\n".join(snapshot.lines)
