"""A day in one room on one clock: a real server and its record, ten whole SOULs, their models and GitHub over HTTP.

Only the time differs from normal use. `Rhythm` runs the loops of a SOUL instead of the timer library, which knows only
the machine's time; each loop keeps its own interval while the room is active. After a silence, a pass that finds
nothing changes nothing, so passes come less often; news wake the loop at once, as they do in the program.
"""

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from adapters.space.types import Said
from common.clock import parse_iso
from common.files import write_atomic
from common.result import Ok
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from modules.runtime.journal.types import StoredEntry
from modules.runtime.scheduler.policy import Outcome
from modules.services.commitments.naming import QueuedCommitment
from soul.app import App, open_soul
from tests.modules.lives.space.soul_in_room import Onlooker
from tests.outbox_rows import counted
from tests.running_town import KEY, PASSWORD, settings_of, write_home
from tests.scenarios.room_day_clock import DayClock
from tests.scenarios.room_day_people import PEOPLE, Person
from tests.scenarios.room_day_script import BOARD, HARBOUR, KEEPER, SEEDED
from town.atproto.network import Network
from town.atproto.service import atproto_app
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubFaults
from town.mind.scripted import MODEL, ScriptedMind
from town.model.service import Fault as MindFault
from town.model.service import ModelFaults, model_app
from town.serving import serve

BUDGET_TOKENS = "4000000"
"""Twice the default: a room may use half of it, and here the host talks from morning to night."""
_SEED = 11
_QUIET_S, _SILENT_S = 60.0, 360.0
_SLOWER_S, _SLOWEST_S = 20.0, 60.0
_REST_S = 120.0
_HEARTBEAT_S, _SELDOM_S = 3600.0, 600.0
_ELSEWHERE = re.compile(
    "awareness|notifications|expression-check|engagement|peers|peer-histories|work|alarms|messages?(-.*)?|github-.*"
    "|plan-awareness|tasks|reviews|merges"
)
"""The loops that look at other places than the room; all other loops of a SOUL are run."""


@dataclass
class Place:
    """The environment of the SOULs: the room, the network, GitHub and the model service."""

    root: Path
    clock: DayClock
    network: Network
    atproto_url: str
    github: GitHubNetwork
    github_url: str
    github_faults: GitHubFaults
    model_url: str
    mind_faults: ModelFaults
    host: Onlooker
    tokens: dict[str, str]
    owner_did: str
    server: SpaceServer | None = None
    port: int = 0

    async def open_room(self) -> None:
        """Start the room's server, after a restart on the same port."""
        self.server = SpaceServer(ChatLog(self.root / "space"), self.host, clock=self.clock)
        started = await self.server.start(self.port)
        assert isinstance(started, Ok), started
        self.port = started.data

    async def close_room(self) -> None:
        """Stop the server in the normal way: tell the members, then wait three seconds."""
        assert self.server
        self.server.broadcast_shutdown()
        await self.clock.sleep(3)
        await self.server.stop()
        self.server = None

    def says(self, text: str) -> None:
        assert self.server
        self.server.broadcast_from_host(text)

    def mind_fails(self) -> None:
        self.mind_faults.arm(MindFault("bad_gateway", times=1_000_000))

    def home_of(self, person: Person) -> Home:
        """Return the home of a person; create it on first use."""
        root = self.root / person.name
        if root.exists():
            return Home.at(root)
        self.network.create_account(f"{person.name}.test", PASSWORD, display_name=person.name.capitalize())
        github = (
            {}
            if person.social_only
            else {
                "AGENT_GITHUB_USERNAME": person.name,
                "AGENT_GITHUB_TOKEN": self.tokens[person.name],
            }
        )
        home = write_home(
            root,
            person.name,
            OWNER_BLUESKY_SOCIAL_HANDLE_DID=self.owner_did,
            ATPROTO_SERVICE_URL=self.atproto_url,
            AI_GATEWAY_BASE_URL=f"{self.model_url}/v1",
            AI_GATEWAY_MODEL=MODEL,
            AI_GATEWAY_FACTS="on",
            GITHUB_API_URL=self.github_url,
            SPACE_URL=f"ws://127.0.0.1:{self.port}",
            BUDGET_TOKENS_PER_DAY=BUDGET_TOKENS,
            SOUL_SPEED="1",
            SOUL_TIMEZONE="UTC",
            **github,
        )
        write_atomic(home.soul, person.soul)
        write_atomic(home.self_md, person.self_md)
        return home


@dataclass
class Figures:
    """The records that remain of a SOUL's day."""

    errors: list[StoredEntry] = field(default_factory=list)
    decisions: list[StoredEntry] = field(default_factory=list)
    queued_commitments: list[QueuedCommitment] = field(default_factory=list)


class Soul:
    """A SOUL of the room that can be ended and woken again in the same home."""

    def __init__(self, place: Place, person: Person) -> None:
        self.person = person
        self.console = SilentConsole()
        self.figures = Figures()
        self._place = place
        self._home = place.home_of(person)
        self._ended = asyncio.Event()
        self._living: asyncio.Task[None] | None = None
        self._lives = 0

    @property
    def name(self) -> str:
        return self.person.name

    @property
    def usage(self) -> Path:
        return self._home.memory / "llm-usage.jsonl"

    def wake(self) -> None:
        self._ended.clear()
        self._living = asyncio.create_task(self._live(), name=f"soul:{self.name}")

    async def end(self) -> None:
        self._ended.set()
        if self._living:
            await self._living
        self._living = None

    async def _live(self) -> None:
        clock = self._place.clock
        self._lives += 1
        rng = random.Random(f"{_SEED}:{self.name}:{self._lives}")
        async with open_soul(
            settings_of(self._home),
            self._home,
            console=self.console,
            clock=clock,
            rng=rng,
            social_only=self.person.social_only,
        ) as app:
            await app.wake()
            try:
                await Rhythm(app, clock, self._place.host).keep(self._ended)
            finally:
                await self._remember(app)

    async def _remember(self, app: App) -> None:
        journal = app.services.journal
        self.figures.errors = await journal.recent(100_000, kinds=["error"])
        self.figures.decisions = await journal.recent(100_000, kinds=["decision"])
        self.figures.queued_commitments = app.lives.queue.all()


@dataclass
class Rhythm:
    """Runs the loops of one SOUL on the day's clock, as `App.run` does on the machine's."""

    app: App
    clock: DayClock
    host: Onlooker
    _sooner: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    async def keep(self, ended: asyncio.Event) -> None:
        """Run the loops until `ended` is set."""
        app = self.app
        space, commitments = app.lives.space.loop, app.lives.commitments
        own = {space.name: self._next_look, commitments.name: self._next_step, "outbox": self._next_drain}
        lives: list[Awaitable[None]] = [
            app.services.integrations.room.run(),
            commitments.keep_awake(self),
            space.keep_awake(self),
            app._drain_when_woken(),
            *(
                self._beat(loop.name, own.get(loop.name) or self._seldom(loop.name))
                for loop in app.scheduler.states()
                if not _ELSEWHERE.fullmatch(loop.name)
            ),
        ]
        tasks = [asyncio.ensure_future(life) for life in lives]
        stop = asyncio.create_task(ended.wait())
        try:
            await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await app.scheduler.stop()
            for task in (stop, *tasks):
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _beat(self, name: str, next_in_s: Callable[[float | None], Awaitable[float]]) -> None:
        while True:
            outcome = await self.app.scheduler.run_guarded(name)
            sooner = self._sooner[name]
            sooner.clear()
            wait_s = await next_in_s(outcome.next_in_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(sooner.wait(), wait_s)

    async def run_guarded(self, name: str) -> Outcome:
        """Run a loop as the scheduler does, for callers that wake it."""
        return await self.app.scheduler.run_guarded(name)

    def bring_forward(self, name: str, seconds: float = 0.0) -> None:
        """Run a loop earlier, as the scheduler does."""
        asyncio.get_running_loop().call_later(seconds, self._sooner[name].set)

    def interval(self, name: str) -> float:
        return self.app.scheduler._intervals[name]

    def silent_s(self) -> float:
        """Return the seconds since somebody last spoke."""
        said = next((event for event in reversed(self.host.seen) if isinstance(event, Said)), None)
        return (self.clock.now() - parse_iso(said.timestamp)).total_seconds() if said else 0.0

    async def _next_look(self, requested: float | None) -> float:
        own = requested or self.interval(self.app.lives.space.loop.name)
        silent = self.silent_s()
        life = self.app.lives.space.participation
        if silent < _QUIET_S or life.waits or life.talk.state.request.cycles:
            return own
        return max(own, _SLOWER_S if silent < _SILENT_S else _SLOWEST_S)

    async def _next_step(self, requested: float | None) -> float:
        own = requested or self.interval(self.app.lives.commitments.name)
        return own if self.app.lives.queue.live() else max(own, _REST_S)

    async def _next_drain(self, requested: float | None) -> float:
        counts = await counted(self.app.services.outbox)
        own = requested or self.interval("outbox")
        return own if counts.get("pending") or counts.get("sending") else max(own, _REST_S)

    def _seldom(self, name: str) -> Callable[[float | None], Awaitable[float]]:
        async def next_in_s(requested: float | None) -> float:
            return max(requested or self.interval(name), _HEARTBEAT_S if name == "heartbeat" else _SELDOM_S)

        return next_in_s


@asynccontextmanager
async def open_place(root: Path) -> AsyncIterator[Place]:
    """Open everything except the SOULs; yield it with the room open."""
    clock = DayClock()
    network, github = Network(clock=clock), GitHubNetwork(clock=clock)
    owner = network.create_account("owner.test", PASSWORD)
    keeper = github.create_account(KEEPER)
    tokens = {one.name: github.create_account(one.name).token for one in PEOPLE if not one.social_only}
    for full_name in (HARBOUR, BOARD):
        repo = github.create_repo(keeper, full_name.partition("/")[2], collaborators=list(tokens))
        if full_name == BOARD:
            github.open_issue(repo, keeper, title=SEEDED, body="It is only called the bench.")
    github_faults, mind_faults = GitHubFaults(random.Random(_SEED)), ModelFaults()
    async with AsyncExitStack() as stack:
        place = Place(
            root=root,
            clock=clock,
            network=network,
            atproto_url=await stack.enter_async_context(serve(atproto_app(network))),
            github=github,
            github_url=await stack.enter_async_context(serve(github_app(github, faults=github_faults))),
            github_faults=github_faults,
            model_url=await stack.enter_async_context(
                serve(model_app(ScriptedMind(seed=_SEED), api_key=KEY, faults=mind_faults))
            ),
            mind_faults=mind_faults,
            host=Onlooker(),
            tokens=tokens,
            owner_did=owner.did,
        )
        await place.open_room()
        yield place
        if place.server:
            await place.close_room()
