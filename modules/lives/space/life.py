"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from adapters.space.client import SpaceClient
from common.clock import Clock
from common.redact import Redactor
from common.settings import Settings
from modules.lives.space.act import Participation
from modules.lives.space.classifiers import EchoJudge, ModelEchoJudge, ModelIntentClassifier
from modules.lives.space.commitment_maker import CommitmentMaker
from modules.lives.space.config import SpaceConfigFile
from modules.lives.space.decide import Decider
from modules.lives.space.first_look import FirstLook
from modules.lives.space.journal_reporter import JournalReporter, OwnLines
from modules.lives.space.loop import ParticipationLoop
from modules.lives.space.perceive import RoomPerceiver
from modules.lives.space.policy import is_on_this_machine
from modules.lives.space.prompting import PromptWriter
from modules.lives.space.respond import RoomResponder
from modules.lives.space.snapshot import SnapshotBuilder
from modules.lives.space.speak import Experience, Experiences, Speaker
from modules.lives.space.state import RoomConversation
from modules.lives.space.types import IntentClassifier
from modules.lives.space.validator import MessageValidator
from modules.runtime.events import EventBus
from modules.runtime.home import Home, SoulDocument
from modules.runtime.journal.journal import Journal
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.turn.runner import TurnRunner
from modules.services.agent.verdicts import Verdicts
from modules.services.commitments.events import CommitmentKept, CommitmentsReady
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.writer import CommitmentWriter
from modules.services.day.gathering import DayReader
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import ExperienceType
from modules.services.peers.room_identity import IdentityPublisher
from modules.services.peers.room_members import ROOM_MEMBERS_FILE, PeerRelationships
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.store import Phrase, VoicePhrases
from modules.services.wiring.knowledge import Knowledge
from modules.services.wiring.turns import TurnServices


async def no_experience(kind: ExperienceType, what: str, ours: str = "") -> None:
    """Keep no experience."""


class SharedServices(Protocol):
    """What this life takes of the services that all lives use."""

    settings: Settings
    home: Home
    soul: SoulDocument
    clock: Clock
    rng: random.Random
    journal: Journal
    redactor: Redactor
    skills: Skills
    phrases: VoicePhrases
    events: EventBus
    knowledge: Knowledge
    gateway: LLMGateway
    experiences: ExperienceLog


class RoomAccess(Protocol):
    """The way into the room."""

    room: SpaceClient
    space_config: SpaceConfigFile

    def mute_reason(self) -> str:
        """Return why nothing may be said in the room just now, "" if something may."""


@dataclass(frozen=True, slots=True)
class SpaceServices:
    """What the life is built from.

    `mute_reason` says why nothing may be said in the room just now, "" if something may. `session_key` names the
    session in which the talk of the room is kept, `days` tells what the room may know of ours. `wake_commitments` lets
    commitments be fulfilled at once.
    `experience` receives a kind of experience and what happened. `is_trusted_room` says whether the owner named the
    room. `first_look` decides cheaply where there is nothing to say.
    """

    home: Home
    soul: SoulDocument
    config: SpaceConfigFile
    client: SpaceClient
    queue: CommitmentQueue
    writer: CommitmentWriter
    intents: IntentClassifier
    judge: EchoJudge
    prompter: Prompter
    turn_runner: TurnRunner
    skills: Skills
    phrase: Phrase
    journal: Journal
    redactor: Redactor
    clock: Clock
    rng: random.Random
    estimate: Callable[[str], int]
    mute_reason: Callable[[], str]
    session_key: str
    days: DayReader
    wake_commitments: Callable[[], None] = lambda: None
    experience: Experience = no_experience
    timezone: str = ""
    is_trusted_room: Callable[[], bool] = lambda: True
    first_look: FirstLook | None = None


@dataclass(frozen=True, slots=True)
class SpaceLife:
    """The life in the agent space. `notices` are lines for the owner about its files."""

    loop: ParticipationLoop
    participation: Participation
    identity_publisher: IdentityPublisher
    config: SpaceConfigFile
    relationships: PeerRelationships

    @property
    def has_joined_room(self) -> bool:
        """Whether we came into a room in this process and took in its record."""
        return self.participation.talk.state.joined_at is not None

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.relationships.notice, self.config.notice)))


def space_services(
    services: SharedServices,
    access: RoomAccess,
    turn_services: TurnServices,
    queue: CommitmentQueue,
    writer: CommitmentWriter,
) -> SpaceServices:
    """Return what the life is built from, with a model to judge the talk; kept commitments become memories of it."""
    settings, journal, clock = services.settings, services.journal, services.clock
    knowledge, verdicts = services.knowledge, Verdicts(services.gateway, services.skills, clock)

    def is_trusted_room() -> bool:
        return bool(settings.space_url) or is_on_this_machine(access.room.url)

    experiences = Experiences(
        knowledge.stores.memories,
        services.experiences,
        journal,
        clock,
        knowledge.room_session,
        settings.soul_timezone,
        is_trusted_room,
    )
    services.events.subscribe(CommitmentKept, experiences.keep_commitment)
    return SpaceServices(
        home=services.home,
        soul=services.soul,
        config=access.space_config,
        client=access.room,
        queue=queue,
        writer=writer,
        intents=ModelIntentClassifier(verdicts, journal),
        judge=ModelEchoJudge(verdicts, journal, clock),
        first_look=FirstLook(replace(verdicts, timeout_s=settings.ai_gateway_idle_timeout_s)),
        prompter=turn_services.prompter,
        turn_runner=turn_services.turn_runner,
        skills=services.skills,
        phrase=services.phrases.phrase,
        journal=journal,
        redactor=services.redactor,
        clock=clock,
        rng=services.rng,
        estimate=knowledge.stores.estimator.estimate,
        mute_reason=access.mute_reason,
        session_key=knowledge.room_session,
        days=DayReader.of(settings, services.home, clock),
        wake_commitments=lambda: services.events.publish(CommitmentsReady()),
        experience=experiences.keep,
        timezone=settings.soul_timezone,
        is_trusted_room=is_trusted_room,
    )


def build_space_life(given: SpaceServices, *, social_only: bool) -> SpaceLife:
    """Build the life, and write the default file of its pace if there is none. Raises `StorageError`."""
    given.config.ensure()
    talk, reporter = RoomConversation(given.client.name), JournalReporter(given.journal)
    relationships = PeerRelationships(given.home.memory / ROOM_MEMBERS_FILE, given.clock)
    perceiver = _build_perceiver(given, talk, relationships)
    snapshots = SnapshotBuilder(
        given.client, talk, given.intents, given.queue, given.clock, social_only, given.timezone
    )
    decider = _build_decider(given, relationships, social_only=social_only)
    validator = MessageValidator(given.judge, OwnLines(given.journal, given.clock))
    identity_publisher = IdentityPublisher(
        given.client, given.home, given.soul, given.queue, given.redactor, given.journal, given.mute_reason
    )
    participation = Participation(
        client=given.client,
        config=given.config,
        talk=talk,
        perceiver=perceiver,
        snapshots=snapshots,
        decider=decider,
        responder=RoomResponder(decider, validator, talk, given.writer, given.phrase),
        speaker=_build_speaker(given, talk, perceiver, snapshots, relationships=relationships, reporter=reporter),
        reporter=reporter,
        clock=given.clock,
        mute_reason=given.mute_reason,
        wake_commitments=given.wake_commitments,
        identity_publisher=identity_publisher,
        first_look=given.first_look,
    )
    loop = ParticipationLoop(participation, given.client, given.config, given.clock, given.client.name)
    return SpaceLife(loop, participation, identity_publisher, given.config, relationships)


def _build_perceiver(given: SpaceServices, talk: RoomConversation, relationships: PeerRelationships) -> RoomPerceiver:
    """Return what takes in the news of the room; another conversation begins without the verdicts on the last."""

    def forget() -> None:
        given.intents.clear()
        given.judge.clear()

    return RoomPerceiver(given.client, talk, relationships, given.queue, given.clock, on_reset=forget)


def _build_decider(given: SpaceServices, relationships: PeerRelationships, *, social_only: bool) -> Decider:
    """Return what asks the model whether to speak, and what to say."""
    return Decider(
        given.prompter,
        PromptWriter(given.skills, relationships, given.rng, given.estimate, given.timezone),
        given.skills,
        given.turn_runner,
        given.clock,
        social_only,
        given.session_key,
        given.days,
        given.is_trusted_room,
    )


def _build_speaker(
    given: SpaceServices,
    talk: RoomConversation,
    perceiver: RoomPerceiver,
    snapshots: SnapshotBuilder,
    *,
    relationships: PeerRelationships,
    reporter: JournalReporter,
) -> Speaker:
    """Return what says the words in the room, and takes in what they commit to."""
    commitment_maker = CommitmentMaker(
        client=given.client,
        talk=talk,
        queue=given.queue,
        writer=given.writer,
        relationships=relationships,
        reporter=reporter,
        clock=given.clock,
        is_trusted_room=given.is_trusted_room,
    )
    return Speaker(
        client=given.client,
        talk=talk,
        perceiver=perceiver,
        snapshots=snapshots,
        commitment_maker=commitment_maker,
        relationships=relationships,
        reporter=reporter,
        redactor=given.redactor,
        clock=given.clock,
        rng=given.rng,
        mute_reason=given.mute_reason,
        experience=given.experience,
    )
