"""Turns a decision of the model into a message: filters, checks, and a fallback if they leave nothing.

The assignee of the host's request gets a second try, and in the end acts without the model; all others are silent.
"""

from dataclasses import dataclass, field, replace

from modules.lives.space.commitment_filter import Filtered, named, permitted
from modules.lives.space.commitment_maker import Note
from modules.lives.space.config import SpaceConfig
from modules.lives.space.perceive import RoomConversation
from modules.lives.space.prompting import Decider, ModelDecision
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.speak import Fallback, ProposedMessage, enriched, fallback, may_ask_for_repo, salvage
from modules.lives.space.types import RefusedWords, Resolution
from modules.lives.space.validator import REJECTED, MessageValidator
from modules.services.commitments.writer import CommitmentWriter
from modules.services.voice_phrases import Phrase


@dataclass(frozen=True, slots=True)
class Resolved:
    """What is to be said if `code` is `speak`, else why not; `needs_repo`: the host must first name a repository."""

    code: Resolution
    reason: str = ""
    proposed: ProposedMessage | None = None


@dataclass(frozen=True, slots=True)
class PendingDecision:
    """A decision of the model in progress. A later look at the room makes another case that shares the notes.

    Attributes:
        snapshot: the room when it was last looked at.
        config: our pace, for a second try.
        notes: what was decided on the way, in order, for the journal; each with the room as it was then.
        refusals: what the model wanted and does not get; its next prompt says so.

    """

    snapshot: RoomSnapshot
    config: SpaceConfig
    notes: list[tuple[RoomSnapshot, Note]] = field(default_factory=list)
    refusals: list[RefusedWords] = field(default_factory=list)

    def note(self, note: Note) -> None:
        self.notes.append((self.snapshot, note))

    def refuse(self, what: str, reason: str) -> None:
        self.refusals.append(RefusedWords(what, reason))


@dataclass(frozen=True, slots=True)
class RoomResponder:
    """Turns a decision of the model into a message that may be said, or into a reason for silence.

    Attributes:
        decider: is asked once more if the host's request is ours and no commitment was made.
        writer: writes the body of a commitment that is made without a decision of the model.
        phrase: returns operational texts.

    """

    decider: Decider
    validator: MessageValidator
    talk: RoomConversation
    writer: CommitmentWriter
    phrase: Phrase

    async def resolve(self, decided: ModelDecision | None, case: PendingDecision) -> Resolved:
        """Return what follows from a decision; `decided` is None if the model was not asked.

        If the host has to be asked for a repository, that is said in any case.
        """
        resolved = await self._resolved(decided, case)
        if not case.snapshot.needs_repo or case.snapshot.repo or resolved.proposed is not None:
            return resolved
        question = ProposedMessage(self.phrase("space.which_repo"), reason="no repository is known", acts=True)
        return Resolved("speak", proposed=question)

    async def _resolved(self, decided: ModelDecision | None, case: PendingDecision) -> Resolved:
        found = _filtered(decided, case)
        first = await self._first(decided, found, case) if decided else Resolved("silent", "nothing new was said")
        if first.code != "silent" or not case.snapshot.is_owner:
            return first
        if decided:
            rejected = self.talk.handle("rejected").request
            case = replace(case, snapshot=replace(case.snapshot, request=rejected))
        left = fallback(case.snapshot, new_messages=decided is not None, tells_talk=found.by_host, phrase=self.phrase)
        if left.retry.code == "retry":
            told = [f"{one.what}: {one.reason}" for one in case.refusals]
            again = await self._retried(case, "; ".join(told) or first.reason)
            if again.code == "speak":
                case.refusals.clear()
                return again
        return await self._forced(left, case, first.reason, tells_talk=found.by_host)

    async def _first(self, decided: ModelDecision, found: Filtered, case: PendingDecision) -> Resolved:
        decision = decided.decision
        if decision is None:
            return Resolved("silent", decided.error)
        kept = found.kept
        if hindered := _hindered(found, case.snapshot):
            return hindered
        declines = decision.declines and case.snapshot.is_owner and case.snapshot.is_open and not kept
        outcome = await self.validator.validate(decided.message, kept, case.snapshot, declines=declines)
        if (stop := outcome.stop) is None:
            proposed = ProposedMessage(
                outcome.message,
                kept,
                decision.reason,
                acts=declines,
                declines=declines,
                impression=decision.impression,
            )
            return Resolved("speak", proposed=proposed)
        if decided.message:
            rejected = {"act": "rejected", "check": stop.check, "message": decided.message, **outcome.figures}
            reason = f"{REJECTED}{stop.signature}: {stop.reason}"
            case.note(Note(f"Validation rejected ({stop.tag})", reason, "warn", rejected))
            case.refuse(f'"{decided.message}"', stop.reason)
        # NOTE(self): commitments without a message are kept if the model wanted to speak; the assignee's always.
        keeps = stop.salvage and (decision.should_speak or case.snapshot.is_owner)
        if keeps and (saved := salvage(kept, case.snapshot.social_only, self.phrase)):
            case.note(Note("Salvaging commitments from rejected message", f"[SALVAGE] {saved.message}", "queue"))
            salvaged = ProposedMessage(saved.message, saved.commitments, decision.reason, acts=True)
            return Resolved("speak", proposed=salvaged)
        silent = stop.reason if decided.message else decision.reason or "the model stays silent"
        return Resolved("silent", silent)

    async def _retried(self, case: PendingDecision, problem: str) -> Resolved:
        decided = await self.decider.decide(case.snapshot, case.config, problem=problem)
        kept = _filtered(decided, case).kept
        if not kept:
            return Resolved("silent", decided.error or "the second try brought no commitment")
        message = decided.message
        if not message or (await self.validator.validate(message, kept, case.snapshot)).stop:
            message = self.phrase("space.creating")
        case.note(Note("Action-owner retry succeeded", kept[0].type, "queue"))
        reason = "the host asked, and it is ours to do"
        return Resolved("speak", proposed=ProposedMessage(message, kept, reason, acts=True))

    async def _forced(self, left: Fallback, case: PendingDecision, reason: str, *, tells_talk: bool) -> Resolved:
        decision, commitment = left.force, left.commitment
        if decision.code != "force":
            return Resolved("needs_repo" if decision.code == "ask_for_repo" else "silent", reason)
        if commitment is None:
            return Resolved("silent", f"{reason}; and nothing honest can be made of the request without the model")
        thin = commitment.model_copy(update={"description": ""})
        better = enriched(commitment, await self.writer.enrich(thin, case.snapshot.latest_lines if tells_talk else ""))
        self.talk.handle("forced")
        case.note(Note("Forced action mode", f"[FORCED ACTION] {decision.reason}", "queue", {"act": "forced"}))
        if better != commitment:
            case.note(Note("Forced action enriched", f"{len(better.description)} characters"))
        return Resolved(
            "speak", proposed=ProposedMessage(self.phrase("space.creating"), (better,), decision.reason, acts=True)
        )


def _hindered(found: Filtered, snapshot: RoomSnapshot) -> Resolved | None:
    """Return why a message is not said because it promises commitments that cannot be made; None if it may be."""
    if found.is_taken:
        return Resolved("overtaken", "a peer is at it already")
    if not found.lacks_repo:
        return None
    if may_ask_for_repo(snapshot):
        return Resolved("needs_repo", "no repository is known")
    return None if found.kept else Resolved("silent", "no repository is known for what would be promised")


def _filtered(decided: ModelDecision | None, case: PendingDecision) -> Filtered:
    """Return which commitments may be made; a note records each that may not."""
    for dropped in decided.dropped if decided else ():
        case.note(Note("Commitment dropped", dropped.reason, "warn"))
        case.refuse(f"a commitment {dropped.raw}", dropped.reason)
    found = permitted(decided.commitments if decided else (), case.snapshot)
    for out in found.left_out:
        case.note(Note("Commitment dropped", out.line, "warn"))
        case.refuse(f'the commitment "{named(out.commitment)}"', out.reason)
    return found
