"""When commitments are fulfilled: every 15 seconds, and at once when a new one is made.

A run takes each commitment one step further and never waits for the world: acts leave by the outbox, and a later run
reads what became of them. So it needs no attention but for finding words, and stops at any moment without harm.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from common.clock import Clock
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.commitments.handle import CommitmentHandler
from modules.services.commitments.policy import COMMITMENT_CHECK_INTERVAL_MS

NAME = "commitment-fulfillment"

_LOOK_AGAIN_S = 1.0
_PATIENCE_S = 90.0
_BUSY_RETRY_S = 0.2


class Runs(Protocol):
    """The scheduler, as far as this loop calls it."""

    async def run_guarded(self, name: str) -> Outcome: ...

    def bring_forward(self, name: str, seconds: float = 0.0) -> None: ...


@dataclass(slots=True)
class CommitmentLoop(Loop):
    """Fulfils the commitments of the queue."""

    name = NAME
    at_start = True

    handler: CommitmentHandler
    clock: Clock
    _work: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _busy_since: float | None = field(default=None, init=False)

    @property
    def interval_ms(self) -> float:
        return self.clock.real(COMMITMENT_CHECK_INTERVAL_MS)

    def wake(self) -> None:
        """There is something new: look at once. A run that is on its way looks once more."""
        self._work.set()

    async def keep_awake(self, scheduler: Runs) -> None:
        """Run whenever `wake` is called, until cancelled."""
        while True:
            await self._work.wait()
            outcome = await scheduler.run_guarded(self.name)
            if not outcome.ran:
                await self.clock.sleep(_BUSY_RETRY_S)
            elif outcome.next_in_s is not None:
                scheduler.bring_forward(self.name, outcome.next_in_s)

    async def run(self) -> Outcome:
        """Take every commitment one step further."""
        self._work.set()
        while self._work.is_set():
            self._work.clear()
            under_way = await self.handler.take_steps()
        if not under_way:
            self._busy_since = None
            return Outcome(ran=True, reason="nothing is under way")
        now = self.clock.monotonic()
        self._busy_since = now if self._busy_since is None else self._busy_since
        soon = now - self._busy_since < _PATIENCE_S
        return Outcome(ran=True, reason=f"{under_way} under way", next_in_s=_LOOK_AGAIN_S if soon else None)
