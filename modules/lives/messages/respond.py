"""Answers the owner's messages: commands and a yes or no at once, the rest in a turn. Tells the owner about drafts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from common.clock import Clock, local, parse_iso
from common.errors import BudgetExceeded, NotWaiting, Transient
from common.text.untrusted import one_line
from modules.lives.messages.alarms import Orders, OwnerNotices
from modules.lives.messages.perceive import LOOP
from modules.lives.messages.policy import (
    MOST_DRAFTS,
    NO_BUDGET,
    NO_MODEL,
    drafts_text,
    is_command,
    is_latest,
    left_text,
    quiet_until,
    read_draft_answer,
    shown_whole,
    split_text,
    told_before,
    too_long_text,
)
from modules.lives.messages.state import MessageState
from modules.lives.messages.types import DraftAnswer, OwnerHandler
from modules.runtime.control import Standing
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.inbox.messages import ReceivedMessage
from modules.services.outbox.approval import leaving
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.owner import cause_of
from modules.services.rights.records import FORGOT, REQUEST, left_in
from modules.services.rights.records import LOOP as RIGHTS
from modules.services.work.table import WorkTable
from modules.services.work.types import OWNER_MESSAGE, OWNER_TALK, Disposition, Handler, Perceiver, WorkItem

_SETTLED = "settled"
_DONE = "Done."
_INTERRUPTED = (
    "The program ended while it did this, and it is not known how far it came: {line}\n"
    "/status and /drafts tell how things stand; write it again if it is still to be done."
)
_LINE_CHARS = 200
_TELL_AGAIN_S = 60.0
_TOLD_FOR, _ASKED_FOR = timedelta(days=7), timedelta(hours=1)
_DRAFTS = "drafts"
"""The cause of messages that show drafts to the owner; followed by its id, of one that tells of a draft unshown."""


@dataclass(kw_only=True)
class OwnerMessageHandler(Handler):
    """Answers the owner's messages through the outbox: each message gets one answer, also after a crash.

    A command, or a yes or no to drafts, needs no turn and is begun once: after a crash in the middle of it, the owner
    is told, and it is not begun again. What needs a turn, and a command that takes a while, is passed on as
    `OWNER_TALK`, so that no later command waits for it.
    """

    kind: str = OWNER_MESSAGE
    is_public = False
    pause_s = 0.0
    tells = True

    state: MessageState
    work: WorkTable
    outbox: Outbox
    orders: Orders
    handler: OwnerHandler
    journal: Journal
    clock: Clock
    standing: Callable[[], Standing]
    timezone: str

    async def handle(self, item: WorkItem) -> Disposition:
        message = await self.state.named(item.key)
        if message is None or message.state != "pending" or not self.state.me.is_owner(message.author_did):
            return Disposition("dropped", _SETTLED, "it does not wait any more")
        line, begun = message.text.strip(), bool(item.payload.get("begun"))
        draft_answer = await self._draft_answer(message) if self.kind == OWNER_MESSAGE else None
        if not (draft_answer and draft_answer.ids):
            line = await self.state.as_command(line)
            draft_answer = None if is_command(line) else draft_answer
        if not is_command(line) and not draft_answer and not begun:
            return await self._talk(item, message)
        if self.kind == OWNER_MESSAGE and is_command(line) and self.handler.takes_a_while(line):
            return await self._pass_on(item)
        if (await self.outbox.standing("direct_message", _body(message, "").subject)).intent:
            return await self._done(message, "Did what the owner wrote in a direct message")
        if begun:
            told = _INTERRUPTED.format(line=one_line(message.text, _LINE_CHARS))
            await self._say(message, told, is_notice=True)
            return await self._done(message, "Was interrupted in what the owner wrote in a direct message")
        await self.work.note(item, begun=True)
        said = await (self._decide(draft_answer) if draft_answer else self.handler.obey(line))
        await self._say(message, said or _DONE, is_notice=True)
        return await self._done(message, "Did what the owner wrote in a direct message")

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition | None:
        """Return None: `handle` looks for earlier answers part by part."""
        return None

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Settle the message itself."""
        message = await self.state.named(item.key)
        if message is not None and disposition.code != _SETTLED:
            state: Literal["dropped", "handled"] = "dropped" if disposition.act == "dropped" else "handled"
            await self.state.settle([message], disposition.reason, state)

    async def _pass_on(self, item: WorkItem) -> Disposition:
        await self.work.pass_on(item, OWNER_TALK)
        return Disposition("later", "turn", "it needs a turn")

    async def _talk(self, item: WorkItem, message: ReceivedMessage) -> Disposition:
        """Answer in a turn; a row that is not of the kind `OWNER_TALK` is passed on first."""
        if self.kind == OWNER_MESSAGE:
            return await self._pass_on(item)
        try:
            answer = await self.handler.answer(item, message.text, message.sent_at)
        except (BudgetExceeded, Transient) as error:
            if error.remedy:
                await self._tell_it_waits(message, error)
            return Disposition("later", "no-words", str(error))
        await self._say(message, answer)
        await self.orders.keep(message, cause_of(item.key))
        return await self._done(message, "Answered the owner in a direct message")

    async def _tell_it_waits(self, message: ReceivedMessage, error: BudgetExceeded | Transient) -> None:
        """Tell the owner, once a day and without the model, why their message waits, and what they can do."""
        is_budget = isinstance(error, BudgetExceeded)
        cause, until = (NO_BUDGET, "the budget allows it") if is_budget else (NO_MODEL, "this works again")
        cause = f"{cause}/{local(self.clock.now(), self.timezone):%Y-%m-%d}"
        if not await self.outbox.by_cause(cause):
            text = f"Your message is kept, and is answered when {until}. {error}. {error.remedy}"
            body = _body(message, text, is_notice=True).model_copy(update={"answers": ""})
            await self.outbox.submit(ProposedAction(body, cause_id=cause, urgent=True))

    async def _draft_answer(self, message: ReceivedMessage) -> DraftAnswer | None:
        told = told_before(message.rev, await self.outbox.done(_DRAFTS))
        if told.ids:
            said = await self.outbox.at_place(["direct_message"], message.conversation_id, since=told.at)
            open_ids = {one.id for one in await self.outbox.held()}
            ids = tuple(one for one in told.ids if one in open_ids)
            told = replace(told, ids=ids, is_latest=is_latest(told, message.rev, said))
        return read_draft_answer(message.text, told, await self.state.waiting_numbers())

    async def _decide(self, answer: DraftAnswer) -> str:
        if not answer.ids:
            return 'Which of them? "yes 1", "no 2" or "yes all" says it; /drafts lists what waits.'
        numbers = await self.state.waiting_numbers()
        named = ", ".join(f"draft {numbers.get(one, 0)}" for one in answer.ids)
        try:
            if not answer.is_yes:
                await self.outbox.reject(*answer.ids, reason=answer.reason)
                return f"Rejected {named}"
            approved = await self.outbox.approve(*answer.ids)
        except NotWaiting as problem:
            return str(problem)
        expected, now = await self.outbox.departures(approved), self.clock.now()
        when = leaving(approved, self.standing(), self.timezone, is_awake=True, now=now, expected=expected)
        return f"Approved {named}\n{when}"

    async def _say(self, message: ReceivedMessage, text: str, *, is_notice: bool = False) -> None:
        """Propose an answer in as many parts as it needs; parts that were proposed before are not proposed again."""
        for number, part in enumerate(split_text(text), start=1):
            body = _body(message, part, number, is_notice=is_notice)
            await self.outbox.do_once(ProposedAction(body, cause_id=message.name, urgent=True))

    async def _done(self, message: ReceivedMessage, summary: str) -> Disposition:
        data = {"act": "answered"}
        entry = Entry("decision", LOOP, summary, "done", "the owner wrote", trigger_uri=message.name, data=data)
        await self.journal.record(entry)
        return Disposition("done", "answered", summary)


@dataclass(kw_only=True)
class OwnerTeller(Perceiver):
    """Tells the owner about drafts, requests to be forgotten, and where a forgotten name remains, each once."""

    state: MessageState
    notices: OwnerNotices
    outbox: Outbox
    journal: Journal
    clock: Clock
    timezone: str
    quiet_hours: tuple[int, int] | None

    def __post_init__(self) -> None:
        self._told_at = float("-inf")
        self._looked_for_forgotten = False

    async def perceive(self) -> None:
        await self._tell_of_drafts()
        await self._tell_of_requests()
        await self._tell_of_forgotten()

    async def _tell_of_drafts(self) -> None:
        """Tell the owner about the waiting drafts that they were not told about; in quiet hours, after their end."""
        if quiet_until(self.clock.now(), self.quiet_hours, self.timezone):
            return
        if self.clock.monotonic() - self._told_at < self.clock.real(_TELL_AGAIN_S):
            return
        told, waiting = {one for body in await self._said(_DRAFTS) for one in body.drafts}, await self.outbox.held()
        if new := [one for one in waiting if one.id not in told and not await self._said(f"{_DRAFTS}/{one.id}")]:
            listed = await self.state.in_words(new[:MOST_DRAFTS])
            shown = shown_whole(listed, len(new))
            text = drafts_text(shown, len(new) - len(shown)) if shown else too_long_text(listed[0])
            cause = _DRAFTS if shown else f"{_DRAFTS}/{new[0].id}"
            if await self.notices.send(text, cause, drafts=[one.intent.id for one in shown]):
                self._told_at = self.clock.monotonic()

    async def _tell_of_requests(self) -> None:
        """Tell the owner once who asked to be forgotten, before it is done: forgetting deletes this entry too."""
        now = self.clock.now()
        if quiet_until(now, self.quiet_hours, self.timezone):
            return
        for one in await self.journal.with_act(RIGHTS, REQUEST, now - _ASKED_FOR, now):
            cause = one.entry.trigger_uri or ""
            if one.entry.data.get("kind") == "forget" and not await self._said(cause):
                at = f"{local(parse_iso(one.at), self.timezone):%Y-%m-%d %H:%M}"
                await self.notices.send(f"{one.entry.summary} ({at}). It is done soon; this name is not kept.", cause)

    async def _tell_of_forgotten(self) -> None:
        """Tell the owner where somebody who was forgotten is still named.

        People are forgotten while no SOUL runs in the home, so one look per run is enough.
        """
        if self._looked_for_forgotten:
            return
        now = self.clock.now()
        entries = await self.journal.with_act(RIGHTS, FORGOT, now - _TOLD_FOR, now)
        told = {at for body in await self._said(FORGOT) for at in body.forgotten}
        left = {one.at: left_in(one.entry.data) for one in entries if one.at not in told}
        new = {at: places for at, places in left.items() if places}
        days = ", ".join(dict.fromkeys(f"{local(parse_iso(at), self.timezone):%Y-%m-%d}" for at in new))
        text = left_text([place for places in new.values() for place in places], days)
        self._looked_for_forgotten = not new or await self.notices.send(text, FORGOT, forgotten=[*new]) is not None

    async def _said(self, cause: str) -> list[DirectMessageBody]:
        """Return the direct messages to the owner with one cause, without those withdrawn before they were sent."""
        found = [one.body for one in await self.outbox.by_cause(cause) if one.outcome != "withdrawn"]
        return [one for one in found if isinstance(one, DirectMessageBody) and self.state.me.is_owner(one.to)]


def _body(message: ReceivedMessage, text: str, part: int = 1, *, is_notice: bool = False) -> DirectMessageBody:
    return DirectMessageBody(
        conversation_id=message.conversation_id,
        to=message.author_did,
        text=text,
        after_rev=message.rev,
        answers=message.id,
        part=part,
        is_notice=is_notice,
    )
