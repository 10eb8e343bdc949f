"""Builds the steps that find work in workspaces, make plans of it, and say when all is done."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Protocol

from adapters.github.client import GitHub
from common.clock import Clock
from modules.lives.workspaces.health import HealthCheck
from modules.lives.workspaces.sentinel import SentinelStep
from modules.lives.workspaces.synthesis import SynthesisStep
from modules.lives.workspaces.types import CycleStep
from modules.lives.workspaces.wanted import WantedIssues
from modules.runtime.journal.journal import Journal
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.attention import Attention
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.outbox.outbox import Outbox
from modules.services.peers.registry import PeerRegistry
from modules.services.plans.compose import PlanComposer
from modules.services.plans.work_request import WorkRequestReader
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.store import VoicePhrases
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.health import HealthJudge
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

_AGAIN_AFTER = timedelta(hours=1)


class PlanningServices(Protocol):
    """What the steps are built from."""

    clock: Clock
    rng: random.Random
    journal: Journal
    github: GitHub
    workspaces: WatchedWorkspaces
    outbox: Outbox
    gateway: LLMGateway
    skills: Skills
    phrases: VoicePhrases
    attention: Attention
    peer_registry: PeerRegistry


def planning_steps(services: PlanningServices, trust: WorkspaceTrust, turns: ActingTurns) -> list[CycleStep]:
    """Return the steps; `trust` says whose words count, `turns` who acts."""
    clock, phrase = services.clock, services.phrases.phrase
    writer = GitHubWriter(services.outbox, _AGAIN_AFTER)
    registry = services.peer_registry

    def seen_at(login: str) -> datetime | None:
        peer = registry.get(login)
        return peer.last_seen_at if peer else None

    health = HealthCheck(
        github=services.github,
        workspaces=services.workspaces,
        writer=writer,
        trust=trust,
        judge=HealthJudge(services.gateway, services.skills, services.rng),
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
            trust=trust,
            turns=turns,
            seen_at=seen_at,
            phrase=phrase,
            skills=services.skills,
            journal=services.journal,
            clock=clock,
        ),
        SynthesisStep(
            github=services.github,
            workspaces=services.workspaces,
            writer=writer,
            trust=trust,
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
