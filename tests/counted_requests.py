"""Counts the requests that reach a service of the town: each meets a fault that does nothing, so many times at most."""

from dataclasses import dataclass
from typing import Any

from town.faults import ArmedFaults, Fault

_MANY = 10_000


@dataclass(frozen=True)
class CountedRequests:
    """The requests that match a pattern of faults; `kind` is a fault that does nothing in no time."""

    faults: ArmedFaults[Any]
    request: str = "*"
    kind: str = "slow"

    def taken(self) -> int:
        """Return how many were made since the last call, the first of which begins to count and returns 0."""
        before = next((one for one in self.faults.armed if (one.request, one.kind) == (self.request, self.kind)), None)
        self.faults.clear()
        self.faults.arm(Fault(self.kind, self.request, times=_MANY, seconds=0))
        return _MANY - before.times if before else 0
