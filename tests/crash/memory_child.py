"""Lives of a store of memories that saves without end, each in its own process, which tests kill at any moment.

Usage: python -m tests.crash.memory_child DATABASE

Loads everything once, then forks a life for each line on stdin (its number). It prints `born PID`, then `kept ID BODY`
for every save that has returned, and `ended CODE`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.services.memory.admission import NewMemory
from modules.services.memory.rows import MemoryStore

NOW = datetime(2026, 1, 5, tzinfo=UTC)
TOGETHER = 3


async def live(path: Path, life: str) -> None:
    store = MemoryStore(await Database.open(path, MIGRATIONS))
    for number in count():
        words = f"life{life} turn{number}"
        group = [
            NewMemory("lesson", f"{words} part {part}", f"together {words} part{part}") for part in range(TOGETHER)
        ]
        for batch in (
            [NewMemory("episode", "", f"alone {words}")],
            [NewMemory("fact", "the counter", f"counted {words}")],
            group,
        ):
            ids = await store.save_all(batch, NOW)
            _say("".join(f"kept {memory_id} {new.body}\n" for memory_id, new in zip(ids, batch, strict=True)))


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _say(f"born {os.getpid()}\n")
            asyncio.run(live(Path(sys.argv[1]), line.strip()))
        _say(f"ended {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")


def _say(words: str) -> None:
    # NOTE(self): one write per line, so that a kill cannot leave part of a line in a buffer.
    os.write(sys.stdout.fileno(), words.encode())


if __name__ == "__main__":
    main()
