"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

from typing import Protocol

from adapters.github.client import GitHub
from adapters.space.client import SpaceClient
from common.clock import Clock
from common.settings import Settings
from modules.lives.workspaces.cycle import Cycle
from modules.lives.workspaces.loop import PlanAwarenessLoop
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.tell import ProgressTeller
from modules.lives.workspaces.types import Step
from modules.lives.workspaces.upkeep import UpkeepServices, build_acting, build_trust, upkeep_steps
from modules.runtime.journal.journal import Journal
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.types import Loop
from modules.services.workspaces.own import OwnWorkspace
from modules.services.workspaces.watched import WatchedWorkspaces


class WorkspaceServices(UpkeepServices, Protocol):
    """What the life is built from."""

    settings: Settings
    clock: Clock
    journal: Journal
    github: GitHub
    workspaces: WatchedWorkspaces
    attention: Attention
    own_workspace: OwnWorkspace


class RoomAccess(Protocol):
    """The way into the room, where progress is shown."""

    room: SpaceClient

    def mute_reason(self) -> str:
        """Return why nothing may be shown in the room just now, "" if something may."""


def workspace_loops(services: WorkspaceServices, access: RoomAccess) -> list[Loop]:
    """Return the loops of this life; none where there is no account on GitHub."""
    if not services.github.configured:
        return []
    steps = build_steps(services, access)
    return [
        PlanAwarenessLoop(
            perceiver=WorkspacePerceiver(services.github, services.workspaces, services.clock),
            cycle=Cycle(steps, lambda: services.attention.free, services.journal),
            workspaces=services.workspaces,
            own=services.own_workspace,
            github=services.github,
            journal=services.journal,
            speed=services.settings.soul_speed,
        )
    ]


def build_steps(services: WorkspaceServices, access: RoomAccess) -> list[Step]:
    """Return the steps of a cycle; `Place` gives their order."""
    trust, acting = build_trust(services), build_acting(services)
    return [
        *upkeep_steps(services, trust, acting),
        ProgressTeller(access.room, services.clock, access.mute_reason),
    ]
