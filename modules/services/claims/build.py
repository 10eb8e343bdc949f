"""Puts together what claims tasks and gives them back, once for all lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from adapters.github.client import GitHub
from common.clock import Clock
from common.redact import Redactor
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.services.claims.claim_requests import ClaimWords
from modules.services.claims.claimer import Claimer
from modules.services.claims.lease_store import TaskLeases
from modules.services.claims.plan_reading import PlanReader
from modules.services.claims.task_comments import TaskComments, plain
from modules.services.outbox.outbox import Outbox
from modules.services.peers.registry import PeerRegistry
from modules.services.plans.types import Task
from modules.services.voice_phrases.store import VoicePhrases
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.trust import WorkspaceTrust


class ClaimServices(Protocol):
    """What claims are built from."""

    clock: Clock
    database: Database
    home: Home
    github: GitHub
    outbox: Outbox
    phrases: VoicePhrases
    redactor: Redactor
    peer_registry: PeerRegistry
    trust: WorkspaceTrust


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of this SOUL.

    Attributes:
        claimer: claims tasks, keeps what was claimed, and gives it back.
        reader: reads a plan with all that a claim depends on.
        comments: what is said of tasks on their plans.
        acting: whose turn shared work is, among us and the peers that were seen lately.
        words: returns what the comment of a claim tells people.

    """

    claimer: Claimer
    reader: PlanReader
    comments: TaskComments
    acting: ActingTurns
    words: ClaimWords


def build_claims(services: ClaimServices) -> Claims:
    """Return the claims of this SOUL."""
    github, clock, phrase = services.github, services.clock, services.phrases.phrase
    leases = TaskLeases(services.database, services.home.memory, clock, github.login)
    reader = PlanReader(github, leases, services.trust, clock)

    def words(task: Task) -> str:
        claimed = phrase("github.task_claim", number=task.number, title=plain(task.title))
        return services.redactor.text(claimed)

    return Claims(
        claimer=Claimer(github, leases, reader, words, clock),
        reader=reader,
        comments=TaskComments(services.outbox, phrase, services.redactor),
        acting=ActingTurns(github.login, services.peer_registry.usernames_seen_since, clock),
        words=words,
    )
