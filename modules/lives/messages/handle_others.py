"""One burst of messages by somebody who is not the owner: read what is known, decide by rule, else ask the model.

A crash at any point leaves the messages waiting; an answer that had been accepted before is found and not repeated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from common.clock import Clock
from common.errors import BudgetExceeded, Fatal, Transient
from common.provenance import Trust
from common.text.untrusted import clean
from modules.lives.messages.others_policy import Standing, is_settled, ready_in_s, verdict_on
from modules.lives.messages.respond_others import OthersResponder
from modules.lives.messages.state import MessageState
from modules.lives.messages.types import Burst, Line, MessageAct, MessageDisposition, key_of
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import Importance
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import IMPRESSED, ExperienceType, NewExperience
from modules.services.inbox.messages import WaitingMessage
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.policy import full
from modules.services.outbox.rules.rules import TURNS_OF_PEERS, TURNS_OF_STRANGERS
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.peers.accounts import Relationships
from modules.services.rights.answering import PersonRequests
from modules.services.rights.preferences import Preferences
from modules.services.rights.types import Addressed
from modules.services.work.turns import PersonTurns

LOOP = "message-others"
MOST_TRIES = 3

_LOOKED_AT = 500
_MOST_LINES = 12
_LATEST = "\uffff"
_WROTE_FIRST = "they wrote first, and no rule is against an answer"
_REQUESTED: dict[str, MessageAct] = {"silent": "silent", "later": "later"}
_SUMMARIES: dict[MessageAct, str] = {
    "answered": "Answered @{} in a direct message",
    "silent": "No answer to a direct message of @{}",
    "dropped": "Giving up on a direct message of @{}",
    "later": "A direct message of @{} has to wait",
    "undecided": "Undecided about a direct message of @{}",
}


class OthersHandler:
    """Handles what others wrote, a burst at a time. At `speed` 10 the pauses are a tenth as long."""

    def __init__(
        self,
        *,
        state: MessageState,
        responder: OthersResponder,
        outbox: Outbox,
        requests: PersonRequests,
        etiquette: Etiquette,
        preferences: Preferences,
        relationships: Relationships,
        experiences: ExperienceLog,
        turns: PersonTurns,
        journal: Journal,
        clock: Clock,
        speed: float,
    ) -> None:
        self._state = state
        self._responder = responder
        self._outbox = outbox
        self._requests = requests
        self._etiquette = etiquette
        self._preferences = preferences
        self._relationships = relationships
        self._experiences = experiences
        self._turns = turns
        self._journal = journal
        self._clock = clock
        self._speed = speed
        self._tries: dict[str, int] = {}
        self._told_to_wait: set[str] = set()

    async def waiting(self) -> list[Burst]:
        """What waits and may be answered now, the oldest first; whoever is still writing is let finish."""
        await self._turns.recall()
        now = self._clock.now()
        return [burst for burst in await self._state.bursts() if not ready_in_s(burst, now, speed=self._speed)]

    def importance_of(self, burst: Burst) -> Importance:
        """How much its author matters, among those for whom the day's budget is kept."""
        return "stranger" if self._etiquette.is_stranger(burst.talk.did) else "mention"

    async def handle(self, burst: Burst) -> MessageDisposition:
        """Handle a burst, and settle it unless it goes on waiting.

        Raises:
            BudgetExceeded: there is no budget for whoever wrote it.
            Fatal: nothing can be done any more.
            Transient: the network or the model is briefly unable; the burst goes on waiting.

        """
        if done := await self._answered_before(burst):
            return done
        disposition = await self._disposition_of(burst)
        if disposition.act == "undecided":
            tries = self._tries[burst.uri] = self._tries.get(burst.uri, 0) + 1
            if tries >= MOST_TRIES:
                disposition = MessageDisposition("dropped", f"{disposition.reason}, {tries} times")
        await self._tell(burst, disposition)
        if is_settled(disposition):
            await self._settle(burst.messages, disposition)
            await self._remember(burst, disposition)
        return disposition

    async def _answered_before(self, burst: Burst) -> MessageDisposition | None:
        """What an earlier life answered and did not note; what came after that stays for another answer."""
        for number, message in reversed(list(enumerate(burst.messages, start=1))):
            found = await self._outbox.by_cause(key_of(message))
            intent = next((one for one in found if one.state in ACTIVE_STATES), None)
            if intent is None:
                continue
            reason, held = "done before the last restart", intent.state == "held"
            done = MessageDisposition("answered", reason, intent.id, held=held)
            answered = Burst(burst.talk, burst.messages[:number])
            await self._tell(answered, done)
            await self._settle(answered.messages, done)
            await self._remember(answered, done)
            return done
        return None

    async def _disposition_of(self, burst: Burst) -> MessageDisposition:
        """One message that the model rejects, or that trips over a bug of ours, must not stop the others for good."""
        try:
            return await self._decide(burst)
        except (BudgetExceeded, Fatal, Transient):
            raise
        except Exception as error:
            return MessageDisposition("undecided", f"{type(error).__name__}: {error}")

    async def _decide(self, burst: Burst) -> MessageDisposition:
        if requested := await self._carry_out_request(burst):
            return requested
        if burst.talk.status == "request":
            return MessageDisposition("silent", "of its author only requests about their own data are answered")
        did, sent = burst.talk.did, await self._sent(burst)
        standing = Standing(
            advice=await self._etiquette.before_message(burst.answer("")),
            preference=(await self._preferences.of([did])).get(did),
            is_muted=bool(await self._preferences.muted([did])),
            has_answered=bool(sent),
        )
        if verdict := verdict_on(burst, standing, self._clock.now()):
            return verdict
        importance = self.importance_of(burst)
        if wait := self._turns.wait(did, TURNS_OF_STRANGERS if importance == "stranger" else TURNS_OF_PEERS):
            return MessageDisposition("later", full(wait[0]), retry_in_s=wait[1])
        await self._turns.begin_turn(burst.author)
        chosen = await self._responder.answer_burst(burst, await self._earlier(burst, sent), importance)
        return replace(chosen, reason=chosen.reason or _WROTE_FIRST)

    async def _carry_out_request(self, burst: Burst) -> MessageDisposition | None:
        """What becomes of a burst in which its author asks about their own data, or asked for no reply before."""
        talk, importance = burst.talk, self.importance_of(burst)
        outcome = await self._requests.carry_out(Addressed(burst.uri, talk.did, talk.handle, burst.text, importance))
        if outcome is None:
            return None
        if outcome.code != "answer":
            return MessageDisposition(_REQUESTED[outcome.code], outcome.reason, retry_in_s=outcome.retry_in_s)
        body = burst.answer(clean(outcome.text), about_rights=True)
        submitted = await self._outbox.submit(ProposedAction(body, cause_id=burst.uri, urgent=True))
        if not submitted.accepted:
            return MessageDisposition("silent", f"{outcome.reason}; {submitted.reason}", submitted.intent.id)
        return MessageDisposition("answered", outcome.reason, submitted.intent.id, held=submitted.held)

    async def _sent(self, burst: Burst) -> list[Intent]:
        """Our own latest messages in the conversation that left or will leave, newest first."""
        return [
            one
            for one in await self._outbox.of_kind("direct_message", _LOOKED_AT)
            if isinstance(one.body, DirectMessageBody)
            and one.body.conversation_id == burst.talk.id
            and one.state in ACTIVE_STATES
        ]

    async def _earlier(self, burst: Burst, sent: list[Intent]) -> list[Line]:
        """What was said before the burst, oldest first."""
        new = {message.rev for message in burst.messages}
        said = [line for line in await self._state.said_by(burst.talk, _MOST_LINES) if line.rev not in new]
        said += [Line("", one.body.preview, one.result_cid or _LATEST) for one in sent if one.state != "held"]
        return sorted(said, key=lambda line: line.rev)[-_MOST_LINES:]

    async def _settle(self, messages: tuple[WaitingMessage, ...], disposition: MessageDisposition) -> None:
        state: Literal["dropped", "handled"] = "dropped" if disposition.act == "dropped" else "handled"
        await self._state.settle(messages, disposition.act, state)
        for message in messages:
            self._tries.pop(key_of(message), None)
            self._told_to_wait.discard(key_of(message))

    async def _remember(self, burst: Burst, disposition: MessageDisposition) -> None:
        """Remember that they wrote to us, without a word of it; not of those who are forgotten, or only asked."""
        is_kept = burst.talk.handle and burst.talk.status == "accepted"
        if is_kept and not await self._preferences.forgotten([burst.talk.did]):
            with self._relationships.one_save():
                for message in burst.messages:
                    self._relationships.record_message(
                        burst.author, key_of(message), message.sent_at, responded=disposition.act == "answered"
                    )
            await self._experience(burst, disposition)

    async def _experience(self, burst: Burst, disposition: MessageDisposition) -> None:
        """Keep that they wrote and were answered, or not; what was said stays between us."""
        if disposition.held or disposition.act not in {"answered", "silent"}:
            return
        answered = IMPRESSED.get(disposition.impression, "helped_someone")
        kind: ExperienceType = answered if disposition.act == "answered" else "chose_silence"
        trust: Trust = "stranger" if self._etiquette.is_stranger(burst.talk.did) else "peer"
        handle = f"@{burst.talk.handle}"
        await self._experiences.record(
            NewExperience(kind, "message", burst.uri, "", burst.talk.did, handle, trust=trust)
        )

    async def _tell(self, burst: Burst, disposition: MessageDisposition) -> None:
        """Write to the journal what became of it. That it has to wait is told once, however often it is looked at."""
        if disposition.act == "later":
            if burst.uri in self._told_to_wait:
                return
            self._told_to_wait.add(burst.uri)
        handle = burst.talk.handle or burst.talk.did
        line = "An answer to a direct message of @{} waits for your yes" if disposition.held else None
        await self._journal.record(
            Entry(
                "decision",
                LOOP,
                (line or _SUMMARIES[disposition.act]).format(handle),
                line="social",
                reason=disposition.reason,
                trigger_uri=burst.uri,
                author=handle,
                intent_id=disposition.intent_id,
                data={"act": disposition.act, "did": burst.talk.did},
            )
        )
