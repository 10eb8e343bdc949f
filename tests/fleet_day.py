"""A day of many SOULs that mostly sleep, under either engine, with kills and partitions, and its figures."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import re
import sys
from asyncio.subprocess import DEVNULL, Process, create_subprocess_exec
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from signal import SIGKILL
from statistics import mean, quantiles
from typing import TYPE_CHECKING, Literal

from starlette.requests import Request

from common.clock import Clock, SystemClock
from modules.runtime.home import Home, lock_holder
from modules.runtime.sleep_note import is_noted
from soul.fleet.policy import last_exit, mode_of
from tests.patience import HANG_S, until
from tests.running_town import KEY, PASSWORD, Mind, RunningTown, call, served
from tests.soul.fleet.fleet_files import written
from tests.town.running_kube import PODS, TOKEN, RunningCluster
from town.atproto.chat import DECLARATION
from town.atproto.index import POST, NetworkEvent
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, AtprotoLimits, atproto_app
from town.kube import KubeObjects, KubeService, ObjectPlace, Pods
from town.model.service import ModelFaults, model_app
from town.model.types import Completion
from town.serving import LOOPBACK, drop, listen_at, serve

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from town.atproto.chat import Convo
    from town.model.types import ChatRequest

_LOOK = "app.bsky.notification.listNotifications"
_WATCHED = "25"  # the page size of the watcher's requests
_SAMPLE_S, _SETTLED_S = 1.0, 10.0
_AT_ONCE, _BORNE_SPEED = 40, 10.0
"""The number of homes that start at once, and up to which speed they get through their first minutes on two cores."""
_CUT_S = (2.0, 20.0)
_KILLED = ("soul", "watcher", "engine", "soul", "soul", "soul", "soul", "soul")
_CUT = ("soul", "sleeper", "watcher", "engine")
_AT_MOST, _COUNTED_S = 3, 900.0
"""The most kills of one process within this time, as a SOUL that fails five times in it is left alone."""
_MESSAGES = 0.2
_WORDS = """
slate tin thatch copper turf glass cedar clay felt lead zinc straw rain fog gale frost hail thaw dusk dawn gutter
ridge eave beam nail moss soot brick lime rope pitch oak ash elm birch reed sand salt tide harbour lantern kettle
"""
EngineName = Literal["up", "cluster"]


@dataclass(frozen=True)
class DayPlan:
    """The size of a day: `hours` of the SOULs' time take `real_s` seconds, so all live faster by that factor."""

    homes: int
    asked: int
    real_s: float
    kills: int
    cuts: int
    hours: float = 24.0

    @property
    def speed(self) -> float:
        return self.hours * 3600 / self.real_s


@dataclass(eq=False)
class Ask:
    """A mention or a direct message, with the monotonic times at which the watcher and the SOUL first saw it."""

    did: str
    at_s: float
    uri: str = ""
    convo: Convo | None = None
    watched_s: float | None = None
    looked_s: float | None = None
    answers: int = 0

    @property
    def count(self) -> int:
        """The number of its answers."""
        return sum(one.sender == self.did for one in self.convo.messages) if self.convo else self.answers


@dataclass
class Wire:
    """Bluesky as the SOULs and the watcher reach it: records who looks when, and can be cut off for some of them.

    The keys of `cut_until` are an account ("" for all) and whether the watcher is cut off. Half of the requests then
    still arrive, and only their answers are lost.
    """

    app: ASGIApp
    clock: Clock
    cut_until: dict[tuple[str, bool], float] = field(default_factory=dict)
    waiting: defaultdict[str, list[Ask]] = field(default_factory=lambda: defaultdict(list))
    requests: Counter[str] = field(default_factory=Counter)
    looked: set[str] = field(default_factory=set)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, now = Request(scope), self.clock.monotonic()
        did, method = _account(request), request.url.path.rpartition("/")[2]
        is_watch = method == _LOOK and request.query_params.get("limit") == _WATCHED
        self.requests["by the watcher" if is_watch else "other"] += 1
        if any(now < self.cut_until.get((whom, is_watch), 0.0) for whom in (did, "")):
            if self.requests.total() % 2:
                await self.app(scope, receive, _unheard)
            await drop(request)(scope, receive, send)
            return
        for ask in self.waiting[did] if method == _LOOK else ():
            if is_watch:
                ask.watched_s = ask.watched_s or now
            else:
                ask.looked_s = now
        if method == _LOOK and not is_watch:
            self.looked.add(did)
            self.waiting[did].clear()
        await self.app(scope, receive, send)


async def _unheard(_: Message) -> None:
    """Discard an answer."""


def _account(request: Request) -> str:
    """Return the DID of a request's token, "" if there is none."""
    parts = request.headers.get("authorization", "").removeprefix("Bearer ").split(".")
    claims = json.loads(base64.urlsafe_b64decode(parts[1] + "==")) if len(parts) > 1 else {}
    return str(claims.get("sub", ""))


@dataclass(kw_only=True)
class UpEngine:
    """The engine `soul up`. The `log` holds the watcher's output, too."""

    command: Sequence[str]
    log: Path
    homes: Sequence[Home]
    environment: Mapping[str, str] = field(default_factory=dict)
    process: Process = field(init=False)
    steps: list[tuple[float, str, str]] = field(default_factory=list)
    """The times, homes and names of the steps of waking, as far as the test can observe them."""

    async def start(self) -> None:
        given = {**os.environ, **self.environment}
        with self.log.open("ab") as log:
            self.process = await create_subprocess_exec(*self.command, stdin=DEVNULL, stdout=log, stderr=log, env=given)

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.terminate()
        await self.process.wait()

    def parent(self) -> int:
        """Return the pid of the process that starts the SOULs."""
        return self.process.pid

    def watcher(self) -> int:
        """Return the pid of the watcher."""
        return int(re.findall(r"^watch: process (\d+)", self.log.read_text(encoding="utf-8"), re.MULTILINE)[-1])

    async def kill(self) -> None:
        """Kill the process that starts the SOULs, and start it again."""
        self.process.kill()
        await self.process.wait()
        await until(lambda: not any(lock_holder(home) for home in self.homes), what="the end of all")
        await self.start()

    def cut(self, seconds: float) -> None:
        """Do nothing: here the watcher and the process that starts the SOULs share a pipe, which cannot be cut."""


@dataclass(kw_only=True)
class ClusterEngine(UpEngine):
    """A cluster, whose API can be cut off, and `soul watch` beside it, which is the `process`."""

    api: ASGIApp
    objects: KubeObjects
    clock: Clock
    _cut_until_s: float = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the API does, unless it is cut off."""
        is_cut = scope["type"] == "http" and self.clock.monotonic() < self._cut_until_s
        await (drop(Request(scope)) if is_cut else self.api)(scope, receive, send)

    def parent(self) -> int:
        return os.getpid()  # the town's kubelet runs in this process

    def watcher(self) -> int:
        return self.process.pid

    async def keep(self) -> None:
        """Restart the watcher whenever it ends, as its Deployment does."""
        while True:
            await self.process.wait()
            await self.start()

    async def follow(self) -> None:
        """Record when a home is allowed to run, and when its pod runs."""
        before: set[tuple[str, str]] = set()
        while True:
            version, now = self.objects.version, set[tuple[str, str]]()
            for place in self.objects.under("/sandboxes"):
                sandbox, pod = self.objects.get(place) or {}, self.objects.get(ObjectPlace(PODS, place.name)) or {}
                now |= {(place.name, "let run")} if mode_of(sandbox) == "Running" else set()
                now |= {(place.name, "running")} if last_exit(pod) is None and pod else set()
            self.steps += [(self.clock.monotonic(), *step) for step in now - before]
            before = now
            await self.objects.after(version)

    async def kill(self) -> None:
        """Let the API server crash and come back: its history of changes is lost, the objects are not."""
        self.objects.forget()
        self.cut(_CUT_S[0])

    def cut(self, seconds: float) -> None:
        self._cut_until_s = self.clock.monotonic() + seconds


@asynccontextmanager
async def _up(homes: Sequence[Home], folder: Path, _: RunningTown) -> AsyncIterator[UpEngine]:
    command = [sys.executable, "-m", "tests.soul.hasty_up", *(str(home.root) for home in homes)]
    engine = UpEngine(command=command, log=folder / "up.log", homes=homes)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.end()


@asynccontextmanager
async def _cluster(homes: Sequence[Home], folder: Path, town: RunningTown) -> AsyncIterator[ClusterEngine]:
    """Start the API, the pods and the watcher in the state that `soul fleet apply` would leave."""
    program, names = [sys.executable, "-m", "soul.cli"], [home.root.name for home in homes]
    with listen_at(LOOPBACK, 0) as free:
        port = free.getsockname()[1]
    for name, home in zip(names, homes, strict=True):
        (folder / f"home-soul-{name}").symlink_to(home.root)
        (account := folder / "accounts" / name).mkdir(parents=True)
        login = {"AGENT_BLUESKY_USERNAME": f"{name}.test", "AGENT_BLUESKY_PASSWORD": PASSWORD}
        for setting, value in {**login, "ATPROTO_SERVICE_URL": town.atproto_url}.items():
            (account / setting).write_text(value, encoding="utf-8")
    told = [{"name": name, "soul_md": "rowan/SOUL.md"} for name in names]
    file = written(folder, settings={}, homes=told, soul_md=homes[0].soul.read_text(encoding="utf-8"))
    entrypoint = ["env", f"SLEEP_WATCH_URL=http://{LOOPBACK}:{port}", f"PYTHONPATH={Path.cwd()}", *program]
    told_at = [f"--state={folder}/state", f"--port={port}"]
    engine = ClusterEngine(
        command=[*program, "watch", str(folder / "accounts"), f"--fleet={file}", *told_at],
        log=folder / "watch.log",
        homes=homes,
        environment={"KUBECONFIG": str(folder / "kubeconfig")},
        api=(service := KubeService(KubeObjects(), TOKEN)).app(),
        objects=service.objects,
        clock=SystemClock(),
    )
    async with serve(engine) as url:
        RunningCluster(url, service).kubeconfig(folder)
        given = {**os.environ, **engine.environment}
        applied = await create_subprocess_exec(*program, "fleet", "apply", str(file), stdout=DEVNULL, env=given)
        assert await applied.wait() == 0
        await engine.start()
        pods = Pods(service.objects, folder, entrypoint, restart_s=1.0)
        tasks = [asyncio.create_task(one) for one in (pods.run(), engine.keep(), engine.follow())]
        try:
            yield engine
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await engine.end()


ENGINES = {"up": _up, "cluster": _cluster}


async def _let_sleep(homes: Sequence[Home], folder: Path, town: RunningTown, at_once: int) -> None:
    """Start these homes, so many at once, and wait until all of them sleep."""
    for begin in range(0, len(homes), at_once):
        some = homes[begin : begin + at_once]
        async with _up(some, folder, town):
            await until(partial(_are_asleep, some), 20 * HANG_S, what="the sleep of all")


def _are_asleep(homes: Iterable[Home]) -> bool:
    return all(is_noted(home.memory) for home in homes)


@dataclass
class FleetDay:
    """A day in progress; `homes` maps each folder to its name."""

    plan: DayPlan
    town: RunningTown
    wire: Wire
    engine: UpEngine
    homes: dict[Path, str]
    rng: random.Random
    asks: list[Ask] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    cuts: Counter[str] = field(default_factory=Counter)
    awake: list[int] = field(default_factory=list)
    calls: int = 0
    _killed_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _by_uri: dict[str, Ask] = field(default_factory=dict)

    @property
    def lost(self) -> list[Ask]:
        return [ask for ask in self.asks if not ask.count]

    @property
    def doubled(self) -> list[Ask]:
        return [ask for ask in self.asks if ask.count > 1]

    def living(self) -> dict[str, int]:
        """Return the pids of the SOULs that are awake, by home."""
        found = {}
        for pid in children(self.engine.parent()):
            with suppress(OSError):
                if name := self.homes.get(Path(f"/proc/{pid}/cwd").readlink()):
                    found[name] = pid
        return found

    def kept_mib(self) -> tuple[float, float]:
        """Return the memory in MiB of the processes that remain when all sleep, and of the SOULs that are awake."""
        living, process = {*self.living().values()}, self.engine.process.pid
        return pss_mib({process, *children(process)} - living), pss_mib(living)

    async def live(self) -> None:
        """Run all events at random moments, wait until each message is answered, and then for double answers."""
        plan, rng, clock = self.plan, self.rng, self.wire.clock
        people = [f"kit{number}" for number in range(max(40, plan.asked // 20))]
        acts: list[tuple[float, Callable[[], Awaitable[None]]]] = []
        for harm, kinds, count in ((self._kill, _KILLED, plan.kills), (self._cut, _CUT, plan.cuts)):
            acts += [(rng.uniform(0, plan.real_s), partial(harm, kind)) for kind in islice(cycle(kinds), count)]
        while len(acts) < plan.asked + plan.kills + plan.cuts:
            name, at_s = rng.choice([*self.homes.values()]), rng.uniform(0, plan.real_s)
            for place in range(rng.randint(1, 4)):
                acts.append((at_s + place * 30 / plan.speed, partial(self._ask, name, rng.choice(people))))
        began, sampled = clock.monotonic(), asyncio.create_task(self._sample())
        try:
            for at_s, act in [*sorted(acts, key=lambda one: one[0]), (plan.real_s, self._mend)]:
                await asyncio.sleep(began + at_s - clock.monotonic())
                await act()
            with suppress(AssertionError):  # the figures show what is lost
                await until(lambda: not self.lost, plan.real_s + 3 * HANG_S)
            await asyncio.sleep(_SETTLED_S)
        finally:
            sampled.cancel()

    async def _ask(self, name: str, person: str) -> None:
        network, did = self.town.network, self.town.account(name)
        one, words = Ask(did, self.wire.clock.monotonic()), some_words(self.rng)
        if self.rng.random() < _MESSAGES:
            pen = self.town.account(f"pen{len(self.asks)}")
            one.convo = network.chat.begin(pen, did)
            network.chat.send(pen, one.convo, f"Good morning, do you prefer {words}?", {})
        else:
            text = f"Morning @{name}.test, do you prefer {words}?"
            one.uri = network.post_as(self.town.account(person), text)[0]
            self._by_uri[one.uri] = one
        self.asks.append(one)
        self.wire.waiting[did].append(one)

    async def _kill(self, whom: str) -> None:
        """Kill a SOUL that is awake, the watcher, or the process that starts them."""
        living, now = self.living(), self.wire.clock.monotonic()
        name = self.rng.choice([*living]) if whom == "soul" and living else whom
        if name == "soul" or sum(now - at_s < _COUNTED_S for at_s in self._killed_s[name]) >= _AT_MOST:
            return
        self._killed_s[name].append(now)
        self.kills[whom] += 1
        if whom == "engine":
            await self.engine.kill()
        else:
            with suppress(ProcessLookupError):
                os.kill(living[name] if whom == "soul" else self.engine.watcher(), SIGKILL)

    async def _cut(self, whom: str) -> None:
        """Cut off one SOUL, the watcher's requests for one or all, or the watcher from what starts the SOULs."""
        seconds = self.rng.uniform(*_CUT_S)
        name = self.rng.choice([*((whom == "soul" and self.living()) or self.homes.values())])
        self.cuts[whom] += 1
        if whom == "engine":
            self.engine.cut(seconds)
        else:
            key = "" if whom == "watcher" else self.town.account(name), whom != "soul"
            self.wire.cut_until[key] = self.wire.clock.monotonic() + seconds

    async def _mend(self) -> None:
        self.wire.cut_until.clear()

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(_SAMPLE_S)
            with suppress(OSError):
                self.awake.append(len(self.living()))
            self.calls += len(self.town.mind.asked)
            self.town.mind.asked.clear()

    def see(self, event: NetworkEvent) -> None:
        """Record an answer."""
        record = self.town.network.record(event.did, POST, event.uri.rpartition("/")[2]) if event.uri else None
        above = record.value.get("reply", {}).get("parent", {}).get("uri", "") if record else ""
        if event.kind == "created" and (ask := self._by_uri.get(above)) and ask.did == event.did:
            ask.answers += 1

    def __str__(self) -> str:
        woken = sorted(one.looked_s - one.watched_s for one in self.asks if one.watched_s and one.looked_s)
        seen = sorted(one.looked_s - one.at_s for one in self.asks if one.looked_s)
        log, asleep = self.engine.log.read_text(encoding="utf-8"), 1 - mean(self.awake) / len(self.homes)
        return (
            f"{len(self.homes)} homes, {self.plan.hours:g} h at speed {self.plan.speed:.0f}, {asleep:.1%} asleep\n"
            f"{len(self.asks)} mentions and messages: {len(self.lost)} lost, {len(self.doubled)} answered twice\n"
            f"killed: {told(self.kills)}; cut off: {told(self.cuts)}; {log.count('is left alone')} left alone\n"
            f"{log.count(': woken, ')} wakes; first look after the watcher's: {spread(woken)}\n{self._parts()}"
            f"first look after the event, polls included: {spread(seen)}\n"
            f"requests to Bluesky: {told(self.wire.requests)}; {self.calls} model calls"
        )

    def _parts(self) -> str:
        """Return how long each step of waking took, one line per step; "" if the steps cannot be seen."""
        names = {self.town.account(name): f"soul-{name}" for name in self.homes.values()}
        parts: defaultdict[str, list[float]] = defaultdict(list)
        for one in (one for one in self.asks if one.watched_s and one.looked_s):
            first, last = one.watched_s or 0.0, one.looked_s or 0.0
            steps = {step: at for at, name, step in self.engine.steps if name == names[one.did] and first <= at <= last}
            if steps.keys() == {"let run", "running"}:
                parts["until it is let run"].append(steps["let run"] - first)
                parts["until its process runs"].append(steps["running"] - steps["let run"])
                parts["until its first look"].append(last - steps["running"])
        return "".join(f"  {part}: {spread(sorted(seconds))}\n" for part, seconds in parts.items())


def children(pid: int) -> list[int]:
    """Return the pids of the living child processes of a process."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def pss_mib(pids: Iterable[int]) -> float:
    """Return the proportional set size of these processes in MiB; shared memory counts once."""
    found = 0
    for pid in pids:
        with suppress(OSError):
            rows = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
            found += sum(int(row.split()[1]) for row in rows if row.startswith("Pss:"))
    return found / 1024


def told(counts: Counter[str]) -> str:
    """Return the counts as text."""
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "nobody"


def spread(values: list[float]) -> str:
    """Return the median, the 95th percentile and the maximum of some sorted seconds, as text."""
    if len(values) < 2:
        return "unknown"
    marks = quantiles(values, n=100)
    return f"{marks[49]:.1f} s, p95 {marks[94]:.1f} s, at most {values[-1]:.1f} s ({len(values)} times)"


def some_words(rng: random.Random) -> str:
    """Return a random combination of words that has hardly been used yet."""
    return ", ".join(rng.sample(_WORDS.split(), 5))


def never_the_same(rng: random.Random) -> Callable[[ChatRequest], Completion]:
    """Return a model that says something different each time, as repeated text would not be sent."""

    def answer(request: ChatRequest) -> Completion:
        words, offered = f"For me {some_words(rng)}, never {some_words(rng)}.", {one.name for one in request.offers}
        tools = [name for name in ("bluesky_reply", "bluesky_post", "message_answer") if name in offered]
        return call(tools[0], text=words) if tools and request.force else Completion(text=words)

    return answer


@asynccontextmanager
async def open_fleet_day(plan: DayPlan, engine: EngineName, folder: Path, seed: int) -> AsyncIterator[FleetDay]:
    """Yield a day with a network, its people, and the homes of `plan` under this engine; each has been awake once."""
    network, mind = Network(clock=SystemClock()), Mind(never_the_same(random.Random(seed)))
    wire = Wire(atproto_app(network, limits=AtprotoLimits().at_speed(plan.speed)), network.clock)
    async with served(wire, model_app(mind, api_key=KEY)) as (url, model_url):
        town = RunningTown(network, url, AtprotoFaults(), mind, model_url, ModelFaults(), folder / "homes")
        given = {"SOUL_SPEED": f"{plan.speed:g}", "SOUL_MESSAGES_FROM": "all"}
        homes = [town.make_home(f"soul{number}", **given) for number in range(plan.homes)]
        for home in homes:  # as the SOUL declares while it starts
            network.put(town.account(home.root.name), DECLARATION, "self", {"allowIncoming": "all"})
        at_once = max(_AT_ONCE, int(_AT_ONCE * _BORNE_SPEED / plan.speed))
        await _let_sleep(homes if len(homes) > _AT_ONCE else (), folder, town, at_once)
        async with ENGINES[engine](homes, folder, town) as running:
            names = {home.root.resolve(): home.root.name for home in homes}
            day = FleetDay(plan, town, wire, running, names, random.Random(seed))
            network.subscribe(day.see)
            await until(lambda: len(wire.looked) == len(homes), len(homes) * 10 + HANG_S, what="the first look of all")
            yield day
