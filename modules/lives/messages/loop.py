"""When this life runs; nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapters.atproto.types import NotAllowedErr
from common.errors import BudgetExceeded, Transient
from common.pace import Pace
from common.result import Err
from modules.lives.messages.perceive import MessagePerceiver
from modules.lives.messages.respond import LOOP, MessageResponder
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.types import Loop, Outcome

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
