"""Proves that a life whose output goes to a pipe that nobody reads goes on, and ends when it is asked to."""

import asyncio
import os
import sys

import pytest

from tests.patience import HANG_S, until
from tests.running_town import RunningTown, replying


def full_pipe() -> tuple[int, int]:
    """Return the reading and the writing end of a pipe that takes in nothing more."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    try:
        while True:
            os.write(theirs, b"x" * 1024)
    except BlockingIOError:
        os.set_blocking(theirs, True)
    return ours, theirs


@pytest.mark.slow
async def test_a_soul_answers_and_ends_while_nobody_reads_its_pipe(running_town: RunningTown) -> None:
    running_town.mind.answer = replying("Slate, because it remembers the rain.")
    home = running_town.make_home("rowan")
    ours, theirs = full_pipe()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "soul.cli", "run", "--home", str(home.root)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=theirs,
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(theirs)
    try:
        running_town.network.post_as(running_town.account("owner"), "@rowan.test which is it, tin or slate?")
        await until(lambda: running_town.texts("rowan"), what="an answer")
        process.terminate()
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)
