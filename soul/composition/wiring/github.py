"""Builds the life on GitHub: threads, workspaces and tasks. Imported only if an account is set."""

from datetime import datetime, timedelta

from common.intervals import GITHUB_INTERVAL_MS
from modules.lives.github.engagement import GitHubPerceiver, GitHubState
from modules.lives.github.experiences import GitHubExperienceLoop
from modules.lives.github.handle import ThreadHandler, ThreadReader
from modules.lives.github.respond import LOOP, PullReviewer, ThreadResponder
from modules.lives.workspaces.health import HealthCheck
from modules.lives.workspaces.issue_upkeep import (
    CanDo,
    EditWasLost,
    LostEditNotice,
    OfferStep,
    OpenIssues,
    RestingIssues,
    TaskStandings,
    UndoableTasks,
)
from modules.lives.workspaces.loop import Cycle, PlanAwarenessLoop
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
from modules.runtime.scheduler.policy import Loop
from modules.services.claims.claimer import Claims
from modules.services.claims.lease_store import PLAN_AWARENESS, TaskOrders
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.owner import TellOwner
from modules.services.plans.compose import PlanComposer
from modules.services.work.limits import PersonTurns
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.health import HealthJudge, WorkspaceGaps
from soul.composition.services import Services
from soul.composition.wiring.tasks import build_claims, build_tasks
from soul.composition.wiring.turns import TurnServices, build_work_loop

_TIDY_AGAIN_AFTER, _PLAN_AGAIN_AFTER = timedelta(hours=24), timedelta(hours=1)


def build_workspace_loop(services: Services, claims: Claims, can_do: CanDo) -> Loop:
    """Build the loop over the workspaces, which offers the tasks that the SOUL `can_do`."""
    room, acting = services.integrations, claims.acting
    orders = TaskOrders(services.work, services.events.publish)
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
        perceiver=WorkspacePerceiver(services.github, services.workspaces, services.trust, orders, services.clock),
        cycle=Cycle(steps, lambda: services.attention.free, services.journal),
        workspaces=services.workspaces,
        own=services.own_workspace,
        requested=services.requested,
        github=services.github,
        journal=services.journal,
        clock=services.clock,
    )


def task_steps(services: Services, claims: Claims, can_do: CanDo) -> list[CycleStep]:
    """Build the steps that release tasks of SOULs that are gone, and offer one to the life of tasks."""
    journal = services.journal
    return [
        SweepStep(
            claimer=claims.claimer,
            reader=claims.reader,
            acting=claims.acting,
            comments=claims.comments,
            orders=TaskOrders(services.work, services.events.publish),
            journal=journal,
            phrase=services.phrases.phrase,
        ),
        TaskStandings(services.github, services.work),
        UndoableTasks(can_do, services.workspaces, services.trust, journal),
        OfferStep(can_do, services.work, services.trust, services.events.publish),
    ]


def _news(services: Services, turns: ActingTurns) -> list[CycleStep]:
    """Build the steps that report on a workspace, in its thread and where its plans were requested."""
    threads = ThreadNews(
        atproto=services.atproto,
        outbox=services.outbox,
        workspaces=services.workspaces,
        trust=services.trust,
        preferences=services.preferences,
        skills=services.skills,
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
    """Build the steps that tidy up plans and issues."""
    github, trust, phrase = services.github, services.trust, services.phrases.phrase
    writer = GitHubWriter(services.outbox, _TIDY_AGAIN_AFTER)
    closing = Closing(github, writer, services.journal, PLAN_AWARENESS)
    return [
        PlanPeers(services.peer_registry, trust),
        DuplicatePlans(closing, trust, acting, phrase, services.skills),
        DuplicateComments(writer, github),
        UnreadPlans(writer, github, trust, acting, phrase),
        PlanStanding(closing, trust, acting, phrase, services.skills),
        OpenIssues(writer, trust, acting, services.threads),
        RestingIssues(closing, github, trust, acting, phrase, services.clock),
    ]


def _planning_steps(services: Services, turns: ActingTurns) -> list[CycleStep]:
    """Build the steps that find work, plan it, and announce when all of it is done."""
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
            composer=PlanComposer(services.gateway, services.skills, services.rng, services.knowledge.profile),
            health=health,
            attention=services.attention,
            journal=services.journal,
            clock=clock,
        ),
    ]


def _seen_at(services: Services, login: str) -> datetime | None:
    peer = services.peer_registry.get(login)
    return peer.last_seen_at if peer else None


def build_github_life(services: Services, turn_services: TurnServices, tell: TellOwner) -> tuple[tuple[Loop, ...], str]:
    """Build the life; return its loops, and a line for the owner on what is wrong with its file, or ""."""
    state = GitHubState(services.home.memory, services.database, services.clock)
    perceiver = GitHubPerceiver(
        state,
        services.threads,
        services.github,
        services.clock,
        owner_did=services.me.owner_did,
        watched=services.workspaces.names,
    )
    threads = build_work_loop(
        services,
        (_build_handler(services, turn_services, state),),
        (perceiver,),
        name=LOOP,
        every_ms=GITHUB_INTERVAL_MS,
        social_only=False,
    )
    stores = services.knowledge.stores
    experiences = GitHubExperienceLoop(
        github=services.github,
        outbox=services.outbox,
        distiller=turn_services.distiller,
        memories=stores.memories,
        database=services.database,
        journal=services.journal,
        clock=services.clock,
        trust=services.trust,
        experiences=services.experiences,
    )
    claims = build_claims(services)
    tasks, task_loops = build_tasks(services, claims, turn_services.prompter, tell)
    workspaces = build_workspace_loop(services, claims, tasks.can_do)
    return (threads, experiences, workspaces, *task_loops), state.notice or claims.acting.notice


def _build_handler(services: Services, turn_services: TurnServices, state: GitHubState) -> ThreadHandler:
    """Build the handler of waiting threads."""
    responder = ThreadResponder(
        me=services.me,
        prompter=turn_services.prompter,
        skills=services.skills,
        turn_runner=turn_services.turn_runner,
        clock=services.clock,
        rng=services.rng,
        registry=services.peer_registry,
    )
    reviewer = PullReviewer(
        me=services.me,
        prompter=turn_services.prompter,
        skills=services.skills,
        turn_runner=turn_services.turn_runner,
        github=services.github,
        outbox=services.outbox,
        trust=services.trust,
        clock=services.clock,
        rng=services.rng,
    )
    return ThreadHandler(
        github=services.github,
        state=state,
        threads=services.threads,
        reader=ThreadReader(services.github),
        responder=responder,
        reviewer=reviewer,
        outbox=services.outbox,
        foreign=services.foreign,
        turns=PersonTurns(services.clock, journal=services.journal, loop=LOOP, about="a thread on GitHub"),
        trust=services.trust,
        watched=services.workspaces.names,
        note_insight=services.relationships.note_insight,
        experiences=services.experiences,
    )
