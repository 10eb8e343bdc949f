"""Puts together what speaks for the SOUL beside its lives: the texts of its operation, and news of its work."""

from __future__ import annotations

from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.turn.facts import agent_facts
from modules.services.own_feed.announcement import Announcements
from modules.services.voice_phrases.regenerate import VoiceWriter
from soul.composition.services import Services


def build_announcements(services: Services, prompter: Prompter) -> Announcements:
    """Return what announces work of ours that was kept, if it is worth it."""
    return Announcements(
        prompter=prompter,
        gateway=services.gateway,
        skills=services.skills,
        github=services.github,
        outbox=services.outbox,
        attention=services.attention,
        journal=services.journal,
        clock=services.clock,
        rng=services.rng,
        bluesky_username=services.me.bluesky_username,
        agent=lambda: agent_facts(services.me, services.identity, services.soul.text),
        write_block_reason=services.control.write_block_reason,
        note_insight=services.relationships.note_insight,
    )


def build_voice_writer(services: Services) -> VoiceWriter:
    """Return what writes the operational texts anew when SELF.md has changed."""
    return VoiceWriter(
        path=services.home.voice_phrases,
        phrases=services.phrases,
        voice=lambda: services.identity.extract().voice,
        names=(services.me.github_username, services.me.bluesky_username),
        gateway=services.gateway,
        skills=services.skills,
        journal=services.journal,
        attention=services.attention,
        clock=services.clock,
    )
