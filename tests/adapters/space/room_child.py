"""A room as a program of its own, so that a test can kill it; its host says each line of the program's input.

`python -m tests.adapters.space.room_child FOLDER PORT`; its first line of output tells where it listens.
"""

import asyncio
import sys
from pathlib import Path

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from common.result import Err

_SMALL_PART_BYTES = 4_000


async def _main(folder: str, port: str) -> None:
    server = SpaceServer(ChatLog(Path(folder), max_bytes=_SMALL_PART_BYTES))
    started = await server.start(int(port))
    if isinstance(started, Err):
        sys.exit(started.error)
    sys.stdout.write(f"{started.data}\n")
    sys.stdout.flush()
    while line := await asyncio.to_thread(sys.stdin.readline):
        server.broadcast_from_host(line.strip())
    await server.stop()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
