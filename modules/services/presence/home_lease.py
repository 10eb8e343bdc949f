"""Lets only one copy of a home act: a lease with an epoch, in a record of the account's own repository.

A copy that is started while another lives says so and stops, or takes over if it was told to. A copy that finds the
lease in other hands stops for good. Nothing leaves unless a look found our epoch within the last minute (`confirm`), so
a copy that takes over waits a little longer than that before its first act.

If the record cannot be read, the life goes on and nothing leaves until it can. If a service refuses such records,
copies go unnoticed, which is reported once.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from adapters.atproto.client import Atproto
from adapters.atproto.types import Record
from adapters.web.spacing import Urgency, urgency
from common.clock import Clock
from common.errors import HomeLocked
from common.result import Err
from modules.runtime.control import Control
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome
from modules.services.outbox.rules.counts import note
from modules.services.outbox.rules.rules import COST_UPDATE
from modules.services.presence.home_lease_policy import (
    CONFIRMED_S,
    HOME_LEASE,
    HOME_LEASE_S,
    RENEW_AFTER_S,
    TAKE_OVER_S,
    HomeIdentity,
    LeaseRecord,
    is_lost,
    next_lease,
    read_lease,
    renewed,
    standing_of,
    was_overtaken,
    where,
)

_UNREAD = "whether another copy of this home lives could not be looked up"
_BEGIN_S, _GIVE_BACK_S = 10.0, 5.0
_COMMAND = "soul run --take-over"
_EPOCH = "lease_epoch"


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A time on both clocks: the monotonic one stops while the machine sleeps, the wall clock can be set back."""

    monotonic: float
    wall: datetime

    @classmethod
    def of(cls, clock: Clock) -> Self:
        return cls(clock.monotonic(), clock.now())

    def lies_back(self, seconds: float, clock: Clock) -> bool:
        """Return whether that many seconds may have passed since."""
        wall_s = (clock.now() - self.wall).total_seconds()
        return clock.monotonic() - self.monotonic >= seconds or abs(wall_s) >= seconds


@dataclass(slots=True, eq=False)
class HomeLease:
    """The lease of one life. `identity` is called after the login."""

    atproto: Atproto
    database: Database
    journal: Journal
    control: Control
    clock: Clock
    identity: Callable[[], HomeIdentity]
    _lease: LeaseRecord | None = field(default=None, init=False)
    _cid: str = field(default="", init=False)
    _attempted: LeaseRecord | None = field(default=None, init=False)
    _looked_at: ClockReading | None = field(default=None, init=False)
    _written_at: ClockReading | None = field(default=None, init=False)
    _acts_from: float = field(default=float("-inf"), init=False)
    _lost: HomeLocked | None = field(default=None, init=False)
    _take_over: bool = field(default=False, init=False)
    _refused_at: ClockReading | None = field(default=None, init=False)
    _told: str = field(default="", init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def confirm(self) -> str:
        """Return why nothing may leave now, or ""; looks again if the last look is too old.

        Raises `HomeLocked` if another copy lives.
        """
        if self._lost or self._is_old(self._looked_at, CONFIRMED_S):
            await self.look()
        is_old = self._is_old(self._looked_at, CONFIRMED_S) and self._refused_at is None
        return self._reason() or (_UNREAD if is_old else "")

    async def begin(self, *, take_over: bool = False) -> None:
        """Look for the first time; a slow network does not keep the owner from talking with the SOUL.

        With `take_over` the lease is taken from a living copy, even if that is possible only later. Raises as
        `look`.
        """
        self._take_over = take_over
        self.control.block_writes(_UNREAD)
        try:
            async with asyncio.timeout(_BEGIN_S):
                await self.look(sets_pace=False)  # the first look at notifications follows at once
        except TimeoutError:
            await self._tell_trouble(Err(f"no answer within {_BEGIN_S:g} s", "transient"))

    async def look(self, *, sets_pace: bool = True) -> None:
        """Take the lease, or check that it is still ours, and renew it in time. Raises `HomeLocked` if not."""
        async with self._lock:
            if self._lost:
                raise self._lost
            if self._is_old(self._refused_at, RENEW_AFTER_S):
                with urgency(Urgency.AT_ONCE):  # everything that leaves waits for it
                    async with self.atproto.burst(sets_pace=sets_pace):
                        await self._look()
            self.control.block_writes(self._reason())

    async def give_back(self) -> None:
        """Let another copy begin at once. If that fails, it may begin when the lease expires."""
        if self._lease is None or self._lost or not self._cid:
            return
        ended = LeaseRecord(self._lease.epoch, self._lease.holder, None)
        with suppress(TimeoutError):  # it expires by itself then
            async with asyncio.timeout(_GIVE_BACK_S), self._lock, self.atproto.burst():
                self._lease = None
                await self.atproto.put_own_record(HOME_LEASE, ended.record(), swap=self._cid, is_public=False)

    def _reason(self) -> str:
        if self._refused_at is not None:
            return ""
        if self._lost:
            return str(self._lost)
        if self._lease is None or self._is_old(self._written_at, HOME_LEASE_S):
            return _UNREAD
        wait_s = self._acts_from - self.clock.monotonic()
        return f"another copy of this home is given {wait_s:.0f} s more to stop" if wait_s > 0 else ""

    def _is_old(self, moment: ClockReading | None, seconds: float) -> bool:
        return moment is None or moment.lies_back(seconds, self.clock)

    async def _look(self) -> None:
        asked_at = ClockReading.of(self.clock)
        read = await self.atproto.get_record(f"at://{self.atproto.did}/{HOME_LEASE}/self")
        if isinstance(read, Err):
            await self._tell_trouble(read)
            return
        found = read.data
        if found is not None and self._attempted and read_lease(found.value).token == self._attempted.token:
            self._hold(self._attempted, found.cid)  # our own write, whose answer was lost
            await self._note_epoch()
        if self._lease is None:
            await self._take(found, asked_at)
        elif (
            found is not None and found.cid != self._cid and is_lost(read_lease(found.value), self._lease, self._now())
        ):
            await self._lose(read_lease(found.value))
        elif found is None or found.cid != self._cid or self._is_old(self._written_at, RENEW_AFTER_S):
            await self._write(renewed(self._lease, self._now()), found, asked_at)
        else:
            self._looked_at = asked_at

    async def _take(self, found: Record | None, asked_at: ClockReading) -> None:
        me, now = self.identity(), self._now()
        before = read_lease(found.value) if found else None
        standing = standing_of(before, me, now)
        if before is not None and standing == "held" and not self._take_over:
            self._lost = HomeLocked(
                f"Another copy of this home lives as @{self.atproto.handle} {where(before, me)}",
                remedy=f"Stop that one, or let it stop by itself with `{_COMMAND}` here. "
                f"One that was killed counts as alive until {before.until or now:%Y-%m-%d %H:%M} UTC.",
            )
            raise self._lost
        if before is not None and not self._take_over and was_overtaken(before, await self._known_epoch(), me):
            self._lost = HomeLocked(
                f"Stopped: another copy of this home {where(before, me)} now runs @{self.atproto.handle}",
                remedy=f"Keep using that copy. To use this one instead, run `{_COMMAND}` here; the other then stops.",
            )
            raise self._lost
        if standing in {"held", "doubtful"}:
            # NOTE(self): set before the write, whose answer may be lost; a longer wait does no harm.
            self._acts_from = self.clock.monotonic() + TAKE_OVER_S
        if await self._write(next_lease(before, me, now), found, asked_at):
            await self._note_epoch()
            if before and standing == "held":
                await self._tell_taken(before)

    async def _write(self, lease: LeaseRecord, before: Record | None, asked_at: ClockReading) -> bool:
        self._attempted = lease
        now = self.clock.now()
        await self.database.run(lambda connection: note(connection, now, "lease", points=COST_UPDATE.limit))
        swap = before.cid if before else None
        written = await self.atproto.put_own_record(HOME_LEASE, lease.record(), swap=swap, is_public=False)
        if isinstance(written, Err):
            await self._tell_trouble(written)
            return False
        self._hold(lease, written.data.cid)
        self._looked_at, self._written_at, self._refused_at, self._told = asked_at, asked_at, None, ""
        return True

    def _hold(self, lease: LeaseRecord, cid: str) -> None:
        self._lease, self._cid, self._attempted = lease, cid, None

    async def _known_epoch(self) -> int:
        """Return the epoch of the last life here, which a copy of this home has too; 0 if unknown."""
        kept = await self.database.run(lambda connection: marks.get(connection, _EPOCH))
        return int(kept) if kept.isdecimal() else 0

    async def _note_epoch(self) -> None:
        if self._lease is not None:
            values = {_EPOCH: str(self._lease.epoch)}
            await self.database.run(lambda connection: marks.put(connection, values))

    async def _lose(self, found: LeaseRecord) -> None:
        self._lost = HomeLocked(
            f"Another copy of this home took over @{self.atproto.handle} {where(found, self.identity())}:"
            " this one stops, and nothing more leaves from here",
            remedy=f"If this one is to live on instead: stop the other, or run `{_COMMAND}` here.",
        )
        self.control.block_writes(str(self._lost))
        raise self._lost

    async def _tell_taken(self, before: LeaseRecord) -> None:
        where_it_is = where(before, self.identity())
        summary = f"Took over from the copy {where_it_is}; nothing leaves for {TAKE_OVER_S:.0f} s"
        await self.journal.record(Entry("life", "start", summary, line="warn"))

    async def _tell_trouble(self, error: Err) -> None:
        """Report a failure once; if the service refuses the record, the life goes on and tries again."""
        if error.kind == "invalid" and getattr(error, "name", "") != "InvalidSwap":
            self._refused_at = ClockReading.of(self.clock)
            summary = "The service takes no record of where this home lives: a second copy would not be noticed"
        else:
            summary = f"{_UNREAD[0].upper()}{_UNREAD[1:]}; nothing leaves until it can"
        if summary != self._told:
            self._told = summary
            await self.journal.record(Entry("error", "start", summary, line="warn", reason=error.error))

    def _now(self) -> datetime:
        """Return the time of the service, by which all copies judge."""
        return self.clock.now() - timedelta(seconds=self.atproto.server_time_skew() or 0.0)


@dataclass(slots=True)
class HomeLeaseLoop(Loop):
    """Renews the lease in time for the outbox to send, and ends the life if another copy took over."""

    name = "home-lease"
    interval_ms = CONFIRMED_S * 1000 / 2
    jitter = 0.0

    lease: HomeLease

    async def run(self) -> Outcome:
        await self.lease.look()
        return Outcome(ran=True, reason=await self.lease.confirm() or "this copy of the home is the one that lives")
