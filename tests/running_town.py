"""A town for tests: a real network and a real model service on loopback, and SOULs that live in it.

The mind is whatever function a test gives it; everything else is the product.
"""

from __future__ import annotations

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
"""Nothing runs on a timer in a SOUL that the test moves, so its waits need not take any time to speak of."""
KEY = "model-key-for-tests"
PASSWORD = "town-password-1"
Answering = Callable[[ChatRequest], Completion]


def call(name: str, /, **arguments: object) -> Completion:
    """A thought that is one tool call."""
    return Completion(calls=(ToolUse(name, dict(arguments)),))


_CHECK = "An owner wrote a line to an agent"


@dataclass
class Mind:
    """A mind that answers with a function, once `ponder` has returned, and remembers what it was asked.

    `check` answers whether what the owner is about to read tells of an act that was not done. Such a question follows
    each plain answer to them, and is not among what was `asked`.
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
    """Replies with `text` where it can, posts it where it can, else says it."""

    def respond(request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        for name in ("bluesky_reply", "bluesky_post"):
            if name in names and request.force:
                return call(name, text=text)
        return Completion(text=text)

    return respond


@dataclass
class RunningTown:
    """The network, the mind, and their faults. `root` is where homes lie."""

    network: Network
    atproto_url: str
    faults: AtprotoFaults
    mind: Mind
    model_url: str
    mind_faults: ModelFaults
    root: Path
    github: GitHubNetwork | None = None
    """GitHub beside it, if there is one, which answers at `github_url`."""
    github_url: str = ""

    def account(self, name: str) -> str:
        """The did of `name`.test, made on first use."""
        found = self.network.find(f"{name}.test")
        return found.did if found else self.network.create_account(f"{name}.test", PASSWORD, display_name=name).did

    def make_home(self, name: str, **more: str) -> Home:
        """A home for the SOUL `name`, owned by `owner.test`."""
        self.account(name)
        settings = {
            "OWNER_BLUESKY_SOCIAL_HANDLE_DID": self.account("owner"),
            "ATPROTO_SERVICE_URL": self.atproto_url,
            "AI_GATEWAY_BASE_URL": f"{self.model_url}/v1",
        }
        return write_home(self.root / name, name, **(settings | more))

    def texts(self, name: str) -> list[str]:
        """What `name` has posted and replied, oldest first."""
        did = self.account(name)
        return [post.text for post in reversed(self.network.posts(1000)) if post.author.did == did]

    def likers(self, uri: str) -> list[str]:
        return [actor.handle for actor in self.network.likes(uri)]


def write_home(root: Path, name: str, **settings: str) -> Home:
    """A home as `soul init` would make it, for the account `name`.test; its `.env` without a word of explanation."""
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
    """Serve them and yield their addresses; they close side by side, for each takes a moment."""
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
    """A fresh town, with the world's time or that of `clock`. A test may replace its mind, which says one sentence."""
    network = Network(clock=clock or SystemClock())
    faults, mind_faults = AtprotoFaults(random.Random(7)), ModelFaults()
    mind = Mind(replying("Slate, because it remembers the rain. Which would you pick, tin or slate?"))
    apps = (atproto_app(network, faults=faults), model_app(mind, api_key=KEY, faults=mind_faults))
    async with served(*apps) as (atproto_url, model_url):
        yield RunningTown(network, atproto_url, faults, mind, model_url, mind_faults, root)


@dataclass
class RunningSoul:
    """One SOUL, awake in this process, moved step by step."""

    app: App
    console: SilentConsole
    clock: Clock
    """That of the world, which the test may move."""

    async def look(self) -> None:
        """One awareness run, and everything that came of it sent."""
        await self.app.scheduler.run_guarded("awareness")
        await self.send()

    def passes(self, seconds: float) -> None:
        """Set its clock ahead, where that can be done."""
        if isinstance(self.clock, HastyClock):
            self.clock.ahead += seconds

    async def send(self, within_s: float = HANG_S) -> None:
        """Let out all that waits; what waits for its time need not wait long where the clock can be set ahead."""

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
        """Intents leave as soon as they are accepted, as in a SOUL whose loops run."""
        delivering = asyncio.create_task(sends(self.app.services.outbox))
        try:
            yield
        finally:
            delivering.cancel()
            await asyncio.gather(delivering, return_exceptions=True)

    async def decisions(self) -> list[StoredEntry]:
        """What was decided, oldest first."""
        return list(reversed(await self.app.services.journal.recent(100, kinds=["decision"])))


@asynccontextmanager
async def awake(
    home: Home, *, clock: Clock | None = None, take_over: bool = False, **more: Any
) -> AsyncIterator[RunningSoul]:
    """The SOUL of `home`, logged in; its loops are run by the test. Without a `clock`, what it waits for comes soon."""
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
    """The home's settings, without what the environment of the test run says."""
    return load_settings(home.root)


def clean_environment() -> Iterator[str]:
    """The names in the environment that would win over a home's `.env`."""
    for name in os.environ:
        if name.lower() in Settings.model_fields:
            yield name
