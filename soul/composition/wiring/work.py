"""Builds loops over the table `work`."""

from __future__ import annotations

from collections.abc import Sequence

from modules.runtime.scheduler.scheduler import Attention
from modules.services.work.loop import WORK_INTERVAL_MS, WorkLoop
from modules.services.work.types import Handler, Perceiver
from soul.composition.services import Services


def build_work_loop(
    services: Services,
    handlers: Sequence[Handler],
    perceivers: Sequence[Perceiver] = (),
    *,
    name: str = "work",
    every_ms: float = WORK_INTERVAL_MS,
    social_only: bool = True,
    at_start: bool = False,
    batch: int | None = None,
    attention: Attention | None = None,
) -> WorkLoop:
    """Build a loop over these handlers, with its own interval and name in the journal."""
    return WorkLoop(
        name=name,
        every_ms=every_ms,
        social_only=social_only,
        at_start=at_start,
        batch=batch,
        table=services.work,
        handlers=handlers,
        perceivers=perceivers,
        accepted=services.outbox.accepted,
        journal=services.journal,
        attention=attention or services.attention,
        clock=services.clock,
        standing=services.control.standing,
    )
