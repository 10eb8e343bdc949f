"""Runs a life for each line on stdin, each in a fork of this process; the database and the client of such lives."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from adapters.github.client import READ_TIMEOUT_S, GitHub
from common.clock import Clock, SystemClock
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from tests.loopback import to_loopback

T = TypeVar("T")


class MortalDatabase(Database):
    """Kills its own process at one of the transactions that count: inside it, or right after its commit."""

    count = 0
    die_at = 0
    die_inside = False

    @classmethod
    async def opened(cls, path: Path, fate: Sequence[str] = ()) -> Self:
        database = await cls.open(path, MIGRATIONS)
        assert isinstance(database, cls)
        database.await_death(fate)
        return database

    def await_death(self, fate: Sequence[str]) -> None:
        """Count from here on; `fate` is the number of the last transaction and `inside` or `after`, empty for none."""
        at, where = fate or ("0", "after")
        self.count, self.die_at, self.die_inside = 0, int(at), where == "inside"

    async def run(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        last = False

        def work(connection: sqlite3.Connection) -> T:
            nonlocal last
            counted_before = self.counts(connection)
            result = fn(connection)
            if counted_before or self.counts(connection):
                self.count += 1
                last = self.count == self.die_at
            if last and self.die_inside:
                _die()
            return result

        result = await super().run(work)
        if last:
            _die()
        return result

    def counts(self, connection: sqlite3.Connection) -> bool:
        """Return whether a transaction that begins or ends in this state counts."""
        return True


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def github_at(
    url: str, login: str, token: str, clock: Clock | None = None, *, timeout_s: float = READ_TIMEOUT_S
) -> GitHub:
    """Return a client that does not wait between requests."""
    return GitHub(
        api_url=url,
        login=login,
        token=token,
        clock=clock or SystemClock(),
        min_spacing_s=0,
        timeout_s=timeout_s,
        transport=to_loopback,
    )


def live_on_request(live: Callable[[list[str]], Coroutine[Any, Any, None]]) -> None:
    """Fork a life for each line, given its words; print its pid as `born PID` and its exit code as `ended CODE`."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            say(f"born {os.getpid()}")
            asyncio.run(live(line.split()))
            os._exit(0)
        say(f"ended {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")


def say(words: str) -> None:
    """Write a line to the parent process."""
    # NOTE(self): one write per line, so that a kill cannot leave part of a line in a buffer.
    os.write(sys.stdout.fileno(), f"{words}\n".encode())
