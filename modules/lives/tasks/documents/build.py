"""Puts together the work of documents, for the life in workspaces."""

from __future__ import annotations

import random
from typing import Protocol

from adapters.github.client import GitHub
from common.clock import Clock
from common.redact import Redactor
from modules.lives.tasks.documents.compose import DocumentWriter
from modules.lives.tasks.documents.work import DocumentWork
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.attention import Attention
from modules.services.agent.skills.skills import Skills
from modules.services.outbox.outbox import Outbox
from modules.services.peers.registry import PeerRegistry
from modules.services.voice_phrases.store import VoicePhrases
from modules.services.workspaces.trust import WorkspaceTrust


class DocumentServices(Protocol):
    """What the work of documents is built from."""

    github: GitHub
    outbox: Outbox
    gateway: LLMGateway
    skills: Skills
    rng: random.Random
    redactor: Redactor
    attention: Attention
    clock: Clock
    phrases: VoicePhrases
    peer_registry: PeerRegistry


def build_document_work(services: DocumentServices, trust: WorkspaceTrust) -> DocumentWork:
    """Return the work of tasks whose files are Markdown documents."""
    registry = services.peer_registry
    return DocumentWork(
        github=services.github,
        trust=trust,
        outbox=services.outbox,
        writer=DocumentWriter(services.gateway, services.skills, services.rng, services.redactor.finds),
        attention=services.attention,
        clock=services.clock,
        phrase=services.phrases.phrase,
        peers=lambda: [one.github_username for one in registry.get_linked_peers()],
    )
