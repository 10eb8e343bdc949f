"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

import random
from typing import Protocol

from adapters.github.client import GitHub
from common.clock import Clock
from common.constants import SECOND_MS
from common.settings import Settings
from modules.lives.github.handle import ThreadHandler
from modules.lives.github.loop import GITHUB_AWARENESS_INTERVAL_MS, GitHubAwarenessLoop
from modules.lives.github.perceive import GitHubPerceiver
from modules.lives.github.respond import LOOP, ThreadResponder
from modules.lives.github.state import GitHubState
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.policy import get_agent_jitter
from modules.runtime.scheduler.types import Loop
from modules.services.agent.identity.identity import Me
from modules.services.agent.skills.skills import Skills
from modules.services.agent.turn_services import TurnServices
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.waits import PersonTurns, Waits
from modules.services.peers.accounts import Relationships
from modules.services.peers.registry import PeerRegistry
from modules.services.repository_rules.checking import RepositoryRules
from modules.services.repository_rules.reader import RuleReader
from modules.services.workspaces.watched import WatchedWorkspaces


class GitHubServices(Protocol):
    """What the life is built from."""

    settings: Settings
    me: Me
    home: Home
    database: Database
    clock: Clock
    rng: random.Random
    journal: Journal
    skills: Skills
    github: GitHub
    outbox: Outbox
    gateway: LLMGateway
    peer_registry: PeerRegistry
    relationships: Relationships
    workspaces: WatchedWorkspaces
    attention: Attention
    control: Control


class GitHubLife:
    """A SOUL on GitHub. `notices` are lines for the owner on what is amiss with its files."""

    def __init__(self, services: GitHubServices, turn_services: TurnServices) -> None:
        self._services = services
        self._state = GitHubState(services.home.memory, services.database, services.clock)
        self._turn_services = turn_services
        self.notices = (self._state.notice,)

    def loops(self) -> list[Loop]:
        """Return the loops of this life; none where no account is set."""
        services, speed = self._services, self._services.settings.soul_speed
        if not services.github.configured:
            return []
        jitter_s = get_agent_jitter(services.me.agent_name) / SECOND_MS / speed
        return [
            GitHubAwarenessLoop(
                perceiver=GitHubPerceiver(
                    self._state, services.github, services.clock, owner_did=services.me.owner_did, speed=speed
                ),
                handler=self._handler(),
                state=self._state,
                github=services.github,
                waits=Waits(services.clock, GITHUB_AWARENESS_INTERVAL_MS / SECOND_MS / speed),
                journal=services.journal,
                attention=services.attention,
                clock=services.clock,
                standing=services.control.standing,
                jitter_s=jitter_s,
                speed=speed,
            )
        ]

    def _handler(self) -> ThreadHandler:
        services, turn_services = self._services, self._turn_services
        speed = services.settings.soul_speed
        responder = ThreadResponder(
            me=services.me,
            prompter=turn_services.prompter,
            skills=services.skills,
            turn_runner=turn_services.turn_runner,
            clock=services.clock,
            rng=services.rng,
        )
        registry = services.peer_registry
        return ThreadHandler(
            github=services.github,
            state=self._state,
            responder=responder,
            outbox=services.outbox,
            rules=self._rules(),
            turns=PersonTurns(services.clock, speed, journal=services.journal, loop=LOOP, about="a thread on GitHub"),
            journal=services.journal,
            owner=services.settings.owner_github_username,
            peers=lambda: [peer.github_username for peer in registry.get_linked_peers()],
            watched=services.workspaces.names,
            note_insight=services.relationships.note_insight,
            speed=speed,
        )

    def _rules(self) -> RepositoryRules:
        services = self._services
        return RepositoryRules(
            github=services.github,
            reader=RuleReader(services.gateway, services.skills),
            outbox=services.outbox,
            database=services.database,
            journal=services.journal,
            clock=services.clock,
            speed=services.settings.soul_speed,
        )
