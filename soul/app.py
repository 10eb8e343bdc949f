"""Builds one SOUL (`open_soul`) and runs it through its stages from start to end (`App`)."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from adapters.watch import SleepWatch
from adapters.web.spacing import Urgency, urgency
from common.clock import Clock, ScaledClock, local, span
from common.errors import MachineTrouble, SoulError, StorageError, Transient
from common.redact import Redactor
from common.settings import Settings, owner_mistake
from modules.lives.bluesky.types import AWARENESS, EXPRESSION_CHECK
from modules.runtime.console import Console
from modules.runtime.control import Control, note_start
from modules.runtime.home import Home, HomeLock
from modules.runtime.journal.types import Entry
from modules.runtime.logs import LoggedConsole, logging_to
from modules.runtime.scheduler.policy import Loop
from modules.runtime.scheduler.scheduler import LoopsChanged, Scheduler
from modules.runtime.status import HeartbeatLoop, IdentityWatchLoop, Stage, StatusBoard
from modules.runtime.version_check import version_loops
from modules.services.claims.lease_store import PLAN_AWARENESS, TASKS, TaskEnded, TaskOffered
from modules.services.outbox.account import log_in, settle_account
from modules.services.outbox.outbox import OutboxLoop
from modules.services.peers.github_account import warn_of_account
from modules.services.presence.home_lease import HomeLeaseLoop
from modules.services.sleep import LifeEnd
from soul.command_table import Commands
from soul.composition.lives import Lives
from soul.composition.services import Services, build_services
from soul.composition.wiring.messages import message_loops
from soul.composition.wiring.sleep import build_sleep
from soul.resources import SKILLS
from soul.status_report import OwnerMessages, PhoneCommands, StatusReport

_WAKE_TIMEOUT_S, _SETTLE_AGAIN_S, _AGAIN_AFTER_TASK_S = 60.0, 30.0, 5.0


class App:
    """One SOUL, built but not yet awake. Call `log_in` first, then `run`, which lives until something ends it.

    | stage     | reached                                           | from then on                                  |
    |-----------|---------------------------------------------------|-----------------------------------------------|
    | BUILT     | by `open_soul`                                    | messages of the owner are stored              |
    | LOGGED_IN | by `log_in`                                       | the owner is answered, notifications are read |
    | CHECKED   | by the first check whether the SOUL may act       | intents leave                                 |
    | SETTLED   | when the network requests of a start are done     | the SOUL considers posts of its own           |
    """

    def __init__(
        self, services: Services, lives: Lives, phone_commands: PhoneCommands, watch: SleepWatch | None
    ) -> None:
        self.services = services
        self.lives = lives
        self.stages = services.stages
        self._born_s = services.clock.monotonic()
        self.status_report = StatusReport(
            services,
            conversations=lives.bluesky_state.conversations,
            rituals=services.rituals,
            expression=lives.bluesky.expression,
            cached_share=lambda: services.gateway.cache.share,
            prompt_notes=lambda: lives.turn_services.prompter.squeezed,
            live_commitments=lives.queue.live,
            growth=lives.growth.report.gather,
        )
        self.control_watch = lives.control_watch
        loops = self._loops(phone_commands)
        self.sleep = build_sleep(services, loops, lives.own_times, watch, lambda: self.scheduler)
        self.scheduler = Scheduler(
            [*loops, *([self.sleep] if self.sleep else [])],
            agent_name=services.me.agent_name,
            clock=services.clock,
            journal=services.journal,
            attention=services.attention,
            social_only=services.social_only,
            publish=services.events.publish,
        )
        self.status = StatusBoard(
            services.home.status,
            clock=services.clock,
            name=services.me.agent_name,
            mode=lambda: services.attention.mode,
            loops=self.scheduler.states,
            facts=self.status_report.gather,
        )
        self.owner = lives.turn_services.owner_talk(self.status_report.moment)
        services.events.subscribe(LoopsChanged, lambda _: self.status.changed())
        services.events.subscribe(TaskOffered, lambda _: self.scheduler.bring_forward(TASKS))
        again_s = services.clock.real(_AGAIN_AFTER_TASK_S)
        services.events.subscribe(TaskEnded, lambda _: self.scheduler.bring_forward(PLAN_AWARENESS, again_s))

    async def wake(self, *, take_over: bool = False) -> None:
        """Go through all stages of a start in order. Raises the same errors as `log_in`."""
        await self.log_in(take_over=take_over)
        await self.scheduler.run_guarded(self.control_watch.name)
        self.stages.reach(Stage.CHECKED)
        await self._settle()

    async def make_ready(self) -> None:
        """Prepare everything that needs no login. Raises `Fatal` if that fails."""
        await self.control_watch.tell()
        await self.services.self_keeper.wake()
        await self.services.identity.tell_former_name(self.services.database, self.services.journal)
        await self.services.knowledge.wake()
        await self.lives.turn_services.wake()

    async def log_in(self, *, take_over: bool = False) -> None:
        """Prepare everything that needs no login, and log in; wait out short outages.

        Raises `Auth`, or `Fatal` (also if the home belongs to another account, or another copy of it is running).
        """
        services, journal, clock = self.services, self.services.journal, self.services.clock
        await self.make_ready()
        account = await log_in(services.atproto, journal, clock, username=services.settings.agent_bluesky_username)
        services.me.take_handle(account.handle)
        if mistake := owner_mistake(services.settings, account.did):
            raise mistake
        await settle_account(services.database, journal, clock, account=account, timezone=services.me.timezone)
        await services.lease.begin(take_over=take_over)
        self.stages.reach(Stage.LOGGED_IN)

    async def run(self, ended: asyncio.Event) -> LifeEnd:
        """Live until `ended` is set or the SOUL falls asleep, and return how it goes on.

        Raises the `Fatal` that ended it otherwise. If only `log_in` ran before, notifications are read first, and the
        rest of the start runs in the background.
        """
        lives, scheduler = self.lives, self.scheduler
        stop = asyncio.create_task(ended.wait(), name="until-ended")
        doomed = asyncio.create_task(scheduler.doomed(), name="until-doomed")
        asleep = asyncio.create_task((self.sleep.asleep if self.sleep else asyncio.Event()).wait(), name="until-asleep")
        tasks = [
            asyncio.create_task(self._keep_time(), name="scheduler"),
            asyncio.create_task(self._settle_if_needed(), name="settle"),
            asyncio.create_task(self.status.keep_writing(), name="status"),
            asyncio.create_task(self._drain_when_woken(), name="outbox-wake"),
            asyncio.create_task(lives.commitments.keep_awake(scheduler), name="commitments-wake"),
            asyncio.create_task(lives.alarm_loop.keep_awake(scheduler), name="alarms-wake"),
            asyncio.create_task(self.services.integrations.room.run(), name="space-client"),
            asyncio.create_task(lives.space.loop.keep_awake(scheduler), name="space-news"),
        ]
        try:
            await asyncio.wait([stop, doomed, asleep, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await scheduler.stop()
            for task in (stop, doomed, asleep, *tasks):
                task.cancel()
            ends = await asyncio.gather(doomed, *tasks, return_exceptions=True)
        with suppress(MachineTrouble, Transient):  # if this fails, the previous status file stays
            await self.status.write("stopped")
        for end in ends:
            if isinstance(end, Exception):
                raise end
        await self.services.lease.give_back()
        await lives.turn_services.leave_notes()
        how = await self.sleep.end() if self.sleep and not ended.is_set() else "ended"
        summary = "Asleep until something comes" if how == "asleep" else "Stopped; nothing accepted is lost"
        await self.services.journal.record_or_show(Entry("life", "stop", summary, line="sys"))
        return how

    async def note_end(self, error: SoulError) -> None:
        """Record the error that ended this life, for `soul status`, and send the alarm; a failed record is ignored."""
        entry = Entry("life", "stop", str(error), line=None, reason=error.remedy, data={"act": "ended"})
        with suppress(StorageError, Transient):
            await self.services.journal.record(entry)
        await self.lives.alarms.tell_end(error)

    def _loops(self, phone_commands: PhoneCommands) -> list[Loop]:
        services, lives, stages = self.services, self.lives, self.stages
        messages = OwnerMessages(
            services.me, services.outbox, lives.requests, lambda: self.owner, lambda: phone_commands(self)
        )
        return [
            IdentityWatchLoop(services.soul, services.home),
            self.control_watch,
            HomeLeaseLoop(services.lease),
            OutboxLoop(services.pace, services.outbox, ready=lambda: stages.has_reached(Stage.CHECKED)),
            # NOTE(self): a start runs each loop once, in this order, so messages of the owner come before slow work.
            *message_loops(services, lives.turn_services, lives.requests, messages),
            HeartbeatLoop(services.journal, self._pulse, lives.chores),
            lives.turn_services.session_loop(lives.bluesky_state.conversations.is_over),
            *lives.bluesky.loops,
            lives.commitments,
            *(lives.work, lives.alarm_loop),
            lives.space.loop,
            *(lives.peer_histories, *lives.github_loops),
            *version_loops(services.settings.version_check_url, services.web, services.journal, services.clock),
        ]

    async def _pulse(self) -> str:
        """Return the text of a heartbeat: mode, time awake, time of the next look at Bluesky, and the status line."""
        services, seconds = self.services, self.services.clock.monotonic() - self._born_s
        look = next((loop.next_at for loop in self.scheduler.states() if loop.name == AWARENESS), None)
        next_look = f", looks again at {local(look, services.settings.soul_timezone):%H:%M:%S}" if look else ""
        return f"{services.attention.mode}, awake for {span(seconds)}{next_look}; {await self.status_report.line()}"

    async def _settle(self) -> None:
        """Load our account, our peers and the moderation lists from the network, and read our own feed."""
        with urgency(Urgency.AT_ONCE):  # whoever woke it waits for this
            await self.services.account.learn()
            await self.services.moderation.refresh()
            await self.lives.bluesky.warm_up()
        rhythm = self.scheduler.describe_intervals({AWARENESS: "Bluesky", "github-awareness": "GitHub"})
        await self.services.journal.record(Entry("life", "start", "Awake", line="sys", reason=rhythm))
        self.stages.reach(Stage.SETTLED)
        if (due := self.lives.bluesky.expression.next_at) and due <= self.services.clock.now():  # it woke for it
            self.scheduler.bring_forward(EXPRESSION_CHECK)

    async def _keep_time(self) -> None:
        if not self.stages.has_reached(Stage.SETTLED):
            # NOTE(self): the first run repeats and reports what fails here; `_settle` reads in the background.
            with suppress(MachineTrouble, Transient), urgency(Urgency.AHEAD):
                await self.services.account.learn_new_peers()
                await self.lives.bluesky.perceiver.read_first()
        await self.scheduler.start()
        await asyncio.Event().wait()

    async def _settle_if_needed(self) -> None:
        await self.stages.wait_for(Stage.CHECKED)
        preparing = [self.sleep.prepare] if self.sleep else []
        while not self.stages.has_reached(Stage.SETTLED):
            try:
                await asyncio.gather(self._settle(), *(prepare() for prepare in preparing))
                github, peers = self.services.integrations.github, self.services.peer_registry.all_peers()
                await warn_of_account(github, peers, self.services.journal)
            except (MachineTrouble, Transient):
                await self.services.clock.sleep(_SETTLE_AGAIN_S)
        await asyncio.Event().wait()

    async def _drain_when_woken(self) -> None:
        await self.stages.wait_for(Stage.CHECKED)
        while True:
            if await self.services.outbox.wait_for_work(_WAKE_TIMEOUT_S):
                await self.scheduler.run_guarded("outbox")


@asynccontextmanager
async def open_soul(
    settings: Settings,
    home: Home,
    *,
    console: Console,
    clock: Clock,
    rng: random.Random,
    social_only: bool = False,
    skills_folder: Path = SKILLS,
    phone_commands: PhoneCommands = lambda _: Commands(rows={}),
    watch: SleepWatch | None = None,
) -> AsyncIterator[App]:
    """Lock the home, and build one SOUL in it with the prompts of `skills_folder`. Raises `Fatal` with a remedy."""
    clock = ScaledClock(clock, settings.soul_speed)  # the only place that applies the speed
    async with AsyncExitStack() as stack:
        stack.enter_context(HomeLock(home, agent_name=settings.agent_name, started_at=clock.now()))
        start = note_start(home.memory, Control(home.memory), clock)
        stack.enter_context(logging_to(home.logs, clock=clock, redactor=Redactor(settings.secrets)))
        services = await build_services(
            settings,
            home,
            console=LoggedConsole(console),
            clock=clock,
            rng=rng,
            stack=stack,
            social_only=social_only,
            skills_folder=skills_folder,
        )
        await services.relationships.open()
        lives = Lives(services)
        await lives.queue.open()
        await stack.enter_async_context(services.events)
        learned = (services.knowledge.stores.estimator.notice, lives.turn_services.prompter.notice)
        noticed = (*lives.bluesky.notices, *learned, lives.queue.notice, *lives.space.notices, *lives.github_notices)
        for notice in (services.notice, start.notice, *noticed, *services.identity.extract().warnings):
            if notice:
                await services.journal.record(Entry("error", "start", notice, line="error"))
        yield App(services, lives, phone_commands, watch)
