"""Builds the lives (on Bluesky, in the agent space, on GitHub), the services of their turns, and the commitments."""

from modules.lives.growth.policy import ReflectionDone
from modules.runtime.scheduler.policy import Loop
from modules.services.claims.lease_store import TaskOrders
from modules.services.commitments.acts import CommitmentAbandoned, CommitmentKept, CommitmentsReady
from modules.services.commitments.writer import ReplyCommitments
from modules.services.identity.keeper import SelfChanged
from modules.services.peers.room_identity import RoomJoined
from soul.composition.services import Services
from soul.composition.wiring.bluesky import build_bluesky_life, build_bluesky_state
from soul.composition.wiring.commitments import (
    build_commitment_loop,
    build_commitment_writer,
    open_commitment_queue,
    remember_kept,
)
from soul.composition.wiring.growth import build_growth_life
from soul.composition.wiring.people import build_histories_loop, build_histories_told, build_person_requests
from soul.composition.wiring.presence import (
    build_announcements,
    build_control_watch,
    build_voice_writer,
)
from soul.composition.wiring.rhythm import build_alarms, build_chores, build_rhythm, build_ritual_life
from soul.composition.wiring.sleep import OwnTimes
from soul.composition.wiring.space import build_space_life
from soul.composition.wiring.tools import build_registry
from soul.composition.wiring.turns import TurnServices, build_attention_list, build_work_loop


class Lives:
    """All lives, built over `services`; nothing runs yet."""

    def __init__(self, services: Services) -> None:
        events, social_only = services.events, services.social_only
        self.queue, self.bluesky_state = open_commitment_queue(services), build_bluesky_state(services)
        self.attention_list = build_attention_list(services, self.queue)
        registry, told = build_registry(services, self.bluesky_state, self.queue), build_histories_told(services)
        bonds = services.relationships.closest
        self.turn_services = TurnServices(services, registry, self.attention_list, bonds=bonds, peers=told.text)
        writer = build_commitment_writer(services, self.turn_services.sentences)
        replies = ReplyCommitments(self.queue, writer, services.journal, social_only=social_only)
        self.requests = build_person_requests(services, self.turn_services.sentences)
        self.bluesky = build_bluesky_life(services, self.bluesky_state, self.turn_services, replies, self.requests)
        self.alarms, self.alarm_loop = build_alarms(services, self.queue)
        self.github_loops, github_notice = self._build_github_life(services)
        self.github_notices = (github_notice, services.peer_histories.notice)
        self.space = build_space_life(services, self.turn_services, self.queue, writer)
        self.commitments = build_commitment_loop(
            services, self.queue, writer, has_joined_room=lambda: self.space.has_joined_room
        )
        announcements = build_announcements(services, self.turn_services.prompter, self.bluesky.expression)
        # NOTE(self): all texts that a voice can change are on GitHub, or answer a request for something there.
        writers = [build_voice_writer(services)] if services.github.configured and not social_only else []
        for voice_writer in writers:
            events.subscribe(SelfChanged, voice_writer.keep_to_the_voice)
        scheduled, heartbeat = build_rhythm(services, self.turn_services, self.alarms.tell)
        self.growth = build_growth_life(services, self.turn_services, self.bluesky.expressions, self.alarms.tell)
        self.own_times = OwnTimes(self.bluesky.expression, self.growth.reflection, heartbeat)
        self.peer_histories = build_histories_loop(services)
        self.rituals = build_ritual_life(services, self.turn_services.prompter)
        self.work = build_work_loop(
            services,
            (
                *self.growth.handlers,
                scheduled,
                heartbeat,
                *self.rituals.handlers,
                *self.bluesky.replies,
                services.draft_experiences,
                *writers,
                *announcements,
            ),
            (*self.growth.perceivers, self.rituals.perceiver, services.schedules, heartbeat),
        )
        self.task_orders = TaskOrders(services.work, services.events.publish)
        self.control_watch = build_control_watch(services)
        self.chores = build_chores(services, self.turn_services, self.bluesky, self.attention_list)
        events.subscribe(CommitmentKept, lambda event: remember_kept(services, event.commitment))
        events.subscribe(CommitmentsReady, lambda _: self.commitments.wake())
        events.subscribe(CommitmentAbandoned, lambda event: self.space.participation.given_up(event.commitment))
        events.subscribe(RoomJoined, lambda _: self.space.identity_publisher.introduce())
        events.subscribe(SelfChanged, lambda _: self.space.identity_publisher.introduce())
        events.subscribe(ReflectionDone, lambda event: self.space.identity_publisher.reflected(event.text))
        events.subscribe(SelfChanged, lambda _: services.relationships.integrate_insights())

    def _build_github_life(self, services: Services) -> tuple[tuple[Loop, ...], str]:
        if not services.github.configured:
            return (), ""
        from soul.composition.wiring.github import build_github_life  # noqa: PLC0415 - most of what builds software

        return build_github_life(services, self.turn_services, self.alarms.tell)
