"""Measures how much memory each further SOUL takes under `soul up`.

Run: `python bench/many.py [--homes 5]`. Exit code 1 if a limit is passed. Reads /proc, so it needs Linux.

For one home, then two, up to `--homes`: all live under one supervisor at a network on loopback, with a room and GitHub.
It prints the private memory of each SOUL's process (Private_Clean and Private_Dirty of smaps_rollup), the least and
the most: 15 seconds after all are awake and in the room, and again after each has answered a mention. The limit holds
for the least while all are awake, that of a SOUL without a turn yet: memory that is used later stops being shared.
For comparison, it also prints the figure of one SOUL that lives by `soul run`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from asyncio.subprocess import DEVNULL, create_subprocess_exec
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.start import is_awake, open_room, private_mib
from common.clock import SystemClock, iso
from modules.runtime.home import lock_holder
from tests.patience import until
from tests.running_town import RunningTown, open_running_town, replying
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

if TYPE_CHECKING:
    from adapters.space.server import SpaceServer
    from modules.runtime.home import Home
    from town.model.types import ChatRequest, Completion

LIMIT_MIB = 40
NAMES = ("rowan", "wren", "ada", "noor", "tove")
_SAID = cycle(
    (
        "Slate.",
        "Tin, by a long way.",
        "I only know ours, which is copper.",
        "Thatch keeps still whatever falls on it.",
        "Ask somebody who sleeps below glass!",
        "Cedar murmurs.",
        "None of them in a drizzle.",
    )
)
_SETTLED_S = 15.0
_HANG_S = 300.0


@asynccontextmanager
async def living(homes: Sequence[Home], room: SpaceServer, *command: str) -> AsyncIterator[None]:
    """Start these homes with this command, wait until all are awake and in the room, and end them on exit."""
    began = iso(SystemClock().now())
    process = await create_subprocess_exec(
        sys.executable, "-m", "soul.cli", *command, stdin=DEVNULL, stdout=DEVNULL, stderr=sys.stderr
    )
    try:
        await until(lambda: len(room.get_connected_agents()) == len(homes), _HANG_S, what="all in the room")
        await until(lambda: all(is_awake(home, began) for home in homes), _HANG_S, what="all awake")
        yield
    finally:
        process.terminate()
        await process.wait()


async def measured(town: RunningTown, homes: Sequence[Home], room: SpaceServer, *command: str) -> float:
    """Return the least private memory of a SOUL while all are awake, in MiB; print it, and that after an answer."""
    async with living(homes, room, *command):
        await asyncio.sleep(_SETTLED_S)
        awake = [private_mib(lock_holder(home)) for home in homes]
        tell(f"{command[0]} {len(homes)}, awake", awake)
        asker = town.account(f"asker-{command[0]}{len(homes)}")
        before = {home: len(town.texts(home.root.name)) for home in homes}
        for home in homes:
            town.network.post_as(asker, f"Morning @{home.root.name}.test, which roof is louder in the rain?")
        await until(lambda: all(len(town.texts(one.root.name)) > before[one] for one in homes), _HANG_S, what="answers")
        answered = [private_mib(lock_holder(home)) for home in homes]
        tell(f"{command[0]} {len(homes)}, after an answer", answered)
    return min(awake)


def tell(what: str, found: Sequence[float]) -> None:
    """Print a line with the least and the most."""
    sys.stdout.write(f"{what:<30} {min(found):8.1f} MiB at least, {max(found):5.1f} at most\n")
    sys.stdout.flush()


def answer_by_turns(request: ChatRequest) -> Completion:
    """Answer differently each time, because the same text to many people is not sent."""
    return replying(next(_SAID))(request)


async def measure(count: int) -> int:
    """Measure, print, and return 1 if the limit is passed, else 0."""
    github, found = GitHubNetwork(clock=SystemClock()), []
    with tempfile.TemporaryDirectory() as folder:
        async with (
            open_running_town(Path(folder)) as town,
            serve(github_app(github)) as github_url,
            open_room(Path(folder) / "room") as room,
        ):
            town.mind.answer = answer_by_turns
            homes = [
                town.make_home(
                    name,
                    SOUL_SPEED="1",
                    SPACE_URL=f"ws://127.0.0.1:{room.port}",
                    GITHUB_API_URL=github_url,
                    AGENT_GITHUB_USERNAME=name,
                    AGENT_GITHUB_TOKEN=github.create_account(name, name=name).token,
                )
                for name in NAMES[:count]
            ]
            await measured(town, homes[:1], room, "run", "--home", str(homes[0].root))
            for some in range(1, count + 1):
                roots = [str(home.root) for home in homes[:some]]
                found.append(await measured(town, homes[:some], room, "up", "--port", "0", *roots))
    sys.stdout.write(f"{'of one that has not thought':<30} {max(found):8.0f} MiB (limit {LIMIT_MIB})\n")
    return int(max(found) > LIMIT_MIB)


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--homes", type=int, default=len(NAMES), choices=range(1, len(NAMES) + 1))
    return asyncio.run(measure(parser.parse_args().homes))


if __name__ == "__main__":
    sys.exit(main())
