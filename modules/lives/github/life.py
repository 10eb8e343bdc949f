"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

import random
from typing import Protocol

from adapters.github.client import GitHub
from common.clock import Clock
from modules.lives.github.experiences import GitHubExperienceLoop
from modules.lives.github.handle import ThreadHandler
from modules.lives.github.perceive import GitHubPerceiver
from modules.lives.github.respond import LOOP, ThreadResponder
from modules.lives.github.review import PullReviewer
from modules.lives.github.state import GitHubState
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.types import Loop
from modules.services.experiences.log import ExperienceLog
from modules.services.github_threads.threads import ThreadInbox
from modules.services.identity.identity import Me
from modules.services.outbox.outbox import Outbox
from modules.services.peers.accounts import Relationships
from modules.services.peers.histories import PeerHistories
from modules.services.peers.registry import PeerRegistry
from modules.services.pinned_names.store import PinnedNames
from modules.services.repository_rules.admission import ForeignRepositories
from modules.services.skills.skills import Skills
from modules.services.wiring.knowledge import Knowledge
from modules.services.wiring.turns import TurnServices
from modules.services.work.loop import build_work_loop
from modules.services.work.table import WorkTable
from modules.services.work.turns import PersonTurns
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

GITHUB_AWARENESS_INTERVAL_MS = 120_000


class GitHubServices(Protocol):
    """What the life is built from."""

    me: Me
    home: Home
    database: Database
    clock: Clock
    rng: random.Random
    journal: Journal
    skills: Skills
    github: GitHub
    threads: ThreadInbox
    work: WorkTable
    outbox: Outbox
    knowledge: Knowledge
    peer_registry: PeerRegistry
    trust: WorkspaceTrust
    pinned_names: PinnedNames
    relationships: Relationships
    peer_histories: PeerHistories
    workspaces: WatchedWorkspaces
    attention: Attention
    control: Control
    foreign: ForeignRepositories
    experiences: ExperienceLog


class GitHubLife:
    """A SOUL on GitHub. `notices` are lines for the owner on what is amiss with its files."""

    def __init__(self, services: GitHubServices, turn_services: TurnServices) -> None:
        self._services = services
        self._state = GitHubState(services.home.memory, services.database, services.clock)
        self._turn_services = turn_services
        self.notices = (self._state.notice, services.peer_histories.notice)

    def loops(self) -> list[Loop]:
        """Return the loops of this life; none where no account is set."""
        services = self._services
        if not services.github.configured:
            return []
        perceiver = GitHubPerceiver(
            self._state,
            services.threads,
            services.github,
            services.clock,
            owner_did=services.me.owner_did,
            watched=services.workspaces.names,
        )
        threads = build_work_loop(
            services,
            (self._handler(),),
            (perceiver,),
            name=LOOP,
            every_ms=GITHUB_AWARENESS_INTERVAL_MS,
            social_only=False,
        )
        return [threads, self._experience_loop()]

    def _experience_loop(self) -> GitHubExperienceLoop:
        services, stores = self._services, self._services.knowledge.stores
        return GitHubExperienceLoop(
            github=services.github,
            outbox=services.outbox,
            distiller=self._turn_services.distiller,
            memories=stores.memories,
            in_database=stores.in_database,
            database=services.database,
            journal=services.journal,
            clock=services.clock,
            trust=services.trust,
            experiences=services.experiences,
        )

    def _handler(self) -> ThreadHandler:
        services, turn_services = self._services, self._turn_services
        responder = ThreadResponder(
            me=services.me,
            prompter=turn_services.prompter,
            skills=services.skills,
            turn_runner=turn_services.turn_runner,
            clock=services.clock,
            rng=services.rng,
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
            state=self._state,
            threads=services.threads,
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
