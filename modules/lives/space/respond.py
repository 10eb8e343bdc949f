"""From what the model decided to what will be said: filters, checks, and what is done where they leave nothing.

The owner of the host's wish gets a second try, and in the end acts without the model; everybody else is silent.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.schemas import Commitment, SpaceDecision
from modules.lives.space.commitment_filter import named_by_host, permitted
from modules.lives.space.commitment_maker import conversation_of
from modules.lives.space.decide import Decided, Decider
from modules.lives.space.fallback import (
    FORCED_MESSAGE,
    RescueContext,
    build_forced_commitment,
    enriched,
    salvage,
    should_force_action,
    should_retry,
)
from modules.lives.space.host_request import count_forced, count_rejection
from modules.lives.space.journal_reporter import JournalReporter
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.speak import ProposedMessage
from modules.lives.space.state import Conversation
from modules.lives.space.transcript import told
from modules.lives.space.types import Resolution
from modules.lives.space.validator import MessageValidator
from modules.services.commitments.writer import CommitmentWriter

_MENDED = {"Discussion auto-trim": "Auto-trimmed discussion message"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """What is to be said, if `code` is `speak`, or why nothing; `needs_repo`: the host must first name one."""

    code: Resolution
    reason: str = ""
    wish: ProposedMessage | None = None


@dataclass(frozen=True, slots=True)
class Responder:
    """Resolves.

    Attributes:
        decider: asks the model again where it owes an action.
        validator: validate words.
        talk: what we keep in mind of the room; the request's counters move here.
        reporter: tells the owner.
        writer: writes the body of what is made without a decision of the model.
        social_only: whether this life has no GitHub.
        timezone: of the SOUL's day; "" for the machine's own.

    """

    decider: Decider
    validator: MessageValidator
    talk: Conversation
    reporter: JournalReporter
    writer: CommitmentWriter
    social_only: bool
    timezone: str = ""

    async def resolve(self, decided: Decided | None, snapshot: RoomSnapshot) -> Resolved:
        """What comes of a decision; None where the model was not asked."""
        first = await self._from(decided, snapshot) if decided else Resolved("silent", "nothing new was said")
        if first.code != "silent" or not snapshot.is_owner:
            return first
        if decided:
            self.talk.request = count_rejection(self.talk.request)
        again = await self._retried(snapshot, first.reason, asked=decided is not None)
        return again if again.code == "speak" else await self._forced(snapshot, first.reason)

    async def _from(self, decided: Decided, snapshot: RoomSnapshot) -> Resolved:
        decision = decided.decision
        if decision is None:
            return Resolved("silent", decided.error)
        kept, overtaken = await self._kept(decided, snapshot)
        if overtaken:
            return Resolved("overtaken", "a peer is at it already")
        if not decided.message:
            return await self._without_words(decision, kept, snapshot)
        outcome = await self.validator.validate(decided.message, kept, snapshot)
        for mended in outcome.recovered:
            summary = _MENDED.get(mended, mended)
            await self.reporter.decided(summary, outcome.signature, snapshot, line="info", data=dict(outcome.figures))
        if outcome.ok:
            return Resolved("speak", wish=ProposedMessage(outcome.message, kept, decision.reason))
        await self.reporter.decided(
            f"Validation rejected ({outcome.tag})",
            f"{outcome.signature}: {outcome.reason}",
            snapshot,
            line="warn",
            data={"act": "rejected", "check": outcome.check, "message": decided.message, **outcome.figures},
        )
        if outcome.salvage and kept:
            return await self._salvaged(decision, kept, snapshot)
        return Resolved("silent", outcome.reason)

    async def _kept(self, decided: Decided, snapshot: RoomSnapshot) -> tuple[tuple[Commitment, ...], bool]:
        """The commitments that may be made, and whether peers have taken all that we wanted to make."""
        for dropped in decided.dropped:
            await self.reporter.decided("Commitment dropped", dropped.reason, snapshot, line="warn")
        found = permitted(decided.commitments, snapshot)
        for out in found.left_out:
            await self.reporter.decided("Commitment dropped", out.line, snapshot, line="warn")
        return found.kept, found.is_taken

    async def _without_words(
        self, decision: SpaceDecision, kept: tuple[Commitment, ...], snapshot: RoomSnapshot
    ) -> Resolved:
        """Commitments without words are kept of whoever wanted to speak, and of the owner in any case."""
        if kept and (decision.should_speak or snapshot.is_owner):
            return await self._salvaged(decision, kept, snapshot)
        return Resolved("silent", decision.reason or "the model stays silent")

    async def _salvaged(
        self, decision: SpaceDecision, kept: tuple[Commitment, ...], snapshot: RoomSnapshot
    ) -> Resolved:
        saved = salvage(kept, snapshot.social_only)
        if saved is None:
            return Resolved("silent", "Social-only: nothing is left to keep")
        summary = "Salvaging commitments from rejected message"
        await self.reporter.decided(summary, f"[SALVAGE] {saved.message}", snapshot, line="queue")
        return Resolved("speak", wish=ProposedMessage(saved.message, saved.commitments, decision.reason, acts=True))

    async def _retried(self, snapshot: RoomSnapshot, problem: str, *, asked: bool) -> Resolved:
        context = self._standing(snapshot, new_messages=asked)
        if should_retry(context).code != "retry":
            return Resolved("silent")
        decided = await self.decider.act(snapshot, problem)
        kept, _ = await self._kept(decided, snapshot)
        if not kept:
            return Resolved("silent", decided.error or "the second try brought no commitment")
        message = decided.message
        if not message or not (await self.validator.validate(message, kept, snapshot)).ok:
            message = FORCED_MESSAGE
        await self.reporter.decided("Action-owner retry succeeded", kept[0].type, snapshot, line="queue")
        return Resolved("speak", wish=ProposedMessage(message, kept, "the host asked, and it is ours to do", acts=True))

    async def _forced(self, snapshot: RoomSnapshot, reason: str) -> Resolved:
        decision = should_force_action(self._standing(snapshot, retried=True))
        if decision.code != "force":
            return Resolved("needs_repo" if decision.code == "ask_for_repo" else "silent", reason)
        talk = "\n".join(told(entry, self.timezone) for entry in snapshot.history) if named_by_host(snapshot) else ""
        commitment = build_forced_commitment(snapshot.request.content, snapshot.repo, talk)
        if commitment is None:
            return Resolved("silent", f"{reason}; and nothing honest can be made of the request without the model")
        thin = commitment.model_copy(update={"description": ""})
        better = enriched(commitment, await self.writer.enrich(thin, conversation_of(snapshot) if talk else ""))
        self.talk.request = count_forced(self.talk.request)
        why = f"[FORCED ACTION] {decision.reason}"
        await self.reporter.decided("Forced action mode", why, snapshot, line="queue", data={"act": "forced"})
        if better != commitment:
            await self.reporter.decided("Forced action enriched", f"{len(better.description)} characters", snapshot)
        return Resolved("speak", wish=ProposedMessage(FORCED_MESSAGE, (better,), decision.reason, acts=True))

    def _standing(self, snapshot: RoomSnapshot, *, new_messages: bool = False, retried: bool = False) -> RescueContext:
        return RescueContext(
            is_owner=snapshot.is_owner,
            request=self.talk.request,
            now=snapshot.now,
            new_messages=new_messages,
            social_only=self.social_only,
            repo=snapshot.repo,
            retried=retried,
            asked_for_repo=self.talk.asked_for_repo == self.talk.request.entry_id,
        )
