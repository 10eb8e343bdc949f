"""A room's server in a process of its own, for tests that kill it: `python -m … FOLDER PORT` prints its port."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from common.result import Err


async def main(folder: str, port: str) -> None:
    server = SpaceServer(ChatLog(Path(folder), max_bytes=4000))
    started = await server.start(int(port))
    if isinstance(started, Err):
        sys.exit(started.error)
    sys.stdout.write(f"{started.data}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
