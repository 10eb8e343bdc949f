"""When this life runs; nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from adapters.atproto.types import NotAllowedErr
from common.errors import BudgetExceeded, Transient
from common.pace import Pace
from common.result import Err
from modules.lives.messages.handle_others import LOOP as OTHERS
from modules.lives.messages.handle_others import OthersHandler
from modules.lives.messages.perceive import MessagePerceiver
from modules.lives.messages.respond import LOOP, MessageResponder
from modules.lives.messages.types import Burst, key_of
from modules.runtime.control import Standing
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.outbox.rules.waits import Waits

ACCESS_REMEDY = (
    "Make another app password in Bluesky's settings, allow it access to direct messages, and put it into .env as"
    " AGENT_BLUESKY_PASSWORD; or set SOUL_DIRECT_MESSAGES=off"
)


@dataclass(slots=True)
class MessageLoop(Loop):
    """Reads what is new, does at once what needs no turn, and tells the owner of drafts and of what a forget left.

    Where the app password has no access to direct messages, that is told once, and nothing is asked any more.
    """

    name = LOOP
    at_start = True

    pace: Pace
    perceiver: MessagePerceiver
    responder: MessageResponder
    journal: Journal
    _is_off: bool = field(default=False, init=False)

    @property
    def interval_ms(self) -> float:
        return self.pace.messages_ms

    async def run(self) -> Outcome:
        if self._is_off:
            return Outcome(ran=False, reason="the app password has no access to direct messages")
        perceived = await self.perceiver.look()
        if isinstance(perceived, Err):
            if isinstance(perceived, NotAllowedErr):
                await self._switch_off(perceived)
            return Outcome(ran=False, reason=perceived.error)
        handled = await self.responder.handle_at_once()
        told = await self.responder.tell_of_drafts()
        forgotten = await self.responder.tell_of_forgotten()
        seen = perceived.data
        answers = f"{handled} answered at once, {told} drafts and {forgotten} forgettings told"
        reason = f"{seen.new} new, {seen.of_others} of others, {seen.left} left unread, {answers}"
        return Outcome(ran=True, reason=reason)

    async def _switch_off(self, refusal: Err) -> None:
        self._is_off = True
        summary = "Direct messages are off: the app password has no access to them"
        await self.journal.record(
            Entry("life", self.name, summary, line="warn", reason=ACCESS_REMEDY, data={"error": refusal.error})
        )


@dataclass(slots=True)
class MessageTalkLoop(Loop):
    """Answers what needs a turn, one message after another; commands do not wait behind it."""

    name = "message-talk"

    pace: Pace
    responder: MessageResponder

    @property
    def interval_ms(self) -> float:
        return self.pace.messages_ms

    async def run(self) -> Outcome:
        answered = 0
        try:
            while await self.responder.answer_next():
                answered += 1
        except (BudgetExceeded, Transient) as error:
            return Outcome(ran=False, reason=f"{answered} answered; no words for now: {error}")
        return Outcome(ran=True, reason=f"{answered} answered")


@dataclass(slots=True)
class MessageOthersLoop(Loop):
    """Answers others, a burst after another, each with the SOUL's attention; the owner never waits behind them.

    While the SOUL may not act in public, or may not think for want of budget, what others wrote waits.
    """

    name = OTHERS

    pace: Pace
    handler: OthersHandler
    waits: Waits
    journal: Journal
    attention: Attention
    standing: Callable[[], Standing]

    @property
    def interval_ms(self) -> float:
        return self.pace.messages_ms

    async def run(self) -> Outcome:
        handled = 0
        for burst in await self.handler.waiting():
            if not self.standing().may_act:
                return Outcome(ran=False, reason=f"{handled} dealt with; others wait: {self.standing()}")
            importance = self.handler.importance_of(burst)
            if not self.waits.is_due(burst.uri, importance):
                continue
            try:
                async with self.attention.take(self.name):
                    handled += await self._take_on(burst)
            except BudgetExceeded as error:
                minutes = max(1, round(self.waits.economize(importance, error) / 60))
                await self._warn(burst, f"Direct messages of others wait, for at least {minutes} min: {error}")
            except Transient as error:
                self.waits.put_off(burst.uri, error)
                await self._warn(burst, f"A direct message of @{burst.talk.handle} has to wait: {error}")
                break
        return Outcome(ran=True, reason=f"{handled} dealt with", next_in_s=self._next_in_s())

    async def _take_on(self, burst: Burst) -> bool:
        """Handle a burst; False if it goes on waiting."""
        disposition = await self.handler.handle(burst)
        if disposition.act == "later":
            self.waits.let_wait(burst.uri, disposition.retry_in_s)
        if disposition.act in {"later", "undecided"}:
            return False
        self.waits.forget(key_of(message) for message in burst.messages)
        return True

    async def _warn(self, burst: Burst, summary: str) -> None:
        await self.journal.record(
            Entry("error", self.name, summary, line="warn", trigger_uri=burst.uri, author=burst.talk.handle)
        )

    def _next_in_s(self) -> float | None:
        """Seconds until what waits its turn may be answered; None if the next interval is soon enough."""
        soonest = self.waits.next_turn_in_s()
        return soonest if soonest is not None and soonest < self.interval_ms / 1000 else None
