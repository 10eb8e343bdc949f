"""Handles a burst of direct messages by somebody other than the owner: decides by rule, else lets the model answer.

A crash at any point leaves the messages waiting; an answer that was accepted before is found and not repeated.
"""

import random
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from common.clock import Clock, age, parse_iso, parse_iso_or_none
from common.facts import MessageFacts, SaidLine
from common.provenance import Importance, Provenance, Trust
from common.text.untrusted import clean
from modules.lives.messages.policy import AuthorStanding, is_ready, verdict_on
from modules.lives.messages.state import ANSWERED, MessageState
from modules.lives.messages.types import MESSAGE, Burst, Line, MessageTurn
from modules.runtime.llm.dialect import Message
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnRunner, chosen_in
from modules.services.experiences import IMPRESSED, DraftExperiences, ExperienceType, NewExperience
from modules.services.identity.identity import Me
from modules.services.inbox import messages
from modules.services.inbox.messages import ReceivedMessage
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.relationships import Relationships
from modules.services.rights.answering import PersonRequests
from modules.services.rights.policy import ASKED, Addressed, Found
from modules.services.rights.preferences import Preferences
from modules.services.skills.skills import Framer, Skills, written
from modules.services.work.limits import PersonTurns, limits_of
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, NewWork, Perceiver, WorkItem

_REQUEST = "data_request"
TOOLS = ("message_answer", "message_silence", _REQUEST)

_LOOP = "message-others"
_SKILL = "direct-messages"
_TEMPLATE = "User Message Template"


@dataclass(frozen=True, slots=True)
class OthersResponder:
    """Asks the model, with the words of strangers as data."""

    me: Me
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    relationships: Relationships
    clock: Clock
    rng: random.Random

    async def answer_burst(
        self, burst: Burst, earlier: Sequence[Line], importance: Importance, *, offers_request: bool
    ) -> Disposition:
        """Return what the model chose; with `offers_request`, it may find that the author asks about their own data.

        Raises:
            BudgetExceeded: there is no budget for the author.
            Transient: the model is briefly unable.

        """
        key = f"message:{burst.talk.id}"
        told = await self._words(burst, earlier)
        turn = Turn(
            loop=_LOOP,
            provenance=Provenance.STRANGER,
            cause_id=burst.uri,
            subject=MessageTurn(
                burst, said=(*(line.text for line in earlier), burst.text), told=await self._bare(burst)
            ),
            importance=importance,
        )
        only = tuple(name for name in TOOLS if offers_request or name != _REQUEST)
        system = await self.prompter.prompt(
            skill=_SKILL,
            variables={
                "bluesky_username": self.me.bluesky_username,
                "owner_handle": self.me.owner_handle,
                "tools": self.turn_runner.offered(turn, only),
            },
            audience="bluesky",
            session_key=key,
            query=burst.text,
            now=self.clock.now(),
            least=Provenance.STRANGER,
            person=burst.talk.did,
        )
        turn_result = await self.turn_runner.run_turn(
            turn=turn,
            system=system,
            messages=(Message("user", told),),
            purpose=_SKILL,
            tool_choice="required",
            only=only,
            about=_facts(burst, earlier),
        )
        return chosen_in(turn_result, "chosen")

    async def _words(self, burst: Burst, earlier: Sequence[Line]) -> str:
        framer = Framer(self.skills, self.rng)
        who, uri = f"@{burst.talk.handle}", burst.uri
        lines = "\n".join(map(self._line, earlier))
        new = (Line(burst.talk.handle, one.text, one.rev, one.sent_at) for one in burst.messages)
        is_late = len(burst.messages) > 1 and bool(self._written(burst.messages[0]))
        return await self._template(
            burst,
            conversation=framer.frame("conversation", author="several", uri=uri, text=lines)
            if lines
            else self.skills.section(_SKILL, "No Conversation"),
            message=framer.frame(
                "message", author=who, uri=uri, text="\n".join(map(self._line, new)) if is_late else burst.text
            ),
            written=self._written(burst.newest),
        )

    def _written(self, message: ReceivedMessage) -> str:
        return written(self.skills, parse_iso(message.sent_at), self.clock.now(), self.me.timezone)

    def _line(self, line: Line) -> str:
        sent = parse_iso_or_none(line.at)
        when = age(sent, self.clock.now()) if sent else self.skills.section("memory", "Not Sent")
        return f"[{when}] {f'@{line.who}' if line.who else 'YOU'}: {' '.join(line.text.split())}"

    async def _bare(self, burst: Burst) -> str:
        """Return the text of our own prompt, without the words of others."""
        return await self._template(burst, conversation="", message="", written="")

    async def _template(self, burst: Burst, *, conversation: str, message: str, written: str) -> str:
        known = await self.relationships.get(burst.talk.did)
        met = known.times_written if known else 0
        return self.skills.render(
            _SKILL,
            _TEMPLATE,
            author=burst.talk.handle,
            relationship=self.skills.render(_SKILL, "Relationship", "Known" if met else "New", interactions=met),
            note=self.skills.render(_SKILL, "Note", "Automated") if burst.talk.is_bot else "",
            conversation=conversation,
            message=message,
            written=written,
        )


def _facts(burst: Burst, earlier: Sequence[Line]) -> MessageFacts:
    return MessageFacts(
        author=burst.talk.handle,
        text=burst.text,
        said=tuple(SaidLine(line.who, line.text) for line in earlier),
        is_bot=burst.talk.is_bot,
    )


LOOP = "message-others"

_MOST_LINES = 12
_LATEST = "\uffff"
_WROTE_FIRST = "they wrote first, and no rule is against an answer"
_SUMMARIES: dict[str, str] = {
    ANSWERED: "Answered @{} in a direct message",
    "silent": "No answer to a direct message of @{}",
    "dropped": "Giving up on a direct message of @{}",
    "later": "A direct message of @{} has to wait",
    "undecided": "Undecided about a direct message of @{}",
}


@dataclass(kw_only=True)
class OthersHandler(Handler, Perceiver):
    """Handles direct messages by others, one burst at a time."""

    kind = MESSAGE
    line = "social"

    state: MessageState
    work: WorkTable
    responder: OthersResponder
    outbox: Outbox
    requests: PersonRequests
    etiquette: Etiquette
    preferences: Preferences
    relationships: Relationships
    draft_experiences: DraftExperiences
    turns: PersonTurns
    clock: Clock

    async def perceive(self) -> None:
        """Add a row for each conversation in which others wait for an answer, once they have stopped writing."""
        found = [one for one in await self.state.bursts() if is_ready(one, self.clock.since)]
        await self.work.add(*map(self._row, found))

    def _row(self, burst: Burst) -> NewWork:
        talk = burst.talk
        return NewWork(
            MESSAGE,
            talk.id,
            {"handle": talk.handle or talk.did},
            author=talk.did,
            importance="stranger" if self.etiquette.is_stranger(talk.did) else "mention",
            cause_id=burst.uri,
            version=burst.newest.rev,
        )

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition | None:
        """Return None: `handle` looks for earlier answers message by message."""
        return None

    async def handle(self, item: WorkItem) -> Disposition:
        burst = await self.state.burst(item.key, item.version)
        if burst is None:
            return Disposition("dropped", "nothing-waits", "nothing of it waits any more")
        answered, done = await self._answered_before(burst)
        if done and answered == len(burst.messages):
            return done
        if done:
            part = Burst(burst.talk, burst.messages[:answered])
            await self._remember(part, done)
            await self.state.settle(part.messages, done.act, "handled")
            burst = Burst(burst.talk, burst.messages[answered:])
        importance = item.importance
        return await self._carry_out_request(burst, importance, "first") or await self._decide(burst, importance)

    async def _decide(self, burst: Burst, importance: Importance) -> Disposition:
        """Let the model answer, or carry out the author's request about their own data if the model finds one.

        If no model may answer now, a model still checks whether the burst contains such a request.
        """
        sent = await self._sent(burst)
        if left := await self._left(burst, sent, importance):
            return await self._carry_out_request(burst, importance) or left
        earlier, may_ask = await self._earlier(burst, sent), not self.requests.asks_nothing(burst.uri)
        async with self.turns.turn(burst.author, importance):
            chosen = await self.responder.answer_burst(burst, earlier, importance, offers_request=may_ask)
        if chosen.act == ASKED:
            requested = await self._carry_out_request(burst, importance, "called")
            chosen = requested or await self.responder.answer_burst(burst, earlier, importance, offers_request=False)
        return replace(chosen, reason=chosen.reason or _WROTE_FIRST)

    async def _left(self, burst: Burst, sent: list[Intent], importance: Importance) -> Disposition | None:
        """Return the disposition of a burst that no model may answer now; None if one may."""
        if burst.talk.status == "request":
            reason = "of its author only requests about their own data are answered"
            return Disposition("silent", "request", reason)
        did = burst.talk.did
        standing = AuthorStanding(
            advice=await self.etiquette.before_message(burst.answer("")),
            preference=(await self.preferences.of([did])).get(did),
            is_muted=bool(await self.preferences.muted([did])),
            has_answered=bool(sent),
        )
        if verdict := verdict_on(burst, standing, self.clock.now()):
            return self._in_lived_time(verdict)
        return await self.turns.must_wait(burst.author, limits_of(importance))

    async def _answered_before(self, burst: Burst) -> tuple[int, Disposition | None]:
        """Return how many messages an earlier run answered without settling them, and the disposition of these."""
        for number, message in reversed(list(enumerate(burst.messages, start=1))):
            intent = next(iter(await self.outbox.accepted(message.name)), None)
            if intent is not None:
                reason, held = "answered on an earlier try", intent.state == "held"
                return number, Disposition(ANSWERED, "done-before", reason, intent_id=intent.id, held=held)
        return 0, None

    async def _carry_out_request(
        self, burst: Burst, importance: Importance, found: Found = "possible"
    ) -> Disposition | None:
        """Carry out a request about the author's own data, or an earlier one for no replies; None if there is none."""
        talk = burst.talk
        asked = Addressed(burst.uri, talk.did, talk.handle, burst.text, importance)
        outcome = await self.requests.carry_out(asked, found)
        if outcome is None:
            return None
        if outcome.code != "answer":
            return self._in_lived_time(Disposition(outcome.code, "rights", outcome.reason, outcome.retry_in_s))
        body = burst.answer(clean(outcome.text), about_rights=True, is_last_word="forget" in outcome.kinds)
        submitted = await self.outbox.submit(ProposedAction(body, cause_id=burst.uri, urgent=True))
        intent_id = submitted.intent.id
        if not submitted.accepted:
            return Disposition("silent", "rights", f"{outcome.reason}; {submitted.reason}", intent_id=intent_id)
        return Disposition(ANSWERED, "rights", outcome.reason, intent_id=intent_id, held=submitted.held)

    def _in_lived_time(self, disposition: Disposition) -> Disposition:
        """Return a disposition with its wait converted from true to lived seconds."""
        return replace(disposition, retry_in_s=self.clock.lived(disposition.retry_in_s))

    async def _sent(self, burst: Burst) -> list[Intent]:
        """Return our own messages in the conversation that were sent or may still be, newest first."""
        return [
            one for one in await self.outbox.at_place(["direct_message"], burst.talk.id) if one.state in ACTIVE_STATES
        ]

    async def _earlier(self, burst: Burst, sent: list[Intent]) -> list[Line]:
        """Return what was said before the burst, oldest first."""
        new = {message.rev for message in burst.messages}
        said = [line for line in await self.state.said_by(burst.talk, _MOST_LINES) if line.rev not in new]
        ours = [one for one in sent if one.state != "held"]
        said += [Line("", one.body.preview, one.made("message") or _LATEST, one.sent_at or "") for one in ours]
        return sorted(said, key=lambda line: line.rev)[-_MOST_LINES:]

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Record that the messages were written."""
        if burst := await self.state.burst(item.key, item.version):
            await self._remember(burst, disposition)

    def settle(self, connection: sqlite3.Connection, item: WorkItem, disposition: Disposition) -> None:
        """Settle the messages themselves."""
        state: Literal["dropped", "handled"] = "dropped" if disposition.act == "dropped" else "handled"
        if burst := self.state.burst_in(connection, item.key, item.version):
            for message in burst.messages:
                messages.settle(connection, message, state, disposition.act)

    async def _remember(self, burst: Burst, disposition: Disposition) -> None:
        """Record that they wrote to us, without the text; not for forgotten people or unaccepted conversations."""
        is_kept = burst.talk.handle and burst.talk.status == "accepted"
        if is_kept and not await self.preferences.forgotten([burst.talk.did]):
            sent = {message.name: message.sent_at for message in burst.messages}
            responded = disposition.act == ANSWERED and not disposition.held
            await self.relationships.record_messages(burst.author, sent, responded=responded)
            await self._experience(burst, disposition)

    async def _experience(self, burst: Burst, disposition: Disposition) -> None:
        """Record the experience that they wrote and were answered, or not, without the text."""
        if disposition.act not in {ANSWERED, "silent"}:
            return
        answered = IMPRESSED.get(disposition.impression, "helped_someone")
        kind: ExperienceType = answered if disposition.act == ANSWERED else "chose_silence"
        trust: Trust = "stranger" if self.etiquette.is_stranger(burst.talk.did) else "peer"
        did, handle = burst.talk.did, f"@{burst.talk.handle}"
        new = NewExperience(kind, "message", burst.uri, "", did, handle, trust=trust)
        await self.draft_experiences.record(new, disposition.intent_id if disposition.held else None)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        line = "An answer to a direct message of @{} waits for your approval" if disposition.held else None
        return (line or _SUMMARIES[disposition.act]).format(item.payload.get("handle", item.author))
