"""Tracks which services fail again and again, and since when. It is kept in memory: each start begins with none.

The caller of a service notes how each call went. A few failures in a row make it degraded, one success makes it well.
"""

from dataclasses import dataclass
from datetime import datetime

from common.clock import Clock, local
from common.text.untrusted import one_line
from modules.runtime.console import Console

FAILURES = 3

_ERROR_CHARS = 120


@dataclass(frozen=True, slots=True)
class Degraded:
    """A service that fails, and the time of the first failure."""

    service: str
    since: datetime


@dataclass(frozen=True, slots=True)
class _Row:
    """How many failures came in a row, and when the first one was."""

    count: int
    since: datetime


class ServiceHealth:
    """Counts the outcome of every call, and tells the owner when a service begins to fail and when it works again."""

    def __init__(self, clock: Clock, *, console: Console, timezone: str = "") -> None:
        self._clock = clock
        self._console = console
        self._timezone = timezone
        self._failing: dict[str, _Row] = {}

    def note(self, service: str, ok: bool, error: str = "") -> None:  # noqa: FBT001 - every caller has it at hand
        """Record one call to `service`: whether it went well, and if not, its `error`."""
        if ok:
            row = self._failing.pop(service, None)
            if row and row.count >= FAILURES:
                self._console.line("done", f"{service} works again", f"it had failed since {self._spoken(row.since)}")
            return
        before = self._failing.get(service, _Row(0, self._clock.now()))
        row = _Row(before.count + 1, before.since)
        self._failing[service] = row
        if row.count == FAILURES:
            detail = f"since {self._spoken(row.since)}; {one_line(error, _ERROR_CHARS)}".removesuffix("; ")
            self._console.line("warn", f"{service} fails again and again", detail)

    def degraded(self) -> tuple[Degraded, ...]:
        """Return the services that fail, the one that has failed longest first."""
        rows = sorted(self._failing.items(), key=lambda item: (item[1].since, item[0]))
        return tuple(Degraded(service, row.since) for service, row in rows if row.count >= FAILURES)

    def _spoken(self, moment: datetime) -> str:
        return f"{local(moment, self._timezone):%Y-%m-%d %H:%M}"
