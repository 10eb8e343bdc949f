"""The composition root: builds every service of one SOUL once, hands each what it needs, and runs them to the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from adapters.atproto.types import Actor
from common.clock import Clock
from common.constants import SESSION_RETRY_DELAYS_MS
from common.errors import Auth, Fatal, SoulError, Transient
from common.redact import Redactor
from common.result import Err
from common.settings import Settings
from modules.lives.bluesky.expression import Expression
from modules.lives.bluesky.loop import (
    AwarenessLoop,
    ExpressionLoop,
    NotificationLoop,
    OutboxLoop,
    SessionLoop,
    warm_up,
)
from modules.lives.space.life import SpaceLife
from modules.runtime.console import Console
from modules.runtime.control import Control
from modules.runtime.control_watch import ControlLoop
from modules.runtime.crash_loop import note_start
from modules.runtime.heartbeat import HeartbeatLoop, IdentityWatchLoop
from modules.runtime.home import Home, HomeLock
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.scheduler import Scheduler
from modules.runtime.status import StatusBoard
from modules.services.agent.owner.owner import OwnerTalk
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.sessions.archivist import Archivist
from modules.services.agent.sessions.loop import SessionLoop as TalksLoop
from modules.services.agent.sessions.owner_inbox import OwnerInbox
from modules.services.agent.turn.runner import Thinker
from modules.services.agent.wakeup.keeper import BootContext
from modules.services.outbox.account import settle_account
from soul.composition.lives import Lives, build_lives
from soul.composition.promises import Promises
from soul.composition.services import Services, build_services
from soul.composition.space import look_when_spoken_to
from soul.composition.watch import control_watch
from soul.logs import LoggedConsole, logging_to
from soul.status_report import StatusReport, status_line

_WAKE_TIMEOUT_S = 60.0
_MORE_TRIES = 240
_LAST_WORDS_S = 1.0


@dataclass(frozen=True, slots=True)
class App:
    """One SOUL, built and not yet awake. `log_in` comes first, then `run` lives until something ends it.

    `settled` is set once all is done that a start asks of the network, request after request, each in its turn.
    """

    services: Services
    thinker: Thinker
    prompter: Prompter
    archivist: Archivist
    expression: Expression
    awareness: AwarenessLoop
    scheduler: Scheduler
    control_watch: ControlLoop
    status: StatusBoard
    owner: OwnerTalk
    status_report: StatusReport
    boot_context: BootContext
    promises: Promises
    space: SpaceLife
    notices: tuple[str, ...]
    settled: asyncio.Event

    async def wake(self) -> None:
        """Log in, ask whether we may act, say openly what we are, and read our own feed. Raises as `log_in`."""
        await self.log_in()
        await self.scheduler.run_guarded(self.control_watch.name)
        await self._settle()

    async def log_in(self) -> None:
        """Make ready what lies on this machine, and log in.

        Raises `Auth`, or `Fatal` (also where the home is another account's); waits out what is only briefly down.
        """
        services = self.services
        await self.control_watch.tell()
        await services.self_keeper.wake()
        await services.knowledge.wake()
        await self.archivist.finish_prepared()
        await self.boot_context.read()
        account = await _log_in(services)
        await settle_account(
            services.database,
            services.journal,
            services.clock,
            account=account,
            timezone=services.settings.soul_timezone,
        )

    async def _settle(self) -> None:
        """Learn what the network knows of us and our peers, and read our own feed."""
        services = self.services
        await services.surroundings.learn()
        await warm_up(
            atproto=services.atproto,
            outbox=services.outbox,
            expression=self.expression,
            journal=services.journal,
            timezone=services.settings.soul_timezone,
        )
        rhythm = {"rhythm": self.scheduler.describe_intervals()}
        await services.journal.record(Entry("life", "start", "Awake", line="sys", data=rhythm))
        self.settled.set()

    async def run(self, ended: asyncio.Event) -> None:
        """Live until `ended` is set. Raises the `Fatal` that ended it otherwise.

        After `log_in` alone, notifications are read first, and the rest of the start happens beside everything else.
        Nothing public leaves before the first look at whether we may act.
        """
        stop = asyncio.create_task(ended.wait(), name="until-ended")
        doomed = asyncio.create_task(self.scheduler.doomed(), name="until-doomed")
        tasks = [
            asyncio.create_task(self._keep_time(), name="scheduler"),
            asyncio.create_task(self._settle_if_needed(), name="settle"),
            asyncio.create_task(self.status.keep_writing(), name="status"),
            asyncio.create_task(self._drain_when_woken(), name="outbox-wake"),
            asyncio.create_task(self.promises.loop.keep_awake(self.scheduler), name="commitments-wake"),
            asyncio.create_task(self.services.integrations.room.run(), name="space-client"),
            asyncio.create_task(look_when_spoken_to(self.space, self.scheduler), name="space-news"),
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
        await self._leave_notes()
        await self.services.journal.record(Entry("life", "stop", "Stopped; nothing accepted is lost", line="sys"))

    async def _leave_notes(self) -> None:
        """For the next life: what to read first, and a copy of what is remembered. A slow store is not waited for."""
        for what, write in (("page to wake up with", self.boot_context.write), ("copy of memory", self._copy)):
            try:
                async with asyncio.timeout(_LAST_WORDS_S):
                    await write()
            except (TimeoutError, SoulError) as error:
                reason = str(error) or f"not done within {_LAST_WORDS_S:g} s"
                summary = f"The {what} was not written at the end; the one before stays"
                await self.services.journal.record(Entry("error", "stop", summary, line="warn", reason=reason))

    async def _copy(self) -> None:
        await self.services.knowledge.recovery.write()

    async def _keep_time(self) -> None:
        if not self.settled.is_set():
            await self.awareness.read_first()
        await self.scheduler.start()
        await asyncio.Event().wait()

    async def _settle_if_needed(self) -> None:
        await self.control_watch.looked.wait()
        if not self.settled.is_set():
            await self._settle()
        await asyncio.Event().wait()

    async def _drain_when_woken(self) -> None:
        await self.control_watch.looked.wait()
        while True:
            if await self.services.outbox.wait_for_work(_WAKE_TIMEOUT_S):
                await self.scheduler.run_guarded("outbox")


@asynccontextmanager
async def open_soul(
    settings: Settings, home: Home, *, console: Console, clock: Clock, rng: random.Random, social_only: bool = False
) -> AsyncIterator[App]:
    """Take the home, and build one SOUL in it. Raises `Fatal` with a remedy when something is not as it must be."""
    async with AsyncExitStack() as stack:
        stack.enter_context(HomeLock(home, agent_name=settings.agent_name, started_at=clock.now()))
        start = note_start(home.memory, Control(home.memory), clock.now(), speed=settings.soul_speed)
        stack.enter_context(logging_to(home.logs, clock=clock, redactor=Redactor(settings.secrets)))
        services = await build_services(
            settings,
            home,
            console=LoggedConsole(console),
            clock=clock,
            rng=rng,
            stack=stack,
            social_only=social_only,
        )
        app = _build(services, build_lives(services, social_only=social_only), social_only=social_only)
        for notice in (services.database.notice, start.notice, *app.notices):
            if notice:
                await services.journal.record(Entry("error", "start", notice, line="error"))
        yield app


def _build(services: Services, lives: Lives, *, social_only: bool) -> App:
    """Time, status and the owner, for what lives here."""
    status_report = StatusReport(
        database=services.database,
        journal=services.journal,
        outbox=services.outbox,
        atproto=services.atproto,
        pending=lives.pending,
        conversations=lives.conversations,
        expression=lives.expression,
        clock=services.clock,
        model_budget=services.budget.report,
        standing=services.control.standing,
        cached_share=lambda: services.gateway.cache.share,
        prompt_notes=lambda: lives.prompter.squeezed,
        room=services.integrations.room,
        github=services.integrations.github,
        promised=lives.promises.queue.live,
    )

    async def situation() -> str:
        return status_line(await status_report.gather(), services.settings.soul_timezone)

    watch, settled = control_watch(services), asyncio.Event()
    scheduler = Scheduler(
        [
            IdentityWatchLoop(services.soul),
            watch,
            SessionLoop(services.atproto, services.journal),
            OutboxLoop(services.pace, services.outbox, ready=watch.looked.is_set),
            HeartbeatLoop(services.journal, situation, lambda: lives.tidy(services)),
            TalksLoop(services.knowledge.sessions, lives.archivist, services.clock, speed=services.settings.soul_speed),
            lives.awareness,
            NotificationLoop(lives.awareness),
            ExpressionLoop(services.pace, lives.expression, ready=settled.is_set),
            lives.promises.loop,
            lives.space.loop,
        ],
        agent_name=services.me.agent_name,
        clock=services.clock,
        journal=services.journal,
        attention=services.attention,
        social_only=social_only,
    )
    status = StatusBoard(
        services.home.status,
        clock=services.clock,
        name=services.me.agent_name,
        mode=lambda: services.attention.mode,
        loops=scheduler.states,
        facts=status_report.gather,
    )
    scheduler.on_change = status.changed
    owner = OwnerTalk(
        me=services.me,
        prompter=lives.prompter,
        skills=services.skills,
        thinker=lives.thinker,
        sessions=services.knowledge.sessions,
        inbox=OwnerInbox(services.database, services.knowledge.sessions, services.clock, services.redactor),
        archivist=lives.archivist,
        commissioning=services.knowledge.commissioning,
        attention=services.attention,
        journal=services.journal,
        clock=services.clock,
        situation=situation,
    )
    learned = (services.knowledge.stores.estimator.notice, lives.prompter.notice)
    noticed = (lives.conversations.notice, services.relationships.notice, lives.expression.notice, *learned)
    notices = (*noticed, lives.promises.queue.notice, *lives.space.notices, *services.identity.extract().warnings)
    return App(
        services,
        lives.thinker,
        lives.prompter,
        lives.archivist,
        lives.expression,
        lives.awareness,
        scheduler,
        watch,
        status,
        owner,
        status_report,
        lives.boot_context,
        lives.promises,
        lives.space,
        notices,
        settled,
    )


async def _log_in(services: Services) -> Actor:
    delays = iter((*SESSION_RETRY_DELAYS_MS, *SESSION_RETRY_DELAYS_MS[-1:] * _MORE_TRIES))
    notice = ""
    while True:
        result = await services.atproto.authenticate()
        if services.atproto.session_notice != notice:
            notice = services.atproto.session_notice
            await services.journal.record(Entry("error", "start", notice, line="error"))
        if not isinstance(result, Err):
            await services.journal.record(Entry("life", "start", f"On Bluesky as @{result.data.handle}", line="done"))
            return result.data
        if result.kind in {"auth", "invalid", "not_found"}:
            raise Auth(
                f"Bluesky refuses the login of {services.settings.agent_bluesky_username}: {result.error}",
                remedy="Check AGENT_BLUESKY_USERNAME and AGENT_BLUESKY_PASSWORD (an app password) in .env.",
            )
        if result.kind == "fatal":
            raise Fatal(f"Bluesky: {result.error}", remedy="Log in with the Bluesky app and see what it says.")
        delay_ms = next(delays, None)
        if delay_ms is None:
            raise Transient(f"Bluesky could not be reached for hours: {result.error}")
        delay = max(delay_ms / 1000, result.retry_after or 0)
        summary = f"Bluesky cannot be reached ({result.error}); trying again in {delay:.0f} s"
        await services.journal.record(Entry("error", "start", summary, line="warn"))
        await services.clock.sleep(delay)
