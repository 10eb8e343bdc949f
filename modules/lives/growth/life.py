"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from common.clock import Clock
from common.settings import Settings
from modules.lives.growth.handle import ReflectionHandler
from modules.lives.growth.materials import Materials
from modules.lives.growth.perceive import ReflectionPerceiver
from modules.lives.growth.report import GrowthReport
from modules.runtime.events import EventBus
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.services.experiences.friction import FrictionReport
from modules.services.experiences.log import ExperienceLog
from modules.services.identity.identity import Identity
from modules.services.own_feed.expressions import Expressions
from modules.services.peers.accounts import Relationships
from modules.services.skills.skills import Skills
from modules.services.wiring.turns import TurnServices
from modules.services.work.table import WorkTable


class GrowthServices(Protocol):
    """What the life is built from."""

    settings: Settings
    home: Home
    clock: Clock
    journal: Journal
    skills: Skills
    events: EventBus
    identity: Identity
    relationships: Relationships
    experiences: ExperienceLog
    work: WorkTable


@dataclass(frozen=True, slots=True)
class GrowthLife:
    """What the loop of work runs for it, and what the owner is shown."""

    handler: ReflectionHandler
    perceiver: ReflectionPerceiver
    report: GrowthReport


def build_growth_life(services: GrowthServices, turn_services: TurnServices, expressions: Expressions) -> GrowthLife:
    """Return the life; `expressions` are its own posts."""
    settings, clock, timezone = services.settings, services.clock, services.settings.soul_timezone
    keeps_hours = settings.soul_speed == 1
    friction = FrictionReport(services.journal, clock)
    materials = Materials(
        services.home,
        services.skills,
        services.experiences,
        services.relationships,
        expressions,
        friction,
        clock,
        timezone,
    )
    handler = ReflectionHandler(
        home=services.home,
        materials=materials,
        experiences=services.experiences,
        prompter=turn_services.prompter,
        turn_runner=turn_services.turn_runner,
        skills=services.skills,
        identity=services.identity,
        journal=services.journal,
        publish=services.events.publish,
        clock=clock,
        timezone=timezone,
        keeps_hours=keeps_hours,
    )
    perceiver = ReflectionPerceiver(
        services.work,
        services.experiences,
        lambda: services.relationships.reflection.events,
        clock,
        timezone,
        keeps_hours,
        settings.soul_speed,
    )
    report = GrowthReport(services.journal, services.experiences, friction, clock)
    return GrowthLife(handler, perceiver, report)
