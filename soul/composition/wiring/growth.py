"""Puts the rooms of growth together."""

from __future__ import annotations

from dataclasses import dataclass

from modules.lives.growth.handle import GrowthReport, Materials, ReflectionHandler
from modules.lives.growth.perceive import ReflectionPerceiver
from modules.services.experiences.friction import FrictionReport
from modules.services.own_feed.announcement import Expressions
from soul.composition.services import Services
from soul.composition.wiring.turns import TurnServices


@dataclass(frozen=True, slots=True)
class GrowthLife:
    """What the loop of work runs for it, and what the owner is shown."""

    handler: ReflectionHandler
    perceiver: ReflectionPerceiver
    report: GrowthReport


def build_growth_life(services: Services, turn_services: TurnServices, expressions: Expressions) -> GrowthLife:
    """Return the life; `expressions` are its own posts."""
    clock, timezone = services.clock, services.settings.soul_timezone
    friction = FrictionReport(services.journal, clock)
    materials = Materials(
        home=services.home,
        skills=services.skills,
        experiences=services.experiences,
        relationships=services.relationships,
        expressions=expressions,
        outbox=services.outbox,
        journal=services.journal,
        clock=clock,
        rng=services.rng,
        timezone=timezone,
    )
    handler = ReflectionHandler(
        home=services.home,
        materials=materials,
        experiences=services.experiences,
        prompter=turn_services.prompter,
        turn_runner=turn_services.turn_runner,
        identity=services.identity,
        journal=services.journal,
        publish=services.events.publish,
        clock=clock,
        timezone=timezone,
    )
    perceiver = ReflectionPerceiver(
        table=services.work,
        experiences=services.experiences,
        events=lambda: services.relationships.reflection.events,
        began=services.journal.began,
        clock=clock,
        timezone=timezone,
    )
    report = GrowthReport(services.journal, services.experiences, friction, clock)
    return GrowthLife(handler, perceiver, report)
