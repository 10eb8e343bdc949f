"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from adapters.atproto.client import Atproto
from adapters.atproto.public import PublicRepos
from adapters.github.client import GitHub
from adapters.web.client import WebClient
from common.clock import Clock
from common.constants import AWARENESS_INTERVAL_MS
from common.design_catalog import DESIGN_CATALOG, DesignSource, read_design_sources
from common.pace import Pace
from common.settings import Settings
from modules.lives.bluesky.case_reader import CaseReader
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.experienced import PostExperiences
from modules.lives.bluesky.expression import ExpressionCycle
from modules.lives.bluesky.handle import PostHandler
from modules.lives.bluesky.loop import (
    ExpressionLoop,
    NotificationLoop,
    SessionLoop,
    warm_up,
)
from modules.lives.bluesky.others_first import OthersFirst
from modules.lives.bluesky.perceive import PostPerceiver
from modules.lives.bluesky.pictures import PostPictures
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.respond import PostResponder
from modules.lives.bluesky.state import PendingPosts, Tidying
from modules.lives.bluesky.types import AWARENESS, REQUEST
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.events import EventBus
from modules.runtime.home import Home, SoulDocument
from modules.runtime.journal.journal import Journal
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.types import Loop
from modules.services.commitments.replies import ReplyCommitments
from modules.services.experiences.log import ExperienceLog
from modules.services.identity.identity import Identity, Me
from modules.services.moderation.moderation import Moderation
from modules.services.outbox.gates.feed_pace import FeedPaceGate
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.own_feed.engagement import EngagementWatch
from modules.services.own_feed.engagement_policy import get_engagement_patterns
from modules.services.own_feed.expressions import Expressions
from modules.services.own_feed.feed import OwnFeed, OwnFeedLoop
from modules.services.own_feed.pruning import Pruner
from modules.services.own_feed.reply_limits import ReplyLimits
from modules.services.peers.accounts import Relationships
from modules.services.peers.discovery import PeerDiscovery
from modules.services.peers.loop import build_own_identity, build_peer_loop, ourselves_of
from modules.services.peers.registry import PeerRegistry
from modules.services.pictures.choosing import PictureChooser
from modules.services.pictures.pictures import Pictures as SharedPictures
from modules.services.pinned_names.store import PinnedNames
from modules.services.rights.answering import PersonRequests
from modules.services.rights.forgotten import ForgottenPeople
from modules.services.rights.preferences import Preferences
from modules.services.rights.requests import ForgetRequests
from modules.services.rituals.rituals import Rituals
from modules.services.skills.skills import Skills
from modules.services.wiring.knowledge import Knowledge
from modules.services.wiring.turns import TurnServices
from modules.services.work.loop import WorkLoop, build_work_loop
from modules.services.work.table import WorkTable
from modules.services.work.turns import PersonTurns
from modules.services.workspaces.watched import WatchedWorkspaces

RESPONSE_BATCH = 5


class BlueskyServices(Protocol):
    """What the life is built from."""

    settings: Settings
    me: Me
    home: Home
    soul: SoulDocument
    database: Database
    clock: Clock
    rng: random.Random
    pace: Pace
    journal: Journal
    attention: Attention
    control: Control
    events: EventBus
    atproto: Atproto
    web: WebClient
    github: GitHub
    repos: PublicRepos
    pictures: SharedPictures
    outbox: Outbox
    feed_pace: FeedPaceGate
    etiquette: Etiquette
    relationships: Relationships
    preferences: Preferences
    moderation: Moderation
    peer_registry: PeerRegistry
    pinned_names: PinnedNames
    workspaces: WatchedWorkspaces
    identity: Identity
    skills: Skills
    knowledge: Knowledge
    gateway: LLMGateway
    experiences: ExperienceLog
    rituals: Rituals
    work: WorkTable


class BlueskyState:
    """What the life remembers of Bluesky, and how it publishes; the tools of a turn use it too."""

    def __init__(self, services: BlueskyServices) -> None:
        self.pending = PendingPosts(services.database, services.clock)
        self.conversations = Conversations(services.home.memory / "bluesky_conversations.json", services.clock)
        self.reply_limits = ReplyLimits(services.atproto, services.outbox)
        self.publisher = Publisher(
            atproto=services.atproto,
            outbox=services.outbox,
            conversations=self.conversations,
            relationships=services.relationships,
            journal=services.journal,
            mechanics=lambda: services.identity.extract().social_mechanics,
        )


class BlueskyLife:
    """The life on Bluesky. `notices` are lines for the owner about its files."""

    def __init__(
        self,
        services: BlueskyServices,
        state: BlueskyState,
        turn_services: TurnServices,
        replies: ReplyCommitments,
        requests: PersonRequests,
    ) -> None:
        self._services = services
        self._requests = requests
        self._state = state
        self._turn_services = turn_services
        self._replies = replies
        self.expressions = Expressions(
            services.home.memory / "expressions.json", services.clock, services.relationships.note_insight
        )
        self.discovery = PeerDiscovery(
            services.peer_registry, ourselves_of(services.settings), lambda: services.atproto.did
        )
        self._own_identity = build_own_identity(services, turn_services.prompter)
        self._chooser = self._build_picture_chooser()
        self.expression = self._build_expression()
        self._watch, self._own_feed = self._build_own_feed()
        self.perceiver, self.awareness = self._build_awareness()
        self.tidying = self._build_tidying()
        kept = (services.relationships, services.peer_registry, services.workspaces, state.conversations)
        files = (*kept, services.pinned_names, self.expression, self.expressions, self._own_identity)
        self.notices = tuple(file.notice for file in files)

    def _build_picture_chooser(self) -> PictureChooser:
        """Return what chooses pictures to show. On this machine, only those that SELF.md names a collection of."""
        services = self._services
        known = () if services.settings.on_loopback() else DESIGN_CATALOG

        def sources() -> tuple[DesignSource, ...]:
            return (*known, *read_design_sources(services.identity.extract().design_catalog, services.soul.text))

        return PictureChooser(
            services.pictures, services.outbox, sources=sources, clock=services.clock, rng=services.rng
        )

    def _build_expression(self) -> ExpressionCycle:
        """Return what thinks of posts of its own."""
        services = self._services
        return ExpressionCycle(
            me=services.me,
            path=services.home.memory / "expression_schedule.json",
            expressions=self.expressions,
            atproto=services.atproto,
            outbox=services.outbox,
            identity=services.identity,
            prompter=self._turn_services.prompter,
            skills=services.skills,
            turn_runner=self._turn_services.turn_runner,
            chooser=self._chooser,
            journal=services.journal,
            clock=services.clock,
            rng=services.rng,
            pace=services.pace,
            standing=services.control.standing,
        )

    def _build_own_feed(self) -> tuple[EngagementWatch, OwnFeed]:
        """Return what counts how its posts were answered, and what reads and prunes its own feed."""
        services, atproto, journal = self._services, self._services.atproto, self._services.journal
        note = services.relationships.note_insight
        watch = EngagementWatch(self.expressions, atproto, journal, services.clock, note)
        pruner = Pruner(services.outbox, journal, services.control.standing)
        return watch, OwnFeed(atproto, services.outbox, pruner, services.feed_pace)

    def _build_awareness(self) -> tuple[PostPerceiver, WorkLoop]:
        """Return what takes in notifications, and the loop that answers one waiting post after the other."""
        services, state = self._services, self._state
        others = OthersFirst(services.me, services.pace, services.clock, services.etiquette)
        reader = self._build_reader(others)
        perceiver = PostPerceiver(
            atproto=services.atproto,
            outbox=services.outbox,
            pending=state.pending,
            work=services.work,
            relationships=services.relationships,
            publisher=state.publisher,
            identity=services.identity,
            journal=services.journal,
            clock=services.clock,
            rng=services.rng,
            owner_did=services.me.owner_did,
            etiquette=services.etiquette,
            peers=self.discovery,
            workspaces=services.workspaces,
            moderation=services.moderation,
            forgotten=ForgottenPeople(services.database, ForgetRequests(services.home.memory), services.clock),
            importance_of=reader.importance_of,
            may_be_request=self._requests.may_be_request,
        )
        handler = PostHandler(
            pending=state.pending,
            reader=reader,
            responder=self._build_responder(),
            publisher=state.publisher,
            conversations=state.conversations,
            identity=services.identity,
            outbox=services.outbox,
            turns=PersonTurns(services.clock, journal=services.journal, loop=AWARENESS),
            requests=self._requests,
            others=others,
            experiences=PostExperiences(
                services.experiences, services.relationships, services.outbox, services.rituals.runs
            ),
            commitments=self._replies,
            owner_did=services.me.owner_did,
            clock=services.clock,
        )
        handlers, every_ms = (handler, replace(handler, kind=REQUEST)), AWARENESS_INTERVAL_MS
        loop = build_work_loop(
            services,
            handlers,
            (perceiver,),
            name=AWARENESS,
            every_ms=every_ms,
            at_start=True,
            batch=RESPONSE_BATCH,
        )
        return perceiver, loop

    def _build_reader(self, others: OthersFirst) -> CaseReader:
        """Return what reads once all that a post needs."""
        services = self._services
        return CaseReader(
            me=services.me,
            atproto=services.atproto,
            relationships=services.relationships,
            etiquette=services.etiquette,
            preferences=services.preferences,
            moderation=services.moderation,
            peers=self.discovery,
            workspaces=services.workspaces,
            others=others,
            rituals=services.rituals,
        )

    def _build_responder(self) -> PostResponder:
        """Return what asks the model for an answer, with the pictures of the post."""
        services = self._services
        pictures = PostPictures(
            web=services.web,
            repos=services.repos,
            media=services.knowledge.stores.media,
            skills=services.skills,
            rng=services.rng,
            journal=services.journal,
            sees=services.gateway.sees,
            home_url=services.settings.home_service_url(),
        )
        return PostResponder(
            me=services.me,
            prompter=self._turn_services.prompter,
            skills=services.skills,
            turn_runner=self._turn_services.turn_runner,
            clock=services.clock,
            rng=services.rng,
            sessions=services.knowledge.sessions,
            pictures=pictures,
            chooser=self._chooser,
            journal=services.journal,
        )

    def _build_tidying(self) -> Tidying:
        """Return what ends the conversations that are over."""
        services, state = self._services, self._state
        return Tidying(
            conversations=state.conversations,
            relationships=services.relationships,
            pending=state.pending,
            identity=services.identity,
            journal=services.journal,
            clock=services.clock,
            own_did=lambda: services.atproto.did,
        )

    def answered_sources(self) -> list[str]:
        """Return where in SELF.md those thoughts started that readers answered most, the most answered first."""
        best = get_engagement_patterns(self._watch.expressions.all()).high_performers
        return [one.source for one in best if one.replies]

    async def warm_up(self) -> None:
        """Read our own feed once, before anything of our own is said."""
        await warm_up(
            feed=self._own_feed,
            identity=self._own_identity,
            expression=self.expression,
            journal=self._services.journal,
            timezone=self._services.settings.soul_timezone,
        )

    def loops(self, *, is_settled: Callable[[], bool]) -> list[Loop]:
        """Return the loops of this life. Posts of its own are thought of once `is_settled`."""
        services = self._services
        return [
            SessionLoop(services.atproto, services.journal),
            self.awareness,
            NotificationLoop(services.pace, self.perceiver, self.awareness),
            ExpressionLoop(services.pace, self.expression, ready=is_settled),
            build_peer_loop(services, self._turn_services.prompter, self._own_identity, is_settled=is_settled),
            OwnFeedLoop(services.pace, self._own_feed, self._watch, ready=is_settled),
        ]
