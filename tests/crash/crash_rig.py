"""A network that watches its requests and can kill their sender, and the figures of many kills."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from common.clock import SystemClock
from tests.children import child_of
from tests.patience import HANG_S
from town.atproto.index import Json, NetworkEvent
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, AtprotoLimits, Fault, FaultKind, Limit, atproto_app
from town.serving import serve

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_WRITES = "com.atproto.repo.[dp]*Record"
_READS_TOO = "com.atproto.repo.*Record"
Moment = Literal["in a transaction", "after a commit", "request arrived", "request answered", "any time"]
MOMENTS: tuple[Moment, ...] = (
    "in a transaction",
    "after a commit",
    "request arrived",
    "request answered",
    "any time",
)
_FAULTS: tuple[FaultKind, ...] = (
    "lost_request",
    "lost_answer",
    "hang",
    "server_error",
    "bad_gateway",
    "rate_limited",
)
Mark = tuple[str, str]
LONG_LIFE_S = 60.0
_PLENTY = Limit(10**9, 3600)
UNLIMITED = AtprotoLimits(_PLENTY, _PLENTY, _PLENTY, _PLENTY, _PLENTY)


@dataclass
class Watch:
    """An ASGI application in front of another: counts requests, and calls `strike` at the request that `set` chose."""

    app: ASGIApp
    requests: int = 0
    _left: int = 0
    _on: Moment = "any time"
    _strike: Callable[[], None] | None = None

    def set(self, on: Moment, after: int, strike: Callable[[], None]) -> None:
        self._on, self._left, self._strike = on, after, strike

    def forget(self) -> None:
        self._strike = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests += 1
        self._left -= 1
        strike = self._strike if self._left == 0 else None
        if strike and self._on == "request arrived":
            strike()
        await self.app(scope, receive, send)
        if strike and self._on == "request answered":
            strike()


@dataclass
class Rig:
    """The network, its address, and its faults."""

    network: Network
    faults: AtprotoFaults
    watch: Watch
    url: str


class Ledger:
    """Records everything that one account ever created and deleted, even if it no longer exists."""

    def __init__(self, network: Network, did: str) -> None:
        self.created: Counter[Mark] = Counter()
        self.deleted: Counter[str] = Counter()
        self.standing: dict[str, Mark] = {}
        self._network, self._did = network, did
        network.subscribe(self._see)

    def _see(self, event: NetworkEvent) -> None:
        if event.did != self._did:
            return
        if event.kind == "created":
            record = self._network.record(event.did, event.collection, event.uri.rsplit("/", 1)[1])
            assert record is not None
            self.standing[event.uri] = mark = _mark(record.value)
            self.created[mark] += 1
        elif event.kind == "deleted":
            del self.standing[event.uri]
            self.deleted[event.uri] += 1


def _mark(value: Json) -> Mark:
    """Return the kind and the target or text of a record."""
    if "subject" in value:
        return "like", str(value["subject"]["uri"])
    return ("reply", str(value["reply"]["parent"]["uri"])) if "reply" in value else ("post", str(value["text"]))


@dataclass
class Figures:
    """The figures of a process that was killed again and again."""

    kills: Counter[str] = field(default_factory=Counter)
    lives: int = 0
    acts: int = 0
    duplicates: int = 0
    losses: int = 0
    uninvited: int = 0

    def __str__(self) -> str:
        moments = ", ".join(f"{count} {moment}" for moment, count in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} SIGKILLs ({moments}) over {self.lives} lives; "
            f"{self.acts} acts, {self.duplicates} duplicates, {self.losses} losses, {self.uninvited} uninvited"
        )


@contextlib.asynccontextmanager
async def rig(rng: random.Random) -> AsyncIterator[Rig]:
    network = Network(clock=SystemClock())
    faults = AtprotoFaults(rng)
    watch = Watch(atproto_app(network, limits=UNLIMITED, faults=faults))
    async with serve(watch) as url:
        yield Rig(network, faults, watch, url)


def disturb(faults: AtprotoFaults, rng: random.Random) -> None:
    """Clear earlier faults, and sometimes arm one for some of the next requests for records."""
    faults.clear()
    if rng.random() < 0.7:
        kind, methods = rng.choice(_FAULTS), rng.choice((_WRITES, _WRITES, _READS_TOO))
        faults.arm(Fault(kind, methods, times=2, probability=0.5, seconds=1 if kind == "rate_limited" else 3))


@dataclass
class Nursery:
    """The process that forks lives: see `live_on_request`."""

    process: asyncio.subprocess.Process

    async def birth(self, fate: str = "") -> int:
        """Start a life; return its pid."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{fate}\n".encode())
        born, pid = (await self.receive()).split()
        assert born == "born"
        return int(pid)

    async def receive(self, timeout_s: float = HANG_S) -> str:
        """Return the next line: `awake`, or `ended CODE`."""
        assert self.process.stdout is not None
        return (await asyncio.wait_for(self.process.stdout.readline(), timeout_s)).decode().strip()

    async def live_on(self, life_s: float) -> None:
        """Run one life to its normal end after a kill; it must end within `life_s` seconds of being awake."""
        await self.birth()
        assert await self.receive() == "awake"
        assert await self.receive(life_s) == "ended 0"


@contextlib.asynccontextmanager
async def nursing(module: str, *args: str) -> AsyncIterator[Nursery]:
    async with child_of(module, *args) as process:
        yield Nursery(process)


def kill(pid: int) -> None:
    """Send SIGKILL, if the process still lives."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Spread:
    """Limits for the moment of a kill: the number of commits or requests, or of seconds after waking."""

    commits: int
    requests: int
    any_time_s: float
    life_s: float


async def dies(watch: Watch, nursery: Nursery, moment: Moment, number: int) -> bool:
    """Run one life; return whether it was killed at request or commit `number` rather than ended before."""
    fate = {"in a transaction": "inside", "after a commit": "after"}.get(moment)
    pid = await nursery.birth(f"{number} {fate}" if fate else "")
    if not fate:
        watch.set(moment, number, lambda: kill(pid))
    word = await nursery.receive()
    word = await nursery.receive(LONG_LIFE_S) if word == "awake" else word
    watch.forget()
    assert word in {"ended 0", "ended -9"}
    return word == "ended -9"


async def live_and_die(watch: Watch, nursery: Nursery, moment: Moment, rng: random.Random, spread: Spread) -> bool:
    """Run one life of at most `life_s` seconds; return whether it was killed rather than ended by itself."""
    fate = {"in a transaction": "inside", "after a commit": "after"}.get(moment)
    pid = await nursery.birth(f"{rng.randint(1, spread.commits)} {fate}" if fate else "")
    if moment in {"request arrived", "request answered"}:
        watch.set(moment, rng.randint(1, spread.requests), lambda: kill(pid))
    word = await nursery.receive()
    if word == "awake":
        try:
            word = await nursery.receive(rng.uniform(0, spread.any_time_s) if moment == "any time" else spread.life_s)
        except TimeoutError:
            kill(pid)
            word = await nursery.receive()
    watch.forget()
    return word == f"ended -{signal.SIGKILL}"
