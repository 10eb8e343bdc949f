"""Completes the first talk of the home named on the command line, and is killed before the file is put away."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.modules.commissioning_desk import open_desk


async def main(root: Path) -> None:
    async with open_desk(root) as desk:

        async def killed(name: str, new: str) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        desk.folder.rename = killed  # type: ignore[method-assign]
        await desk.commissioning.complete({"name": "rowan"}, {"name": "Ana"})


asyncio.run(main(Path(sys.argv[1])))
