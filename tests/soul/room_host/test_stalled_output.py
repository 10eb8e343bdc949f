"""Proves that members talk on while nobody reads the room's pipe or its terminal is held, and that it can close."""

import asyncio
import fcntl
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.patience import HANG_S
from tests.soul.room_host.pseudo_terminal import hosted

WORDS = "The weir was built before the mill. " * 400
"""Far more than a pipe, or a terminal of one page, takes in before it stalls."""
_PAGE_BYTES = 4096


async def received(member: ClientConnection, holding: str) -> None:
    async with asyncio.timeout(HANG_S):
        while holding not in str(await member.recv()):
            pass


@asynccontextmanager
async def two(url: str) -> AsyncIterator[tuple[ClientConnection, ClientConnection]]:
    """Connect two members, and wait until both have joined."""
    async with connect(url) as marvin, connect(url) as ada:
        for name, member in (("marvin", marvin), ("ada", ada)):
            await member.send(json.dumps({"type": "join", "name": name, "id": name, "version": "1"}))
            await received(member, f'"{name}"')
        yield marvin, ada


async def say(member: ClientConnection, words: str) -> None:
    await member.send(json.dumps({"type": "chat", "content": words}))


class Pipe:
    """The program with a pipe as its output, read only when a test asks for it."""

    def __init__(self, ours: int, process: asyncio.subprocess.Process) -> None:
        self.ours = ours
        self.process = process
        self.seen = ""

    async def until(self, words: str) -> str:
        async with asyncio.timeout(HANG_S):
            while words not in self.seen:
                data = await asyncio.to_thread(os.read, self.ours, 65_536)
                assert data, self.seen
                self.seen += data.decode(errors="replace")
        return self.seen


@asynccontextmanager
async def piped(folder: Path) -> AsyncIterator[tuple[Pipe, str]]:
    ours, theirs = os.pipe()
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, _PAGE_BYTES)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "soul.cli", "space", "--port", "0", "--data", str(folder)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=theirs,
    )
    os.close(theirs)
    pipe = Pipe(ours, process)
    try:
        seen = await pipe.until("Space ready")
        yield pipe, re.findall(r"SPACE_URL=(ws://[^/\s]+)", seen)[0]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)


@pytest.mark.slow
async def test_members_talk_on_while_nobody_reads_the_pipe_and_all_of_it_comes_out_later(tmp_path: Path) -> None:
    async with piped(tmp_path) as (pipe, url):
        async with two(url) as (marvin, ada):
            await say(marvin, f"first {WORDS}")
            await received(ada, "first")
            await say(ada, "second")
            await received(marvin, "second")
        seen = await pipe.until("← left    ada")
        assert seen.index("first") < seen.index("second")
        pipe.process.terminate()
        await pipe.until("Good-bye")
        assert await asyncio.wait_for(pipe.process.wait(), HANG_S) == 0


@pytest.mark.slow
async def test_a_room_whose_pipe_nobody_reads_can_be_closed(tmp_path: Path) -> None:
    async with piped(tmp_path) as (pipe, url):
        async with two(url) as (marvin, ada):
            await say(marvin, f"first {WORDS}")
            await received(ada, "first")
        pipe.process.terminate()
        assert await asyncio.wait_for(pipe.process.wait(), HANG_S) == 0


@pytest.mark.slow
async def test_members_talk_on_while_the_terminal_is_held(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (terminal, url), two(url) as (marvin, ada):
        terminal.hold()
        await say(marvin, f"first {WORDS}")
        await received(ada, "first")
        await say(ada, "second")
        await received(marvin, "second")
        terminal.release()
        await terminal.until("second")
