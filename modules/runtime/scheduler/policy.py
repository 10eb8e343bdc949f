"""Loops: their interface, their outcomes, when each runs and who goes first, and the quiet hours of the SOUL. Pure."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from common.clock import local
from common.election import ranked
from common.intervals import PEER_JITTER_MIN_MS, PEER_JITTER_SPAN_MS, PEER_STEP_MS
from common.text.strings import rolling_hash

TIMER_JITTER_PERCENT = 0.12
"""The share of its interval by which a timer may differ from one SOUL to another."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one run. `next_in_s` asks for the next run after that many seconds instead of the interval."""

    ran: bool
    reason: str
    next_in_s: float | None = None


class Runs(Protocol):
    """The part of the scheduler that is needed to run a loop between its regular runs."""

    async def run_guarded(self, name: str) -> Outcome: ...

    def bring_forward(self, name: str, seconds: float = 0.0) -> None: ...


class Loop(Protocol):
    """Something that a SOUL does again and again. Each loop derives from this class and overrides what differs.

    Attributes:
        name: unique; also the jitter key.
        interval_ms: base interval.
        jitter: share of the interval by which this SOUL's own rhythm may differ.
        needs_idle: takes the attention lock, so that only one such loop runs at a time.
        social_only: runs also in a `--social-only` life.
        at_start: runs once right when the scheduler starts.

    """

    name: str
    jitter: float = TIMER_JITTER_PERCENT
    needs_idle: bool = False
    social_only: bool = True
    at_start: bool = False

    @property
    @abstractmethod
    def interval_ms(self) -> float: ...

    @abstractmethod
    async def run(self) -> Outcome:
        """Run the loop once."""
        ...


_BACKOFF_FROM_ERRORS = 2
_BACKOFF_MAX_FACTOR = 8
_STEPS = 1000


def get_agent_jitter(name: str, minimum_ms: float = PEER_JITTER_MIN_MS, span_ms: float = PEER_JITTER_SPAN_MS) -> int:
    """Return how long this SOUL lets others go first, in ms: between `minimum_ms` and `minimum_ms + span_ms`."""
    share = abs(rolling_hash(name)) % PEER_JITTER_SPAN_MS
    return round(minimum_ms + share * span_ms / PEER_JITTER_SPAN_MS)


def get_peer_delay(
    name: str, peers: Iterable[str], root_uri: str, first_ms: float = PEER_JITTER_MIN_MS, step_ms: float = PEER_STEP_MS
) -> float:
    """Return how long `name` lets `peers` go first in the thread that begins with `root_uri`, in ms.

    All of them compute the same order, a different one for each thread, so that no two reply at the same moment.
    """
    return first_ms + len(peers_before(name, peers, root_uri)) * step_ms


def peers_before(name: str, peers: Iterable[str], root_uri: str) -> list[str]:
    """Return those of `peers`, in lower case, who go before `name` in the thread that begins with `root_uri`."""
    order = ranked({one.lower() for one in (name, *peers)}, root_uri)
    return order[: order.index(name.lower())]


def get_timer_jitter(name: str, timer: str, base_ms: float, pct: float = TIMER_JITTER_PERCENT) -> int:
    """Return this SOUL's own interval for a timer, in ms: `base_ms` plus or minus at most the share `pct`."""
    step = abs(rolling_hash(f"{name}:{timer}", seed=5381, factor=33)) % (2 * _STEPS + 1) - _STEPS
    return round(base_ms) + math.floor(base_ms * pct * (step / _STEPS) + 0.5)


def awareness_skip_probability(errors: int, skipped: int = 0) -> float:
    """Return the probability that a tick is skipped after `errors` failures in a row: 0 at first, then up to 7/8.

    At most 8 are skipped in a row, of which `skipped` were already: chance must not prolong a long outage.
    """
    if errors <= _BACKOFF_FROM_ERRORS or skipped >= _BACKOFF_MAX_FACTOR:
        return 0.0
    return 1 - 1 / min(errors - 1, _BACKOFF_MAX_FACTOR)


QUIET_HOURS_START = 23
QUIET_HOURS_END = 7


def is_quiet_hours(hour: int, start: int = QUIET_HOURS_START, end: int = QUIET_HOURS_END) -> bool:
    """Return whether the local `hour` (0-23) is in `start <= hour < end`, over midnight if need be; never if equal."""
    if start > end:
        return hour >= start or hour < end
    return start <= hour < end


def is_quiet(moment: datetime, timezone: str, *, keeps_hours: bool) -> bool:
    """Return whether a moment is in the quiet hours of a time zone; `keeps_hours` is off where days are shortened."""
    return keeps_hours and is_quiet_hours(local(moment, timezone).hour)


def not_at_night(moment: datetime, timezone: str, *, keeps_hours: bool) -> datetime:
    """Return the moment; if it is in the quiet hours, return their end."""
    if not is_quiet(moment, timezone, keeps_hours=keeps_hours):
        return moment
    wall = local(moment, timezone)
    end = wall.replace(hour=QUIET_HOURS_END, minute=0, second=0, microsecond=0, fold=0)
    return end if end > wall else end + timedelta(days=1)
