"""Builds what concerns other people: the search for peers, our introductions to them, and requests about own data.

Peers have histories of what they and we did together; anybody may make requests about their own data.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from modules.services.agent.one_sentence import SentenceAsker
from modules.services.peers.histories import HistoriesTold, PeerHistoriesLoop
from modules.services.peers.loop import Introductions, PeerLoop, PeerScanner, ourselves_of
from modules.services.peers.own_identity import OwnIdentity, PeerVoice
from modules.services.rights.answering import PersonRequests, ReplyStory, RequestReader, RightsVoice
from modules.services.rights.forgetting import Forgetting
from modules.services.rights.requests import ForgetRequests
from soul.composition.services import Services


def build_own_identity(services: Services, sentences: SentenceAsker) -> OwnIdentity:
    """Build the part that makes sure that our identity post exists."""

    async def learn_login() -> None:
        if services.github.configured:
            await services.trust.people()

    return OwnIdentity(
        me=services.me,
        learn_login=learn_login,
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
    services: Services,
    sentences: SentenceAsker,
    own: OwnIdentity,
    is_settled: Callable[[], bool],
    is_day_full: Callable[[], Awaitable[bool]],
) -> PeerLoop:
    """Build the loop over peers; it does nothing before `is_settled`, and posts nothing once `is_day_full`."""
    settings, registry = services.settings, services.peer_registry
    scanner = PeerScanner(
        atproto=services.atproto,
        github=services.github,
        registry=registry,
        names=services.pinned_names,
        ourselves=partial(ourselves_of, services.me, settings),
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
        is_day_full=is_day_full,
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


def build_person_requests(services: Services, sentences: SentenceAsker) -> PersonRequests:
    """Build the check for such requests, which every life runs on a post or a message before anything else."""
    settings, skills, clock = services.settings, services.skills, services.clock
    contact = " ".join(settings.operator_contact.split())
    return PersonRequests(
        preferences=services.preferences,
        reader=RequestReader(services.gateway, skills),
        voice=RightsVoice(lambda: contact or services.me.owner_handle, sentences, skills),
        forgetting=Forgetting(
            services.home,
            services.database,
            services.knowledge.stores.storage,
            settings.agent_name,
            clock,
            own_handles=lambda: (services.me.bluesky_username, services.me.owner_handle),
        ),
        requests=ForgetRequests(services.home.memory),
        story=ReplyStory(skills, lambda: services.atproto.did),
        skills=skills,
        database=services.database,
        journal=services.journal,
        clock=clock,
        outbox=services.outbox,
        owner_is_visitor=settings.owner_is_visitor,
    )
