"""The news of a kept commitment is said in the room once, even by a life that does not remember having said it.

A commitment deserves attention while it is due, and when it keeps failing.
"""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from adapters.space.types import History, LogEntry, Said, SpaceEvent
from common.clock import FakeClock, SystemClock, iso
from common.result import ApiResult, Err, Ok
from modules.services.agent.attention_list import Item
from modules.services.outbox.bodies import IntentKind, OpaqueBody, SpaceChatBody
from modules.services.outbox.senders.github import GitHubSender
from modules.services.outbox.senders.space import ABSENT, OTHER_ROOM, EchoLog, SpaceSender
from modules.services.outbox.types import Intent, Sent
from tests.modules.services.commitments.commitment_values import Opened, taken, wanted
from tests.modules.services.commitments.soul_in_town import SoulInTown, Town, listening
from tests.patience import until
from tests.trusting import identity_of
from town.github.values import Fault

SPOKEN = "I'll open it now."
LINE = "Done \u2014 the clock: https://x/1"
LEFT_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
NEWS = Intent(
    "1", "space_chat", "c#announced", SpaceChatBody(text=LINE), "", "", "", None, iso(LEFT_AT), iso(LEFT_AT), "sending"
)
NEVER = Err("it could not be said within 60 s", "transient")
FORGOTTEN = Err("no such message is on its way", "not_found")


@dataclass
class ToldRoom:
    """A room in which the test decides whether a chat was delivered."""

    fate: ApiResult[bool] = field(default_factory=lambda: Ok(data=True))
    is_active: bool = True
    url: str = "ws://10.0.0.7:7777"
    room_id: str = ""
    said: list[str] = field(default_factory=list)

    async def send_chat(self, content: str) -> ApiResult[str]:
        self.said.append(content)
        return Ok(f"chat-{len(self.said)}")

    async def delivered(self, chat_id: str) -> ApiResult[bool]:
        return self.fate


def _said(minutes: float = 1, *, name: str = "rowan", words: str = LINE) -> SpaceEvent:
    return Said(name, f"{name}-1", words, iso(LEFT_AT + timedelta(minutes=minutes)))


def _recorded(minutes: float = 1, *, name: str = "rowan", words: str = LINE) -> History:
    at = iso(LEFT_AT + timedelta(minutes=minutes))
    return History((LogEntry(at, name, f"{name}-1", "chat", words), LogEntry(at, name, f"{name}-1", "claim", LINE)))


async def test_what_the_room_echoes_has_arrived_and_the_owner_sees_it(soul_in_town: SoulInTown) -> None:
    room = ToldRoom()
    assert await SpaceSender(room, EchoLog("rowan"), soul_in_town.journal).send(NEWS) == Ok(Sent())
    assert room.said == [LINE]
    assert any("Fulfillment announced" in line for line in soul_in_town.told())


@pytest.mark.parametrize(
    ("fate", "kind"),
    [(NEVER, "transient"), (FORGOTTEN, "unknown_outcome"), (Ok(data=False), "unknown_outcome")],
    ids=["never said", "forgotten", "no echo"],
)
async def test_what_was_surely_not_said_may_be_said_again_and_nothing_else(
    soul_in_town: SoulInTown, fate: ApiResult[bool], kind: str
) -> None:
    outcome = await SpaceSender(ToldRoom(fate), EchoLog("rowan"), soul_in_town.journal).send(NEWS)
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
        (_said(name="marvin"), False),
        (_said(words="Done \u2014 the clock"), False),
    ],
)
async def test_after_a_crash_the_rooms_record_tells_whether_it_was_said(
    soul_in_town: SoulInTown, event: SpaceEvent, *, arrived: bool
) -> None:
    words = EchoLog("rowan")
    words.receive(event)
    found = await SpaceSender(ToldRoom(), words, soul_in_town.journal).find(NEWS)
    assert found == Ok(Sent() if arrived else None)


async def test_without_a_room_nobody_can_tell_and_nothing_leaves(soul_in_town: SoulInTown) -> None:
    away = SpaceSender(ToldRoom(is_active=False), EchoLog("rowan"), soul_in_town.journal)
    assert await away.find(NEWS) == Err(ABSENT, "transient")
    nowhere = SpaceSender(None, EchoLog("rowan"), soul_in_town.journal)
    assert await nowhere.send(NEWS) == await nowhere.find(NEWS) == Err(ABSENT, "transient")


def _gate(sender: SpaceSender, news: Intent) -> str:
    with sqlite3.connect(":memory:") as connection:
        wait = sender.gate(connection, news, LEFT_AT)
    connection.close()
    return wait.reason if wait else ""


@pytest.mark.parametrize(
    ("body", "received", "why_not"),
    [
        ({}, (), ""),
        ({"room": "ws://10.0.0.7:7777", "said": SPOKEN}, (), ""),
        ({"room": "ws://10.0.0.8:7777", "said": SPOKEN}, (), OTHER_ROOM),
        ({"room": "ws://10.0.0.8:7777", "said": SPOKEN}, (_recorded(words=SPOKEN),), ""),
        ({"room": "ws://10.0.0.7:7777", "said": SPOKEN}, (_said(words=SPOKEN), _recorded(words="Hm.")), ""),
        ({"room": "ws://10.0.0.8:7777", "said": SPOKEN}, (_said(words=SPOKEN), _recorded(words="Hm.")), OTHER_ROOM),
        (
            {"room": "ws://10.0.0.8:7777", "said": SPOKEN},
            (_said(words=SPOKEN), _said(words="Hm."), _recorded(words="Hm.")),
            "",
        ),
    ],
)
async def test_news_are_for_the_room_in_which_it_was_committed(
    soul_in_town: SoulInTown, body: dict[str, str], received: tuple[SpaceEvent, ...], why_not: str
) -> None:
    words = EchoLog("rowan")
    for event in received:
        words.receive(event)
    sender, news = (
        SpaceSender(ToldRoom(), words, soul_in_town.journal),
        replace(NEWS, body=SpaceChatBody(text=LINE, **body)),
    )
    assert _gate(sender, news) == why_not
    found = await sender.find(news)
    assert found == (Err(OTHER_ROOM, "transient") if why_not else Ok(None))


@pytest.mark.parametrize(
    ("here", "there", "address", "why_not"),
    [
        ("parlour", "parlour", "ws://10.0.0.8:7777", ""),
        ("parlour", "kitchen", "ws://10.0.0.7:7777", OTHER_ROOM),
        ("", "kitchen", "ws://10.0.0.7:7777", ""),
        ("parlour", "", "ws://10.0.0.7:7777", ""),
        ("parlour", "", "ws://10.0.0.8:7777", OTHER_ROOM),
    ],
    ids=["moved", "another at its address", "it tells none", "it told none", "it told none, and lies elsewhere"],
)
async def test_the_id_of_a_room_counts_more_than_its_address(
    soul_in_town: SoulInTown, here: str, there: str, address: str, why_not: str
) -> None:
    sender = SpaceSender(ToldRoom(room_id=here), EchoLog("rowan"), soul_in_town.journal)
    news = replace(NEWS, body=SpaceChatBody(text=LINE, room=address, room_id=there, said=SPOKEN))
    assert _gate(sender, news) == why_not


async def test_news_wait_through_another_room_until_their_own_is_back_at_another_address(
    tmp_path: Path, town: Town
) -> None:
    soul_in_town = SoulInTown(tmp_path / "soul_in_town", town)
    soul_in_town.folder.mkdir()
    record = ChatLog(tmp_path / "room")
    async with _room(town, record):
        await soul_in_town.wake()
        assert soul_in_town.room is not None
        said = await soul_in_town.room.send_chat(SPOKEN)
        assert isinstance(said, Ok)
        assert await soul_in_town.room.delivered(said.data) == Ok(data=True)
        town.faults.arm(Fault("unavailable", times=10_000))
        one = await soul_in_town.enqueue(wanted(text=SPOKEN))
        await soul_in_town.live(5)
    await until(lambda: soul_in_town.room is not None and not soul_in_town.room.is_active)
    town.faults.clear()
    await soul_in_town.live(90, step_s=5)
    assert soul_in_town.status(one).status == "completed"
    async with _room(town, None), listening(town) as stranger:
        await soul_in_town.restart()
        await soul_in_town.live(30)
        assert stranger.client.inbox.take_messages() == []
    async with _room(town, record), listening(town) as marvin:
        await soul_in_town.restart()
        marvin.client.inbox.take_messages()
        await soul_in_town.live(10)
        assert (await marvin.receives(1))[0].startswith("Done ")
    await soul_in_town.sleep()
    record.close()


@asynccontextmanager
async def _room(town: Town, record: ChatLog | None) -> AsyncIterator[None]:
    town.server = SpaceServer(record, clock=SystemClock())
    assert isinstance(await town.server.start(0), Ok)
    try:
        yield
    finally:
        await town.server.stop()


@pytest.mark.parametrize("kind", ["issue", "issue_comment", "space_chat"])
async def test_an_act_that_cannot_be_read_is_never_sent(soul_in_town: SoulInTown, kind: IntentKind) -> None:
    spoilt = replace(NEWS, kind=kind, body=OpaqueBody({"text": 7}))
    to_room, to_github = (
        SpaceSender(ToldRoom(), EchoLog("rowan"), soul_in_town.journal),
        GitHubSender(identity_of(soul_in_town.github, soul_in_town.clock)),
    )
    answer = await (to_room if kind == "space_chat" else to_github).send(spoilt)
    assert isinstance(answer, Err)
    assert answer.kind == "invalid"
    assert soul_in_town.town.issues() == []


async def test_what_is_still_to_be_kept_deserves_attention_until_it_has_no_sense(
    opened: Opened, clock: FakeClock
) -> None:
    queue = await opened()
    kept, waits = await taken(queue, "One"), await taken(queue, "Two", title="The second")
    await queue.mark_completed(kept.id, {"issues": [], "count": 0})
    attention = await queue.attention()
    assert attention.commitments == (Item("The second", "pending", clock.now() + timedelta(days=1)),)
    assert waits.status == "pending"


async def test_what_failed_more_than_once_this_week_deserves_attention(opened: Opened, clock: FakeClock) -> None:
    queue = await opened()
    for number in range(2):
        assert await queue.withdraw((await taken(queue, f"Leave {number}", title=f"Left {number}")).id, "taken back")
        assert (await queue.attention()).failing == ()
    for number in range(2):
        one = await taken(queue, f"Write {number} down")
        await queue.mark_in_progress(one.id)
        await queue.mark_failed(one.id, "Not Found")
    (failing,) = (await queue.attention()).failing
    assert (failing.what, failing.count) == ("create_issue", 2)
    await clock.advance(timedelta(days=8).total_seconds())
    assert (await queue.attention()).failing == ()
