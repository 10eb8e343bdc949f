"""Conversations are condensed and archived while the process is killed again and again: none is lost or doubled."""

import asyncio
import os
import random
import re
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from common.result import Ok
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.llm.dialect import Message, ToolAnswer, ToolCall
from modules.services.sessions import archives as endings
from modules.services.sessions.archives import done, read_archive
from modules.services.sessions.sessions import Sessions
from modules.services.sessions.types import blocks
from tests.crash.crash_rig import Nursery, kill, nursing
from tests.crash.sessions_child import AGENT, Room, open_room
from tests.modules.services.sessions.session_values import joined
from tests.running_town import KEY, Mind, call
from town.model.service import model_app
from town.model.types import ChatRequest, Completion
from town.serving import serve

KILLS = int(os.environ.get("CRASH_KILLS", "100"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
LOOK_EVERY = 20
LIFE_S = 1.0
NUMBERS_A_LIFE = 1000

_NUMBER = re.compile(r"message (\d+) is counted")


@dataclass
class Figures:
    """The events of a run, and the checked results."""

    kills: Counter[str] = field(default_factory=Counter)
    said: set[int] = field(default_factory=set)
    archives: int = 0
    resumed: int = 0
    kept: int = 0

    def __str__(self) -> str:
        moments = ", ".join(f"{count} {moment}" for moment, count in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} SIGKILLs ({moments}); {len(self.said)} messages kept, each there exactly once; "
            f"{self.archives} archives, all whole, {self.resumed} of them finished by a later life; "
            f"{self.kept} memories, none twice"
        )


@pytest.mark.crash
@pytest.mark.timeout(120 + KILLS * 5)
async def test_killed_at_random_nothing_is_half_archived_lost_or_remembered_twice(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    figures = Figures()
    async with (
        serve(model_app(Mind(counting), api_key=KEY)) as model_url,
        nursing("tests.crash.sessions_child", str(tmp_path), model_url, KEY) as nursery,
    ):
        while figures.kills.total() < KILLS:
            await live_and_die(nursery, rng, figures)
            if figures.kills.total() % LOOK_EVERY == 0 or figures.kills.total() >= KILLS:
                database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
                async with open_room(tmp_path, database, model_url, KEY) as room:
                    await look(room, figures)
    sys.stdout.write(f"\n{figures}, seed {SEED}\n")
    assert figures.archives > KILLS / 2, "too few archives to prove anything"
    assert figures.resumed > KILLS / 10, "too few lives had anything to finish"


def counting(request: ChatRequest) -> Completion:
    """Answer as a model that stores the first and the last message number of a talk."""
    numbers = [int(number) for number in _NUMBER.findall(request.messages[-1].text)]
    return call(
        "keep_memories",
        summary=f"It was counted further in this talk, from message {min(numbers)}.",
        facts=[f"Talk from message {min(numbers)}: it is counted further, until message {max(numbers)}"],
    )


async def live_and_die(nursery: Nursery, rng: random.Random, figures: Figures) -> None:
    """Run one life and kill it; record what it said and how it ended."""
    moment = rng.choice(["inside a step of archiving", "after a step of archiving", "any time"])
    die_at = 0 if moment == "any time" else rng.randint(1, 9)
    first = NUMBERS_A_LIFE * (figures.kills.total() + 1)
    pid = await nursery.birth(f"{first} {rng.randrange(10**6)} {die_at} {'inside' if 'inside' in moment else 'after'}")
    end = asyncio.get_running_loop().time() + (rng.uniform(0, 0.5) if moment == "any time" else LIFE_S)
    while True:
        try:
            word = await nursery.receive(max(0.0, end - asyncio.get_running_loop().time()))
        except TimeoutError:
            kill(pid)
            end += 30
            continue
        if word.startswith("said"):
            figures.said.add(int(word.split()[1]))
        elif word.startswith("finished"):
            figures.resumed += int(word.split()[1])
        elif word.startswith("ended"):
            assert word == f"ended -{signal.SIGKILL}"
            figures.kills[moment] += 1
            return


async def look(room: Room, figures: Figures) -> None:
    """Finish what was left, as a start does; then check that each message is stored exactly once."""
    figures.resumed += len(await room.archivist.finish_prepared())
    assert await room.archivist.finish_prepared() == []
    assert await room.database.run(endings.due) == []
    listed = await room.database.run(lambda connection: done(connection, None, 10**6))
    stored = await room.storage.list(f"agents/{AGENT}")
    assert isinstance(stored, Ok)
    assert {info.key for info in stored.data} == {archive.key for archive in listed}
    found: list[int] = []
    for archive in listed:
        lines = await read_archive(room.storage, archive)
        assert isinstance(lines, Ok)
        assert len(lines.data) == archive.message_count
        found += _checked(joined((line.role, line.message) for line in lines.data))
    going_on = await room.database.run(_sessions_with_rows)
    for session_id in going_on:
        found += _checked(await _kept(room.sessions, session_id))
    twice = [number for number, times in Counter(found).items() if times > 1]
    assert not twice
    assert figures.said <= set(found)
    figures.said = set(found)
    figures.archives = len(listed)
    remembered = await room.database.run(_memories)
    assert Counter(remembered) == Counter(memory.body for archive in listed for memory in archive.distilled.memories)
    figures.kept = len(remembered)


async def _kept(sessions: Sessions, session_id: str) -> list[Message]:
    return joined((row.role, row.message) for row in await sessions.rows(session_id))


def _sessions_with_rows(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT DISTINCT session_id FROM session_messages").fetchall()
    ended = connection.execute(
        "SELECT count(*) FROM session_messages JOIN sessions ON id = session_id WHERE ended_at IS NOT NULL"
    ).fetchone()[0]
    assert ended == 0, "what has ended is archived, and its messages are gone"
    return [row[0] for row in rows]


def _memories(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT body FROM memories")]


def _checked(said: Iterable[Message]) -> list[int]:
    """Return the numbers of messages; check that each call has its answers."""
    said = list(said)
    for message, after in zip(said, [*said[1:], None], strict=True):
        calls = [block.id for block in blocks(message) if isinstance(block, ToolCall)]
        if calls:
            assert after is not None
            assert calls == [block.tool_use_id for block in blocks(after) if isinstance(block, ToolAnswer)]
    return [int(number) for message in said if message.role == "user" for number in _NUMBER.findall(str(message))]
