"""Builds the handling of requests that people make about their own data."""

from __future__ import annotations

from modules.services.agent.one_sentence import SentenceAsker
from modules.services.rights.answering import PersonRequests, ReplyStory, RightsVoice
from modules.services.rights.forgetting import Forgetting
from modules.services.rights.request_reader import RequestReader
from modules.services.rights.requests import ForgetRequests
from soul.composition.services import Services


def build_person_requests(services: Services, sentences: SentenceAsker) -> PersonRequests:
    """Build the check for such requests, which every life runs on a post or a message before anything else."""
    settings, skills, clock = services.settings, services.skills, services.clock
    contact = " ".join(settings.operator_contact.split()) or services.me.owner_handle
    return PersonRequests(
        preferences=services.preferences,
        reader=RequestReader(services.gateway, skills),
        voice=RightsVoice(contact, sentences, skills),
        forgetting=Forgetting(
            services.home,
            services.database,
            services.knowledge.stores.storage,
            settings.agent_name,
            clock,
            own_handles=(services.me.bluesky_username, services.me.owner_handle),
        ),
        requests=ForgetRequests(services.home.memory),
        story=ReplyStory(skills, lambda: services.atproto.did),
        skills=skills,
        database=services.database,
        journal=services.journal,
        clock=clock,
        owner_is_visitor=settings.owner_is_visitor,
    )
