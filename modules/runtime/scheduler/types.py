"""The interface of a loop, and the outcome of one run."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

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
