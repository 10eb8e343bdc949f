"""A town for tests: a real network and a real model service on loopback, and SOULs that live in it.

The model is a function that the test gives; everything else is the product.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from common.clock import Clock, SystemClock
from common.env_file import quoted
from common.files import write_atomic
from common.settings import Settings, load_settings
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from modules.runtime.journal.types import StoredEntry
from soul.app import App, open_soul
from soul.commands.run import phone_commands
from soul.resources import template
from tests.fresh_database import lay_database
from tests.hasty_clock import HastyClock
from tests.outbox_rows import counted
from tests.patience import HANG_S, until
from tests.sending import sends
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, atproto_app
from town.github.network import GitHubNetwork
from town.model.service import ModelFaults, model_app
from town.model.types import ChatRequest, Completion, ToolUse
from town.serving import serve

HASTE_STEP_BY_STEP = 1_000
"""Nothing runs on a timer in a SOUL that the test drives, so its waits need to take hardly any time."""
KEY = "model-key-for-tests"
PASSWORD = "town-password-1"
Answering = Callable[[ChatRequest], Completion]


def call(name: str, /, **arguments: object) -> Completion:
    """Return a completion that is one tool call."""
    return Completion(calls=(ToolUse(name, dict(arguments)),))


def prompt_of(request: ChatRequest) -> str:
    """Return all text of a request."""
    return "\n".join(message.text for message in request.messages)


_CHECK = "An owner wrote a line to an agent"


@dataclass
class Mind:
    """A model that answers with a function, after `ponder` has returned, and stores its requests in `asked`.

    `check` answers whether a text for the owner reports an act that was not done. Such a question follows each plain
    answer to the owner, and is not stored in `asked`.
    """

    answer: Answering
    ponder: Callable[[ChatRequest], Awaitable[object]] | None = None
    asked: list[ChatRequest] = field(default_factory=list)
    models: tuple[str, ...] = ("test-mind",)
    about: str = "A function of a test."
    check: Answering = lambda _: Completion(text="NO")

    async def complete(self, request: ChatRequest) -> Completion:
        if request.messages[0].text.startswith(_CHECK):
            return self.check(request)
        self.asked.append(request)
        if self.ponder:
            await self.ponder(request)
        return self.answer(request)


def replying(text: str) -> Answering:
    """Return a model that replies with `text` or posts it, if it has the tool and must act, and says it otherwise."""

    def respond(request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        for name in ("bluesky_reply", "bluesky_post"):
            if name in names and request.force:
                return call(name, text=text)
        return Completion(text=text)

    return respond


@dataclass
class RunningTown:
    """The network, the model, and their faults. `root` is the folder of the homes."""

    network: Network
    atproto_url: str
    faults: AtprotoFaults
    mind: Mind
    model_url: str
    mind_faults: ModelFaults
    root: Path
    github: GitHubNetwork | None = None
    """GitHub in the town, if any, which answers at `github_url`."""
    github_url: str = ""

    def account(self, name: str) -> str:
        """Return the DID of `name`.test; create the account on first use."""
        found = self.network.find(f"{name}.test")
        return found.did if found else self.network.create_account(f"{name}.test", PASSWORD, display_name=name).did

    def make_home(self, name: str, **more: str) -> Home:
        """Create a home for the SOUL `name`, owned by `owner.test`."""
        self.account(name)
        settings = {
            "OWNER_BLUESKY_SOCIAL_HANDLE_DID": self.account("owner"),
            "ATPROTO_SERVICE_URL": self.atproto_url,
            "AI_GATEWAY_BASE_URL": f"{self.model_url}/v1",
        }
        return write_home(self.root / name, name, **(settings | more))

    def texts(self, name: str) -> list[str]:
        """Return what `name` has posted and replied, oldest first."""
        did = self.account(name)
        return [post.text for post in reversed(self.network.posts(1000)) if post.author.did == did]

    def likers(self, uri: str) -> list[str]:
        return [actor.handle for actor in self.network.likes(uri)]


def write_home(root: Path, name: str, **settings: str) -> Home:
    """Create a home as `soul init` would, for the account `name`.test; its `.env` has no comments."""
    home = Home.at(root)
    answers = {
        "AGENT_NAME": name,
        "OWNER_BLUESKY_SOCIAL_HANDLE": "owner.test",
        "AGENT_BLUESKY_USERNAME": f"{name}.test",
        "AGENT_BLUESKY_PASSWORD": PASSWORD,
        "AI_GATEWAY_API_KEY": KEY,
        "AI_GATEWAY_MODEL": "test-mind",
        "SOUL_SPEED": "1000",
        "SPACE_DISCOVERY": "off",
        **settings,
    }
    given = "".join(f"{name}={quoted(value)}\n" for name, value in answers.items() if value)
    write_atomic(home.env, given, mode=0o600)
    write_atomic(home.soul, template("SOUL.md"))
    return home


@asynccontextmanager
async def served(*apps: ASGIApp) -> AsyncIterator[list[str]]:
    """Serve these applications and yield their addresses; close them concurrently, as each takes a moment."""
    opened: list[AbstractAsyncContextManager[str]] = []
    urls: list[str] = []
    try:
        for app in apps:
            server = serve(app)
            urls.append(await server.__aenter__())
            opened.append(server)
        yield urls
    finally:
        await asyncio.gather(*(server.__aexit__(None, None, None) for server in opened))


@asynccontextmanager
async def open_running_town(root: Path, *, clock: Clock | None = None) -> AsyncIterator[RunningTown]:
    """Open a new town, with the real time or that of `clock`. A test may replace its model, which says one sentence."""
    network = Network(clock=clock or SystemClock())
    faults, mind_faults = AtprotoFaults(random.Random(7)), ModelFaults()
    mind = Mind(replying("Slate, because it remembers the rain. Which would you pick, tin or slate?"))
    apps = (atproto_app(network, faults=faults), model_app(mind, api_key=KEY, faults=mind_faults))
    async with served(*apps) as (atproto_url, model_url):
        yield RunningTown(network, atproto_url, faults, mind, model_url, mind_faults, root)


@dataclass
class RunningSoul:
    """One SOUL, awake in this process and driven step by step."""

    app: App
    console: SilentConsole
    clock: Clock
    """The clock of the world, which the test may move."""

    async def look(self) -> None:
        """Run the loop of awareness once and send every resulting intent."""
        await self.app.scheduler.run_guarded("awareness")
        await self.send()

    def passes(self, seconds: float) -> None:
        """Set the clock ahead, if it is a clock that can be set."""
        if isinstance(self.clock, HastyClock):
            self.clock.ahead += seconds

    async def send(self, within_s: float = HANG_S) -> None:
        """Send all waiting intents; an intent due later is sent soon if the clock can be set ahead."""

        async def all_is_out() -> bool:
            await self.app.services.outbox.deliver_due()
            counts = await counted(self.app.services.outbox)
            if not counts.get("pending") and not counts.get("sending"):
                return True
            self.passes(1)
            return False

        await until(all_is_out, within_s, what="an empty outbox")

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Send intents as soon as they are accepted, as in a SOUL whose loops run."""
        delivering = asyncio.create_task(sends(self.app.services.outbox))
        try:
            yield
        finally:
            delivering.cancel()
            await asyncio.gather(delivering, return_exceptions=True)

    async def decisions(self) -> list[StoredEntry]:
        """Return the decisions, oldest first."""
        return list(reversed(await self.app.services.journal.recent(100, kinds=["decision"])))


@asynccontextmanager
async def awake(
    home: Home, *, clock: Clock | None = None, take_over: bool = False, **more: Any
) -> AsyncIterator[RunningSoul]:
    """Yield the SOUL of `home`, logged in; the test runs its loops. Without a `clock`, its waits are short."""
    console, clock = SilentConsole(), clock or HastyClock(HASTE_STEP_BY_STEP)
    if not home.signs_of_life():
        lay_database(home.database)
    async with open_soul(
        settings_of(home),
        home,
        console=console,
        clock=clock,
        rng=random.Random(1),
        **{"phone_commands": phone_commands, **more},
    ) as app:
        await app.wake(take_over=take_over)
        yield RunningSoul(app, console, clock)


def settings_of(home: Home) -> Settings:
    """Load the home's settings, without the environment of the test run."""
    return load_settings(home.root)


def clean_environment() -> Iterator[str]:
    """Yield the names in the environment that would override a home's `.env`."""
    for name in os.environ:
        if name.lower() in Settings.model_fields:
            yield name
