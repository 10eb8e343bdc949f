"""Runs days of several whole SOULs in one process: a real network and model service over HTTP, real files, one clock.

Only the time differs from normal use: the clock jumps to the next moment at which somebody has something to do. A look
that finds nothing changes nothing, so a SOUL looks when the network has something new for it, within its usual
interval, and a few times a day besides. Only one SOUL runs at a time.
"""

from __future__ import annotations

import heapq
import itertools
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from modules.runtime.journal.types import StoredEntry
from modules.runtime.scheduler.policy import Outcome
from modules.services.claims.lease_store import TaskEnded, TaskOffered
from soul.app import App, open_soul
from soul.commands.run import phone_commands
from tests.kept_prompts import KeptPrompts
from tests.outbox_rows import counted
from tests.running_town import KEY, PASSWORD, settings_of, write_home
from tests.scenarios.days_mind import MODEL, WilfulMind
from tests.scenarios.days_places import CountedLogins, Places, love_pictures, open_places
from tests.striding_clock import StridingClock
from town.atproto.index import NetworkEvent
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, atproto_app
from town.model.service import model_app
from town.serving import serve


@dataclass(frozen=True)
class ModelCall:
    """One model call: its time and day, whom it was for, and the sum of its input and output tokens."""

    id: str
    at: str
    day: str
    importance: str
    tokens: int


def read_ledger(connection: sqlite3.Connection) -> list[ModelCall]:
    """Return all calls in the ledger."""
    rows = connection.execute("SELECT id, at, day, importance, input_tokens + output_tokens FROM model_calls")
    return [ModelCall(*row) for row in rows]


def strangers_day(calls: Iterable[ModelCall], *, without_last: bool = False) -> int:
    """Return the most tokens of strangers together on one day; `without_last` omits the last call of each day."""
    by_day: defaultdict[str, list[ModelCall]] = defaultdict(list)
    for call in sorted(calls, key=lambda one: one.at):
        if call.importance == "stranger":
            by_day[call.day].append(call)
    days = ([call.tokens for call in day] for day in by_day.values())
    return max((sum(tokens[:-1] if without_last else tokens) for tokens in days), default=0)


MORNING = datetime(2026, 1, 5, 6, 0, tzinfo=UTC)
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0

_LOOK_S, _LONGEST_LOOK_S, _ANYWAY_S = 45.0, 10 * MINUTE_S, 6 * HOUR_S
_CHECK_S = 15 * MINUTE_S
_SELDOM_S = {
    "peers": HOUR_S,
    "engagement": 2 * HOUR_S,
    "session-refresh": HOUR_S,
    "control": 3 * HOUR_S,
    "home-lease": 10 * MINUTE_S,
    "heartbeat": 12 * HOUR_S,
    "sessions": 12 * HOUR_S,
    "plan-awareness": 6 * HOUR_S,
    "tasks": 6 * HOUR_S,
    "messages": 6 * HOUR_S,
    "message-talk": 6 * HOUR_S,
    "message-others": 6 * HOUR_S,
}
_FIRST_S = {"peers": MINUTE_S, "engagement": 30 * MINUTE_S, "messages": MINUTE_S}
_AFTER_A_MESSAGE_S = {"message-talk": 2.0, "message-others": 40.0}
_WAITS_FOR_GITHUB = frozenset(["tasks"])
_TELLS_WHEN = frozenset(["tasks", "message-others"])
"""Loops that set the time of their next run themselves."""
_JOURNAL_ROWS = 100_000
OLD = timedelta(days=40)
"""The age of the accounts that existed before the beginning."""


@dataclass
class DaysTown:
    """The network, the mind, and the scheduled events. `root` contains the homes."""

    root: Path
    clock: StridingClock
    network: Network
    faults: AtprotoFaults
    mind: WilfulMind
    atproto_url: str
    model_url: str
    rng: random.Random
    logins: CountedLogins
    places: Places | None = None
    souls: dict[str, DaysSoul] = field(default_factory=dict)
    owner: str = ""
    notified: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The uris of the records that each SOUL, by DID, was ever notified of, including deleted ones."""
    _events: list[tuple[float, int, Callable[[], Awaitable[None] | None]]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)

    def account(self, name: str) -> str:
        """Return the DID of `name`.test; create the account on first use."""
        found = self.network.find(f"{name}.test")
        return found.did if found else self.network.create_account(f"{name}.test", PASSWORD, display_name=name).did

    def at(self, moment: float, what: Callable[[], Awaitable[None] | None]) -> None:
        """Schedule `what` for that moment of the clock; it is due at once if the moment is past."""
        heapq.heappush(self._events, (moment, next(self._order), what))

    def after(self, seconds: float, what: Callable[[], Awaitable[None] | None]) -> None:
        self.at(self.clock.monotonic() + seconds, what)

    async def live(self, seconds: float) -> None:
        """Run all events that are due within so many seconds, including those that they schedule."""
        end = self.clock.monotonic() + seconds
        while self._events and self._events[0][0] <= end:
            moment, _, what = heapq.heappop(self._events)
            self.clock.stride(moment - self.clock.monotonic())
            if (working := what()) is not None:
                await working
        self.clock.stride(end - self.clock.monotonic())


class DaysSoul:
    """One SOUL of the town, which can be stopped and started again in the same home."""

    def __init__(self, town: DaysTown, home: Home, name: str) -> None:
        self.name = name
        self.home = home
        self.did = town.account(name)
        self.starts = 0
        self.runs: Counter[str] = Counter()
        self.journal: dict[int, StoredEntry] = {}
        self.lines: list[tuple[str, str, str]] = []
        self.calls: dict[str, ModelCall] = {}
        self._town = town
        self._stack = AsyncExitStack()
        self._app: App | None = None
        self._console = SilentConsole()
        self._due: dict[str, float] = {}
        self._waiting = 0
        self._look_s = _LOOK_S
        self._expects_work_until = 0.0

    @property
    def app(self) -> App:
        """The running program; the SOUL must be awake."""
        assert self._app, f"{self.name} is not awake"
        return self._app

    async def wake(self) -> None:
        """Start the program, and schedule its loops."""
        self.starts += 1
        self._console = SilentConsole()
        self._app = await self._stack.enter_async_context(
            open_soul(
                settings_of(self.home),
                self.home,
                console=self._console,
                clock=self._town.clock,
                rng=random.Random(f"{self.name}:{self.starts}"),
                phone_commands=phone_commands,
            )
        )
        await self._app.wake()
        loops = {loop.name for loop in self._app.scheduler.states()}
        for name, seconds in _SELDOM_S.items():
            if name in loops:
                self._plan(name, _FIRST_S.get(name, seconds) * self._town.rng.uniform(0.9, 1.1))
        events = self._app.services.events
        events.subscribe(TaskOffered, lambda _: self._plan("tasks", MINUTE_S))
        events.subscribe(TaskEnded, lambda _: self._plan("plan-awareness", MINUTE_S))
        for name, seconds in (("awareness", 1.0), ("expression-check", MINUTE_S), ("outbox", 1.0)):
            self._plan(name, seconds)

    async def end(self) -> None:
        """Stop the program properly, and keep its journal, terminal lines and model calls."""
        if self._app is None:
            return
        app, self._app = self._app, None
        self._due.clear()
        stored = await app.services.journal.recent(_JOURNAL_ROWS)
        self.journal |= {one.id: one for one in stored}
        self.lines += self._console.lines
        self.calls |= {call.id: call for call in await app.services.database.run(read_ledger)}
        await app.scheduler.stop()
        await self._stack.aclose()

    def has_news(self) -> None:
        """Schedule a look, as the network has something new for the SOUL."""
        self._plan("awareness", self._town.rng.uniform(1.0, _LOOK_S))

    def has_message(self) -> None:
        """Schedule a look at direct messages, as somebody wrote one."""
        self._plan("messages", self._town.rng.uniform(1.0, _LOOK_S))

    def expects_work(self, seconds: float) -> None:
        """For so many seconds, send at once what a look hands to the outbox, as the look may wait for it."""
        self._expects_work_until = self._town.clock.monotonic() + seconds

    def is_due(self, loop: str, within_s: float) -> bool:
        """Return whether a loop runs within so many seconds."""
        return self._due.get(loop, float("inf")) <= self._town.clock.monotonic() + within_s

    def _plan(self, loop: str, seconds: float) -> None:
        """Schedule a loop after so many seconds, unless it runs earlier anyway."""
        if self._app is None:
            return
        moment = self._town.clock.monotonic() + seconds
        if moment < self._due.get(loop, float("inf")):
            self._due[loop] = moment
            self._town.at(moment, lambda: self._run(loop, moment))

    async def _run(self, loop: str, moment: float) -> None:
        app = self._app
        if app is None or self._due.get(loop) != moment:
            return
        del self._due[loop]
        self.runs[loop] += 1
        with self._town.clock.alone():
            outcome = await self._outcome(app, loop)
        if loop == "outbox":
            if outcome.next_in_s is not None:
                self._plan("outbox", max(outcome.next_in_s, 1.0))
            return
        self._plan(loop, await self._next_s(app, loop, outcome))
        counts = await counted(app.services.outbox)
        if counts.get("pending") or counts.get("sending"):
            self._plan("outbox", 1.0)

    async def _outcome(self, app: App, loop: str) -> Outcome:
        expected = loop == "awareness" and self._town.clock.monotonic() < self._expects_work_until
        if not expected and loop not in _WAITS_FOR_GITHUB:
            return await app.scheduler.run_guarded(loop)
        async with self._town.clock.beside(partial(app.scheduler.run_guarded, "outbox")):
            return await app.scheduler.run_guarded(loop)

    async def _next_s(self, app: App, loop: str, outcome: Outcome) -> float:
        if loop == "awareness":
            return await self._next_look_s(app, outcome)
        if loop == "expression-check":
            due = app.lives.bluesky.expression.next_at
            left = (due - self._town.clock.now()).total_seconds() if due else 0.0
            return max(left + 1, _CHECK_S)
        if loop == "messages":
            for other, seconds in _AFTER_A_MESSAGE_S.items():
                self._plan(other, seconds)
        soon = outcome.next_in_s if loop in _TELLS_WHEN else None
        return max(soon, MINUTE_S) if soon is not None else _SELDOM_S[loop]

    async def _next_look_s(self, app: App, outcome: Outcome) -> float:
        """Return the seconds until the next look: longer each time while posts only wait, long if none waits."""
        before, self._waiting = self._waiting, (await app.services.situation()).waits.posts
        idle = outcome.ran and self._waiting == before
        self._look_s = min(2 * self._look_s, _LONGEST_LOOK_S) if idle else _LOOK_S
        if not outcome.ran:
            return _LOOK_S
        return max(outcome.next_in_s or self._look_s, 5.0) if self._waiting else _ANYWAY_S


@asynccontextmanager
async def open_days_town(
    root: Path,
    names: tuple[str, ...],
    *,
    seed: int = 14,
    with_places: bool = False,
    old: Collection[str] = (),
    budgets: Mapping[str, int] | None = None,
) -> AsyncIterator[DaysTown]:
    """Open a new town on one clock, with a home for each of `names`; no SOUL is awake yet.

    `with_places` opens the gallery and GitHub too. The accounts of `old` have the age `OLD`. `budgets` are tokens for
    a day, by name.
    """
    clock = StridingClock(MORNING - OLD)
    network, faults = Network(clock=clock), AtprotoFaults(random.Random(seed))
    mind = WilfulMind(KeptPrompts(root / "prompts.jsonl", clock), frozenset(f"{name}.test" for name in names), seed)
    logins = CountedLogins(atproto_app(network, faults=faults), clock)
    async with AsyncExitStack() as stack:
        town = DaysTown(
            root=root,
            clock=clock,
            network=network,
            faults=faults,
            mind=mind,
            atproto_url=await stack.enter_async_context(serve(logins)),
            model_url=await stack.enter_async_context(serve(model_app(mind, api_key=KEY))),
            rng=random.Random(seed),
            logins=logins,
        )
        for name in old:
            town.account(name)
        clock.stride(OLD.total_seconds())
        if with_places:
            town.places = await open_places(stack, {f"sh-{name}": town.account(name) for name in names}, clock, root)
        town.owner = town.account("owner")
        for name in names:
            town.account(name)
            town.souls[name] = DaysSoul(town, _home(town, name, (budgets or {}).get(name)), name)
        network.subscribe(_Post(town).happened)
        try:
            yield town
        finally:
            for soul in town.souls.values():
                await soul.end()


def _home(town: DaysTown, name: str, budget: int | None) -> Home:
    more = town.places.settings(f"sh-{name}") if town.places else {}
    home = write_home(
        town.root / name,
        name,
        OWNER_BLUESKY_SOCIAL_HANDLE_DID=town.owner,
        ATPROTO_SERVICE_URL=town.atproto_url,
        AI_GATEWAY_BASE_URL=f"{town.model_url}/v1",
        AI_GATEWAY_MODEL=MODEL,
        AI_GATEWAY_FACTS="on",
        AGENT_GITHUB_USERNAME=f"sh-{name}",
        SOUL_SPEED="1",
        SOUL_TIMEZONE="UTC",
        **({"BUDGET_TOKENS_PER_DAY": str(budget)} if budget else {}),
        **more,
    )
    if town.places:
        love_pictures(home, name)
    return home


class _Post:
    """Schedules a look of each SOUL for which the network has something new."""

    def __init__(self, town: DaysTown) -> None:
        self._town = town
        self._newest: dict[str, str] = {}

    def happened(self, event: NetworkEvent) -> None:
        if event.kind != "created":
            return
        for soul in self._town.souls.values():
            notices = self._town.network.index.notices(soul.did)
            self._town.notified[soul.did].update(notice.record.uri for notice in notices)
            newest = notices[0].record.uri if notices else ""
            if newest != self._newest.get(soul.did, ""):
                self._newest[soul.did] = newest
                soul.has_news()
