"""Puts together the loop of reviews, which has one of its own as tests may take minutes, and what answers them."""

from __future__ import annotations

import random
import shutil
from typing import Protocol

from adapters.git.client import Git
from adapters.github.client import GitHub
from common.constants import SECOND_MS
from common.redact import Redactor
from common.settings import Settings
from modules.lives.tasks.code.work import CodeWork
from modules.lives.tasks.review.checkout import Checkout
from modules.lives.tasks.review.handle import ReviewHandler
from modules.lives.tasks.review.judge import Judge
from modules.lives.tasks.review.perceive import ReviewPerceiver
from modules.lives.tasks.review.revise import RevisionHandler
from modules.runtime.home import Home
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.scheduler.attention import Attention
from modules.services.agent.prompt.prompter import Prompter
from modules.services.claims.plan_reading import PlanReader
from modules.services.coding.dependencies import Registries
from modules.services.peers.registry import PeerRegistry
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.store import VoicePhrases
from modules.services.work.loop import WorkLoop, WorkServices
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

REVIEWS = "reviews"
REVIEW_INTERVAL_MS = 120 * SECOND_MS


class ReviewServices(WorkServices, Protocol):
    """What the loop is built from."""

    settings: Settings
    home: Home
    redactor: Redactor
    git: Git
    github: GitHub
    gateway: LLMGateway
    skills: Skills
    rng: random.Random
    trust: WorkspaceTrust
    phrases: VoicePhrases
    workspaces: WatchedWorkspaces
    peer_registry: PeerRegistry


def build_revisions(services: ReviewServices, plans: PlanReader, code: CodeWork) -> RevisionHandler:
    """Return what answers the reviews of our own pull requests, with the agent of `code`."""
    return RevisionHandler(
        github=services.github,
        trust=services.trust,
        plans=plans,
        code=code,
        checkout=Checkout(services.git, services.home.root),
        outbox=services.outbox,
        journal=services.journal,
        skills=services.skills,
        clock=services.clock,
        rng=services.rng,
    )


def build_review_loop(services: ReviewServices, prompter: Prompter) -> WorkLoop:
    """Return the loop in which pull requests of the workspaces are reviewed."""
    settings, home, registry = services.settings, services.home, services.peer_registry
    sandbox = Sandbox(
        redactor=services.redactor,
        private=(home.memory, home.env, home.session),
        unsafe=settings.soul_unsafe_exec and settings.soul_coding,
        bwrap=shutil.which("bwrap") if settings.soul_coding else None,
    )
    judge = Judge(
        gateway=services.gateway,
        prompter=prompter,
        skills=services.skills,
        attention=services.attention,
        clock=services.clock,
        rng=services.rng,
        login=services.github.login,
    )
    handler = ReviewHandler(
        github=services.github,
        trust=services.trust,
        checkout=Checkout(services.git, home.root),
        sandbox=sandbox,
        judge=judge,
        outbox=services.outbox,
        phrase=services.phrases.phrase,
        network=settings.coding_network,
        registries=Registries.of(settings),
    )
    perceiver = ReviewPerceiver(
        services.github,
        services.workspaces,
        services.trust,
        services.work,
        lambda: [one.github_username for one in registry.get_linked_peers()],
    )
    return WorkLoop(
        name=REVIEWS,
        every_ms=REVIEW_INTERVAL_MS,
        social_only=False,
        table=services.work,
        handlers=(handler,),
        perceivers=(perceiver,),
        outbox=services.outbox,
        journal=services.journal,
        # NOTE(self): not that of the SOUL, which the tests would keep from everything else for minutes.
        attention=Attention(),
        clock=services.clock,
        standing=services.control.standing,
    )
