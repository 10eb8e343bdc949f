"""Measures how soon a command answers and a SOUL reads its notifications, and how much memory it uses.

Run: `python bench/start.py [--runs 5]`. Exit code 1 if a limit is passed. A limit in `x` is a multiple of the time
that a bare interpreter takes to start and end on the same machine; it holds if other load slows both down.

- `--version`, `status`: from the start of the process to its end.
- `to its first look`: from the start of `soul run` to its first request for notifications, at a network on loopback,
  with a room and GitHub, and with neither (`social only`).
- `from its first request`: from its first request of any kind to that one.
- `idle`: resident memory (VmRSS) of the same two, 15 seconds after they are awake and have joined the room.

Each time is the minimum of the runs: other load only adds to it, and so does compiling changed files once.
Reads /proc, so it needs Linux for memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from common.clock import SystemClock, iso
from modules.runtime.home import lock_holder
from tests.running_town import open_running_town
from town.atproto.service import atproto_app
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from modules.runtime.home import Home

VERSION_TIMES, STATUS_TIMES, FIRST_LOOK_TIMES = 4, 20, 135
REQUESTS_S = 0.5
IDLE_MIB, SOCIAL_IDLE_MIB = 110, 100
_SETTLED_S = 15.0
_HANG_S = 120.0
_ASK_AGAIN_S = 0.5
_LOOK = "/xrpc/app.bsky.notification.listNotifications"
_BARE = (sys.executable, "-c", "pass")
_SOUL = (sys.executable, "-m", "soul.cli")
_ENV = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Compiled files are kept, as for an installed program."""


class Watched:
    """The network's service; `looked` is set when a client asks it for notifications.

    `first_s` is the time of the first request, by `time.perf_counter`; None before.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.looked = asyncio.Event()
        self.first_s: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.first_s is None:
            self.first_s = time.perf_counter()
        if scope.get("path") == _LOOK:
            self.looked.set()
        await self._app(scope, receive, send)


def private_mib(pid: int | None) -> float:
    """Return the private memory of a process, in MiB."""
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return sum(int(row.split()[1]) for row in rows if row.startswith("Private_")) / 1024


def ended_after_s(*command: str) -> float:
    """Return how long the command takes, in seconds. Raises `CalledProcessError` if it fails."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_ENV)
    return time.perf_counter() - began


async def first_look_s(home: Home, watched: Watched) -> tuple[float, float]:
    """Return the seconds to a life's first request for notifications: from its start, and from its first request."""
    async with life(home, watched) as took_s:
        return took_s


async def idle_mib(home: Home, watched: Watched, room: SpaceServer | None = None) -> float:
    """Return the resident memory in MiB of a life that is awake, in `room` if one is given, and has settled."""
    began = iso(SystemClock().now())
    async with life(home, watched) as _, asyncio.timeout(_HANG_S):
        while not (is_awake(home, began) and (room is None or room.get_connected_agents())):  # noqa: ASYNC110 - only its journal tells
            await asyncio.sleep(_ASK_AGAIN_S)
        await asyncio.sleep(_SETTLED_S)
        return resident_mib(home)


def is_awake(home: Home, since: str) -> bool:
    """Return whether the life in `home` that began after `since`, an ISO-8601 time, has recorded that it is awake."""
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT 1 FROM journal WHERE summary = 'Awake' AND at >= ?", (since,))
        return found.fetchone() is not None


@asynccontextmanager
async def life(home: Home, watched: Watched) -> AsyncIterator[tuple[float, float]]:
    """Run a life in a process of its own until it has asked for its notifications; end it on exit.

    Yields the seconds that this took: from its start, and from its first request.
    """
    watched.looked.clear()
    watched.first_s = None
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *(*_SOUL, "run", "--home", str(home.root)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        env=_ENV,
    )
    try:
        async with asyncio.timeout(_HANG_S):
            await watched.looked.wait()
        looked = time.perf_counter()
        yield looked - began, looked - (watched.first_s or looked)
    finally:
        process.terminate()
        await process.wait()


def resident_mib(home: Home) -> float:
    """Return the resident memory of the process that holds `home`, in MiB."""
    status = Path(f"/proc/{lock_holder(home)}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


async def measured(runs: int) -> list[tuple[str, float, float, str]]:
    """Return the measurements: name, figure, limit and unit."""
    github = GitHubNetwork(clock=SystemClock())
    with tempfile.TemporaryDirectory() as folder:
        async with open_running_town(Path(folder)) as running_town, serve(github_app(github)) as github_url:
            watched = Watched(atproto_app(running_town.network))
            async with serve(watched) as network_url, open_room(Path(folder) / "room") as room:
                usual = {"ATPROTO_SERVICE_URL": network_url, "SOUL_SPEED": "1"}
                worker = running_town.make_home(
                    "rowan",
                    **usual,
                    SPACE_URL=f"ws://127.0.0.1:{room.port}",
                    GITHUB_API_URL=github_url,
                    AGENT_GITHUB_USERNAME="rowan",
                    AGENT_GITHUB_TOKEN=github.create_account("rowan", name="Rowan").token,
                )
                social = running_town.make_home("wren", **usual)
                looks = [await first_look_s(worker, watched) for _ in range(runs)]
                social_looks = [await first_look_s(social, watched) for _ in range(runs)]
                bare_s = least(4 * runs, *_BARE)
                status_s = least(runs, *_SOUL, "status", "--home", str(worker.root))
                return [
                    ("soul --version", least(runs, *_SOUL, "--version") / bare_s, VERSION_TIMES, "x"),
                    ("soul status", status_s / bare_s, STATUS_TIMES, "x"),
                    ("to its first look", min(looks)[0] / bare_s, FIRST_LOOK_TIMES, "x"),
                    ("to its first look, social only", min(social_looks)[0] / bare_s, FIRST_LOOK_TIMES, "x"),
                    ("from its first request", min(took[1] for took in looks), REQUESTS_S, "s"),
                    ("idle with room and GitHub", await idle_mib(worker, watched, room), IDLE_MIB, "MiB"),
                    ("idle, social only", await idle_mib(social, watched), SOCIAL_IDLE_MIB, "MiB"),
                ]


def least(runs: int, *command: str) -> float:
    """Return the shortest time of the command in `runs` runs, in seconds."""
    return min(ended_after_s(*command) for _ in range(runs))


@asynccontextmanager
async def open_room(folder: Path) -> AsyncIterator[SpaceServer]:
    """Open a room on loopback."""
    server = SpaceServer(ChatLog(folder))
    (await server.start(0)).or_raise()
    try:
        yield server
    finally:
        await server.stop()


def main() -> int:
    """Measure, print a line for each figure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    failed = 0
    for name, found, limit, unit in asyncio.run(measured(parser.parse_args().runs)):
        places = {"s": 3, "x": 1}.get(unit, 0)
        sys.stdout.write(f"{name:<30} {found:8.{places}f} {unit} (limit {limit:g})\n")
        failed |= found > limit
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
