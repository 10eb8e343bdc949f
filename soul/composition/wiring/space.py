"""Builds the life in the agent space."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from adapters.space.client import SpaceClient
from common.clock import Clock
from modules.lives.space.act import Participation, ParticipationLoop
from modules.lives.space.classifiers import FirstLook, MessageJudge, ModelIntentClassifier, ModelMessageJudge
from modules.lives.space.commitment_maker import CommitmentMaker, JournalReporter, OwnLines
from modules.lives.space.config import SpaceConfigFile
from modules.lives.space.perceive import RoomConversation, RoomPerceiver
from modules.lives.space.prompting import Decider, PromptWriter
from modules.lives.space.respond import RoomResponder
from modules.lives.space.snapshot_builder import SnapshotBuilder
from modules.lives.space.speak import Experiences, Speaker
from modules.lives.space.types import IntentClassifier
from modules.lives.space.validator import MessageValidator
from modules.services.agent.verdicts import Verdicts
from modules.services.commitments.acts import CommitmentsReady
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.writer import CommitmentWriter
from modules.services.day.gathering import DayReader
from modules.services.peers.room_identity import ROOM_MEMBERS_FILE, IdentityPublisher, PeerRelationships
from soul.composition.services import Services
from soul.composition.wiring.commitments import default_repo
from soul.composition.wiring.turns import TurnServices


@dataclass(frozen=True, slots=True)
class RoomSeat:
    """What a SOUL needs to take part in one room: client, settings, commitments, and judges of messages.

    Attributes:
        intents: classifies what a message of the host asks for.
        judge: says whether a message only repeats what others said.
        first_look: finds out cheaply if there is nothing to say; None if only the whole prompt decides.
        mute_reason: returns why nothing may be said in the room now, "" if something may.
        mute_unasked: the same for messages that do not answer the host.
        is_trusted_room: returns whether the owner named the room, or it is on this machine.
        social_only: whether this life has no GitHub.

    """

    client: SpaceClient
    config: SpaceConfigFile
    queue: CommitmentQueue
    writer: CommitmentWriter
    intents: IntentClassifier
    judge: MessageJudge
    first_look: FirstLook | None
    mute_reason: Callable[[], str]
    mute_unasked: Callable[[], str]
    is_trusted_room: Callable[[], bool]
    social_only: bool
    clock: Clock
    rng: random.Random


@dataclass(frozen=True, slots=True)
class SpaceLife:
    """The life in the agent space. `notices` are lines for the owner about its files."""

    loop: ParticipationLoop
    participation: Participation
    identity_publisher: IdentityPublisher
    config: SpaceConfigFile
    relationships: PeerRelationships
    experiences: Experiences

    @property
    def has_joined_room(self) -> bool:
        """Whether we joined a room in this process, and know what its host said while we were away."""
        return self.participation.talk.state.joined_at is not None and not self.participation.has_unread_host

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.relationships.notice, self.config.notice)))


def build_space_life(
    services: Services, turn_services: TurnServices, queue: CommitmentQueue, writer: CommitmentWriter
) -> SpaceLife:
    """Build the life, with a model to judge messages."""
    settings, access = services.settings, services.integrations
    verdicts = Verdicts(services.gateway, services.skills, services.clock)
    # NOTE(self): what these two do not decide needs the whole prompt, which takes a slow model longer still.
    patient = replace(verdicts, timeout_s=settings.ai_gateway_idle_timeout_s)
    seat = RoomSeat(
        client=access.room,
        config=access.space_config,
        queue=queue,
        writer=writer,
        intents=ModelIntentClassifier(patient, services.journal),
        judge=ModelMessageJudge(verdicts, services.journal),
        first_look=FirstLook(patient),
        mute_reason=access.silence.reason,
        mute_unasked=access.silence.unasked,
        is_trusted_room=access.is_trusted_room,
        social_only=services.social_only or not services.github.configured,
        clock=services.clock,
        rng=services.rng,
    )
    return take_seat(services, turn_services, seat, build_experiences(services, seat))


def build_experiences(services: Services, seat: RoomSeat) -> Experiences:
    """Build the part that records experiences of the room."""
    knowledge = services.knowledge
    return Experiences(
        knowledge.stores.memories,
        services.experiences,
        services.journal,
        seat.clock,
        knowledge.room_session,
        services.settings.soul_timezone,
        seat.is_trusted_room,
    )


def take_seat(services: Services, turn_services: TurnServices, seat: RoomSeat, experiences: Experiences) -> SpaceLife:
    """Build the life for `seat`, and write the default room config if it is missing. Raises `StorageError`."""
    seat.config.ensure()
    talk, reporter = RoomConversation(seat.client.name), JournalReporter(services.journal)
    relationships = PeerRelationships(services.home.memory / ROOM_MEMBERS_FILE, seat.clock)
    perceiver = _build_perceiver(seat, talk, relationships)
    snapshots = _build_snapshots(services, seat, talk)
    decider = _build_decider(services, turn_services, seat, relationships)
    validator = MessageValidator(seat.judge, OwnLines(services.journal, seat.clock))
    identity_publisher = IdentityPublisher(
        client=seat.client,
        home=services.home,
        soul=services.soul,
        queue=seat.queue,
        redactor=services.redactor,
        journal=services.journal,
        is_trusted_room=seat.is_trusted_room,
        mute_reason=seat.mute_reason,
        mute_unasked=seat.mute_unasked,
    )
    speaker = Speaker(
        client=seat.client,
        talk=talk,
        perceiver=perceiver,
        snapshots=snapshots,
        commitment_maker=_build_commitment_maker(services, seat, talk, relationships, reporter),
        validator=validator,
        relationships=relationships,
        reporter=reporter,
        redactor=services.redactor,
        clock=seat.clock,
        rng=seat.rng,
        mute_reason=seat.mute_reason,
        experience=experiences.keep,
    )
    participation = Participation(
        client=seat.client,
        config=seat.config,
        talk=talk,
        perceiver=perceiver,
        snapshots=snapshots,
        decider=decider,
        responder=RoomResponder(decider, validator, talk, seat.writer, services.phrases.phrase),
        speaker=speaker,
        reporter=reporter,
        clock=seat.clock,
        mute_reason=seat.mute_reason,
        mute_unasked=seat.mute_unasked,
        wake_commitments=lambda: services.events.publish(CommitmentsReady()),
        identity_publisher=identity_publisher,
        first_look=seat.first_look,
    )
    loop = ParticipationLoop(participation, seat.client, seat.config, seat.clock, seat.client.name)
    return SpaceLife(loop, participation, identity_publisher, seat.config, relationships, experiences)


def _build_snapshots(services: Services, seat: RoomSeat, talk: RoomConversation) -> SnapshotBuilder:
    """Build the builder of snapshots of the room."""
    return SnapshotBuilder(
        client=seat.client,
        talk=talk,
        intents=seat.intents,
        queue=seat.queue,
        clock=seat.clock,
        social_only=seat.social_only,
        is_trusted_room=seat.is_trusted_room,
        watched=lambda: [f"{one.owner}/{one.repo}" for one in services.workspaces.all()],
        default_repo=lambda: default_repo(services),
        timezone=services.settings.soul_timezone,
    )


def _build_perceiver(seat: RoomSeat, talk: RoomConversation, relationships: PeerRelationships) -> RoomPerceiver:
    """Build the perceiver of room events; a new conversation clears the cached verdicts on the last."""

    def forget() -> None:
        seat.intents.clear()
        seat.judge.clear()

    return RoomPerceiver(
        seat.client, talk, relationships, seat.queue, seat.clock, seat.is_trusted_room, on_reset=forget
    )


def _build_decider(
    services: Services, turn_services: TurnServices, seat: RoomSeat, relationships: PeerRelationships
) -> Decider:
    """Build the part that asks the model whether to speak, and what to say."""
    knowledge = services.knowledge
    prompting = PromptWriter(
        services.skills, relationships, seat.rng, knowledge.stores.estimator.estimate, services.settings.soul_timezone
    )
    return Decider(
        turn_services.prompter,
        prompting,
        services.skills,
        turn_services.turn_runner,
        seat.clock,
        seat.social_only,
        knowledge.room_session,
        DayReader(services.settings, services.home, seat.clock),
        seat.is_trusted_room,
    )


def _build_commitment_maker(
    services: Services,
    seat: RoomSeat,
    talk: RoomConversation,
    relationships: PeerRelationships,
    reporter: JournalReporter,
) -> CommitmentMaker:
    """Build the part that records the commitments that our messages make."""
    return CommitmentMaker(
        client=seat.client,
        talk=talk,
        queue=seat.queue,
        writer=seat.writer,
        relationships=relationships,
        reporter=reporter,
        clock=seat.clock,
        outbox=services.outbox,
        is_trusted_room=seat.is_trusted_room,
    )
