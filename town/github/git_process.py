"""The one place where the town's GitHub starts `git`. Every process has a deadline and sees nobody's settings."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from adapters.git.process import drain

DEADLINE_S = 30.0
_AT_ONCE = 6


class GitError(Exception):
    """A `git` that failed; `code` is -1 where it did not end in time or could not be started."""

    def __init__(self, command: str, code: int, told: str) -> None:
        super().__init__(f"git {command} ended with {code}: {told[-500:]}")
        self.code = code
        self.told = told


@dataclass(frozen=True, slots=True)
class Output:
    """What a `git` wrote to its standard output, and its exit code."""

    text: bytes
    code: int


class GitProcess:
    """Runs `git` in bare repositories, a few at once."""

    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def run(
        self,
        folder: Path,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        fine: Collection[int] = (0,),
    ) -> Output:
        """Runs `git` in `folder` and returns what it wrote. Raises `GitError` for any exit code not in `fine`."""
        async with self._places, self.started(folder, *arguments, env=env) as process:
            try:
                async with asyncio.timeout(self._deadline_s):
                    out, errors = await process.communicate(stdin)
            except TimeoutError as error:
                raise GitError(arguments[0], -1, "it took too long") from error
        code = process.returncode or 0
        if code not in fine:
            raise GitError(arguments[0], code, errors.decode(errors="replace"))
        return Output(out, code)

    @asynccontextmanager
    async def started(
        self, folder: Path, *arguments: str, env: Mapping[str, str] | None = None
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """A running `git` with pipes; on leaving, it and its children are gone."""
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                *arguments,
                cwd=folder,
                env={**_environment(folder), **(env or {})},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise GitError(arguments[0], -1, "git is not installed (apt-get install git)") from error
        try:
            yield process
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            await drain(process)


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
    }
