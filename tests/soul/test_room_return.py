"""The room's program is killed under five whole SOULs: all come back by themselves, once each, and talk."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from adapters.space.chatlog import ChatLog
from common.clock import SystemClock
from tests.loopback import held_port
from tests.program import started, until
from tests.running_town import RunningTown
from tests.scenarios.room_society import Soul, open_society, talkative

NAMES = ("marvin", "rebecca", "peterben", "odile", "tobias")
WATCHED_S = 15.0
_ROW = re.compile(rf"^  ({'|'.join(NAMES)})\s", re.MULTILINE)


@asynccontextmanager
async def hosted(port: int, folder: Path) -> AsyncIterator[Process]:
    """`soul space`, with its door open."""
    async with started("space", "--port", str(port), "--data", str(folder), stdin=PIPE) as process:
        await until(process, "Space ready")
        yield process


async def tell(process: Process, line: str) -> None:
    """The host types it."""
    assert process.stdin is not None
    process.stdin.write(f"{line}\n".encode())
    await process.stdin.drain()


async def rows(process: Process) -> list[str]:
    """Whom the host sees in the room."""
    await tell(process, "/who")
    await tell(process, "/claims")
    return _ROW.findall(await until(process, "Nothing is claimed."))


def answered(folder: Path, question: str) -> set[str]:
    """Who has spoken since that question, by the room's record."""
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
            society.minds = {name: talkative(name, NAMES) for name in NAMES}
            souls: list[Soul] = [await stack.enter_async_context(society.soul(name, wait=False)) for name in NAMES]
            for soul in souls:
                await soul.awake.wait()
            await society.until(lambda: all(soul.is_in for soul in souls), "all join")
            first = "What do you think of tin roofs?"
            await tell(process, first)
            await society.until(lambda: answered(folder, first) == set(NAMES), "all answer")
            process.kill()
            await process.wait()
        killed_at = clock.monotonic()
        async with hosted(port, folder) as process:
            await society.until(lambda: all(soul.is_in for soul in souls), "all come back")
            back_s = clock.monotonic() - killed_at
            second = "Here we are again. What would you say of slate?"
            await tell(process, second)
            await society.until(
                lambda: answered(folder, second) == set(NAMES),
                "all talk",
            )
            talking_s = clock.monotonic() - killed_at
            await asyncio.sleep(WATCHED_S)
            assert sorted(await rows(process)) == sorted(NAMES)
            record = ChatLog(folder).get_recent_history(1000)
            ours = [entry.type for entry in record if entry.agent_name == "marvin" and entry.type in {"join", "leave"}]
            assert ours == ["join", "join"]
            assert [soul.app.services.integrations.room.joins for soul in souls] == [2] * len(souls)
    with capfd.disabled():
        sys.stdout.write(
            f"\nfive SOULs: back {back_s:.1f} s after the kill, and all had answered after {talking_s:.1f} s\n"
        )
