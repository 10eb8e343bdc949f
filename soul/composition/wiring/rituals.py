"""Builds the life of rituals."""

from __future__ import annotations

from modules.lives.rituals.handle import MemoHandler, OpeningHandler, OwnerComments
from modules.lives.rituals.perceive import RitualLife, RitualPerceiver
from modules.lives.rituals.writing import RitualWriter
from modules.services.agent.prompt.prompter import Prompter
from soul.composition.services import Services


def build_ritual_life(services: Services, prompter: Prompter) -> RitualLife:
    """Build the life of rituals."""
    owner_comments = OwnerComments(services.outbox, services.github, services.trust, services.experiences)
    writer = RitualWriter(
        me=services.me,
        identity=services.identity,
        soul=services.soul,
        gateway=services.gateway,
        prompter=prompter,
        skills=services.skills,
        clock=services.clock,
        rng=services.rng,
    )
    opening = OpeningHandler(
        rituals=services.rituals,
        writer=writer,
        outbox=services.outbox,
        atproto=services.atproto,
        owner_comments=owner_comments,
        keep_hours=services.clock.keeps_hours,
    )
    memo = MemoHandler(
        rituals=services.rituals,
        writer=writer,
        outbox=services.outbox,
        atproto=services.atproto,
        github=services.github,
        trust=services.trust,
        workspaces=services.workspaces,
        preferences=services.preferences,
        owner_comments=owner_comments,
        experiences=services.experiences,
        table=services.work,
        agent_name=services.me.agent_name,
    )
    perceiver = RitualPerceiver(
        rituals=services.rituals,
        work=services.work,
        outbox=services.outbox,
        experiences=services.experiences,
        clock=services.clock,
        handle=services.me.bluesky_username,
        writes_memos=services.github.configured and not services.social_only,
    )
    return RitualLife(services.rituals, services.work, (opening, memo), perceiver)
