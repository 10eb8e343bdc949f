"""When the outbox lets out what is due; nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from common.pace import Pace
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.outbox.outbox import Outbox


@dataclass(slots=True)
class OutboxLoop(Loop):
    """Lets out what is due, once `ready` says that it is known whether anything may; woken by each new intent."""

    name = "outbox"
    jitter = 0.0

    pace: Pace
    outbox: Outbox
    ready: Callable[[], bool]

    @property
    def interval_ms(self) -> float:
        return self.pace.outbox_drain_ms

    async def run(self) -> Outcome:
        if not self.ready():
            return Outcome(ran=False, reason="whether it may act is still to be seen")
        report = await self.outbox.deliver_due()
        reason = f"{report.done} sent, {report.failed} failed, {report.expired} expired, {report.put_off} put off"
        return Outcome(ran=True, reason=reason, next_in_s=report.next_in_s)
