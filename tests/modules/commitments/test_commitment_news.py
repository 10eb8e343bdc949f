"""The news of a kept promise is said in the room once, also by a life that does not remember having said it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from adapters.space.types import Event, History, LogEntry, Said
from common.clock import iso
from common.result import ApiResult, Err, Ok
from modules.commitments.space_courier import ABSENT, OwnWords, SpaceCourier
from modules.outbox.types import Intent, Sent
from tests.modules.commitments.commitment_house import House

LINE = "Done \u2014 the clock: https://x/1"
LEFT_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
NEWS = Intent("1", "space_chat", "c#announced", {"text": LINE}, "", "", "", None, iso(LEFT_AT), iso(LEFT_AT), "sending")
NEVER = Err("it could not be said within 60 s", "transient")
FORGOTTEN = Err("no such message is on its way", "not_found")


@dataclass
class ToldRoom:
    """A room in which the test decides what becomes of words."""

    fate: ApiResult[bool] = field(default_factory=lambda: Ok(data=True))
    is_active: bool = True
    said: list[str] = field(default_factory=list)

    async def send_chat(self, content: str) -> ApiResult[str]:
        self.said.append(content)
        return Ok(f"chat-{len(self.said)}")

    async def delivered(self, chat_id: str) -> ApiResult[bool]:
        return self.fate


def _said(minutes: float = 1, *, name: str = "rowan", words: str = LINE) -> Event:
    return Said(name, f"{name}-1", words, iso(LEFT_AT + timedelta(minutes=minutes)))


def _recorded(minutes: float = 1, *, name: str = "rowan", words: str = LINE) -> Event:
    at = iso(LEFT_AT + timedelta(minutes=minutes))
    return History((LogEntry(at, name, f"{name}-1", "chat", words), LogEntry(at, name, f"{name}-1", "claim", LINE)))


async def test_what_the_room_echoes_has_arrived_and_the_owner_sees_it(house: House) -> None:
    room = ToldRoom()
    assert await SpaceCourier(room, OwnWords("rowan"), house.journal).send(NEWS) == Ok(Sent())
    assert room.said == [LINE]
    assert any("Fulfillment announced" in line for line in house.told())


@pytest.mark.parametrize(
    ("fate", "kind"),
    [(NEVER, "transient"), (FORGOTTEN, "unknown_outcome"), (Ok(data=False), "unknown_outcome")],
    ids=["never said", "forgotten", "no echo"],
)
async def test_what_was_surely_not_said_may_be_said_again_and_nothing_else(
    house: House, fate: ApiResult[bool], kind: str
) -> None:
    outcome = await SpaceCourier(ToldRoom(fate), OwnWords("rowan"), house.journal).send(NEWS)
    assert isinstance(outcome, Err)
    assert outcome.kind == kind


@pytest.mark.parametrize(
    ("event", "arrived"),
    [
        (_said(), True),
        (_recorded(), True),
        (_said(words=f"  {LINE}\n"), True),
        (_said(-30), True),
        (_said(-120), False),
        (_recorded(-120), False),
        (_said(name="marvin"), False),
        (_recorded(name="marvin"), False),
        (_said(words="Done \u2014 the clock"), False),
    ],
    ids=[
        "echoed", "recorded", "white space", "clocks apart", "long before", "recorded long before", "a peer's",
        "a peer's, recorded", "other words",
    ],
)  # fmt: skip
async def test_after_a_crash_the_rooms_record_tells_whether_it_was_said(
    house: House, event: Event, *, arrived: bool
) -> None:
    words = OwnWords("rowan")
    words.hear(event)
    found = await SpaceCourier(ToldRoom(), words, house.journal).find(NEWS)
    assert found == Ok(Sent() if arrived else None)


async def test_without_a_room_nobody_can_tell_and_nothing_leaves(house: House) -> None:
    away = SpaceCourier(ToldRoom(is_active=False), OwnWords("rowan"), house.journal)
    assert await away.find(NEWS) == Err(ABSENT, "transient")
    nowhere = SpaceCourier(None, OwnWords("rowan"), house.journal)
    assert await nowhere.send(NEWS) == await nowhere.find(NEWS) == Err(ABSENT, "transient")
