"""One burst of messages by somebody who is not the owner: read what is known, decide by rule, else ask the model.

A crash at any point leaves the messages waiting; an answer that had been accepted before is found and not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from common.clock import Clock
from common.importance import Importance
from common.provenance import Trust
from common.text.untrusted import clean
from modules.lives.messages.others_policy import AuthorStanding, verdict_on
from modules.lives.messages.respond_others import OthersResponder
from modules.lives.messages.state import ANSWERED, MessageState
from modules.lives.messages.types import MESSAGE, Burst, Line, key_of
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import IMPRESSED, ExperienceType, NewExperience
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.peers.accounts import Relationships
from modules.services.rights.answering import PersonRequests
from modules.services.rights.preferences import Preferences
from modules.services.rights.types import ASKED, Addressed, Found
from modules.services.work.limits import limits_of
from modules.services.work.turns import PersonTurns
from modules.services.work.types import Disposition, Handler, WorkItem

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
class OthersHandler(Handler):
    """Handles what others wrote, a burst at a time."""

    kind = MESSAGE
    line = "social"

    state: MessageState
    responder: OthersResponder
    outbox: Outbox
    requests: PersonRequests
    etiquette: Etiquette
    preferences: Preferences
    relationships: Relationships
    experiences: ExperienceLog
    turns: PersonTurns
    clock: Clock

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition | None:
        """Return None: what was answered before is looked for message by message."""
        return None

    async def handle(self, item: WorkItem) -> Disposition:
        burst = await self.state.burst(item.key, item.version)
        if burst and (done := await self._answered_before(burst)):
            burst = await self.state.burst(item.key, item.version)
            if burst is None:
                return done
        if burst is None:
            return Disposition("dropped", "nothing-waits", "nothing of it waits any more")
        importance = item.importance
        return await self._carry_out_request(burst, importance, "first") or await self._decide(burst, importance)

    async def _decide(self, burst: Burst, importance: Importance) -> Disposition:
        """Let the model answer, or carry out what its author asks about their own data, as the model finds.

        Where no model is to answer now, one reads the burst for a request that its words may hold.
        """
        sent = await self._sent(burst)
        if left := await self._left(burst, sent, importance):
            return await self._carry_out_request(burst, importance) or left
        earlier, may_ask = await self._earlier(burst, sent), not self.requests.asks_nothing(burst.uri)
        chosen = await self.responder.answer_burst(burst, earlier, importance, offers_request=may_ask)
        if chosen.act == ASKED:
            requested = await self._carry_out_request(burst, importance, "called")
            chosen = requested or await self.responder.answer_burst(burst, earlier, importance, offers_request=False)
        return replace(chosen, reason=chosen.reason or _WROTE_FIRST)

    async def _left(self, burst: Burst, sent: list[Intent], importance: Importance) -> Disposition | None:
        """Return what becomes of a burst that no model is to answer now; None where one is."""
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
        return await self.turns.take(burst.author, limits_of(importance))

    async def _answered_before(self, burst: Burst) -> Disposition | None:
        """Settle what an earlier life answered and did not settle; what came after that stays for another answer."""
        for number, message in reversed(list(enumerate(burst.messages, start=1))):
            intent = next(iter(await self.outbox.accepted(key_of(message))), None)
            if intent is not None:
                reason, held = "answered on an earlier try", intent.state == "held"
                done = Disposition(ANSWERED, "done-before", reason, intent_id=intent.id, held=held)
                await self._settle(Burst(burst.talk, burst.messages[:number]), done)
                return done
        return None

    async def _carry_out_request(
        self, burst: Burst, importance: Importance, found: Found = "possible"
    ) -> Disposition | None:
        """What becomes of a burst in which its author asks about their own data, or asked for no reply before."""
        talk = burst.talk
        asked = Addressed(burst.uri, talk.did, talk.handle, burst.text, importance)
        outcome = await self.requests.carry_out(asked, found)
        if outcome is None:
            return None
        if outcome.code != "answer":
            return self._in_lived_time(Disposition(outcome.code, "rights", outcome.reason, outcome.retry_in_s))
        body = burst.answer(clean(outcome.text), about_rights=True)
        submitted = await self.outbox.submit(ProposedAction(body, cause_id=burst.uri, urgent=True))
        intent_id = submitted.intent.id
        if not submitted.accepted:
            return Disposition("silent", "rights", f"{outcome.reason}; {submitted.reason}", intent_id=intent_id)
        return Disposition(ANSWERED, "rights", outcome.reason, intent_id=intent_id, held=submitted.held)

    def _in_lived_time(self, disposition: Disposition) -> Disposition:
        """Return one whose seconds, which are true ones, are lived ones, as the loop takes them."""
        return replace(disposition, retry_in_s=self.clock.lived(disposition.retry_in_s))

    async def _sent(self, burst: Burst) -> list[Intent]:
        """Our own latest messages in the conversation that left or will leave, newest first."""
        return [
            one for one in await self.outbox.at_place(["direct_message"], burst.talk.id) if one.state in ACTIVE_STATES
        ]

    async def _earlier(self, burst: Burst, sent: list[Intent]) -> list[Line]:
        """What was said before the burst, oldest first."""
        new = {message.rev for message in burst.messages}
        said = [line for line in await self.state.said_by(burst.talk, _MOST_LINES) if line.rev not in new]
        ours = [one for one in sent if one.state != "held"]
        said += [Line("", one.body.preview, one.made("message") or _LATEST, one.sent_at or "") for one in ours]
        return sorted(said, key=lambda line: line.rev)[-_MOST_LINES:]

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Settle the messages themselves, and remember that they were written."""
        if burst := await self.state.burst(item.key, item.version):
            await self._settle(burst, disposition)

    async def _settle(self, burst: Burst, disposition: Disposition) -> None:
        state: Literal["dropped", "handled"] = "dropped" if disposition.act == "dropped" else "handled"
        await self.state.settle(burst.messages, disposition.act, state)
        await self._remember(burst, disposition)

    async def _remember(self, burst: Burst, disposition: Disposition) -> None:
        """Remember that they wrote to us, without a word of it; not of those who are forgotten, or only asked."""
        is_kept = burst.talk.handle and burst.talk.status == "accepted"
        if is_kept and not await self.preferences.forgotten([burst.talk.did]):
            with self.relationships.one_save():
                for message in burst.messages:
                    self.relationships.record_message(
                        burst.author, key_of(message), message.sent_at, responded=disposition.act == ANSWERED
                    )
            await self._experience(burst, disposition)

    async def _experience(self, burst: Burst, disposition: Disposition) -> None:
        """Keep that they wrote and were answered, or not; what was said stays between us."""
        if disposition.held or disposition.act not in {ANSWERED, "silent"}:
            return
        answered = IMPRESSED.get(disposition.impression, "helped_someone")
        kind: ExperienceType = answered if disposition.act == ANSWERED else "chose_silence"
        trust: Trust = "stranger" if self.etiquette.is_stranger(burst.talk.did) else "peer"
        did, handle = burst.talk.did, f"@{burst.talk.handle}"
        await self.experiences.record(NewExperience(kind, "message", burst.uri, "", did, handle, trust=trust))

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        line = "An answer to a direct message of @{} waits for your approval" if disposition.held else None
        return (line or _SUMMARIES[disposition.act]).format(item.payload.get("handle", item.author))
