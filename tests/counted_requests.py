"""Counts the requests that reach the town's GitHub: each meets a delay of no time, which can be met so many times."""

from __future__ import annotations

from dataclasses import dataclass

from town.github.faults import Fault, GitHubFaults

_MANY = 10_000


@dataclass(frozen=True)
class CountedRequests:
    """The requests that match a pattern of faults."""

    faults: GitHubFaults
    request: str = "*"

    def taken(self) -> int:
        """Return how many were made since the last call, the first of which begins to count and returns 0."""
        before = next((one for one in self.faults.armed if one.request == self.request and one.kind == "slow"), None)
        self.faults.clear()
        self.faults.arm(Fault("slow", self.request, times=_MANY, seconds=0))
        return _MANY - before.times if before else 0
