"""Hands what is due to its handler, one item after the other, and settles it: one journal entry per disposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from common.clock import Clock
from common.constants import SECOND_MS
from common.errors import BudgetExceeded, Fatal, Transient
from common.settings import Settings
from modules.runtime.control import Control, Standing
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, Perceiver, WorkItem

WORK_INTERVAL_MS = 60 * SECOND_MS
_PAUSE_S = 300.0
"""How long an item waits after a try that did not decide it, where its handler names no time."""
_LONGEST_ECONOMY_S = 3600.0


class WorkServices(Protocol):
    """What the loop is built from."""

    settings: Settings
    work: WorkTable
    outbox: Outbox
    journal: Journal
    attention: Attention
    clock: Clock
    control: Control


def build_work_loop(
    services: WorkServices, handlers: Sequence[Handler], perceivers: Sequence[Perceiver] = ()
) -> WorkLoop:
    """Return the loop over the handlers of all lives."""
    return WorkLoop(
        table=services.work,
        handlers=handlers,
        perceivers=perceivers,
        outbox=services.outbox,
        journal=services.journal,
        attention=services.attention,
        clock=services.clock,
        standing=services.control.standing,
        speed=services.settings.soul_speed,
    )


@dataclass(kw_only=True)
class WorkLoop(Loop):
    """Takes the SOUL's attention for one item at a time. At `speed` 10 it runs, and retries, ten times as often."""

    name = "work"

    table: WorkTable
    handlers: Sequence[Handler]
    perceivers: Sequence[Perceiver]
    outbox: Outbox
    journal: Journal
    attention: Attention
    clock: Clock
    standing: Callable[[], Standing]
    speed: float = 1.0
    _by_kind: dict[str, Handler] = field(init=False)
    _troubles: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._by_kind = {handler.kind: handler for handler in self.handlers}

    @property
    def interval_ms(self) -> float:
        return WORK_INTERVAL_MS / self.speed

    async def run(self) -> Outcome:
        """Add what has come due, and handle all of it that may be handled now."""
        for perceiver in self.perceivers:
            await self._perceive(perceiver)
        settled, waiting, short_of_budget = 0, 0, set[str]()
        for item in await self.table.due(self._by_kind):
            handler = self._by_kind[item.kind]
            if (handler.is_public and not self.standing().may_act) or item.importance in short_of_budget:
                waiting += 1
                continue
            try:
                async with self.attention.take(item.kind):
                    disposition = await self._handle(handler, item)
            except BudgetExceeded as error:
                short_of_budget.add(item.importance)
                await self._put_off(item, min(error.retry_after or _LONGEST_ECONOMY_S, _LONGEST_ECONOMY_S), error)
            except Transient as error:
                await self._put_off(item, max(error.retry_after or 0.0, _PAUSE_S / self.speed), error)
            else:
                await self._conclude(item, disposition)
                settled += disposition.settles
        return Outcome(ran=True, reason=f"{settled} settled, {waiting} wait", next_in_s=await self._next_in_s())

    async def _perceive(self, perceiver: Perceiver) -> None:
        """Let one look for what has come due; its trouble stops no other, and is told once."""
        name = type(perceiver).__name__
        try:
            await perceiver.perceive()
        except Fatal:
            raise
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
            if self._troubles.get(name) != trouble:
                self._troubles[name] = trouble
                await self.journal.record(Entry("error", self.name, f"{name} failed", line="warn", reason=trouble))
        else:
            self._troubles.pop(name, None)

    async def _handle(self, handler: Handler, item: WorkItem) -> Disposition:
        """What becomes of an item; a bug of ours with one must not stop the others for good."""
        try:
            accepted = [one for one in await self.outbox.by_cause(item.cause_id) if one.state in ACTIVE_STATES]
            disposition = await handler.finish(item, accepted) if accepted else None
            disposition = disposition or await handler.handle(item)
        except (BudgetExceeded, Fatal, Transient):
            raise
        except Exception as error:
            disposition = Disposition("undecided", "failed", f"{type(error).__name__}: {error}")
        if disposition.act == "undecided" and item.attempts + 1 >= handler.most_tries:
            return replace(disposition, act="dropped", reason=f"{disposition.reason}, {item.attempts + 1} times")
        return disposition

    async def _conclude(self, item: WorkItem, disposition: Disposition) -> None:
        """Settle the row or let it wait, then tell."""
        if disposition.settles:
            await self.table.settle(item, "dropped" if disposition.act == "dropped" else "done", disposition.code)
        else:
            pause_s = (disposition.retry_in_s or _PAUSE_S) / self.speed
            await self.table.put_off(item, pause_s, counts=disposition.act == "undecided")
        is_trouble = disposition.code == "failed" or disposition.act in {"undecided", "dropped"}
        waits = "; waits for your yes" if disposition.held else ""
        await self.journal.record(
            Entry(
                "error" if disposition.code == "failed" else "decision",
                self.name,
                f"{item.kind} {item.key}: {disposition.act}{waits}",
                line="warn" if is_trouble else None,
                reason=disposition.reason,
                trigger_uri=item.cause_id,
                intent_id=disposition.intent_id,
                data={"act": disposition.act, "code": disposition.code, "kind": item.kind},
                dids=(item.author,) if item.author else (),
            )
        )

    async def _put_off(self, item: WorkItem, pause_s: float, error: Exception) -> None:
        """The world or the budget is briefly unable: no try is counted."""
        await self.table.put_off(item, pause_s, counts=False)
        summary = f"{item.kind} {item.key} has to wait: {error}"
        await self.journal.record(Entry("error", self.name, summary, line="warn", trigger_uri=item.cause_id))

    async def _next_in_s(self) -> float | None:
        """Seconds until the next row is due; None if the next interval is soon enough."""
        due = await self.table.next_due(self._by_kind)
        left_s = (due - self.clock.now()).total_seconds() if due else self.interval_ms
        return max(left_s, 0.1) if left_s < self.interval_ms / 1000 else None
