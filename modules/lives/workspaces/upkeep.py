"""Builds the steps that tidy up: over plans and over the other issues of the workspaces."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from adapters.github.client import GitHub
from common.clock import Clock
from modules.lives.workspaces.closing import Closing
from modules.lives.workspaces.issue_upkeep import OpenIssues, RestingIssues
from modules.lives.workspaces.plan_upkeep import DuplicateComments, DuplicatePlans, PlanPeers, PlanStanding, UnreadPlans
from modules.lives.workspaces.types import CycleStep
from modules.runtime.journal.journal import Journal
from modules.services.github_threads.threads import ThreadInbox
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.outbox.outbox import Outbox
from modules.services.peers.registry import PeerRegistry
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.store import VoicePhrases
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.trust import WorkspaceTrust

LOOP = "plan-awareness"
_AGAIN_AFTER = timedelta(hours=24)


class UpkeepServices(Protocol):
    """What the steps are built from."""

    clock: Clock
    threads: ThreadInbox
    journal: Journal
    github: GitHub
    outbox: Outbox
    phrases: VoicePhrases
    skills: Skills
    peer_registry: PeerRegistry
    trust: WorkspaceTrust


def upkeep_steps(services: UpkeepServices, trust: WorkspaceTrust, acting: ActingTurns) -> list[CycleStep]:
    """Return the steps that tidy up."""
    github, registry = services.github, services.peer_registry
    phrase = services.phrases.phrase
    writer = GitHubWriter(services.outbox, _AGAIN_AFTER)
    closing = Closing(github, writer, services.journal, LOOP)

    return [
        PlanPeers(registry, trust),
        DuplicatePlans(closing, trust, acting, phrase, services.skills),
        DuplicateComments(writer, github),
        UnreadPlans(writer, github, trust, acting, phrase),
        PlanStanding(closing, trust, acting, phrase, services.skills),
        OpenIssues(writer, trust, acting, services.threads, github.login),
        RestingIssues(closing, github, trust, acting, phrase, services.clock),
    ]
