"""Puts the rooms of the watched workspaces together: what tidies up, tells, plans, and offers tasks."""

from __future__ import annotations

from datetime import datetime, timedelta

from modules.lives.workspaces.health import HealthCheck
from modules.lives.workspaces.issue_upkeep import (
    CanDo,
    OfferStep,
    OpenIssues,
    RestingIssues,
    TaskStandings,
    UndoableTasks,
)
from modules.lives.workspaces.loop import Cycle, PlanAwarenessLoop
from modules.lives.workspaces.lost_edits import EditWasLost, LostEditNotice
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.plan_news import PlanEnds, ProgressTeller, ThreadNews
from modules.lives.workspaces.plan_upkeep import (
    Closing,
    DuplicateComments,
    DuplicatePlans,
    PlanPeers,
    PlanStanding,
    SweepStep,
    UnreadPlans,
)
from modules.lives.workspaces.sentinel import SentinelStep
from modules.lives.workspaces.synthesis import SynthesisStep
from modules.lives.workspaces.types import CycleStep
from modules.lives.workspaces.wanted import WantedIssues, WorkRequestReader
from modules.runtime.scheduler.types import Loop
from modules.services.claims.claimer import Claims
from modules.services.claims.offers import PLAN_AWARENESS
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.plans.compose import PlanComposer
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.gaps import WorkspaceGaps
from modules.services.workspaces.health import HealthJudge
from soul.composition.services import Services

_TIDY_AGAIN_AFTER, _PLAN_AGAIN_AFTER = timedelta(hours=24), timedelta(hours=1)


def build_workspace_loop(services: Services, claims: Claims, can_do: CanDo) -> Loop:
    """Return the loop of this life, which offers the tasks that one `can_do`."""
    room, acting = services.integrations, claims.acting
    writer = GitHubWriter(services.outbox, _TIDY_AGAIN_AFTER)
    services.events.subscribe(EditWasLost, LostEditNotice(writer, services.journal, services.phrases.phrase).tell)
    steps = [
        *_upkeep_steps(services, acting),
        ProgressTeller(room.room, services.clock, room.silence.reason, room.is_trusted_room, services.github),
        *_news(services, acting),
        *_planning_steps(services, acting),
        *task_steps(services, claims, can_do),
    ]
    return PlanAwarenessLoop(
        perceiver=WorkspacePerceiver(services.github, services.workspaces, services.trust, services.clock),
        cycle=Cycle(steps, lambda: services.attention.free, services.journal),
        workspaces=services.workspaces,
        own=services.own_workspace,
        requested=services.requested,
        github=services.github,
        journal=services.journal,
        clock=services.clock,
    )


def task_steps(services: Services, claims: Claims, can_do: CanDo) -> list[CycleStep]:
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
        TaskStandings(services.github, services.work),
        UndoableTasks(can_do, services.workspaces, services.trust, journal),
        OfferStep(can_do, services.work, services.trust, services.events.publish),
    ]


def _news(services: Services, turns: ActingTurns) -> list[CycleStep]:
    """Return the steps that tell what came of a workspace, in its thread and where its plans were asked for."""
    threads = ThreadNews(
        atproto=services.atproto,
        outbox=services.outbox,
        workspaces=services.workspaces,
        trust=services.trust,
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
        writer=GitHubWriter(services.outbox, _TIDY_AGAIN_AFTER),
        threads=threads,
        trust=services.trust,
        turns=turns,
        skills=services.skills,
        phrase=services.phrases.phrase,
        peers=lambda: [one.github_username for one in services.peer_registry.get_linked_peers()],
        seen_at=lambda login: _seen_at(services, login),
        journal=services.journal,
        clock=services.clock,
    )
    return [threads, ends]


def _upkeep_steps(services: Services, acting: ActingTurns) -> list[CycleStep]:
    """Return the steps that tidy up."""
    github, trust, phrase = services.github, services.trust, services.phrases.phrase
    writer = GitHubWriter(services.outbox, _TIDY_AGAIN_AFTER)
    closing = Closing(github, writer, services.journal, PLAN_AWARENESS)
    return [
        PlanPeers(services.peer_registry, trust),
        DuplicatePlans(closing, trust, acting, phrase, services.skills),
        DuplicateComments(writer, github),
        UnreadPlans(writer, github, trust, acting, phrase),
        PlanStanding(closing, trust, acting, phrase, services.skills),
        OpenIssues(writer, trust, acting, services.threads, github.login),
        RestingIssues(closing, github, trust, acting, phrase, services.clock),
    ]


def _planning_steps(services: Services, turns: ActingTurns) -> list[CycleStep]:
    """Return the steps that find work, make plans of it, and say when all is done."""
    clock, phrase = services.clock, services.phrases.phrase
    writer = GitHubWriter(services.outbox, _PLAN_AGAIN_AFTER)

    health = HealthCheck(
        github=services.github,
        workspaces=services.workspaces,
        writer=writer,
        trust=services.trust,
        judge=HealthJudge(services.gateway, services.skills, services.rng),
        gaps=WorkspaceGaps(services.github, writer, services.trust),
        table=services.work,
        publish=services.events.publish,
        attention=services.attention,
        phrase=phrase,
        journal=services.journal,
        clock=clock,
    )
    return [
        SentinelStep(
            github=services.github,
            workspaces=services.workspaces,
            writer=writer,
            trust=services.trust,
            turns=turns,
            seen_at=lambda login: _seen_at(services, login),
            phrase=phrase,
            skills=services.skills,
            journal=services.journal,
            clock=clock,
        ),
        SynthesisStep(
            github=services.github,
            workspaces=services.workspaces,
            writer=writer,
            trust=services.trust,
            closing=Closing(services.github, writer, services.journal, PLAN_AWARENESS),
            wanted=WantedIssues(
                services.github, WorkRequestReader(services.gateway, services.skills), services.journal
            ),
            turns=turns,
            composer=PlanComposer(services.gateway, services.skills, services.rng),
            health=health,
            attention=services.attention,
            journal=services.journal,
            clock=clock,
        ),
    ]


def _seen_at(services: Services, login: str) -> datetime | None:
    peer = services.peer_registry.get(login)
    return peer.last_seen_at if peer else None
