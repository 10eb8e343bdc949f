"""Runs `git` with the settings that every run gets (`params`), to its end or its deadline."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common.result import Err


@dataclass(frozen=True, slots=True)
class GitRun:
    """A run that ended: its exit code, what it wrote to stdout, and what it told on stderr."""

    code: int
    out: str
    told: str


async def run_git(
    arguments: tuple[str, ...], *, at: Path, env: Mapping[str, str], deadline_s: float, given: str = ""
) -> GitRun | Err:
    """Run `git` in the folder `at` with `given` on stdin; an `Err` where it does not start or does not end in time."""
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            cwd=at,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Err(f"git cannot be started ({error.strerror}): install it", "invalid")
    try:
        async with asyncio.timeout(deadline_s):
            out, told = await process.communicate(given.encode())
    except TimeoutError:
        return Err(f"it took longer than {deadline_s:g} s", "unknown_outcome")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return GitRun(process.returncode or 0, out.decode(errors="replace"), told.decode(errors="replace"))
