"""Runs the program as its owner would start it, and reads its output line by line."""

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adapters.git.client import abort_input
from tests.patience import HANG_S


@dataclass
class Ended:
    """The exit code and the output of a command."""

    code: int
    output: str

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.output.splitlines() if line.startswith("✗")]

    @property
    def remedies(self) -> list[str]:
        return [line for line in self.output.splitlines() if line.startswith("  →")]


async def soul(*arguments: str, seconds: float = HANG_S) -> Ended:
    """Run the program to its end."""
    async with started(*arguments) as process:
        output, _ = await asyncio.wait_for(process.communicate(), seconds)
        return Ended(process.returncode or 0, output.decode())


@asynccontextmanager
async def started(
    *arguments: str, stdin: int = asyncio.subprocess.DEVNULL, stdout: int = asyncio.subprocess.PIPE
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Yield the running program; kill it at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "soul.cli",
        *arguments,
        stdin=stdin,
        stdout=stdout,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await abort_input(process)


async def until(process: Process, words: str, seconds: float = HANG_S) -> str:
    """Read the output until a line contains `words`; return all that was read."""
    assert process.stdout is not None
    seen = ""
    async with asyncio.timeout(seconds):
        while line := (await process.stdout.readline()).decode():
            seen += line
            if words in line:
                return seen
    raise AssertionError(f"never said {words!r}:\n{seen}")


def one_clear_line(ended: Ended, *words: str, code: int = 1) -> None:
    """Check that the program ended with `code`, one complaint with these words, one remedy, and no traceback."""
    assert ended.code == code, ended.output
    assert len(ended.complaints) == 1, ended.output
    assert len(ended.remedies) == 1, ended.output
    assert "Traceback" not in ended.output
    for word in words:
        assert word in ended.complaints[0] + ended.remedies[0]
