"""Answers what the owner wrote: commands and a yes or no at once, everything else in a turn; and tells of drafts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from common.clock import Clock
from common.errors import NotWaiting
from common.text.untrusted import one_line
from modules.lives.messages.orders import Orders
from modules.lives.messages.policy import (
    MOST_DRAFTS,
    drafts_text,
    is_command,
    is_latest,
    left_text,
    quiet_until,
    read_draft_answer,
    split_text,
    told_before,
)
from modules.lives.messages.state import MessageState
from modules.lives.messages.types import DraftAnswer, OwnerHandler, key_of
from modules.runtime.control import Standing
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.inbox.messages import WaitingMessage
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.leaving import leaving
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.rights.left import FORGOT, left_in, places_text
from modules.services.rights.left import LOOP as RIGHTS
from modules.services.sessions.owner_inbox import cause_of

LOOP = "messages"

_DONE = "Done."
_INTERRUPTED = (
    "The program ended while it did this, and it is not known how far it came: {line}\n"
    "/status and /drafts tell how things stand; write it again if it is still to be done."
)
_LINE_CHARS = 200
_TELL_AGAIN_S = 300.0
_TOLD_FOR = timedelta(days=7)
_DRAFTS = "drafts"
"""The cause of what tells the owner of drafts."""


@dataclass(kw_only=True)
class MessageResponder:
    """Answers the owner by way of the outbox: each message has one answer, also after a crash.

    A command, and a yes or no, is begun once: after a crash in the middle of it the owner is told, and it is not begun
    again.
    """

    state: MessageState
    outbox: Outbox
    orders: Orders
    handler: OwnerHandler
    journal: Journal
    clock: Clock
    owner_did: str
    standing: Callable[[], Standing]
    timezone: str
    quiet_hours: tuple[int, int] | None

    def __post_init__(self) -> None:
        self._told_at = float("-inf")
        self._looked_for_forgotten = False
        self._choosing = asyncio.Lock()

    async def handle_at_once(self) -> int:
        """Answer what needs no turn: commands, and a yes or no to drafts; return how many messages that were.

        A command that takes a while is done in its place among what needs a turn, so that no later one waits for it.
        """
        handled = 0
        async with self._choosing:
            for message in await self.state.waiting():
                if not self._takes_a_while(message):
                    handled += await self._handle(message)
        return handled

    def _takes_a_while(self, message: WaitingMessage) -> bool:
        return is_command(message.text) and self.handler.takes_a_while(message.text.strip())

    async def _handle(self, message: WaitingMessage) -> bool:
        draft_answer = await self._draft_answer(message)
        if not draft_answer and not is_command(message.text) and not message.begun_at:
            return False
        if (await self.outbox.standing("direct_message", _body(message, "").subject)).intent:
            await self._note(message, "Did what the owner wrote in a direct message")
        elif message.begun_at:
            told = _INTERRUPTED.format(line=one_line(message.text, _LINE_CHARS))
            await self._say(message, told, is_notice=True)
            await self._note(message, "Was interrupted in what the owner wrote in a direct message")
        else:
            await self.state.begin(message)
            said = await (self._decide(draft_answer) if draft_answer else self.handler.obey(message.text.strip()))
            await self._say(message, said or _DONE, is_notice=True)
            await self._note(message, "Did what the owner wrote in a direct message")
        return True

    async def answer_next(self) -> bool:
        """Answer the oldest message that needs a turn, or takes a while; False if none waits.

        Raises what `OwnerHandler.answer` does.
        """
        message = await self._next_talk()
        if message is None:
            await self._forget_answers()
            return False
        if self._takes_a_while(message):
            return await self._handle(message)
        answer = await self.handler.answer(key_of(message), message.text)
        await self._say(message, answer)
        await self.orders.keep(message, key_of(message), cause_of(key_of(message)))
        await self._note(message, "Answered the owner in a direct message")
        await self._forget_answers()
        return True

    async def _forget_answers(self) -> None:
        """Forget the answers that were handed over, also before a crash."""
        await self.handler.keep_only([key_of(message) for message in await self.state.waiting()])

    async def _next_talk(self) -> WaitingMessage | None:
        async with self._choosing:
            for message in await self.state.waiting():
                at_once = is_command(message.text) or message.begun_at or await self._draft_answer(message)
                if not at_once or self._takes_a_while(message):
                    return message
        return None

    async def tell_of_drafts(self) -> int:
        """Tell the owner of the drafts that wait and were not told of, each once; returns how many were told.

        What comes in their quiet hours is told when these end.
        """
        if quiet_until(self.clock.now(), self.quiet_hours, self.timezone):
            return 0
        talk = await self.state.talk_with(self.owner_did)
        if talk is None or self.clock.monotonic() - self._told_at < self.clock.real(_TELL_AGAIN_S):
            return 0
        told = {one for body in await self._said(_DRAFTS) for one in body.drafts}
        new = [draft for draft in await self.outbox.held() if draft.id not in told]
        if not new:
            return 0
        listed = await self.state.with_reasons(new[:MOST_DRAFTS])
        body = DirectMessageBody(
            conversation_id=talk.id,
            to=self.owner_did,
            text=drafts_text(listed, len(new) - len(listed)),
            after_rev=await self.state.newest_rev(talk.id),
            drafts=tuple(draft.id for draft in new),
            is_notice=True,
        )
        await self.outbox.submit(ProposedAction(body, cause_id=_DRAFTS, urgent=True))
        self._told_at = self.clock.monotonic()
        return len(new)

    async def tell_of_forgotten(self) -> int:
        """Tell the owner, once, where somebody who was forgotten is still named; return how many forgettings were told.

        People are forgotten while no SOUL lives in the home, so one look in each life is enough.
        """
        talk = await self.state.talk_with(self.owner_did)
        if talk is None or self._looked_for_forgotten:
            return 0
        now = self.clock.now()
        entries = await self.journal.with_act(RIGHTS, FORGOT, now - _TOLD_FOR, now)
        told = {at for body in await self._said(FORGOT) for at in body.forgotten}
        left = {one.at: left_in(one.entry.data) for one in entries if one.at not in told}
        new = {at: places for at, places in left.items() if places}
        if new:
            body = DirectMessageBody(
                conversation_id=talk.id,
                to=self.owner_did,
                text=left_text(places_text(place for places in new.values() for place in places)),
                after_rev=await self.state.newest_rev(talk.id),
                forgotten=tuple(new),
                is_notice=True,
            )
            await self.outbox.submit(ProposedAction(body, cause_id=FORGOT, urgent=True))
        self._looked_for_forgotten = True
        return len(new)

    async def _draft_answer(self, message: WaitingMessage) -> DraftAnswer | None:
        told = told_before(message.rev, await self.outbox.done(_DRAFTS))
        if told.ids:
            said = await self.outbox.at_place(["direct_message"], message.conversation_id, since=told.at)
            told = replace(told, is_latest=is_latest(told, message.rev, said))
        waiting = await self.state.waiting_numbers() if told.ids else {}
        return read_draft_answer(message.text, told, waiting)

    async def _said(self, cause: str) -> list[DirectMessageBody]:
        """The direct messages to the owner of one cause."""
        found = [one.body for one in await self.outbox.by_cause(cause)]
        return [one for one in found if isinstance(one, DirectMessageBody) and one.to == self.owner_did]

    async def _decide(self, answer: DraftAnswer) -> str:
        if not answer.ids:
            return 'Which of them? "yes 1", "no 2" or "yes all" says it; /drafts lists what waits.'
        problems: list[str] = []
        approved: list[Intent] = []
        for draft_id in answer.ids:
            try:
                if answer.is_yes:
                    approved.append(await self.outbox.approve(draft_id))
                else:
                    await self.outbox.reject(draft_id, answer.reason)
            except NotWaiting as problem:
                problems.append(str(problem))
        done = len(answer.ids) - len(problems)
        verb = "Approved" if answer.is_yes else "Rejected"
        lines = [f"{verb}: {done}"] if done else []
        if approved:
            expected, now = await self.outbox.departures(approved), self.clock.now()
            lines.append(leaving(approved, self.standing(), self.timezone, is_awake=True, now=now, expected=expected))
        return "\n".join([*lines, *problems])

    async def _say(self, message: WaitingMessage, text: str, *, is_notice: bool = False) -> None:
        """Propose an answer, in as many parts as it needs; a part that was proposed before is not proposed again."""
        for number, part in enumerate(split_text(text), start=1):
            body = _body(message, part, number, is_notice=is_notice)
            await self.outbox.do_once(ProposedAction(body, cause_id=key_of(message), urgent=True))

    async def _note(self, message: WaitingMessage, summary: str) -> None:
        await self.state.settle([message], summary, "handled")
        await self.journal.record(
            Entry(
                "decision",
                LOOP,
                summary,
                line="done",
                reason="the owner wrote",
                trigger_uri=key_of(message),
                data={"act": "answered"},
            )
        )


def _body(message: WaitingMessage, text: str, part: int = 1, *, is_notice: bool = False) -> DirectMessageBody:
    return DirectMessageBody(
        conversation_id=message.conversation_id,
        to=message.author_did,
        text=text,
        after_rev=message.rev,
        answers=message.id,
        part=part,
        is_notice=is_notice,
    )
