"""Builds the profile and the follow of the owner, its announcements and voice, and the control loop."""

from modules.lives.bluesky.expression import ExpressionCycle
from modules.runtime.control_watch import ControlLoop, StandingChecked
from modules.runtime.status import Stage
from modules.services.agent.prompt.prompter import Prompter
from modules.services.commitments.acts import CommitmentKept
from modules.services.identity.identity import agent_facts
from modules.services.own_feed.announcement import AnnouncementHandler
from modules.services.presence.disclosure import Disclosure
from modules.services.presence.owner_follow import OwnerFollow
from modules.services.presence.policy import message_policy_of, operator_of
from modules.services.voice_phrases import VoiceWriter
from modules.services.work.types import Handler
from soul.composition.services import Services


def build_control_watch(services: Services) -> ControlLoop:
    """Build the loop that checks whether the SOUL may act and, once it may, has its profile say that it is a bot."""
    services.events.subscribe(StandingChecked, lambda _: services.stages.reach(Stage.CHECKED))
    return ControlLoop(
        control=services.control,
        repos=services.repos,
        journal=services.journal,
        clock=services.clock,
        owner_did=services.me.owner_did,
        own_did=lambda: services.atproto.did,
        when_free=_build_disclosure(services).ensure_once,
        publish=services.events.publish,
    )


def _build_disclosure(services: Services) -> Disclosure:
    """Build the disclosure in the profile: bot label, operator and message policy."""
    return Disclosure(
        atproto=services.atproto,
        database=services.database,
        journal=services.journal,
        clock=services.clock,
        label=services.settings.soul_bot_label,
        operator=operator_of(services.settings),
        contact_line=services.skills.section("voice-phrases", "Profile Line"),
        message_policy=message_policy_of(services.settings),
    )


def build_owner_follow(services: Services) -> OwnerFollow:
    """Build the part that follows the owner, once."""
    return OwnerFollow(
        settings=services.settings,
        clock=services.clock,
        database=services.database,
        journal=services.journal,
        control=services.control,
        outbox=services.outbox,
        atproto=services.atproto,
        owner_did=services.me.owner_did,
    )


def build_announcements(services: Services, prompter: Prompter, expression: ExpressionCycle) -> list[Handler]:
    """Build the handler that announces our work, if there can be any; `expression` knows when a post fits."""
    if services.social_only or not services.github.configured:
        return []
    announcements = AnnouncementHandler(
        prompter=prompter,
        gateway=services.gateway,
        skills=services.skills,
        github=services.github,
        trust=services.trust,
        pictures=services.pictures,
        outbox=services.outbox,
        table=services.work,
        clock=services.clock,
        rng=services.rng,
        me=services.me,
        agent=lambda: agent_facts(services.me, services.identity, services.soul.text),
        why_not_now=expression.why_not_now,
        note_insight=services.relationships.note_insight,
        tells_rooms=services.settings.soul_announce,
    )
    services.events.subscribe(CommitmentKept, announcements.announce_kept)
    return [announcements]


def build_voice_writer(services: Services) -> VoiceWriter:
    """Build the writer that rewords the operational texts when SELF.md has changed."""
    return VoiceWriter(
        path=services.home.voice_phrases,
        phrases=services.phrases,
        voice=lambda: services.identity.extract().voice,
        names=lambda: (services.me.github_username, services.me.bluesky_username),
        gateway=services.gateway,
        skills=services.skills,
        table=services.work,
        journal=services.journal,
        clock=services.clock,
    )
