"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from adapters.atproto.client import Atproto
from adapters.atproto.public import PublicRepos
from adapters.atproto.types import Actor
from adapters.github.client import GitHub
from adapters.web.client import WebClient
from common.clock import Clock
from common.constants import AWARENESS_INTERVAL_MS
from common.pace import Pace
from common.settings import Settings
from modules.lives.bluesky.case import CaseReader
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.expression import Expression
from modules.lives.bluesky.handle import Handler
from modules.lives.bluesky.loop import (
    AWARENESS,
    AwarenessLoop,
    ExpressionLoop,
    NotificationLoop,
    SessionLoop,
    warm_up,
)
from modules.lives.bluesky.perceive import Perceiver
from modules.lives.bluesky.pictures import Pictures
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.report import Reporter
from modules.lives.bluesky.respond import Responder
from modules.lives.bluesky.state import PendingPosts
from modules.lives.bluesky.types import CONVERSATION_STALE_RETENTION_MS, Pending
from modules.lives.bluesky.waits import PersonTurns, Waits
from modules.runtime.control import Control
from modules.runtime.control_watch import ControlLoop
from modules.runtime.database.database import Database
from modules.runtime.events import EventBus
from modules.runtime.home import Home, SoulDocument
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.policy import get_agent_jitter, get_peer_delay
from modules.runtime.scheduler.types import Loop
from modules.services.agent.attention_list import Attention as Waiting
from modules.services.agent.attention_list import Item, Source
from modules.services.agent.identity.identity import Identity, Me
from modules.services.agent.knowledge import Knowledge
from modules.services.agent.skills.skills import Skills
from modules.services.agent.turn_services import TurnServices
from modules.services.commitments.replies import ReplyCommitments
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.rules import TURNS_PER_PERSON
from modules.services.outbox.types import Intent
from modules.services.own_feed.engagement import EngagementWatch
from modules.services.own_feed.engagement_policy import get_engagement_patterns
from modules.services.own_feed.expressions import Expressions
from modules.services.own_feed.feed import OwnFeed, OwnFeedLoop
from modules.services.own_feed.pruning import Pruner
from modules.services.peers.accounts import Relationships
from modules.services.peers.discovery import PeerDiscovery
from modules.services.peers.loop import build_own_identity, build_peer_loop, ourselves_of
from modules.services.peers.registry import PeerRegistry
from modules.services.presence.disclosure import Disclosure
from modules.services.presence.policy import operator_of
from modules.services.presence.subscriptions import ActivitySubscriptions
from modules.services.rights.forgotten import ForgottenPeople
from modules.services.rights.preferences import Preferences
from modules.services.rights.requests import ForgetRequests


def waiting_mentions(count: Callable[[], Awaitable[int]]) -> Source:
    """Return a source that says how many posts wait."""

    async def mentions() -> Waiting:
        return Waiting(mentions=await count())

    return mentions


def waiting_drafts(held: Callable[[], Awaitable[Sequence[Intent]]]) -> Source:
    """Return a source that names each draft by its id.

    A draft may repeat what strangers said, so a turn of the owner's is told of it without its words.
    """

    async def drafts() -> Waiting:
        return Waiting(
            blocked=tuple(
                Item(f"{draft.kind} {draft.id[:SHORT_ID_CHARS]}", draft.error or "", private=True, asked=True)
                for draft in await held()
            )
        )

    return drafts


@dataclass(frozen=True, slots=True)
class Tidying:
    """Ends the conversations that are over, and forgets what has outlived its use."""

    conversations: Conversations
    relationships: Relationships
    pending: PendingPosts
    identity: Identity
    journal: Journal
    clock: Clock
    own_did: Callable[[], str]

    async def run(self) -> None:
        """Do it once. Raises `StorageError`, or `Transient` where the database is briefly out of reach."""
        for over in self.conversations.sweep(self.own_did(), self.identity.extract().social_mechanics):
            summary = f"The conversation with @{over.root_author_handle or 'somebody'} is over"
            reason = over.conclusion_reason or ""
            await self.journal.record(
                Entry("decision", "heartbeat", summary, line="social", reason=reason, trigger_uri=over.root_uri)
            )
        self.conversations.cleanup_old_conversations()
        self.relationships.prune_stale()
        await self.pending.forget_before(self.clock.now() - timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS))


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
    outbox: Outbox
    etiquette: Etiquette
    relationships: Relationships
    preferences: Preferences
    peer_registry: PeerRegistry
    identity: Identity
    skills: Skills
    knowledge: Knowledge
    gateway: LLMGateway


class BlueskyState:
    """What the life remembers of Bluesky, and how it publishes; the tools of a turn use it too."""

    def __init__(self, services: BlueskyServices) -> None:
        self.pending = PendingPosts(services.database, services.clock)
        self.conversations = Conversations(services.home.memory / "bluesky_conversations.json", services.clock)
        self.publisher = Publisher(
            atproto=services.atproto,
            outbox=services.outbox,
            conversations=self.conversations,
            relationships=services.relationships,
            journal=services.journal,
        )


class BlueskyLife:
    """The life on Bluesky. `notices` are lines for the owner about its files."""

    def __init__(
        self, services: BlueskyServices, state: BlueskyState, turn_services: TurnServices, replies: ReplyCommitments
    ) -> None:
        me, clock, rng, pace, journal = services.me, services.clock, services.rng, services.pace, services.journal
        self._services = services
        self._prompter = turn_services.prompter
        self._replies = replies
        expressions = Expressions(services.home.memory / "expressions.json", clock)
        self._watch = EngagementWatch(expressions, services.atproto, journal, clock, services.settings.soul_speed)
        self.expression = Expression(
            me=me,
            path=services.home.memory / "expression_schedule.json",
            expressions=expressions,
            atproto=services.atproto,
            outbox=services.outbox,
            identity=services.identity,
            prompter=turn_services.prompter,
            skills=services.skills,
            turn_runner=turn_services.turn_runner,
            journal=journal,
            clock=clock,
            rng=rng,
            pace=pace,
            keep_hours=services.settings.soul_speed == 1,
            standing=services.control.standing,
        )
        self._own_feed = OwnFeed(
            services.atproto, services.outbox, Pruner(services.outbox, journal, services.control.standing)
        )
        self._own_identity = build_own_identity(services, turn_services.prompter)
        self.discovery = PeerDiscovery(
            services.peer_registry, ourselves_of(services.settings), lambda: services.atproto.did
        )
        perceiver = Perceiver(
            atproto=services.atproto,
            outbox=services.outbox,
            pending=state.pending,
            relationships=services.relationships,
            publisher=state.publisher,
            identity=services.identity,
            journal=journal,
            clock=clock,
            owner_did=me.owner_did,
            peers=self.discovery,
            forgotten=ForgottenPeople(services.database, ForgetRequests(services.home.memory), clock),
        )
        pictures = Pictures(
            web=services.web,
            repos=services.repos,
            media=services.knowledge.stores.media,
            skills=services.skills,
            rng=rng,
            journal=journal,
            sees=services.gateway.sees,
            home_url=services.settings.home_service_url(),
        )
        reader = CaseReader(
            me=me,
            atproto=services.atproto,
            relationships=services.relationships,
            etiquette=services.etiquette,
            preferences=services.preferences,
            peers=self.discovery,
        )
        speed = AWARENESS_INTERVAL_MS / pace.awareness_ms
        turns = PersonTurns(TURNS_PER_PERSON, clock, speed, journal=journal, loop=AWARENESS)
        reporter = Reporter(journal, AWARENESS)
        handler = Handler(
            reader=reader,
            responder=Responder(
                me=me,
                prompter=turn_services.prompter,
                skills=services.skills,
                turn_runner=turn_services.turn_runner,
                clock=clock,
                rng=rng,
                sessions=services.knowledge.sessions,
                pictures=pictures,
            ),
            publisher=state.publisher,
            conversations=state.conversations,
            identity=services.identity,
            outbox=services.outbox,
            pending=state.pending,
            turns=turns,
            reporter=reporter,
            clock=clock,
            others_first_ms=self._others_first_ms,
            on_replied=self._note_commitments,
        )
        self.awareness = AwarenessLoop(
            pace=pace,
            perceiver=perceiver,
            reader=reader,
            handler=handler,
            waits=Waits(clock, pace.awareness_ms / 1000),
            pending=state.pending,
            turns=turns,
            relationships=services.relationships,
            reporter=reporter,
            journal=journal,
            rng=rng,
            owner_did=me.owner_did,
            standing=services.control.standing,
            attention=services.attention,
        )
        disclosure = Disclosure(
            atproto=services.atproto,
            database=services.database,
            journal=journal,
            clock=clock,
            label=services.settings.soul_bot_label,
            operator=operator_of(services.settings),
        )
        self.subscriptions = ActivitySubscriptions(
            atproto=services.atproto,
            journal=journal,
            clock=clock,
            actors=(me.owner_did, *services.settings.soul_peers),
            speed=services.settings.soul_speed,
        )
        self.control_watch = ControlLoop(
            control=services.control,
            repos=services.repos,
            journal=journal,
            clock=clock,
            owner_did=me.owner_did,
            own_did=lambda: services.atproto.did,
            when_free=disclosure.ensure_once,
            publish=services.events.publish,
            speed=services.settings.soul_speed,
        )
        self.tidying = Tidying(
            conversations=state.conversations,
            relationships=services.relationships,
            pending=state.pending,
            identity=services.identity,
            journal=journal,
            clock=clock,
            own_did=lambda: services.atproto.did,
        )
        files = (
            state.conversations,
            services.relationships,
            self.expression,
            expressions,
            services.peer_registry,
            self._own_identity,
        )
        self.notices = tuple(file.notice for file in files)

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
            NotificationLoop(self.awareness),
            ExpressionLoop(services.pace, self.expression, ready=is_settled),
            build_peer_loop(services, self._prompter, self._own_identity, is_settled=is_settled),
            OwnFeedLoop(services.pace, self._own_feed, self._watch, ready=is_settled),
        ]

    def _others_first_ms(self, item: Pending) -> float:
        """How long others go first: with peers of ours in the order that all of them reckon, else by our own name."""
        if not item.names_several:
            return 0.0
        me, pace, etiquette = self._services.me, self._services.pace, self._services.etiquette
        named = (handle for handle in item.named if handle.lower() != me.bluesky_username.lower())
        if peers := [handle for handle in named if etiquette.is_peer(Actor("", handle))]:
            root_uri = item.notification.root.uri
            return get_peer_delay(me.bluesky_username, peers, root_uri, pace.peer_jitter_min_ms, pace.peer_step_ms)
        return get_agent_jitter(me.agent_name, pace.peer_jitter_min_ms, pace.peer_jitter_span_ms)

    async def _note_commitments(self, met: Pending, intent_id: str) -> None:
        """Take in what an answer commits to; one that waits for the owner's yes commits to nothing yet."""
        intent = await self._services.outbox.get(intent_id)
        if intent is None or intent.state == "held":
            return
        post = met.notification
        await self._replies.note_reply(
            intent.body.preview,
            to_uri=post.uri,
            conversation=f"@{post.author.handle}: {post.text}",
            to_owner=post.author.did == self._services.me.owner_did,
        )
