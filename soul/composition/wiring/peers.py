"""Builds the search for peers, our introductions to them, and the histories of what they and we did together."""

from __future__ import annotations

from collections.abc import Callable

from modules.services.agent.one_sentence import SentenceAsker
from modules.services.peers.histories import HistoriesTold, PeerHistoriesLoop
from modules.services.peers.loop import Introductions, PeerLoop, ourselves_of
from modules.services.peers.own_identity import OwnIdentity, PeerVoice
from modules.services.peers.scanner import PeerScanner
from soul.composition.services import Services


def build_own_identity(services: Services, sentences: SentenceAsker) -> OwnIdentity:
    """Build the part that makes sure that our identity post exists."""
    return OwnIdentity(
        username=services.settings.agent_github_username,
        path=services.home.memory / "identity_post.json",
        atproto=services.atproto,
        outbox=services.outbox,
        voice=PeerVoice(sentences, services.skills, services.identity.extract),
        registry=services.peer_registry,
        attention=services.attention,
        journal=services.journal,
        clock=services.clock,
    )


def build_peer_loop(
    services: Services, sentences: SentenceAsker, own: OwnIdentity, *, is_settled: Callable[[], bool]
) -> PeerLoop:
    """Build the loop over peers; it does nothing before `is_settled`."""
    settings, registry = services.settings, services.peer_registry
    scanner = PeerScanner(
        atproto=services.atproto,
        github=services.github,
        registry=registry,
        names=services.pinned_names,
        ourselves=ourselves_of(settings),
        journal=services.journal,
    )
    introductions = Introductions(
        atproto=services.atproto,
        outbox=services.outbox,
        registry=registry,
        voice=PeerVoice(sentences, services.skills, services.identity.extract),
        attention=services.attention,
        journal=services.journal,
        clock=services.clock,
        pace=services.pace,
        left_alone=services.preferences.left_alone,
        note=services.moderation.note,
        timezone=settings.soul_timezone,
    )
    return PeerLoop(
        own=own,
        registry=registry,
        scanner=scanner,
        introductions=introductions,
        pace=services.pace,
        listed=settings.soul_peers,
        standing=services.control.standing,
        ready=is_settled,
    )


def build_histories_told(services: Services) -> HistoriesTold:
    """Build the part that tells prompts what peers and we did together."""
    return HistoriesTold(services.peer_histories, services.peer_registry, services.preferences, services.skills)


def build_histories_loop(services: Services) -> PeerHistoriesLoop:
    """Build the loop that counts what peers and we did together."""
    return PeerHistoriesLoop(
        histories=services.peer_histories,
        registry=services.peer_registry,
        etiquette=services.etiquette,
        preferences=services.preferences,
        outbox=services.outbox,
        database=services.database,
        github=services.github,
        journal=services.journal,
        clock=services.clock,
        own_did=lambda: services.atproto.did,
    )
