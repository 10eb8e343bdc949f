"""The lives and what their turns use: on Bluesky, in the agent space, and the commitments made in both."""

from __future__ import annotations

from dataclasses import replace

from local_tools.bluesky import BlueskyTools, bluesky_tools
from local_tools.memory_tools import MemoryTools, memory_tools
from local_tools.pictures import picture_tools
from local_tools.self_tools import SelfTools, self_tools
from local_tools.skill_tools import skill_tools
from local_tools.space_tool import space_tools
from local_tools.web import web_tools
from modules.lives.bluesky.life import BlueskyLife, BlueskyState
from modules.lives.bluesky.publish import Publisher
from modules.lives.space.classifiers import ModelEchoJudge, ModelIntentClassifier
from modules.lives.space.life import SpaceLife, SpaceServices, build_space_life, is_on_this_machine
from modules.lives.space.speak import Experiences
from modules.lives.space.verdicts import FirstLook, Verdicts
from modules.services.agent.attention_list import AttentionList, waiting_drafts
from modules.services.agent.identity.keeper import SelfChanged
from modules.services.agent.tools.registry import Registry
from modules.services.agent.turn_services import TurnServices
from modules.services.commitments.announce import Announcer
from modules.services.commitments.due import DueCommitments
from modules.services.commitments.events import CommitmentAbandoned, CommitmentKept, CommitmentsReady
from modules.services.commitments.fulfil import Fulfiller
from modules.services.commitments.loop import CommitmentLoop
from modules.services.commitments.presence import Presence
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.replies import ReplyCommitments
from modules.services.commitments.runner import CommitmentRunner
from modules.services.commitments.writer import CommitmentWriter
from modules.services.peers.room_identity import RoomJoined
from soul.composition.services import Services

_COMES_IN_WITHIN_S = 30.0


class Lives:
    """All of them, over the `services`; nothing runs yet."""

    def __init__(self, services: Services) -> None:
        events, social_only = services.events, services.social_only
        self.queue = CommitmentQueue(
            services.home.memory,
            services.clock,
            social_only=social_only,
            redactor=services.redactor,
            publish=events.publish,
        )
        self.bluesky_state = BlueskyState(services)
        self.attention_list = AttentionList(
            sources=(
                self.bluesky_state.pending.attention,
                waiting_drafts(services.outbox.held),
                DueCommitments(self.queue.live, self.queue.get_commitment_outcome_patterns),
            ),
            skills=services.skills,
            files=services.knowledge.stores.owner_files,
            timezone=services.settings.soul_timezone,
        )
        self.turn_services = TurnServices(
            services,
            build_registry(services, self.bluesky_state.publisher),
            self.attention_list,
            bonds=services.relationships.closest,
        )
        writer = CommitmentWriter(
            agent_name=services.me.agent_name,
            bluesky_username=services.me.bluesky_username,
            gateway=services.gateway,
            prompter=self.turn_services.prompter,
            skills=services.skills,
            journal=services.journal,
            clock=services.clock,
            rng=services.rng,
        )
        replies = ReplyCommitments(self.queue, writer, services.journal, social_only=social_only)
        self.bluesky = BlueskyLife(services, self.bluesky_state, self.turn_services, replies)
        self.space = build_space(services, self.turn_services, self.queue, writer)
        self.commitments = build_commitments(services, self.space, self.queue, writer)
        events.subscribe(CommitmentsReady, lambda _: self.commitments.wake())
        events.subscribe(CommitmentAbandoned, lambda event: self.space.participation.given_up(event.commitment))
        events.subscribe(RoomJoined, lambda _: self.space.identity_publisher.introduce())
        events.subscribe(SelfChanged, lambda _: self.space.identity_publisher.introduce())


def build_registry(services: Services, publisher: Publisher) -> Registry:
    """Return all tools that a model may be offered."""
    knowledge = services.knowledge
    on_bluesky = BlueskyTools(services.atproto, publisher, services.preferences, services.skills, services.rng)
    memory = MemoryTools(
        store=knowledge.stores.memories,
        profiles=knowledge.profiles,
        skills=services.skills,
        journal=services.journal,
        clock=services.clock,
        rng=services.rng,
        owner_words=knowledge.owner_words,
        onboarding_due=knowledge.onboarding.due,
        complete=knowledge.onboarding.complete,
        timezone=services.settings.soul_timezone,
    )
    own_notes = self_tools(SelfTools(home=services.home, keeper=services.self_keeper, skills=services.skills))
    known = (*memory_tools(memory), *skill_tools(knowledge.local_skills, services.skills))
    shared = picture_tools(services.pictures, publisher, on_bluesky, services.skills, services.rng)
    pages = web_tools(services.web, on_bluesky, services.skills)
    tools = (*bluesky_tools(on_bluesky), *shared, *pages, *own_notes, *known, *space_tools(services.skills))
    return Registry(tools, social_only=services.social_only)


def build_space(
    services: Services, turn_services: TurnServices, queue: CommitmentQueue, writer: CommitmentWriter
) -> SpaceLife:
    """Return the life in the agent space; kept commitments become memories of it."""
    integrations, clock, memories = services.integrations, services.clock, services.knowledge.stores.memories
    verdicts, zone = Verdicts(services.gateway, services.skills, clock), services.settings.soul_timezone

    def is_trusted_room() -> bool:
        return bool(services.settings.space_url) or is_on_this_machine(integrations.room.url)

    experiences = Experiences(memories, services.journal, clock, services.knowledge.room_session, zone, is_trusted_room)
    services.events.subscribe(CommitmentKept, experiences.keep_commitment)
    return build_space_life(
        SpaceServices(
            home=services.home,
            soul=services.soul,
            config=integrations.space_config,
            client=integrations.room,
            queue=queue,
            writer=writer,
            intents=ModelIntentClassifier(verdicts, services.journal),
            judge=ModelEchoJudge(verdicts, services.journal, clock),
            first_look=FirstLook(replace(verdicts, timeout_s=services.settings.ai_gateway_idle_timeout_s)),
            prompter=turn_services.prompter,
            turn_runner=turn_services.turn_runner,
            skills=services.skills,
            journal=services.journal,
            redactor=services.redactor,
            clock=clock,
            rng=services.rng,
            estimate=services.knowledge.stores.estimator.estimate,
            mute_reason=integrations.mute_reason,
            session_key=services.knowledge.room_session,
            wake_commitments=lambda: services.events.publish(CommitmentsReady()),
            experience=experiences.keep,
            timezone=zone,
            is_trusted_room=is_trusted_room,
        ),
        social_only=services.social_only or not integrations.github.configured,
    )


def build_commitments(
    services: Services, space: SpaceLife, queue: CommitmentQueue, writer: CommitmentWriter
) -> CommitmentLoop:
    """Return the loop that fulfils commitments; those of a room wait until the room is known."""
    integrations, clock = services.integrations, services.clock
    sender, started = integrations.to_room, clock.monotonic()
    runner = CommitmentRunner(
        queue=queue,
        fulfiller=Fulfiller(services.outbox, github=integrations.github.configured, social_only=services.social_only),
        announcer=Announcer(services.outbox, writer=writer, attention=services.attention, where=sender.where),
        presence=Presence(integrations.room, clock, services.redactor, integrations.mute_reason),
        journal=services.journal,
        publish=services.events.publish,
        knows_room=lambda: space.has_joined_room or clock.monotonic() - started >= _COMES_IN_WITHIN_S,
        was_delivered=sender.was_delivered,
    )
    return CommitmentLoop(runner, clock, speed=services.settings.soul_speed)
