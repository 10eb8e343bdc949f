"""Builds the handlers of schedules and of HEARTBEAT.md."""

from __future__ import annotations

from datetime import timedelta

from modules.lives.rhythm.heartbeat import HeartbeatHandler
from modules.lives.rhythm.schedule import ScheduleHandler
from modules.lives.rhythm.turns import OwnTurns
from modules.services.owner.notices import TellOwner
from soul.composition.services import Services
from soul.composition.wiring.turns import TurnServices


def build_rhythm(
    services: Services, turn_services: TurnServices, tell: TellOwner
) -> tuple[ScheduleHandler, HeartbeatHandler]:
    """Build the handlers of schedules and of HEARTBEAT.md; `tell` tells the owner what came of them."""
    settings, clock = services.settings, services.clock
    turns = OwnTurns(turn_services.prompter, turn_services.turn_runner, services.skills, clock, tell, services.me)
    owner_files = services.knowledge.stores.owner_files
    scheduled = ScheduleHandler(schedules=services.schedules, turns=turns, owner_files=owner_files)
    heartbeat = HeartbeatHandler(
        every=timedelta(hours=settings.heartbeat_hours),
        work=services.work,
        owner_files=owner_files,
        turns=turns,
        clock=clock,
        timezone=settings.soul_timezone,
    )
    return scheduled, heartbeat
