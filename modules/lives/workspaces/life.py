"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

from typing import Protocol

from adapters.atproto.client import Atproto
from adapters.github.client import GitHub
from adapters.space.client import SpaceClient
from common.clock import Clock
from common.redact import Redactor
from modules.lives.workspaces.cycle import Cycle
from modules.lives.workspaces.loop import PlanAwarenessLoop
from modules.lives.workspaces.offer import CanDo, OfferStep, UndoableTasks
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.plan_ends import PlanEnds
from modules.lives.workspaces.planning import PlanningServices, planning_steps
from modules.lives.workspaces.sweep import SweepStep
from modules.lives.workspaces.tell import ProgressTeller
from modules.lives.workspaces.thread_news import ThreadNews
from modules.lives.workspaces.types import CycleStep
from modules.lives.workspaces.upkeep import UpkeepServices, upkeep_steps
from modules.runtime.database.database import Database
from modules.runtime.events import EventBus
from modules.runtime.journal.journal import Journal
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.types import Loop
from modules.services.claims.build import Claims
from modules.services.rights.preferences import Preferences
from modules.services.work.table import WorkTable
from modules.services.workspaces.own import OwnWorkspace
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces


class WorkspaceServices(UpkeepServices, PlanningServices, Protocol):
    """What the life is built from."""

    clock: Clock
    database: Database
    journal: Journal
    atproto: Atproto
    github: GitHub
    workspaces: WatchedWorkspaces
    attention: Attention
    own_workspace: OwnWorkspace
    preferences: Preferences
    redactor: Redactor
    work: WorkTable
    events: EventBus


class ProgressRoomAccess(Protocol):
    """The way into the room, where progress is shown."""

    room: SpaceClient

    def mute_reason(self) -> str:
        """Return why nothing may be shown in the room just now, "" if something may."""


def workspace_loops(
    services: WorkspaceServices, access: ProgressRoomAccess, claims: Claims, can_do: CanDo
) -> list[Loop]:
    """Return the loop of this life, none where there is no account on GitHub. It offers the tasks that one `can_do`."""
    if not services.github.configured:
        return []
    trust, acting = services.trust, claims.acting
    steps = [
        *upkeep_steps(services, trust, acting),
        ProgressTeller(access.room, services.clock, access.mute_reason),
        *_news(services, trust),
        *planning_steps(services, trust, acting),
        *task_steps(services, claims, can_do),
    ]
    return [
        PlanAwarenessLoop(
            perceiver=WorkspacePerceiver(services.github, services.workspaces, services.trust, services.clock),
            cycle=Cycle(steps, lambda: services.attention.free, services.journal),
            workspaces=services.workspaces,
            own=services.own_workspace,
            github=services.github,
            journal=services.journal,
            clock=services.clock,
        )
    ]


def task_steps(services: WorkspaceServices, claims: Claims, can_do: CanDo) -> list[CycleStep]:
    """Return the steps that take tasks back from those who are gone, and offer one to the life on tasks."""
    journal = services.journal
    return [
        SweepStep(
            claimer=claims.claimer,
            reader=claims.reader,
            acting=claims.acting,
            comments=claims.comments,
            journal=journal,
            phrase=services.phrases.phrase,
        ),
        UndoableTasks(can_do, services.workspaces, services.trust, journal),
        OfferStep(can_do, services.work, services.trust, services.events.publish),
    ]


def _news(services: WorkspaceServices, trust: WorkspaceTrust) -> list[CycleStep]:
    """Return the steps that tell what came of a workspace, in its thread and where its plans were asked for."""
    threads = ThreadNews(
        atproto=services.atproto,
        outbox=services.outbox,
        workspaces=services.workspaces,
        trust=trust,
        preferences=services.preferences,
        skills=services.skills,
        login=services.github.login,
        phrase=services.phrases.phrase,
        redactor=services.redactor,
        journal=services.journal,
        clock=services.clock,
    )
    ends = PlanEnds(
        github=services.github,
        outbox=services.outbox,
        threads=threads,
        skills=services.skills,
        phrase=services.phrases.phrase,
        peers=lambda: [one.github_username for one in services.peer_registry.get_linked_peers()],
        journal=services.journal,
        clock=services.clock,
    )
    return [threads, ends]
