"""Rate limits as Bluesky's server keeps them: points in a window that begins with its first request."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import NamedTuple


class Limit(NamedTuple):
    """So many points in so many seconds."""

    points: int
    seconds: int


_EVERYTHING = Limit(3000, 300)
_LOGINS = Limit(30, 300)
_LOGINS_DAILY = Limit(300, 86400)
_WRITES = Limit(5000, 3600)
_WRITES_DAILY = Limit(35000, 86400)


@dataclass(frozen=True, slots=True)
class AtprotoLimits:
    """Each limit is kept per address (`everything`), per account and address (`logins`) or per account (the rest)."""

    everything: Limit = _EVERYTHING
    logins: Limit = _LOGINS
    logins_daily: Limit = _LOGINS_DAILY
    writes: Limit = _WRITES
    writes_daily: Limit = _WRITES_DAILY

    def at_speed(self, speed: float) -> AtprotoLimits:
        """The limits of clients that live `speed` times as fast: so many times the points, in the same windows."""
        limits: dict[str, Limit] = {one.name: getattr(self, one.name) for one in fields(self)}
        return AtprotoLimits(
            **{name: one._replace(points=max(1, round(one.points * speed))) for name, one in limits.items()}
        )


class Charge(NamedTuple):
    """Points to take from one bucket."""

    limit: Limit
    key: str
    points: int = 1


class BucketStanding(NamedTuple):
    """How a bucket stands after a charge; `left_s` is the rest of its window in seconds."""

    limit: Limit
    remaining: int
    left_s: float
    refused: bool

    def headers(self, now_epoch: float) -> dict[str, str]:
        """The `ratelimit-*` headers, with `retry-after` on a refusal."""
        told = {
            "ratelimit-limit": str(self.limit.points),
            "ratelimit-remaining": str(self.remaining),
            "ratelimit-reset": str(math.floor(now_epoch + self.left_s)),
            "ratelimit-policy": f"{self.limit.points};w={self.limit.seconds}",
        }
        return {**told, "retry-after": str(math.ceil(self.left_s))} if self.refused else told


class AtprotoMeter:
    """Counts what was spent. Windows live in memory."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[Limit, str], tuple[float, int]] = {}

    def charge(self, charges: Iterable[Charge], now: float) -> BucketStanding:
        """Take all the points, of at least one bucket, at `now` (monotonic, s); the tightest tells how it stands."""
        standings = [self._take(charge, now) for charge in charges]
        return min(standings, key=lambda standing: (not standing.refused, standing.remaining))

    def _take(self, charge: Charge, now: float) -> BucketStanding:
        key = charge.limit, charge.key
        ends, spent = self._buckets.get(key, (0.0, 0))
        if ends <= now:
            ends, spent = now + charge.limit.seconds, 0
        spent += charge.points
        self._buckets[key] = (ends, spent)
        return BucketStanding(
            charge.limit, max(0, charge.limit.points - spent), ends - now, spent > charge.limit.points
        )
