"""Builds what asks whether a repository wants us, for whoever composes a SOUL."""

from __future__ import annotations

from typing import Protocol

from adapters.github.client import GitHub
from common.clock import Clock
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.llm.gateway import LLMGateway
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.outbox.rules.types import World
from modules.services.repository_rules.admission import ForeignRepositories
from modules.services.repository_rules.checking import RepositoryRules
from modules.services.repository_rules.reader import RuleReader
from modules.services.skills.skills import Skills


class RuleServices(Protocol):
    """What it is built from."""

    github: GitHub
    repository_identity: RepositoryIdentity
    gateway: LLMGateway
    skills: Skills
    database: Database
    journal: Journal
    clock: Clock


def foreign_repositories(services: RuleServices, world: World) -> ForeignRepositories:
    """Return what is asked before an act in a repository of somebody else is admitted."""
    rules = RepositoryRules(
        identity=services.repository_identity,
        reader=RuleReader(services.gateway, services.skills),
        database=services.database,
        journal=services.journal,
        clock=services.clock,
    )
    return ForeignRepositories(rules, services.github, services.database, world.circle)
