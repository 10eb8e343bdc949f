"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adapters.github.client import GitHub
from adapters.github.types import Repo
from adapters.space.client import SpaceClient
from common.clock import Clock
from common.redact import Redactor
from common.settings import Settings
from modules.lives.workspaces.claim import ClaimStep
from modules.lives.workspaces.cycle import Cycle
from modules.lives.workspaces.documents.build import DocumentServices, build_document_work
from modules.lives.workspaces.execute import Execution
from modules.lives.workspaces.loop import PlanAwarenessLoop
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.planning import PlanningServices, planning_steps
from modules.lives.workspaces.sweep import SweepStep
from modules.lives.workspaces.task_comments import TaskComments, plain
from modules.lives.workspaces.tell import ProgressTeller
from modules.lives.workspaces.types import Step, TaskWork
from modules.lives.workspaces.upkeep import UpkeepServices, build_acting, build_trust, upkeep_steps
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.types import Loop
from modules.services.plans.claimer import Claimer
from modules.services.plans.lease_store import TaskLeases
from modules.services.plans.plan_reading import PlanReader
from modules.services.plans.types import Task
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.own import OwnWorkspace
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

_APPROVED = "what is written in the repository of somebody else waits for the owner's yes"


class WorkspaceServices(UpkeepServices, PlanningServices, DocumentServices, Protocol):
    """What the life is built from."""

    settings: Settings
    clock: Clock
    journal: Journal
    github: GitHub
    workspaces: WatchedWorkspaces
    attention: Attention
    own_workspace: OwnWorkspace
    home: Home
    redactor: Redactor


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
        *planning_steps(services, trust, acting),
        *build_claim_steps(services, access, trust, acting, (build_document_work(services),)),
    ]


def build_claim_steps(
    services: WorkspaceServices,
    access: RoomAccess,
    trust: WorkspaceTrust,
    acting: ActingTurns,
    works: Sequence[TaskWork],
) -> list[Step]:
    """Return the steps by which tasks are claimed, worked on by `works`, and given back."""
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
        journal=journal,
        clock=clock,
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
        why_not=lambda repo: access.mute_reason() or _waits_there(services.settings, repo),
    )
    sweep = SweepStep(claimer=claimer, reader=reader, acting=acting, comments=comments, journal=journal)
    return [sweep, claim]


def _waits_there(settings: Settings, repo: Repo) -> str:
    """Return why what is written there would wait for the owner's yes, which outlasts a claim; "" if it would not."""
    ours = {settings.agent_github_username.lower(), settings.owner_github_username.lower()}
    return _APPROVED if settings.soul_approval != "off" and repo.owner.lower() not in ours else ""
