"""When this life runs; nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from adapters.github.client import GitHub
from common.clock import Clock, parse_iso
from common.errors import BudgetExceeded, Transient
from common.result import Err, ErrKind
from modules.lives.github.handle import ThreadHandler
from modules.lives.github.perceive import GitHubPerceiver
from modules.lives.github.policy import in_order
from modules.lives.github.respond import LOOP
from modules.lives.github.state import GitHubState
from modules.runtime.control import Standing
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.inbox.threads import WaitingThread
from modules.services.outbox.rules.waits import Waits

GITHUB_AWARENESS_INTERVAL_MS = 120_000

_REMEDY = "Only a classic token can read notifications (scope `notifications`): set one as AGENT_GITHUB_TOKEN"


@dataclass(slots=True)
class GitHubAwarenessLoop(Loop):
    """Takes in what leads to threads on GitHub, and meets one after the other, each with the SOUL's attention.

    A thread is met `jitter_s` after it was taken in, so that SOULs that were called together do not speak at once.
    While the SOUL may not act in public, or has no budget, it waits.
    """

    name = LOOP
    social_only = False

    perceiver: GitHubPerceiver
    handler: ThreadHandler
    state: GitHubState
    github: GitHub
    waits: Waits
    journal: Journal
    attention: Attention
    clock: Clock
    standing: Callable[[], Standing]
    jitter_s: float
    speed: float = 1.0
    _refused: set[tuple[ErrKind, int | None]] = field(default_factory=set, init=False)

    @property
    def interval_ms(self) -> float:
        return GITHUB_AWARENESS_INTERVAL_MS / self.speed

    async def run(self) -> Outcome:
        if not self.github.enough_for_loops:
            return Outcome(ran=False, reason=f"{self.github.rate.remaining} requests to GitHub are left in this hour")
        new = await self.perceiver.look_at_posts() + await self._notified()
        self.state.cleanup_old_conversations()
        met = 0
        for thread in in_order(await self.state.waiting()):
            if not self.standing().may_act:
                return Outcome(ran=False, reason=f"{met} met; others wait: {self.standing()}")
            if not self._is_due(thread):
                continue
            try:
                async with self.attention.take(self.name):
                    met += await self._meet(thread)
            except BudgetExceeded as error:
                minutes = max(1, round(self.waits.economize(self.handler.importance_of(thread), error) / 60))
                await self._warn(thread, f"Threads on GitHub wait, for at least {minutes} min: {error}")
            except Transient as error:
                self.waits.put_off(thread.cause_id, error)
                await self._warn(thread, f"{thread.repo}#{thread.number} has to wait: {error}")
        return Outcome(ran=True, reason=f"{new} new, {met} met", next_in_s=await self._next_in_s())

    async def _notified(self) -> int:
        """How many threads GitHub newly tells of; that it does not is told once for each reason."""
        told = await self.perceiver.look_at_notifications()
        if not isinstance(told, Err):
            self._refused.clear()
            return told.data
        if (told.kind, told.status) not in self._refused:
            self._refused.add((told.kind, told.status))
            remedy = _REMEDY if told.kind == "auth" else ""
            summary = f"GitHub's notifications cannot be read: {told.error}"
            await self.journal.record(Entry("error", self.name, summary, line="warn", reason=remedy))
        return 0

    async def _meet(self, thread: WaitingThread) -> bool:
        """Meet a thread; False if it goes on waiting."""
        disposition = await self.handler.handle(thread)
        if disposition.act == "later":
            self.waits.let_wait(thread.cause_id, disposition.retry_in_s)
        if disposition.act in {"later", "undecided"}:
            return False
        self.waits.forget([thread.cause_id])
        return True

    def _is_due(self, thread: WaitingThread) -> bool:
        is_due = self.waits.is_due(thread.cause_id, self.handler.importance_of(thread))
        return is_due and self._jitter_left_s(thread) <= 0

    def _jitter_left_s(self, thread: WaitingThread) -> float:
        """Seconds until it is our turn; what was taken in before the clock was set back has waited long enough."""
        age_s = (self.clock.now() - parse_iso(thread.received_at)).total_seconds()
        return self.jitter_s - age_s if age_s >= 0 else 0.0

    async def _next_in_s(self) -> float | None:
        """Seconds until what waits its turn may be met; None if the next interval is soon enough."""
        turns = [left for one in await self.state.waiting() if (left := self._jitter_left_s(one)) > 0]
        if (later := self.waits.next_turn_in_s()) is not None:
            turns.append(later)
        soonest = min(turns, default=None)
        return soonest if soonest is not None and soonest < self.interval_ms / 1000 else None

    async def _warn(self, thread: WaitingThread, summary: str) -> None:
        await self.journal.record(Entry("error", self.name, summary, line="warn", trigger_uri=thread.cause_id))
