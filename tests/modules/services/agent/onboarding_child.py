"""Completes the first conversation of the home named on the command line, and is killed before the file is renamed."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from modules.runtime.home import Home
from modules.services.owner_files import LocalOwnerFiles
from tests.modules.services.agent.onboarding_home import open_onboarding_home


class Deadly(LocalOwnerFiles):
    """Kills the process when a file is to be renamed."""

    async def rename(self, name: str, new: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


async def main(root: Path) -> None:
    async with open_onboarding_home(root, Deadly(Home.at(root), print)) as onboarding_home:
        await onboarding_home.onboarding.complete({"name": "rowan"}, {"name": "Ana"})


asyncio.run(main(Path(sys.argv[1])))
