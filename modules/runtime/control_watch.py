"""Watches whether the SOUL may act in public: reads the owner's record, and reports when a sign comes or goes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from adapters.atproto.client import PublicRepos
from adapters.atproto.types import Record
from adapters.web.spacing import Urgency, urgency
from common.clock import Clock
from common.result import Err
from modules.runtime.control import COLLECTION, EVERY_SOUL, Control, Standing
from modules.runtime.events import Event, Publish, discard
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome

_LOOK_MS = 5_000.0
_READ_S = 60.0


@dataclass(frozen=True, slots=True)
class StandingChecked(Event):
    """Published after each check of whether the SOUL may act, from the login on; not while its writes are blocked."""


@dataclass(slots=True)
class ControlLoop(Loop):
    """Checks the files of `Control` every few seconds, and the owner's repo once a minute; uses no model.

    A record of `COLLECTION` in the repo of `owner_did` pauses the SOUL: with our own DID as its key, or with `all` for
    every SOUL of that owner. `own_did` returns "" before the login. After it, each check that finds nothing against
    acting calls `when_free`, and each check, even one that failed, publishes `StandingChecked` unless writes of this
    process are blocked.
    """

    name = "control"
    jitter = 0.0
    at_start = True

    control: Control
    repos: PublicRepos
    journal: Journal
    clock: Clock
    owner_did: str
    own_did: Callable[[], str]
    when_free: Callable[[], Awaitable[None]]
    publish: Publish = discard
    _told: Standing = field(default_factory=Standing, init=False)
    _read_at: float | None = field(default=None, init=False)
    _unreadable: bool = field(default=False, init=False)

    @property
    def interval_ms(self) -> float:
        return self.clock.real(_LOOK_MS)

    async def run(self) -> Outcome:
        logged_in = bool(self.own_did())
        try:
            return await self._look()
        finally:
            if logged_in and not self.control.standing().writes_blocked:
                self.publish(StandingChecked())

    async def _look(self) -> Outcome:
        await self.tell()
        if self._read_at is None or self.clock.monotonic() - self._read_at >= self.clock.real(_READ_S):
            await self._read()
        standing = await self.tell()
        if standing.may_act and self.own_did():
            with urgency(Urgency.AT_ONCE):  # nothing can leave before its first call
                await self.when_free()
        return Outcome(ran=True, reason=str(standing))

    async def tell(self) -> Standing:
        """Return the current standing; journal and show it if it has changed since the last call."""
        standing = self.control.standing()
        before, self._told = self._told, standing
        if standing != before:
            await self.journal.record(_news(standing))
        return standing

    async def _read(self) -> None:
        if not (own_did := self.own_did()):
            return
        self._read_at = self.clock.monotonic()
        records = await self.repos.list_records(self.owner_did, COLLECTION)
        if isinstance(records, Err):
            if not self._unreadable:
                summary = "The owner's repo cannot be read; what was last known there holds"
                await self.journal.record(Entry("error", self.name, summary, line="warn", reason=records.error))
            self._unreadable = True
            return
        self._unreadable = False
        wanted = [record for record in records.data if record.uri.rpartition("/")[2] in {own_did, EVERY_SOUL}]
        self.control.heed_record(_reason(wanted[0]) if wanted else None)


def _reason(record: Record) -> str:
    reason = record.value.get("reason")
    return reason if isinstance(reason, str) else ""


def _news(standing: Standing) -> Entry:
    reason = str(standing)
    if standing.writes_blocked:
        summary = "Nothing leaves from here for now"
        return Entry("life", "control", summary, line="warn", reason=reason, data={"act": "writes_blocked"})
    if standing.safe_mode:
        summary = "SAFE MODE: I only listen, and nothing public leaves, until /resume, `soul resume` or a calm start"
        return Entry("life", "control", summary, line="error", reason=reason, data={"act": "safe_mode"})
    if standing.paused:
        summary = "Paused: nothing public leaves"
        return Entry("life", "control", summary, line="warn", reason=reason, data={"act": "paused"})
    return Entry("life", "control", "Going on: what waited may leave again", line="done", data={"act": "resumed"})
