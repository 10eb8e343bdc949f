"""Puts the rooms of the life on GitHub together."""

from __future__ import annotations

from dataclasses import dataclass

from modules.lives.github.experiences import GitHubExperienceLoop
from modules.lives.github.handle import ThreadHandler
from modules.lives.github.perceive import GitHubPerceiver
from modules.lives.github.read import ThreadReader
from modules.lives.github.respond import LOOP, ThreadResponder
from modules.lives.github.review import PullReviewer
from modules.lives.github.state import GitHubState
from modules.runtime.scheduler.types import Loop
from modules.services.work.turns import PersonTurns
from soul.composition.services import Services
from soul.composition.wiring.turns import TurnServices
from soul.composition.wiring.work import build_work_loop

GITHUB_AWARENESS_INTERVAL_MS = 120_000


@dataclass(frozen=True, slots=True)
class GitHubLife:
    """Its loops, none where no account is set. `notices` are lines for the owner on what is amiss with its files."""

    loops: tuple[Loop, ...]
    notices: tuple[str, ...]


def build_github_life(services: Services, turn_services: TurnServices) -> GitHubLife:
    """Return the life."""
    state = GitHubState(services.home.memory, services.database, services.clock)
    notices = (state.notice, services.peer_histories.notice)
    if not services.github.configured:
        return GitHubLife((), notices)
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
        every_ms=GITHUB_AWARENESS_INTERVAL_MS,
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
    return GitHubLife((threads, experiences), notices)


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
