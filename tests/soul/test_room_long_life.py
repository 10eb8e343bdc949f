"""A long talk in a room whose record turns over again and again: nothing is said twice, lost, or heaped up."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect

from adapters.space.wire_fields import Chat, ChatDelivery
from modules.lives.space.perceive import SPACE_HISTORY_KEPT
from modules.lives.space.types import HistoryEntry
from tests.running_town import RunningTown
from tests.scenarios.room_society import (
    REQUEST,
    Asked,
    Quick,
    Society,
    diligent,
    open_society,
    quiet,
    talkative,
)
from town.model.types import Completion

NAMES = ("marvin", "rebecca")
RECORD_BYTES = 12_000
ROUNDS, ROUND_S, BREATH_S = 1_000, 25.0, 0.04
WARM_UP = ROUNDS * 2 // 3
MOST_GROWTH = 1.1
_REST_S = 20.0
_BOUNDED: dict[type, int] = {
    HistoryEntry: SPACE_HISTORY_KEPT * len(NAMES),
    ChatDelivery: 400,
    Chat: 400,
}
"""What is kept up to a number of its own, and for how many it may be at most."""

_QUESTION = re.compile(r"note \d+|Good night")
LAST = "Good night to all. What was best today?"


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_a_long_talk_leaves_a_soul_as_it_was_and_no_word_is_said_twice(
    running_town: RunningTown, capfd: pytest.CaptureFixture[str]
) -> None:
    model_calls = {name: talkative(name, NAMES) for name in NAMES}
    answered: set[tuple[str, str]] = set()

    def mind(asked: Asked) -> Completion:
        question = next(reversed(_QUESTION.findall(asked.text)), "")
        if asked.is_owner:
            return diligent(asked)
        if not question or (asked.name, question) in answered:
            return quiet()
        answered.add((asked.name, question))
        return model_calls[asked.name](asked)

    async with open_society(running_town, max_bytes=RECORD_BYTES) as society, AsyncExitStack() as stack:
        society.default = mind
        souls = [await stack.enter_async_context(society.soul(name)) for name in NAMES]
        guest = await stack.enter_async_context(connect(society.url, proxy=None))
        stack.push_async_callback(_cancelled, asyncio.create_task(_listen(guest)))
        await _send(guest, type="join", name="ada", id="ada-1", version="1")
        society.says(REQUEST)
        await society.until(lambda: bool(society.done()), "the issue")
        midway, said = Counter[type](), list[str]()
        for number in range(ROUNDS):
            assert isinstance(society.clock, Quick)
            society.clock.leap(ROUND_S)
            await _send(guest, type="chat", content=f"Ada noted {number} boats in the harbour of this morning.")
            if not number % 50:
                society.says(f"That makes note {number}. What do you think of it?")
            await asyncio.sleep(BREATH_S)
            if number == WARM_UP:
                midway = await _living_objects(society, said)
        at_the_end = await _living_objects(society, said)
        society.says(LAST)
        await society.until(lambda: {chat.name for chat in society.host.chats()} >= set(NAMES), "all still talk")
        said += [chat.content for chat in society.host.chats() if chat.name in NAMES]
        for soul in souls:
            assert len(soul.app.lives.space.participation.talk.state.history) <= SPACE_HISTORY_KEPT
            assert soul.app.services.integrations.room.joins == 1
    assert len(society.issues()) == 1
    assert [count for count in Counter(said).values() if count > 1] == []
    record = running_town.root / "room" / "data"
    assert len(list(record.glob("chat.*.jsonl"))) == 5
    kept = _notes(record)
    assert kept == list(range(kept[0], ROUNDS))
    assert {kind for kind, most in _BOUNDED.items() if at_the_end[kind] > most} == set()
    before, after = (
        Counter({kind: n for kind, n in one.items() if kind not in _BOUNDED}) for one in (midway, at_the_end)
    )
    assert after.total() < before.total() * MOST_GROWTH, after - before
    with capfd.disabled():
        sys.stdout.write(
            f"\na long talk of {ROUNDS} messages, {len(said)} of SOULs: {before.total()} objects of ours "
            f"after two thirds of it, {after.total()} at its end\n"
        )


async def _living_objects(society: Society, said: list[str]) -> Counter[type]:
    """What of the program lives when the room has come to rest, those of the test let go."""
    await society.passes(_REST_S)
    said += [chat.content for chat in society.host.chats() if chat.name in NAMES]
    society.host.seen.clear()
    society.asked.clear()
    society.running_town.mind.asked.clear()
    gc.collect()
    ours = ("adapters.", "modules.", "soul.", "common.")
    kinds = (type(one) for one in gc.get_objects())
    return Counter(kind for kind in kinds if str(kind.__module__).startswith(ours))


def _notes(record: Path) -> list[int]:
    """The numbers of what the guest said, as the record's files have them, oldest first."""
    files = [record / f"chat.{number}.jsonl" for number in range(5, 0, -1)] + [record / "chat.jsonl"]
    lines = [json.loads(line) for path in files if path.exists() for line in path.read_text().splitlines()]
    return [int(one["content"].split()[2]) for one in lines if one["agentName"] == "ada" and one["type"] == "chat"]


async def _send(guest: ClientConnection, **frame: str) -> None:
    await guest.send(json.dumps(frame))


async def _listen(guest: ClientConnection) -> None:
    async for _ in guest:
        pass


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
