"""Puts together what a SOUL does in time of its own."""

from __future__ import annotations

from modules.lives.rhythm.schedule import ScheduleHandler
from modules.lives.rhythm.turns import OwnTurns
from modules.lives.rhythm.types import TellOwner
from soul.composition.services import Services
from soul.composition.wiring.turns import TurnServices


def build_schedule_handler(services: Services, turn_services: TurnServices, tell: TellOwner) -> ScheduleHandler:
    """Return what does what is scheduled; `tell` tells the owner of it."""
    turns = OwnTurns(turn_services.prompter, turn_services.turn_runner, services.skills, services.clock)
    return ScheduleHandler(schedules=services.schedules, turns=turns, tell=tell, name=services.settings.agent_name)
