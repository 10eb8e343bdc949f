"""Puts together the work of code, for the life of tasks."""

from __future__ import annotations

import random
from typing import Protocol

from adapters.git.client import Git
from common.redact import Redactor
from common.settings import Settings
from modules.lives.tasks.code.work import CodeWork
from modules.lives.tasks.offering import OfferingServices, build_offering
from modules.runtime.budget.budget import Budget
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.scheduler.attention import Attention
from modules.services.coding.agent import CodingAgent
from modules.services.coding.dependencies import Registries
from modules.services.coding.trajectory import Trajectories
from modules.services.coding.types import CodingLimits
from modules.services.skills.skills import Skills
from modules.services.workspaces.trust import WorkspaceTrust


class CodeServices(OfferingServices, Protocol):
    """What the work of code is built from."""

    settings: Settings
    home: Home
    database: Database
    budget: Budget
    redactor: Redactor
    git: Git
    gateway: LLMGateway
    skills: Skills
    rng: random.Random
    attention: Attention


def build_code_work(services: CodeServices, trust: WorkspaceTrust) -> CodeWork:
    """Return the work of tasks that ask for more than documents."""
    settings, home = services.settings, services.home
    private = (home.memory, home.env, home.session)
    sandbox = Sandbox(redactor=services.redactor, private=private, unsafe=settings.soul_unsafe_exec)
    limits = CodingLimits(
        steps=settings.coding_steps,
        tokens=settings.coding_tokens,
        usd=settings.coding_usd,
        seconds=settings.coding_minutes * 60,
        network=settings.coding_network,
    )
    agent = CodingAgent(
        gateway=services.gateway,
        skills=services.skills,
        sandbox=sandbox,
        store=Trajectories(services.database),
        budget=services.budget,
        attention=services.attention,
        clock=services.clock,
        limits=limits,
    )
    return CodeWork(
        offering=build_offering(services, trust),
        agent=agent,
        git=services.git,
        skills=services.skills,
        rng=services.rng,
        redactor=services.redactor,
        root=home.root,
        name=settings.agent_name,
        registries=Registries.of(settings),
        may_run=settings.soul_coding and sandbox.is_there,
    )
