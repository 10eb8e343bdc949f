"""From what the model decided to what will be said: filters, checks, and what is done where they leave nothing.

The owner of the host's wish gets a second try, and in the end acts without the model; everybody else is silent.
"""

from __future__ import annotations

from dataclasses import dataclass

from common.schemas import Commitment, SpaceDecision
from modules.lives.space.commitment_filter import allowed, named_by_host, not_twice, placed, unclaimed
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
from modules.lives.space.journal_reporter import Teller
from modules.lives.space.snapshot import Scene
from modules.lives.space.speak import Utterance
from modules.lives.space.state import Conversation
from modules.lives.space.transcript import told
from modules.lives.space.types import Resolution
from modules.lives.space.validator import Scales
from modules.services.commitments.writer import CommitmentWriter

_MENDED = {"Discussion auto-trim": "Auto-trimmed discussion message"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """What is to be said, if `code` is `speak`, or why nothing; `needs_repo`: the host must first name one."""

    code: Resolution
    reason: str = ""
    wish: Utterance | None = None


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves.

    Attributes:
        decider: asks the model again where it owes an action.
        scales: weigh words.
        talk: what we keep in mind of the room; the request's counters move here.
        teller: tells the owner.
        writer: writes the body of what is made without a decision of the model.
        social_only: whether this life has no GitHub.
        timezone: of the SOUL's day; "" for the machine's own.

    """

    decider: Decider
    scales: Scales
    talk: Conversation
    teller: Teller
    writer: CommitmentWriter
    social_only: bool
    timezone: str = ""

    async def resolve(self, decided: Decided | None, scene: Scene) -> Resolved:
        """What comes of a decision; None where the model was not asked."""
        first = await self._from(decided, scene) if decided else Resolved("silent", "nothing new was said")
        if first.code != "silent" or not scene.is_owner:
            return first
        if decided:
            self.talk.request = count_rejection(self.talk.request)
        again = await self._retried(scene, first.reason, asked=decided is not None)
        return again if again.code == "speak" else await self._forced(scene, first.reason)

    async def _from(self, decided: Decided, scene: Scene) -> Resolved:
        decision = decided.decision
        if decision is None:
            return Resolved("silent", decided.error)
        kept, overtaken = await self._kept(decided, scene)
        if overtaken:
            return Resolved("overtaken", "a peer is at it already")
        if not decided.message:
            return await self._without_words(decision, kept, scene)
        outcome = await self.scales.weigh(decided.message, kept, scene)
        for mended in outcome.recovered:
            summary = _MENDED.get(mended, mended)
            await self.teller.decided(summary, outcome.signature, scene, line="info", data=dict(outcome.figures))
        if outcome.ok:
            return Resolved("speak", wish=Utterance(outcome.message, kept, decision.reason))
        await self.teller.decided(
            f"Validation rejected ({outcome.tag})",
            f"{outcome.signature}: {outcome.reason}",
            scene,
            line="warn",
            data={"act": "rejected", "check": outcome.check, "message": decided.message, **outcome.figures},
        )
        if outcome.salvage and kept:
            return await self._salvaged(decision, kept, scene)
        return Resolved("silent", outcome.reason)

    async def _kept(self, decided: Decided, scene: Scene) -> tuple[tuple[Commitment, ...], bool]:
        """The commitments that may be made, and whether peers have taken all that we wanted to make."""
        for dropped in decided.dropped:
            await self.teller.decided("Commitment dropped", dropped.reason, scene, line="warn")
        ours = allowed(decided.commitments, scene.request, is_owner=scene.is_owner, social_only=self.social_only)
        there = placed(ours.kept, scene)
        if scene.is_settled and there.kept:
            await self.teller.decided("Commitment dropped", "the host asks about what is promised already", scene)
            return (), False
        new = not_twice(there.kept, scene.repo, scene.deeds, wish=scene.request.content, met=scene.is_met)
        free = unclaimed(new.kept, scene.repo, scene.room.claims)
        for out in (*ours.left_out, *there.left_out, *new.left_out, *free.left_out):
            await self.teller.decided("Commitment dropped", f"{out.signature}: {out.reason}", scene, line="warn")
        return free.kept, bool(new.kept) and not free.kept

    async def _without_words(self, decision: SpaceDecision, kept: tuple[Commitment, ...], scene: Scene) -> Resolved:
        """Commitments without words are kept of whoever wanted to speak, and of the owner in any case."""
        if kept and (decision.should_speak or scene.is_owner):
            return await self._salvaged(decision, kept, scene)
        return Resolved("silent", decision.reason or "the model stays silent")

    async def _salvaged(self, decision: SpaceDecision, kept: tuple[Commitment, ...], scene: Scene) -> Resolved:
        saved = salvage(kept, self.social_only)
        if saved is None:
            return Resolved("silent", "Social-only: nothing is left to keep")
        summary = "Salvaging commitments from rejected message"
        await self.teller.decided(summary, f"[SALVAGE] {saved.message}", scene, line="queue")
        return Resolved("speak", wish=Utterance(saved.message, saved.commitments, decision.reason, acts=True))

    async def _retried(self, scene: Scene, problem: str, *, asked: bool) -> Resolved:
        context = self._standing(scene, new_messages=asked)
        if should_retry(context).code != "retry":
            return Resolved("silent")
        decided = await self.decider.act(scene, problem)
        kept, _ = await self._kept(decided, scene)
        if not kept:
            return Resolved("silent", decided.error or "the second try brought no commitment")
        message = decided.message
        if not message or not (await self.scales.weigh(message, kept, scene)).ok:
            message = FORCED_MESSAGE
        await self.teller.decided("Action-owner retry succeeded", kept[0].type, scene, line="queue")
        return Resolved("speak", wish=Utterance(message, kept, "the host asked, and it is ours to do", acts=True))

    async def _forced(self, scene: Scene, reason: str) -> Resolved:
        decision = should_force_action(self._standing(scene, retried=True))
        if decision.code != "force":
            return Resolved("needs_repo" if decision.code == "ask_for_repo" else "silent", reason)
        talk = "\n".join(told(entry, self.timezone) for entry in scene.history) if named_by_host(scene) else ""
        commitment = build_forced_commitment(scene.request.content, scene.repo, talk)
        if commitment is None:
            return Resolved("silent", f"{reason}; and nothing honest can be made of the request without the model")
        thin = commitment.model_copy(update={"description": ""})
        better = enriched(commitment, await self.writer.enrich(thin, conversation_of(scene) if talk else ""))
        self.talk.request = count_forced(self.talk.request)
        why = f"[FORCED ACTION] {decision.reason}"
        await self.teller.decided("Forced action mode", why, scene, line="queue", data={"act": "forced"})
        if better != commitment:
            await self.teller.decided("Forced action enriched", f"{len(better.description)} characters", scene)
        return Resolved("speak", wish=Utterance(FORCED_MESSAGE, (better,), decision.reason, acts=True))

    def _standing(self, scene: Scene, *, new_messages: bool = False, retried: bool = False) -> RescueContext:
        return RescueContext(
            is_owner=scene.is_owner,
            request=self.talk.request,
            now=scene.now,
            new_messages=new_messages,
            social_only=self.social_only,
            repo=scene.repo,
            retried=retried,
            asked_for_repo=self.talk.asked_for_repo == self.talk.request.entry_id,
        )
