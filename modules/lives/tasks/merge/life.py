"""Puts together what merges our own pull requests. It has a loop of its own, as a task may last half an hour."""

from __future__ import annotations

from typing import Protocol

from adapters.github.client import GitHub
from common.settings import Settings
from modules.lives.tasks.merge.handle import MERGES, MergeHandler
from modules.lives.tasks.merge.perceive import OwnPulls
from modules.runtime.events import EventBus
from modules.runtime.scheduler.attention import Attention
from modules.services.peers.registry import PeerRegistry
from modules.services.voice_phrases.store import VoicePhrases
from modules.services.work.loop import WorkLoop, WorkServices
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces


class MergeServices(WorkServices, Protocol):
    """What the loop is built from."""

    settings: Settings
    github: GitHub
    trust: WorkspaceTrust
    workspaces: WatchedWorkspaces
    peer_registry: PeerRegistry
    events: EventBus
    phrases: VoicePhrases


def build_merge_loop(services: MergeServices) -> WorkLoop:
    """Return the loop that looks after our own pull requests."""
    registry, settings = services.peer_registry, services.settings
    handler = MergeHandler(
        github=services.github,
        trust=services.trust,
        table=services.work,
        outbox=services.outbox,
        journal=services.journal,
        clock=services.clock,
        publish=services.events.publish,
        peers=lambda: [one.github_username for one in registry.get_linked_peers()],
        seen=registry.usernames_seen_since,
        phrase=services.phrases.phrase,
        may_merge_alone=settings.soul_merge_alone,
    )
    return WorkLoop(
        name=MERGES,
        social_only=False,
        table=services.work,
        handlers=(handler,),
        perceivers=(OwnPulls(services.github, services.workspaces, services.trust, services.work),),
        outbox=services.outbox,
        journal=services.journal,
        # NOTE(self): not that of the SOUL, as no model is asked.
        attention=Attention(),
        clock=services.clock,
        standing=services.control.standing,
    )
