"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adapters.atproto.client import Atproto
from adapters.github.client import GitHub
from adapters.space.client import SpaceClient
from common.clock import Clock
from common.redact import Redactor
from common.settings import Settings
from modules.lives.workspaces.claim import ClaimStep, UndoableTasks
from modules.lives.workspaces.claim_door import ClaimDoor
from modules.lives.workspaces.cycle import Cycle
from modules.lives.workspaces.documents.build import DocumentServices, build_document_work
from modules.lives.workspaces.execute import Execution
from modules.lives.workspaces.loop import PlanAwarenessLoop, TaskSweepLoop
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.planning import PlanningServices, planning_steps
from modules.lives.workspaces.sweep import SweepStep
from modules.lives.workspaces.task_comments import TaskComments, plain
from modules.lives.workspaces.tell import ProgressTeller
from modules.lives.workspaces.thread_news import ThreadNews
from modules.lives.workspaces.types import Step, TaskWork
from modules.lives.workspaces.upkeep import UpkeepServices, build_acting, upkeep_steps
from modules.runtime.budget.budget import Budget
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.types import Loop
from modules.services.claims.claimer import Claimer
from modules.services.claims.lease_store import TaskLeases
from modules.services.claims.plan_reading import PlanReader
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.plans.types import Task
from modules.services.rights.preferences import Preferences
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.own import OwnWorkspace
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces


class WorkspaceServices(UpkeepServices, PlanningServices, DocumentServices, Protocol):
    """What the life is built from."""

    settings: Settings
    clock: Clock
    database: Database
    journal: Journal
    atproto: Atproto
    github: GitHub
    workspaces: WatchedWorkspaces
    attention: Attention
    own_workspace: OwnWorkspace
    home: Home
    preferences: Preferences
    redactor: Redactor
    budget: Budget
    etiquette: Etiquette


class RoomAccess(Protocol):
    """The way into the room, where progress is shown."""

    room: SpaceClient

    def mute_reason(self) -> str:
        """Return why nothing may be shown in the room just now, "" if something may."""


def workspace_loops(services: WorkspaceServices, access: RoomAccess) -> list[Loop]:
    """Return the loops of this life; none where there is no account on GitHub."""
    if not services.github.configured:
        return []
    trust, acting = services.trust, build_acting(services)
    claims = build_claim_rooms(services, access, trust, acting, (build_document_work(services, trust),))
    steps = [
        *upkeep_steps(services, trust, acting),
        ProgressTeller(access.room, services.clock, access.mute_reason),
        _thread_news(services, trust),
        *planning_steps(services, trust, acting),
        *claims.steps,
    ]
    perceiver = WorkspacePerceiver(services.github, services.workspaces, services.trust, services.clock)
    cycle = PlanAwarenessLoop(
        perceiver=perceiver,
        cycle=Cycle(steps, lambda: services.attention.free, services.journal),
        workspaces=services.workspaces,
        own=services.own_workspace,
        github=services.github,
        journal=services.journal,
        speed=services.settings.soul_speed,
    )
    return [cycle, build_task_sweep(services, perceiver, claims)]


@dataclass(frozen=True, slots=True)
class ClaimRooms:
    """What claims tasks, has them worked on, and gives back what is left of claims."""

    sweep: SweepStep
    claim: ClaimStep
    undoable: UndoableTasks
    execution: Execution

    @property
    def steps(self) -> list[Step]:
        """Those that run in a cycle; `Place` gives their order."""
        return [self.sweep, self.undoable, self.claim]


def build_task_sweep(services: WorkspaceServices, perceiver: WorkspacePerceiver, claims: ClaimRooms) -> TaskSweepLoop:
    """Return what sweeps while a task is worked on."""
    return TaskSweepLoop(
        perceiver=perceiver,
        sweep=claims.sweep,
        is_working=lambda: claims.execution.is_working,
        github=services.github,
        speed=services.settings.soul_speed,
    )


def _thread_news(services: WorkspaceServices, trust: WorkspaceTrust) -> ThreadNews:
    """Return the step that tells in the thread of a workspace what came of it."""
    return ThreadNews(
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


def build_claim_rooms(
    services: WorkspaceServices,
    access: RoomAccess,
    trust: WorkspaceTrust,
    acting: ActingTurns,
    works: Sequence[TaskWork],
) -> ClaimRooms:
    """Return the rooms in which tasks are claimed, worked on by `works`, and given back."""
    github, clock, journal, phrase = services.github, services.clock, services.journal, services.phrases.phrase
    leases = TaskLeases(services.database, services.home.memory, clock, github.login)
    reader = PlanReader(github, leases, trust, clock)

    def words(task: Task) -> str:
        claimed = phrase("github.task_claim", number=task.number, title=plain(task.title))
        return services.redactor.text(claimed)

    claimer = Claimer(github, leases, reader, words, clock)
    comments = TaskComments(services.outbox, phrase, services.redactor)
    execution = Execution(
        claimer=claimer,
        comments=comments,
        phrase=phrase,
        journal=journal,
        clock=clock,
        speed=services.settings.soul_speed,
    )
    claim = ClaimStep(
        claimer=claimer,
        reader=reader,
        trust=trust,
        works=works,
        execution=execution,
        comments=comments,
        acting=acting,
        journal=journal,
        door=ClaimDoor(services.outbox, services.etiquette, journal, words),
        why_paused=access.mute_reason,
        why_no_budget=lambda: services.budget.why_not("commitment"),
    )
    sweep = SweepStep(claimer=claimer, reader=reader, acting=acting, comments=comments, journal=journal)
    undoable = UndoableTasks(works, services.workspaces, trust, journal)
    return ClaimRooms(sweep, claim, undoable, execution)
