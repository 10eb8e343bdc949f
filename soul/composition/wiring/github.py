"""Puts the life on GitHub together: threads, workspaces and tasks. Loaded only where an account is set."""

from __future__ import annotations

from common.intervals import GITHUB_INTERVAL_MS
from modules.lives.github.engagement import GitHubPerceiver, GitHubState
from modules.lives.github.experiences import GitHubExperienceLoop
from modules.lives.github.handle import ThreadHandler, ThreadReader
from modules.lives.github.respond import LOOP, PullReviewer, ThreadResponder
from modules.runtime.scheduler.types import Loop
from modules.services.work.limits import PersonTurns
from soul.composition.services import Services
from soul.composition.wiring.tasks import build_claims, build_tasks
from soul.composition.wiring.turns import TurnServices
from soul.composition.wiring.work import build_work_loop
from soul.composition.wiring.workspaces import build_workspace_loop


def build_github_life(services: Services, turn_services: TurnServices) -> tuple[tuple[Loop, ...], str]:
    """Return its loops, and a line for the owner on what is amiss with its file; "" without."""
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
    tasks, task_loops = build_tasks(services, claims, turn_services.prompter)
    workspaces = build_workspace_loop(services, claims, tasks.can_do)
    return (threads, experiences, workspaces, *task_loops), state.notice


def _build_handler(services: Services, turn_services: TurnServices, state: GitHubState) -> ThreadHandler:
    """Return what says what becomes of one waiting thread."""
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
