"""Puts together the work of documents, for the life of tasks."""

from __future__ import annotations

import random
from typing import Protocol

from common.redact import Redactor
from modules.lives.tasks.documents.compose import DocumentWriter
from modules.lives.tasks.documents.work import DocumentWork
from modules.lives.tasks.offering import OfferingServices, build_offering
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.attention import Attention
from modules.services.skills.skills import Skills
from modules.services.workspaces.trust import WorkspaceTrust


class DocumentServices(OfferingServices, Protocol):
    """What the work of documents is built from."""

    gateway: LLMGateway
    skills: Skills
    rng: random.Random
    redactor: Redactor
    attention: Attention


def build_document_work(services: DocumentServices, trust: WorkspaceTrust) -> DocumentWork:
    """Return the work of tasks whose files are Markdown documents."""
    writer = DocumentWriter(services.gateway, services.skills, services.rng, services.redactor.finds)
    return DocumentWork(build_offering(services, trust), writer, services.attention)
