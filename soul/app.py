"""The composition root: builds every service of one SOUL once, hands each what it needs, and runs them to the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from adapters.atproto.public import PublicRepos
from common.clock import Clock
from common.constants import ATPROTO_READ_TIMEOUT_S, CONVERSATION_STALE_RETENTION_MS, SESSION_RETRY_DELAYS_MS
from common.errors import Auth, Fatal, Transient
from common.redact import Redactor
from common.result import ApiResult, Err, Ok
from common.settings import Settings
from local_tools.bluesky import BlueskyTools, bluesky_tools
from local_tools.self_tools import SelfTools, self_tools
from modules.bluesky.act import Responder
from modules.bluesky.conversations import Conversations
from modules.bluesky.disclosure import Disclosure
from modules.bluesky.expression import Expression
from modules.bluesky.loop import AwarenessLoop, ExpressionLoop, OutboxLoop, SessionLoop, warm_up
from modules.bluesky.perceive import Perceiver
from modules.bluesky.publish import Publisher
from modules.bluesky.state import PendingPosts
from modules.console import Console
from modules.control import Control
from modules.control_watch import ControlLoop
from modules.home import Home, HomeLock
from modules.journal.types import Entry
from modules.owner import OwnerTalk
from modules.safe_start import note_start
from modules.scheduler.scheduler import Scheduler
from modules.status import StatusBoard
from modules.thinker import Thinker
from modules.tools.executor import Executor
from modules.tools.registry import Registry
from modules.vitals import HeartbeatLoop, IdentityWatchLoop
from soul.facts import Facts, spoken_situation
from soul.logs import LoggedConsole, log_call, logging_to
from soul.rails import Rails, lay_rails

_WAKE_TIMEOUT_S = 60.0
_MORE_TRIES = 240
_JSON = ("application/json", "application/did+ld+json", "application/did+json")
_MAX_DOCUMENT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class App:
    """One SOUL, built and not yet awake. `wake` logs in, `run` lives until something ends it."""

    rails: Rails
    thinker: Thinker
    expression: Expression
    awareness: AwarenessLoop
    scheduler: Scheduler
    control_watch: ControlLoop
    status: StatusBoard
    owner: OwnerTalk
    facts: Facts
    notices: tuple[str, ...]

    async def wake(self) -> None:
        """Log in, ask whether we may act, say openly what we are, and read our own feed.

        Raises `Auth` or `Fatal`; waits out what is only briefly down.
        """
        rails = self.rails
        await self.control_watch.tell()
        await rails.self_keeper.wake()
        await _log_in(rails)
        await self.scheduler.run_guarded(self.control_watch.name)
        await rails.surroundings.learn()
        await warm_up(atproto=rails.atproto, outbox=rails.outbox, expression=self.expression, journal=rails.journal)
        await rails.journal.record(Entry("life", "start", f"Rhythm: {self.scheduler.describe_intervals()}", line="sys"))

    async def run(self, ended: asyncio.Event) -> None:
        """Live until `ended` is set. Raises the `Fatal` that ended it otherwise."""
        stop = asyncio.create_task(ended.wait(), name="until-ended")
        doomed = asyncio.create_task(self.scheduler.doomed(), name="until-doomed")
        tasks = [
            asyncio.create_task(self._keep_time(), name="scheduler"),
            asyncio.create_task(self.status.keep_writing(), name="status"),
            asyncio.create_task(self._drain_when_woken(), name="outbox-wake"),
        ]
        try:
            await asyncio.wait([stop, doomed, *tasks], return_when=asyncio.FIRST_COMPLETED)
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

    async def _keep_time(self) -> None:
        await self.scheduler.start()
        await asyncio.Event().wait()

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
        note_start(home.memory, Control(home.memory), clock.now(), speed=settings.soul_speed)
        stack.enter_context(logging_to(home.logs, clock=clock, redactor=Redactor(settings.secrets)))
        rails = await lay_rails(settings, home, console=LoggedConsole(console), clock=clock, rng=rng, stack=stack)
        app = _move_in(rails, social_only=social_only)
        for notice in (rails.database.notice, *app.notices):
            if notice:
                await rails.journal.record(Entry("error", "start", notice, line="error"))
        yield app


def _move_in(rails: Rails, *, social_only: bool) -> App:
    """The lives, on their rails."""
    conversations = Conversations(rails.home.memory / "bluesky_conversations.json", rails.clock)
    pending = PendingPosts(rails.database, rails.clock)
    publisher = Publisher(
        atproto=rails.atproto,
        outbox=rails.outbox,
        conversations=conversations,
        relationships=rails.relationships,
        journal=rails.journal,
        etiquette=rails.etiquette,
    )
    tools = BlueskyTools(atproto=rails.atproto, publisher=publisher, skills=rails.skills, rng=rails.rng)
    own_notes = SelfTools(home=rails.home, keeper=rails.self_keeper)
    registry = Registry((*bluesky_tools(tools), *self_tools(own_notes)), social_only=social_only)
    thinker = Thinker(
        gateway=rails.gateway,
        executor=Executor(registry, on_call=log_call, redactor=rails.redactor, console=rails.console),
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
        standing=rails.control.standing,
    )
    awareness = AwarenessLoop(
        pace=rails.pace,
        perceiver=Perceiver(
            atproto=rails.atproto,
            pending=pending,
            relationships=rails.relationships,
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
            relationships=rails.relationships,
            identity=rails.identity,
            skills=rails.skills,
            thinker=thinker,
            clock=rails.clock,
            rng=rails.rng,
            pace=rails.pace,
            etiquette=rails.etiquette,
        ),
        pending=pending,
        relationships=rails.relationships,
        publisher=publisher,
        journal=rails.journal,
        clock=rails.clock,
        rng=rails.rng,
        owner_did=rails.me.owner_did,
        standing=rails.control.standing,
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
        model_budget=rails.budget.report,
        standing=rails.control.standing,
    )

    async def situation() -> str:
        return spoken_situation(await facts.gather())

    async def tidy() -> None:
        for over in conversations.sweep(rails.atproto.did, rails.identity.extract().social_mechanics):
            summary = f"The talk with @{over.root_author_handle or 'somebody'} is over"
            reason = over.conclusion_reason or ""
            await rails.journal.record(
                Entry("decision", "heartbeat", summary, line="social", reason=reason, trigger_uri=over.root_uri)
            )
        conversations.cleanup_old_conversations()
        rails.relationships.prune_stale()
        await rails.journal.prune()
        await rails.budget.tidy()
        await pending.forget_before(rails.clock.now() - timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS))

    disclosure = Disclosure(
        atproto=rails.atproto,
        database=rails.database,
        journal=rails.journal,
        clock=rails.clock,
        label=rails.settings.soul_bot_label,
        contact=rails.settings.operator_contact,
    )
    control_watch = ControlLoop(
        control=rails.control,
        repos=_public_repos(rails),
        journal=rails.journal,
        clock=rails.clock,
        owner_did=rails.me.owner_did,
        own_did=lambda: rails.atproto.did,
        when_free=disclosure.ensure_once,
        speed=rails.settings.soul_speed,
    )
    scheduler = Scheduler(
        [
            IdentityWatchLoop(rails.soul),
            control_watch,
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
    notices = (conversations.notice, rails.relationships.notice, expression.notice, *rails.identity.extract().warnings)
    return App(rails, thinker, expression, awareness, scheduler, control_watch, status, owner, facts, notices)


def _public_repos(rails: Rails) -> PublicRepos:
    """Reads what others published; on a network of this machine, from its one server."""
    home_url = rails.settings.atproto_service_url if rails.settings.on_loopback() else ""

    async def fetch(url: str) -> ApiResult[bytes]:
        got = await rails.web.fetch(
            url,
            kinds=_JSON,
            max_bytes=_MAX_DOCUMENT_BYTES,
            deadline_s=ATPROTO_READ_TIMEOUT_S,
            named=bool(home_url) and url.startswith(f"{home_url}/"),
        )
        return got if isinstance(got, Err) else Ok(got.data.body)

    return PublicRepos(fetch, clock=rails.clock, home_url=home_url)


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
