"""Builds the life on Bluesky."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from common.design_catalog import DESIGN_CATALOG, DesignSource, read_design_sources
from common.intervals import NOTIFICATIONS_INTERVAL_MS
from modules.lives.bluesky.expression import ExpressionCycle
from modules.lives.bluesky.handle import CaseReader, OthersFirst, PostExperiences, PostHandler, ReplyHandler
from modules.lives.bluesky.perceive import ExpressionLoop, NotificationLoop, PostPerceiver, SessionLoop, warm_up
from modules.lives.bluesky.publish import Conversations, PendingPosts, Publisher, Tidying
from modules.lives.bluesky.respond import PostPictures, PostResponder
from modules.lives.bluesky.types import AWARENESS, REQUEST, UNSENT_REPLY
from modules.runtime.scheduler.policy import Loop
from modules.runtime.status import Stage
from modules.services.commitments.writer import ReplyCommitments
from modules.services.own_feed.engagement import EngagementWatch, OwnFeed, OwnFeedLoop, Pruner
from modules.services.own_feed.expressions import Expressions
from modules.services.own_feed.reply_limits import ReplyLimits
from modules.services.peers.loop import ourselves_of
from modules.services.peers.registry import PeerDiscovery
from modules.services.pictures.choosing import PictureChooser
from modules.services.relationships import ResponsePerceiver
from modules.services.rights.answering import PersonRequests
from modules.services.rights.requests import ForgetRequests, ForgottenPeople
from modules.services.work.limits import PersonTurns
from modules.services.work.loop import WorkLoop
from soul.composition.services import Services
from soul.composition.wiring.people import build_own_identity, build_peer_loop
from soul.composition.wiring.turns import TurnServices, build_work_loop

RESPONSE_BATCH = 5


@dataclass(frozen=True, slots=True)
class BlueskyState:
    """The state of the life on Bluesky, and its publisher; built first, since the tools of a turn publish too."""

    pending: PendingPosts
    conversations: Conversations
    reply_limits: ReplyLimits
    publisher: Publisher


@dataclass(frozen=True, slots=True)
class BlueskyLife:
    """The loops of the life, and the parts that others use. `notices` are lines for the owner about its files.

    `replies` go into the loop over the table `work`. `warm_up` reads our own feed once, before the first post of our
    own.
    """

    loops: tuple[Loop, ...]
    perceiver: PostPerceiver
    awareness: WorkLoop
    replies: tuple[ReplyHandler, ...]
    expression: ExpressionCycle
    expressions: Expressions
    tidying: Tidying
    warm_up: Callable[[], Awaitable[None]]
    notices: tuple[str, ...]


def build_bluesky_state(services: Services) -> BlueskyState:
    """Build the state of the life and its publisher."""
    conversations = Conversations(services.home.memory / "bluesky_conversations.json", services.clock)
    pending = PendingPosts(services.database, services.clock)
    publisher = Publisher(
        atproto=services.atproto,
        outbox=services.outbox,
        pending=pending,
        conversations=conversations,
        journal=services.journal,
        identity=services.identity,
    )
    return BlueskyState(
        pending,
        conversations,
        ReplyLimits(services.atproto, services.outbox),
        publisher,
    )


def build_bluesky_life(
    services: Services,
    state: BlueskyState,
    turn_services: TurnServices,
    commitments: ReplyCommitments,
    requests: PersonRequests,
) -> BlueskyLife:
    """Build the life; `commitments` takes commitments made in its answers, `requests` what people ask of their data."""
    clock, atproto, note = services.clock, services.atproto, services.relationships.note_insight
    expressions = Expressions(services.home.memory / "expressions.json", clock, note)
    discovery = PeerDiscovery(services.peer_registry, partial(ourselves_of, services.me, services.settings))
    own_identity = build_own_identity(services, turn_services.sentences)
    chooser = _build_picture_chooser(services)
    expression = _build_expression(services, turn_services, expressions, chooser)
    responder = _build_responder(services, turn_services, chooser)
    reader = _build_reader(services, discovery)
    replies = _build_replies(services, state, commitments, reader)
    perceiver, awareness = _build_awareness(
        services, state, discovery, reader=reader, responder=responder, replies=replies, requests=requests
    )
    pruner = Pruner(services.outbox, services.journal, services.control.standing)
    feed = OwnFeed(atproto, services.outbox, pruner, services.feed_pace)

    def is_settled() -> bool:
        return services.stages.has_reached(Stage.SETTLED)

    loops = (
        SessionLoop(atproto, services.journal),
        awareness,
        NotificationLoop(services.pace, perceiver, awareness),
        ExpressionLoop(services.pace, expression, ready=is_settled),
        build_peer_loop(services, turn_services.sentences, own_identity, is_settled, expression.is_day_full),
        OwnFeedLoop(
            services.pace, feed, EngagementWatch(expressions, atproto, services.journal, clock, note), ready=is_settled
        ),
    )
    kept = (services.relationships, services.peer_registry, services.workspaces, state.conversations)
    files = (*kept, services.pinned_names, expression, expressions, own_identity)
    return BlueskyLife(
        loops=loops,
        perceiver=perceiver,
        awareness=awareness,
        replies=(replies, replace(replies, kind=UNSENT_REPLY)),
        expression=expression,
        expressions=expressions,
        tidying=_build_tidying(services, state),
        warm_up=partial(
            warm_up,
            feed=feed,
            identity=own_identity,
            expression=expression,
            journal=services.journal,
            timezone=services.settings.soul_timezone,
        ),
        notices=tuple(file.notice for file in files),
    )


def _build_picture_chooser(services: Services) -> PictureChooser:
    """Build the chooser of pictures. If the network is on this machine, it uses only collections in SELF.md."""
    known = () if services.settings.on_loopback() else DESIGN_CATALOG

    def sources() -> tuple[DesignSource, ...]:
        return (*known, *read_design_sources(services.identity.extract().design_catalog, services.soul.text))

    return PictureChooser(services.pictures, services.outbox, sources=sources, clock=services.clock, rng=services.rng)


def _build_expression(
    services: Services, turn_services: TurnServices, expressions: Expressions, chooser: PictureChooser
) -> ExpressionCycle:
    """Build the cycle that writes the SOUL's own posts."""
    return ExpressionCycle(
        me=services.me,
        path=services.home.memory / "expression_schedule.json",
        expressions=expressions,
        atproto=services.atproto,
        outbox=services.outbox,
        identity=services.identity,
        prompter=turn_services.prompter,
        skills=services.skills,
        turn_runner=turn_services.turn_runner,
        chooser=chooser,
        profiles=services.knowledge.profiles,
        memories=services.knowledge.stores.memories,
        journal=services.journal,
        clock=services.clock,
        rng=services.rng,
        pace=services.pace,
        standing=services.control.standing,
    )


def _build_replies(
    services: Services, state: BlueskyState, commitments: ReplyCommitments, reader: CaseReader
) -> ReplyHandler:
    return ReplyHandler(
        pending=state.pending,
        outbox=services.outbox,
        table=services.work,
        commitments=commitments,
        reader=reader,
        me=services.me,
    )


def _build_awareness(
    services: Services,
    state: BlueskyState,
    discovery: PeerDiscovery,
    *,
    reader: CaseReader,
    responder: PostResponder,
    replies: ReplyHandler,
    requests: PersonRequests,
) -> tuple[PostPerceiver, WorkLoop]:
    """Build the perceiver of notifications, and the loop that answers waiting posts one by one."""
    perceiver = _build_perceiver(services, state, discovery)
    handler = PostHandler(
        pending=state.pending,
        reader=reader,
        responder=responder,
        publisher=state.publisher,
        conversations=state.conversations,
        identity=services.identity,
        outbox=services.outbox,
        turns=PersonTurns(services.clock, journal=services.journal, loop=AWARENESS),
        requests=requests,
        others=reader.others,
        experiences=PostExperiences(
            services.draft_experiences, services.relationships, services.outbox, services.rituals.runs
        ),
        replies=replies,
        clock=services.clock,
    )
    responses = ResponsePerceiver(outbox=services.outbox, relationships=services.relationships, clock=services.clock)
    loop = build_work_loop(
        services,
        (handler, replace(handler, kind=REQUEST)),
        (perceiver, responses),
        name=AWARENESS,
        every_ms=NOTIFICATIONS_INTERVAL_MS,
        at_start=True,
        batch=RESPONSE_BATCH,
    )
    return perceiver, loop


def _build_perceiver(services: Services, state: BlueskyState, discovery: PeerDiscovery) -> PostPerceiver:
    """Build the perceiver of notifications."""
    return PostPerceiver(
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
        me=services.me,
        etiquette=services.etiquette,
        peers=discovery,
        workspaces=services.workspaces,
        moderation=services.moderation,
        forgotten=ForgottenPeople(services.database, ForgetRequests(services.home.memory), services.clock),
    )


def _build_reader(services: Services, discovery: PeerDiscovery) -> CaseReader:
    """Build the reader that gathers everything needed to answer a post."""
    return CaseReader(
        me=services.me,
        atproto=services.atproto,
        relationships=services.relationships,
        etiquette=services.etiquette,
        preferences=services.preferences,
        moderation=services.moderation,
        peers=discovery,
        workspaces=services.workspaces,
        others=OthersFirst(services.me, services.pace, services.clock, services.etiquette),
        rituals=services.rituals,
        outbox=services.outbox,
    )


def _build_responder(services: Services, turn_services: TurnServices, chooser: PictureChooser) -> PostResponder:
    """Build the responder that asks the model for an answer, with the pictures of the post."""
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
        prompter=turn_services.prompter,
        skills=services.skills,
        turn_runner=turn_services.turn_runner,
        clock=services.clock,
        rng=services.rng,
        sessions=services.knowledge.sessions,
        pictures=pictures,
        chooser=chooser,
        journal=services.journal,
    )


def _build_tidying(services: Services, state: BlueskyState) -> Tidying:
    """Build the chore that ends conversations that are over."""
    return Tidying(
        conversations=state.conversations,
        relationships=services.relationships,
        pending=state.pending,
        identity=services.identity,
        journal=services.journal,
        clock=services.clock,
        atproto=services.atproto,
    )
