"""Runs a SOUL of the ritual town as a separate process, which tests end with SIGKILL and restart in the same home.

Usage: python -m tests.scenarios.ritual_process HOME NAME START MOMENT

Wakes the SOUL of HOME at MOMENT. For each moment read from stdin it does what is due then. It prints `at MOMENT`
whenever time advanced while it waited, `after LOOP` when a loop ended, and `done MOMENT` when nothing more is due.
"""

import asyncio
import sys
from asyncio.subprocess import Process
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

from common.clock import iso, parse_iso
from modules.runtime.home import Home
from tests.children import child_of
from tests.crash.lives import say
from tests.patience import HANG_S
from tests.scenarios.ritual_town import RitualSoul, RitualTown, do_what_is_due, open_ritual_soul
from tests.striding_clock import StridingClock


class RitualProcess(RitualSoul):
    """A SOUL in its own process. `kill_at` decides at which request to the model or which own post it is killed."""

    def __init__(self, town: RitualTown, home: Home, name: str, *, social_only: bool = False) -> None:
        super().__init__(town, home, name, social_only=social_only)
        assert not social_only
        self._stack, self._process, self._starts, self._killed_before = AsyncExitStack(), None, 0, 0

    _process: Process | None

    async def wake(self) -> None:
        """Start a process in the home and wait until the SOUL is awake."""
        self._starts, self._killed_before = self._starts + 1, self.killed
        given = (str(self.home.root), self.name, str(self._starts), iso(self._town.clock.now()))
        self._process = await self._stack.enter_async_context(child_of("tests.scenarios.ritual_process", *given))
        assert await self._is_done(), f"{self.name} did not wake"

    async def end(self) -> None:
        """End the process, even in the middle of its work."""
        self._process = None
        await self._stack.aclose()

    def met(self, event: object) -> None:
        """Kill the process if `kill_at` accepts this event."""
        if self.kill_at and self._process and self.kill_at(event):
            self.kill_at = None
            self.killed += 1
            self._process.kill()

    async def step(self) -> None:
        """Let the SOUL do what is due; restart it if it is killed meanwhile."""
        assert self._process
        assert self._process.stdin
        self._process.stdin.write(f"{iso(self._town.clock.now())}\n".encode())
        if not await self._is_done():
            # a post that leaves after the last step ends it between two steps
            assert self.killed == self._killed_before + 1, f"{self.name} ended by itself"
            await self.end()
            await self.wake()

    def resident_mib(self) -> float:
        """Return the resident memory of the process in MiB, read from /proc."""
        assert self._process
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    async def _is_done(self) -> bool:
        """Follow the time of the process until it is done; return False if it ended before that."""
        assert self._process
        assert self._process.stdout
        while line := await asyncio.wait_for(self._process.stdout.readline(), HANG_S):
            word, _, told = line.decode().strip().partition(" ")
            if word == "after":
                self.met(f"after {told}")
                continue
            clock = self._town.clock
            clock.stride((parse_iso(told) - clock.now()).total_seconds())
            if word == "done":
                return True
        return False


class ToldClock(StridingClock):
    """A clock that prints its time after each wait and drops deadlines that are over."""

    def stride(self, seconds: float) -> None:
        super().stride(seconds)
        self._deadlines = sorted(one for one in self._deadlines if not one[2].done())
        say(f"at {iso(self.now())}")


async def live(home: Home, name: str, start: int, moment: datetime) -> None:
    """Wake the SOUL and do what is due at each moment read from stdin."""
    clock = ToldClock(moment)
    async with open_ritual_soul(home, clock, f"{name}:{start}") as app:
        say(f"done {iso(clock.now())}")
        while line := await asyncio.to_thread(sys.stdin.readline):
            clock.stride((parse_iso(line.strip()) - clock.now()).total_seconds())
            await do_what_is_due(app, clock, say)
            say(f"done {iso(clock.now())}")


if __name__ == "__main__":
    folder, its_name, its_start, its_moment = sys.argv[1:]
    asyncio.run(live(Home.at(Path(folder)), its_name, int(its_start), parse_iso(its_moment)))
