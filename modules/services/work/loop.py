"""Hands due work to its handler, one item after the other, and settles it: one journal entry per disposition."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from adapters.web.spacing import Urgency, urgency
from common.clock import Clock, doubled, parse_iso
from common.constants import SECOND_MS
from common.errors import BudgetExceeded, Fatal, SoulError, Transient
from common.provenance import Importance
from modules.runtime.control import Standing
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome, Runs
from modules.runtime.scheduler.scheduler import Attention
from modules.services.work.table import FAILURES, WorkTable
from modules.services.work.types import PAUSE_S, STOPPED, Disposition, Handler, Perceiver, WorkItem

WORK_INTERVAL_MS = 60 * SECOND_MS
_LONGEST_PUT_OFF_S = 1800.0
_LONGEST_ECONOMY_S = 3600.0
_SHARE_OF_WAIT = 1 / 20
_TRIED_FOR, _LEAST_TRIES = timedelta(days=7), 100
"""How long, and how often at least, a row is tried that a service fails each time, before it is given up."""
_LOOKED_AT = 20
_BUSY_RETRY_S = 0.2
STOP_LOOK_S = 1.0
"""The seconds between two checks of long work whether it is to stop."""


@dataclass(kw_only=True)
class WorkLoop(Loop):
    """Takes the SOUL's attention for one item at a time."""

    name: str = "work"
    every_ms: float = WORK_INTERVAL_MS
    social_only: bool = True
    at_start: bool = False
    batch: int | None = None
    """The most rows that one run handles; None for all that are due. Rows that only have to wait count a twentieth."""

    table: WorkTable
    handlers: Sequence[Handler]
    perceivers: Sequence[Perceiver]
    accepted: Callable[[str], Awaitable[Sequence[Any]]]
    """Returns the accepted acts of a cause, in the form for `Handler.finish`."""
    journal: Journal
    attention: Attention
    clock: Clock
    standing: Callable[[], Standing]
    _by_kind: dict[str, Handler] = field(init=False)
    _troubles: dict[str, str] = field(default_factory=dict, init=False)
    _economy: dict[Importance, float] = field(default_factory=dict, init=False)
    """By importance, the time until which there is no budget for such rows."""
    _told_to_wait: dict[int, set[str]] = field(default_factory=dict, init=False)
    """The codes of waiting, and the errors, that were recorded already, by row."""
    _woken: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    is_busy: bool = field(default=False, init=False)
    """Whether it is handling rows; perceivers are called again when that is over."""

    def __post_init__(self) -> None:
        self._by_kind = {handler.kind: handler for handler in self.handlers}

    @property
    def interval_ms(self) -> float:
        return self.clock.real(self.every_ms)

    def wake(self) -> None:
        """Look for new rows at once; a run in progress looks once more."""
        self._woken.set()

    async def keep_awake(self, scheduler: Runs) -> None:
        """Run whenever `wake` is called, until cancelled."""
        while True:
            await self._woken.wait()
            outcome = await scheduler.run_guarded(self.name)
            if not outcome.ran:
                await self.clock.sleep(_BUSY_RETRY_S)
            elif outcome.next_in_s is not None:
                scheduler.bring_forward(self.name, outcome.next_in_s)

    async def run(self) -> Outcome:
        """Add what has come due, and handle everything that may be handled now."""
        self._woken.clear()
        for perceiver in self.perceivers:
            await self._perceive(perceiver)
        self.is_busy = True
        try:
            settled, waiting = await self._handle_due()
        finally:
            self.is_busy = False
        reason = "; ".join([f"{settled} settled, {waiting} wait", *self._troubles.values()])
        return Outcome(ran=not self._troubles, reason=reason, next_in_s=await self._next_in_s())

    async def _handle_due(self) -> tuple[int, int]:
        """Handle each due row once, up to a batch; return how many were settled, and how many may not be handled now.

        The next row is chosen after each, so that the owner's never waits for all that was there before it.
        """
        left, settled, waiting, met = self.batch or math.inf, 0, 0, set[int]()
        while left > 0 and (items := await self.table.due(self._by_kind, besides=met, most=_LOOKED_AT)):
            allowed = [place for place, item in enumerate(items) if self._may_handle(item)]
            passed_over = items[: allowed[0]] if allowed else items
            met.update(item.id for item in passed_over)
            waiting += len(passed_over)
            if allowed:
                met.add(items[allowed[0]].id)
                done = await self._meet(items[allowed[0]])
                settled += done is not None and done.settles
                # NOTE(self): otherwise rows that wait for a limit keep those away that no limit holds back.
                left -= _SHARE_OF_WAIT if done is not None and done.act == "later" else 1
        return settled, waiting

    async def _meet(self, item: WorkItem) -> Disposition | None:
        """Handle one item, and settle it or let it wait; return its disposition, or None if it could not be handled."""
        handler = self._by_kind[item.kind]
        try:
            first, waits = item.importance == "owner", handler.needs_attention(item)
            async with self.attention.take(item.kind, first=first) if waits else nullcontext():
                if not self._may_handle(item):
                    return None
                with urgency(Urgency.AT_ONCE if first else Urgency.AHEAD):
                    disposition = await self._handle(handler, item)
        except BudgetExceeded as error:
            pause_s = min(error.retry_after or _LONGEST_ECONOMY_S, _LONGEST_ECONOMY_S)
            self._economy[item.importance] = self.clock.monotonic() + pause_s
            await self._warn(handler, item, error, f", for at least {max(1, round(pause_s / 60))} min")
        except Transient as error:
            pause_s = doubled(self.clock.real(PAUSE_S), item.failures, _LONGEST_PUT_OFF_S)
            await self.table.note_failure(item)
            await self.table.put_off(item, max(pause_s, error.retry_after or 0.0), counts=False)
            if (text := str(error)) not in (told := self._told_to_wait.setdefault(item.id, set())):
                told.add(text)
                await self._warn(handler, item, error)
        else:
            await self._conclude(handler, item, disposition)
            return disposition
        return None

    def _may_handle(self, item: WorkItem) -> bool:
        handler = self._by_kind[item.kind]
        if handler.is_public and not self.standing().may_act:
            return False
        return handler.is_ready() and self._economy.get(item.importance, 0.0) <= self.clock.monotonic()

    async def _perceive(self, perceiver: Perceiver) -> None:
        """Call one perceiver; its failure does not stop the others and is recorded once."""
        name = type(perceiver).__name__
        try:
            await perceiver.perceive()
        except Fatal:
            raise
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
            if self._troubles.get(name) != trouble:
                self._troubles[name] = trouble
                summary, reason = (str(error), error.remedy) if isinstance(error, Transient) else ("", trouble)
                await self.journal.record(Entry("error", self.name, summary or f"{name} failed", "warn", reason))
        else:
            self._troubles.pop(name, None)

    async def _handle(self, handler: Handler, item: WorkItem) -> Disposition:
        """Return the disposition of an item, which is dropped after too many tries."""
        try:
            disposition = await self._decide(handler, item)
        except Transient as error:
            if item.failures < _LEAST_TRIES or self.clock.now() - parse_iso(item.failing_since) < _TRIED_FOR:
                raise
            disposition = Disposition("dropped", "unable", f"tried for {_TRIED_FOR.days} days: {error}")
        if disposition.act == "undecided" and item.attempts + 1 >= handler.most_tries:
            reason = f"{disposition.reason}, {item.attempts + 1} times"
            disposition = replace(disposition, act="dropped", reason=reason)
        if disposition.settles:
            try:
                await handler.before_settling(item, disposition)
            except (Fatal, Transient):
                raise
            except Exception as error:
                summary, reason = f"{item.kind} {item.key} was not noted", f"{type(error).__name__}: {error}"
                await self.journal.record(Entry("error", self.name, summary, line="warn", reason=reason))
        return disposition

    async def _decide(self, handler: Handler, item: WorkItem) -> Disposition:
        """Use the acts made before a crash, or handle the item; a bug with one item must not stop the others."""
        try:
            accepted = await self.accepted(item.cause_id)
            disposition = await handler.finish(item, accepted) if accepted else None
            return disposition or await self._handled(handler, item)
        except (BudgetExceeded, Fatal, Transient):
            raise
        except Exception as error:
            return Disposition("undecided", "failed", f"{type(error).__name__}: {error}")

    async def _handled(self, handler: Handler, item: WorkItem) -> Disposition:
        """Handle an item; if its handler is one to be cut off, only while the SOUL may act."""
        if not handler.is_cut_off:
            return await handler.handle(item)
        doing = asyncio.ensure_future(handler.handle(item))
        stop = asyncio.ensure_future(self._stop())
        try:
            await asyncio.wait({doing, stop}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return await doing
            return Disposition("later", STOPPED, "; ".join(self.standing().reasons))
        finally:
            for one in (doing, stop):
                one.cancel()
            await asyncio.gather(doing, stop, return_exceptions=True)

    async def _stop(self) -> None:
        """Wait until the SOUL may no longer act."""
        while self.standing().may_act:
            await self.clock.sleep(STOP_LOOK_S)

    async def _conclude(self, handler: Handler, item: WorkItem, disposition: Disposition) -> None:
        """Settle the row or let it wait, then record it; waiting is recorded once for each code."""
        if disposition.settles:
            state: Literal["done", "dropped"] = "dropped" if disposition.act == "dropped" else "done"
            also = partial(handler.settle, item=item, disposition=disposition)
            await self.table.settle(item, state, disposition.code, also)
            self._told_to_wait.pop(item.id, None)
        else:
            if item.failures:
                await self.table.note(item, **{FAILURES: None})
            pause_s = self.clock.real(disposition.retry_in_s or handler.pause_s)
            counts = disposition.act == "undecided"
            await self.table.put_off(item, pause_s, counts=counts, outcome=disposition.code)
        if handler.tells and disposition.code != "failed":
            return
        if disposition.act == "later" and disposition.code != STOPPED:
            told = self._told_to_wait.setdefault(item.id, set())
            if disposition.code in told:
                return
            told.add(disposition.code)
        is_trouble = disposition.act in {"undecided", "dropped"} or disposition.code == STOPPED
        is_bug = is_trouble and disposition.code == "failed"
        line = "warn" if is_bug else handler.line or ("warn" if is_trouble else None)
        line = None if disposition.held else line  # the outbox has reported the draft
        await self.journal.record(
            Entry(
                "error" if is_bug else "decision",
                self.name,
                handler.summary(item, disposition),
                line=line,
                reason=disposition.reason,
                trigger_uri=item.cause_id,
                author=_author(item),
                intent_id=disposition.intent_id,
                data={
                    "act": disposition.act,
                    "code": disposition.code,
                    "kind": item.kind,
                    **({"chosen": True} if disposition.is_chosen else {}),
                    **({"held": True} if disposition.held else {}),
                    **({"impression": disposition.impression} if disposition.impression else {}),
                    **({"wish": disposition.wish} if disposition.wish else {}),
                },
                dids=(item.author,) if item.author else (),
                provenance=disposition.provenance,
            )
        )

    async def _warn(self, handler: Handler, item: WorkItem, error: SoulError, how_long: str = "") -> None:
        """Record that a service or the budget is briefly unavailable."""
        summary = f"{handler.summary(item, Disposition('later', 'unable'))}{how_long}: {error}"
        dids, author = (item.author,) if item.author else (), _author(item)
        await self.journal.record(
            Entry("error", self.name, summary, "warn", error.remedy, item.cause_id, author, dids=dids)
        )

    async def _next_in_s(self) -> float | None:
        """Return the seconds until the next row is due; None if the next interval is early enough."""
        due = await self.table.next_due(self._by_kind)
        left_s = (due - self.clock.now()).total_seconds() if due else self.interval_ms
        return max(left_s, 0.1) if left_s < self.interval_ms / 1000 else None


def _author(item: WorkItem) -> str | None:
    """Return the handle of the person who caused an item, if its row has it."""
    return item.payload.get("handle")
