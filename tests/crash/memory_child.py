"""Lives of a store of memories that saves without end, each in its own process, which tests kill at any moment.

Usage: python -m tests.crash.memory_child DATABASE

Loads everything once, then forks a life for each line on stdin (its number). It prints `born PID`, then `kept ID BODY`
for every save that has returned, and `ended CODE`.
"""

import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.services.memory.admission import NewMemory
from modules.services.memory.rows import MemoryStore
from tests.crash.lives import live_on_request, say

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
            say("\n".join(f"kept {memory_id} {new.body}" for memory_id, new in zip(ids, batch, strict=True)))


def main() -> None:
    live_on_request(lambda words: live(Path(sys.argv[1]), words[0]))


if __name__ == "__main__":
    main()
