"""Proves that in a long talk, while the room's record rotates often, nothing is repeated, lost or accumulated.

When the room's program is killed under five whole SOULs, all come back by themselves, once each, and talk. A SOUL
killed during a commitment keeps it once.
"""

import asyncio
import gc
import json
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect

from adapters.space.chatlog import ChatLog
from adapters.space.wire_fields import Chat, ChatDelivery
from common.clock import SystemClock
from modules.lives.space.perceive import SPACE_HISTORY_KEPT
from modules.lives.space.types import HistoryEntry
from tests.loopback import held_port
from tests.program import started, until
from tests.running_town import RunningTown
from tests.scenarios.room_society import (
    BODY,
    REPO,
    REQUEST,
    Asked,
    Quick,
    Society,
    Soul,
    diligent,
    open_society,
    quiet,
    talkative,
)
from town.github.values import Fault, FaultKind
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
"""Types that are kept up to a number of their own, and the most objects that there may be of each."""

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
    """Count the program's objects by type once the room has come to rest, without those of the test."""
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
    """Return the numbers in the guest's messages, as the record's files have them, oldest first."""
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


FIVE_NAMES = ("marvin", "rebecca", "peterben", "odile", "tobias")
WATCHED_S = 15.0
_ROW = re.compile(rf"^  ({'|'.join(FIVE_NAMES)})\s", re.MULTILINE)


@asynccontextmanager
async def hosted(port: int, folder: Path) -> AsyncIterator[Process]:
    """Run `soul space`, and yield its process once it can be joined."""
    async with started("space", "--port", str(port), "--data", str(folder), stdin=PIPE) as process:
        await until(process, "Space ready")
        yield process


async def tell(process: Process, line: str) -> None:
    """Type a line as the host."""
    assert process.stdin is not None
    process.stdin.write(f"{line}\n".encode())
    await process.stdin.drain()


async def rows(process: Process) -> list[str]:
    """Return whom the host sees in the room."""
    await tell(process, "/who")
    await tell(process, "/claims")
    return _ROW.findall(await until(process, "Nothing is claimed."))


def answered(folder: Path, question: str) -> set[str]:
    """Return who has spoken since that question, by the room's record."""
    chats = [entry for entry in ChatLog(folder).get_recent_history(1000) if entry.type == "chat"]
    at = next((number for number, entry in enumerate(chats) if entry.content == question), len(chats))
    return {entry.agent_name for entry in chats[at + 1 :]} - {"host"}


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_after_a_kill_of_the_room_five_souls_are_back_within_90_seconds_and_answer_the_host(
    running_town: RunningTown, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, clock = tmp_path / "space", SystemClock()
    async with AsyncExitStack() as stack:
        port = stack.enter_context(held_port())
        async with hosted(port, folder) as process:
            society = await stack.enter_async_context(
                open_society(running_town, clock, elsewhere=f"ws://127.0.0.1:{port}")
            )
            society.minds = {name: talkative(name, FIVE_NAMES) for name in FIVE_NAMES}
            souls: list[Soul] = [await stack.enter_async_context(society.soul(name, wait=False)) for name in FIVE_NAMES]
            for soul in souls:
                await soul.awake.wait()
            await society.until(lambda: all(soul.is_in for soul in souls), "all join")
            first = "What do you think of tin roofs?"
            await tell(process, first)
            await society.until(lambda: answered(folder, first) == set(FIVE_NAMES), "all answer")
            process.kill()
            await process.wait()
        killed_at = clock.monotonic()
        async with hosted(port, folder) as process:
            await society.until(lambda: all(soul.is_in for soul in souls), "all come back")
            back_s = clock.monotonic() - killed_at
            second = "Here we are again. What would you say of slate?"
            await tell(process, second)
            await society.until(
                lambda: answered(folder, second) == set(FIVE_NAMES),
                "all talk",
            )
            talking_s = clock.monotonic() - killed_at
            await asyncio.sleep(WATCHED_S)
            assert sorted(await rows(process)) == sorted(FIVE_NAMES)
            record = ChatLog(folder).get_recent_history(1000)
            ours = [entry.type for entry in record if entry.agent_name == "marvin" and entry.type in {"join", "leave"}]
            assert ours == ["join", "join"]
            assert [soul.app.services.integrations.room.joins for soul in souls] == [2] * len(souls)
    with capfd.disabled():
        sys.stdout.write(
            f"\nfive SOULs: back {back_s:.1f} s after the kill, and all had answered after {talking_s:.1f} s\n"
        )


MANY = 10_000


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("fault", "request_to"),
    [("lost_request", "GET *issues*"), ("hang", "POST *issues")],
    ids=["before-anything-was-sent", "after-the-issue-was-made"],
)
async def test_a_soul_killed_between_its_commitment_and_its_word_opens_one_issue_and_tells_it_once(
    running_town: RunningTown, fault: FaultKind, request_to: str
) -> None:
    async with open_society(running_town, SystemClock()) as society:
        society.default = diligent
        society.github_faults.arm(Fault(fault, request_to, times=MANY, seconds=60))
        home = society.make_home("marvin")
        async with started("run", "--home", str(home.root)) as first:
            await society.until(lambda: bool(society.host.seen), "it comes in")
            society.says(REQUEST)
            await society.until(lambda: bool(society.said()), "the promise")
            if fault == "hang":
                await society.until(lambda: bool(society.issues()), "the issue")
            else:
                await society.until(lambda: society.github_faults.armed[0].times < MANY, "its first try")
            first.kill()
            await first.wait()
        assert society.done() == []
        society.github_faults.clear()
        async with started("run", "--home", str(home.root)):
            await society.until(lambda: bool(society.done()), "the issue, told")
            await asyncio.sleep(10)
        (issue,) = society.issues()
        assert BODY in (issue.body or "")
        url = f"{society.github_url}/{REPO}/issues/{issue.number}"
        assert society.done() == [f"Done — issue opened: {issue.title}: {url}"]
        assert len(society.said()) == len({*society.said()})
