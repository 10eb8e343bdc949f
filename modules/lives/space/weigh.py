"""Weighs words before they are said: the cheap checks, a comparison with what was said, and a judge if it is close."""

from __future__ import annotations

from dataclasses import dataclass

from common.schemas import Commitment
from modules.lives.space.minds import Judging
from modules.lives.space.own_lines import OwnLines
from modules.lives.space.saturation import agent_messages
from modules.lives.space.scene import Scene
from modules.lives.space.types import ValidationContext, ValidationOutcome
from modules.lives.space.validation import echo_partners, judged_echo, repeated, validate_space_message


@dataclass(frozen=True, slots=True)
class Scales:
    """Weighs for a SOUL whose lines of the last days are `own_lines`."""

    judge: Judging
    own_lines: OwnLines

    async def weigh(self, message: str, commitments: tuple[Commitment, ...], scene: Scene) -> ValidationOutcome:
        """What becomes of `message`, said with `commitments`."""
        context = context_of(message, commitments, scene)
        outcome = validate_space_message(context)
        if outcome.ok and not commitments and await self.own_lines.hold(outcome.message):
            return repeated(outcome)
        if not (outcome.ok and outcome.judge):
            return outcome
        partners = echo_partners(context)
        return judged_echo(outcome) if await self.judge.is_echo_by_llm_judge(outcome.message, partners) else outcome


def context_of(message: str, commitments: tuple[Commitment, ...], scene: Scene) -> ValidationContext:
    """All that the checks look at."""
    me, peers = scene.me, frozenset(scene.room.peers)
    return ValidationContext(
        message=message,
        commitments=commitments,
        mode=scene.mode,
        role=scene.role,
        is_owner=scene.is_owner,
        me=me,
        peers=peers,
        request=scene.request,
        repo=scene.repo,
        counts=scene.counts,
        saturation=scene.saturation,
        now=scene.now,
        owner_connected=scene.owner is not None and scene.owner in peers,
        addressed_to_me=me in scene.addressed,
        agent_messages=agent_messages(scene.history),
        names=peers | {me},
        social_only=scene.social_only,
    )
