"""The composition root: builds every service of one SOUL once, hands each what it needs, and runs them to the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from adapters.atproto.client import Atproto
from common.clock import Clock, local
from common.constants import CONVERSATION_STALE_RETENTION_MS, SESSION_RETRY_DELAYS_MS
from common.errors import Auth, Fatal, Transient
from common.pace import Pace
from common.redact import Redactor
from common.result import Err
from common.settings import Settings
from local_tools.bluesky import BlueskyTools, bluesky_tools
from modules.bluesky.act import Responder, Self
from modules.bluesky.conversations import Conversations
from modules.bluesky.courier import BlueskyCourier
from modules.bluesky.expression import Expression
from modules.bluesky.loop import AwarenessLoop, ExpressionLoop, OutboxLoop, SessionLoop, warm_up
from modules.bluesky.perceive import Perceiver
from modules.bluesky.publish import Publisher
from modules.bluesky.relationships import Relationships
from modules.bluesky.state import PendingPosts
from modules.console import Console
from modules.database import Database
from modules.home import Home, HomeLock, SoulDocument, ensure_self
from modules.identity import Identity
from modules.journal.journal import Journal
from modules.journal.types import Entry
from modules.llm_gateway.gateway import LLMGateway
from modules.outbox.outbox import Outbox
from modules.outbox.types import IntentKind, Pacing
from modules.owner import OwnerTalk
from modules.scheduler.attention import Attention
from modules.scheduler.scheduler import Scheduler
from modules.schema import MIGRATIONS
from modules.skill_contracts import SKILL_CONTRACTS
from modules.skills import Skills
from modules.status import StatusBoard
from modules.thinker import Thinker
from modules.tools.executor import Executor
from modules.tools.registry import Registry
from modules.vitals import HeartbeatLoop, IdentityWatchLoop
from soul.facts import Facts, spoken_situation
from soul.resources import SKILLS, template

_WAKE_TIMEOUT_S = 60.0
_MORE_TRIES = 240
_KINDS: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete")


@dataclass(frozen=True, slots=True)
class Rails:
    """The services that every life uses, built first."""

    settings: Settings
    home: Home
    clock: Clock
    rng: random.Random
    console: Console
    pace: Pace
    me: Self
    soul: SoulDocument
    skills: Skills
    identity: Identity
    database: Database
    journal: Journal
    atproto: Atproto
    outbox: Outbox
    gateway: LLMGateway
    attention: Attention


@dataclass(frozen=True, slots=True)
class App:
    """One SOUL, built and not yet awake. `wake` logs in, `run` lives until something ends it."""

    rails: Rails
    thinker: Thinker
    expression: Expression
    awareness: AwarenessLoop
    scheduler: Scheduler
    status: StatusBoard
    owner: OwnerTalk
    facts: Facts
    notices: tuple[str, ...]

    async def wake(self) -> None:
        """Log in and read our own feed. Raises `Auth` or `Fatal`; waits out what is only briefly down."""
        rails = self.rails
        await _log_in(rails)
        await warm_up(atproto=rails.atproto, outbox=rails.outbox, expression=self.expression, journal=rails.journal)
        await rails.journal.record(Entry("life", "start", f"Rhythm: {self.scheduler.describe_intervals()}", line="sys"))

    async def run(self, ended: asyncio.Event) -> None:
        """Live until `ended` is set. Raises the `Fatal` that ended it otherwise."""
        stop = asyncio.create_task(ended.wait(), name="until-ended")
        doomed = asyncio.create_task(self.scheduler.doomed(), name="until-doomed")
        tasks = [
            asyncio.create_task(self.scheduler.start(), name="scheduler"),
            asyncio.create_task(self.status.keep_writing(), name="status"),
            asyncio.create_task(self._drain_when_woken(), name="outbox-wake"),
        ]
        try:
            await asyncio.wait([stop, doomed, *tasks[1:]], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self.scheduler.stop()
            for task in (stop, doomed, *tasks):
                task.cancel()
            ends = await asyncio.gather(doomed, *tasks, return_exceptions=True)
        await self.status.write("stopped")
        for end in ends:
            if isinstance(end, Exception):
                raise end
        await self.rails.journal.record(Entry("life", "stop", "Stopped; nothing accepted is lost", line="sys"))

    async def _drain_when_woken(self) -> None:
        while True:
            if await self.rails.outbox.wait_for_work(_WAKE_TIMEOUT_S):
                await self.scheduler.run_guarded("outbox")


@asynccontextmanager
async def open_soul(
    settings: Settings, home: Home, *, console: Console, clock: Clock, rng: random.Random, social_only: bool = False
) -> AsyncIterator[App]:
    """Take the home, and build one SOUL in it. Raises `Fatal` with a remedy when something is not as it must be."""
    async with AsyncExitStack() as stack:
        stack.enter_context(HomeLock(home, agent_name=settings.agent_name, started_at=clock.now()))
        rails = await _lay_rails(settings, home, console=console, clock=clock, rng=rng, stack=stack)
        app = _move_in(rails, social_only=social_only)
        for notice in (rails.database.notice, *app.notices):
            if notice:
                await rails.journal.record(Entry("error", "start", notice, line="error"))
        yield app


async def _lay_rails(
    settings: Settings, home: Home, *, console: Console, clock: Clock, rng: random.Random, stack: AsyncExitStack
) -> Rails:
    pace = Pace().at(settings.soul_speed)
    soul = SoulDocument(home.soul)
    today = f"{local(clock.now(), settings.soul_timezone):%Y-%m-%d}"
    ensure_self(home, template=template("SELF.md"), agent_name=settings.agent_name, today=today)
    skills = Skills.load(SKILLS, SKILL_CONTRACTS)
    database = await Database.open(home.database, MIGRATIONS)
    stack.push_async_callback(database.close)
    journal = Journal(database, console, clock, Redactor(settings.secrets))
    atproto = Atproto(
        service_url=settings.atproto_service_url,
        identifier=settings.agent_bluesky_username,
        password=settings.agent_bluesky_password.get_secret_value(),
        session_path=home.session,
        clock=clock,
        min_spacing_s=pace.atproto_spacing_ms / 1000,
        languages=settings.post_languages,
    )
    stack.push_async_callback(atproto.aclose)
    courier = BlueskyCourier(atproto)
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        couriers=dict.fromkeys(_KINDS, courier),
        pacing=_pacing(pace),
        own_did=lambda: atproto.did,
    )
    gateway = LLMGateway(
        base_url=settings.ai_gateway_base_url,
        api_key=settings.ai_gateway_api_key.get_secret_value(),
        model=settings.ai_gateway_model,
        clock=clock,
        rng=rng,
        console=console,
    )
    stack.push_async_callback(gateway.aclose)
    me = Self(
        agent_name=settings.agent_name,
        bluesky_username=settings.agent_bluesky_username,
        owner_handle=settings.owner_bluesky_social_handle,
        owner_did=settings.owner_bluesky_social_handle_did,
        timezone=settings.soul_timezone,
    )
    return Rails(
        settings=settings,
        home=home,
        clock=clock,
        rng=rng,
        console=console,
        pace=pace,
        me=me,
        soul=soul,
        skills=skills,
        identity=Identity(home=home, soul=soul, skills=skills, agent_name=settings.agent_name),
        database=database,
        journal=journal,
        atproto=atproto,
        outbox=outbox,
        gateway=gateway,
        attention=Attention(),
    )


def _move_in(rails: Rails, *, social_only: bool) -> App:
    """The lives, on their rails."""
    conversations = Conversations(rails.home.memory / "bluesky_conversations.json", rails.clock)
    relationships = Relationships(rails.home.memory / "relationships.json", rails.clock)
    pending = PendingPosts(rails.database, rails.clock)
    publisher = Publisher(
        atproto=rails.atproto,
        outbox=rails.outbox,
        conversations=conversations,
        relationships=relationships,
        journal=rails.journal,
    )
    tools = BlueskyTools(atproto=rails.atproto, publisher=publisher, skills=rails.skills, rng=rails.rng)
    registry = Registry(bluesky_tools(tools), social_only=social_only)
    thinker = Thinker(
        gateway=rails.gateway,
        executor=Executor(registry),
        clock=rails.clock,
        journal=rails.journal,
        nudge=lambda: rails.skills.render("core", "Nudge"),
    )
    expression = Expression(
        me=rails.me,
        path=rails.home.memory / "expression_schedule.json",
        atproto=rails.atproto,
        outbox=rails.outbox,
        identity=rails.identity,
        skills=rails.skills,
        thinker=thinker,
        journal=rails.journal,
        clock=rails.clock,
        rng=rails.rng,
        pace=rails.pace,
        keep_hours=rails.settings.soul_speed == 1,
    )
    awareness = AwarenessLoop(
        pace=rails.pace,
        perceiver=Perceiver(
            atproto=rails.atproto,
            pending=pending,
            relationships=relationships,
            publisher=publisher,
            identity=rails.identity,
            journal=rails.journal,
            clock=rails.clock,
            owner_did=rails.me.owner_did,
        ),
        responder=Responder(
            me=rails.me,
            atproto=rails.atproto,
            outbox=rails.outbox,
            publisher=publisher,
            conversations=conversations,
            relationships=relationships,
            identity=rails.identity,
            skills=rails.skills,
            thinker=thinker,
            clock=rails.clock,
            rng=rails.rng,
            pace=rails.pace,
        ),
        pending=pending,
        relationships=relationships,
        publisher=publisher,
        journal=rails.journal,
        clock=rails.clock,
        rng=rails.rng,
        owner_did=rails.me.owner_did,
    )
    facts = Facts(
        database=rails.database,
        journal=rails.journal,
        outbox=rails.outbox,
        atproto=rails.atproto,
        pending=pending,
        conversations=conversations,
        expression=expression,
        clock=rails.clock,
    )

    async def situation() -> str:
        return spoken_situation(await facts.gather())

    async def tidy() -> None:
        conversations.sweep(rails.atproto.did, rails.identity.extract().social_mechanics)
        conversations.cleanup_old_conversations()
        relationships.prune_stale()
        await rails.journal.prune()
        await pending.forget_before(rails.clock.now() - timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS))

    scheduler = Scheduler(
        [
            IdentityWatchLoop(rails.soul),
            SessionLoop(rails.atproto, rails.journal),
            OutboxLoop(rails.pace, rails.outbox),
            HeartbeatLoop(rails.journal, situation, tidy),
            awareness,
            ExpressionLoop(rails.pace, expression),
        ],
        agent_name=rails.me.agent_name,
        clock=rails.clock,
        journal=rails.journal,
        attention=rails.attention,
        social_only=social_only,
    )
    status = StatusBoard(
        rails.home.status,
        clock=rails.clock,
        name=rails.me.agent_name,
        mode=lambda: rails.attention.mode,
        loops=scheduler.states,
        facts=facts.gather,
    )
    scheduler.on_change = status.changed
    owner = OwnerTalk(
        me=rails.me,
        identity=rails.identity,
        thinker=thinker,
        attention=rails.attention,
        journal=rails.journal,
        clock=rails.clock,
        situation=situation,
    )
    notices = (conversations.notice, relationships.notice, expression.notice, *rails.identity.extract().warnings)
    return App(rails, thinker, expression, awareness, scheduler, status, owner, facts, notices)


async def _log_in(rails: Rails) -> None:
    delays = iter((*SESSION_RETRY_DELAYS_MS, *SESSION_RETRY_DELAYS_MS[-1:] * _MORE_TRIES))
    while True:
        result = await rails.atproto.authenticate()
        if not isinstance(result, Err):
            await rails.journal.record(Entry("life", "start", f"On Bluesky as @{result.data.handle}", line="done"))
            return
        if result.kind in {"auth", "invalid", "not_found"}:
            raise Auth(
                f"Bluesky refuses the login of {rails.settings.agent_bluesky_username}: {result.error}",
                remedy="Check AGENT_BLUESKY_USERNAME and AGENT_BLUESKY_PASSWORD (an app password) in .env.",
            )
        if result.kind == "fatal":
            raise Fatal(f"Bluesky: {result.error}", remedy="Log in with the Bluesky app and see what it says.")
        delay_ms = next(delays, None)
        if delay_ms is None:
            raise Transient(f"Bluesky could not be reached for hours: {result.error}")
        delay = max(delay_ms / 1000, result.retry_after or 0)
        summary = f"Bluesky cannot be reached ({result.error}); trying again in {delay:.0f} s"
        await rails.journal.record(Entry("error", "start", summary, line="warn"))
        await rails.clock.sleep(delay)


def _pacing(pace: Pace) -> Pacing:
    return Pacing(
        post_s=pace.post_cooldown_s,
        reply_s=pace.reply_cooldown_s,
        like_s=pace.like_cooldown_s,
        follow_s=pace.follow_cooldown_s,
        action_s=pace.action_cooldown_s,
    )
