"""A society for tests: a room, GitHub, and whole SOULs that live there by themselves, each with its own model.

Everything runs on one clock, and with `Quick` a minute of the room passes in a few seconds. The timer of the program
knows only the machine's time, so with a quick clock a ticker replaces it; with the machine's clock the SOUL lives as
the program runs it.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from common.clock import Clock, SystemClock
from common.constants import SECOND_MS
from common.result import Ok
from common.schemas import SPACE_DECISION_TOOL
from modules.lives.space.config import SPACE_CONFIG_FILE
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from modules.runtime.scheduler.policy import Loop
from modules.runtime.status import Stage
from modules.services.commitments.naming import QueuedCommitment
from soul.app import App, open_soul
from tests.modules.lives.space.soul_in_room import Onlooker
from tests.patience import HANG_S, until
from tests.running_town import Answering, RunningTown, call, settings_of
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubFaults, StoredIssue, StoredRepo
from town.model.types import ChatRequest, Completion
from town.serving import serve

SPEED = 12.0
REPO = "acme/site"
REQUEST = f"Can you open an issue for the clock that stops at midnight in github.com/{REPO}?"
BODY = (
    "## What happens\nAt 00:00 the clock of the start page shows dashes until the page is loaded again.\n\n"
    "## How to see it\nOpen the page at 23:59 and wait for two minutes.\n\n"
    "## Done when\n- [ ] the clock passes midnight in every time zone"
)
_MIND_OF = "mind-of-"
_OWNER = "YOU are the assignee"
_ASKED_IN_TALK = "The conversation, oldest first"


class Quick(SystemClock):
    """A clock that runs `speed` times as fast for all who share it."""

    def __init__(self, speed: float = SPEED) -> None:
        self.speed = speed
        self._began, self._mono, self._leapt = super().now(), super().monotonic(), 0.0

    def now(self) -> datetime:
        return self._began + timedelta(seconds=self._gone())

    def monotonic(self) -> float:
        return self._mono + self._gone()

    def leap(self, seconds: float) -> None:
        """Advance the time at once; sleepers do not wake sooner."""
        self._leapt += seconds

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / self.speed)

    def _gone(self) -> float:
        return (super().monotonic() - self._mono) * self.speed + self._leapt


@dataclass(frozen=True)
class Asked:
    """One request to a model, with the name of the SOUL that made it."""

    name: str
    request: ChatRequest

    @property
    def text(self) -> str:
        return self.request.messages[-1].text

    @property
    def in_room(self) -> bool:
        return any(offer.name == SPACE_DECISION_TOOL for offer in self.request.offers)

    @property
    def is_owner(self) -> bool:
        return _OWNER in self.text or self.is_retry

    @property
    def is_retry(self) -> bool:
        return self.in_room and _ASKED_IN_TALK not in self.text


Decide = Callable[[Asked], Completion]


def says(message: str, *commitments: Mapping[str, Any], **more: Any) -> Completion:
    """Return the model's decision to speak in the room."""
    decision = {"shouldSpeak": True, "reason": "a test", "message": message, "commitments": list(commitments)}
    return call(SPACE_DECISION_TOOL, **decision, **more)


def quiet(reason: str = "nothing to add", **more: Any) -> Completion:
    """Return the model's decision to stay silent in the room."""
    return call(SPACE_DECISION_TOOL, shouldSpeak=False, reason=reason, **more)


def an_issue(title: str = "Clock stops at midnight", repo: str = REPO) -> dict[str, Any]:
    """Return a complete commitment."""
    return {"type": "create_issue", "repo": repo, "title": title, "description": BODY}


_NOUNS = """
    gutter ladder chimney rafter nail moss sparrow attic plumber insurance hailstorm copper carpenter solar thunder
    rust paint neighbour valley mason lichen scaffold blanket cat widow lightning barn welder mirror stork tourist
    budget winter foundation acoustics apprentice drizzle violin quarry ferry museum orchard bakery lantern harbour
    factory magnet velvet compass pigeon sawdust glacier tractor umbrella canyon piano desert lobster satellite
"""
_VERBS = """
    outlives complicates rewards frightens teaches shelters exposes delays invites burdens comforts reveals
    threatens inspires ruins saves distorts celebrates postpones multiplies
"""


def talkative(name: str, names: Sequence[str]) -> Decide:
    """Return a model that always speaks: each message names a peer and shares few words with any other."""
    at, peer = names.index(name), names[names.index(name) - 1]
    nouns, verbs = _NOUNS.split()[at :: len(names)], _VERBS.split()[at:]
    pairs = enumerate(zip(nouns, reversed(nouns), strict=True))
    model_calls = iter(
        f"{peer}, a {one} {verbs[at % len(verbs)]} every {other} sooner or later." for at, (one, other) in pairs
    )

    def respond(_: Asked) -> Completion:
        thought = next(model_calls, "")
        return says(thought) if thought else quiet("no thought is left")

    return respond


def diligent(asked: Asked) -> Completion:
    """Commit to the host's request if it is assigned to this SOUL, and stay silent otherwise."""
    if asked.is_owner:
        return says("The clock at midnight is mine, and I describe how to see it.", an_issue())
    return quiet("it is not mine")


@dataclass
class Soul:
    """One SOUL that lives by itself."""

    name: str
    home: Home
    app: App
    console: SilentConsole
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    awake: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_in(self) -> bool:
        return self.app.services.integrations.room.is_active

    def queued_commitments(self) -> list[QueuedCommitment]:
        return self.app.lives.queue.all()

    def lines(self) -> list[str]:
        """Return the lines about the room that the owner saw, without `[space] `."""
        told = [message for _, message, _ in self.console.lines]
        return [line.removeprefix("[space] ") for line in told if line.startswith("[space] ")]


@dataclass
class Society:
    """The room, GitHub, and the models of the SOULs that live there, by name."""

    running_town: RunningTown
    clock: Clock
    server: SpaceServer
    host: Onlooker
    github: GitHubNetwork
    github_faults: GitHubFaults
    github_url: str
    repo: StoredRepo
    minds: dict[str, Decide] = field(default_factory=dict)
    default: Decide = diligent
    asked: list[Asked] = field(default_factory=list)
    otherwise: Answering = lambda _: Completion(text="NO")
    elsewhere: str = ""

    @property
    def url(self) -> str:
        return self.elsewhere or f"ws://127.0.0.1:{self.server.port}"

    def respond(self, request: ChatRequest) -> Completion:
        """Answer as the model of whichever SOUL asks."""
        asked = Asked(request.model.removeprefix(_MIND_OF), request)
        if not asked.in_room:
            return self.otherwise(request)
        self.asked.append(asked)
        return self.minds.get(asked.name, self.default)(asked)

    def issues(self) -> list[StoredIssue]:
        return [issue for repo in self.github.repos() for issue in repo.issues.values() if issue]

    def said(self, *, by: str = "") -> list[str]:
        return [chat.content for chat in self.host.chats() if by in ("", chat.name)]

    def done(self) -> list[str]:
        """Return the announcements of finished work."""
        return [text for text in self.said() if text.startswith("Done — ")]

    def says(self, text: str) -> None:
        """Send a message to the room as the host."""
        self.server.broadcast_from_host(text)

    async def passes(self, seconds: float) -> None:
        """Wait for `seconds` of the society's time."""
        await self.clock.sleep(seconds)

    async def until(self, true: Callable[[], bool], why: str = "", *, within_s: float = HANG_S) -> float:
        """Wait until `true()` holds; return how long it took, in the society's seconds."""
        began = self.clock.monotonic()
        try:
            await until(true, within_s)
        except AssertionError:
            raise AssertionError(f"it did not come: {why}\n" + "\n".join(self.said())) from None
        return self.clock.monotonic() - began

    def make_home(self, name: str, *, github: bool = True, **more: str) -> Home:
        """Create a home that may enter this room and, with `github`, has an account there."""
        model = f"{_MIND_OF}{name}"
        self.running_town.mind.models = tuple({*self.running_town.mind.models, model})
        settings = {
            "SPACE_URL": self.url,
            "SOUL_SPEED": "1",
            "SOUL_ALLOW_PRIVATE_NET": "on",
            "AI_GATEWAY_MODEL": model,
        }
        if github:
            account = self.github.find(f"{name}-soul") or self.github.create_account(f"{name}-soul")
            settings |= {
                "AGENT_GITHUB_USERNAME": account.login,
                "AGENT_GITHUB_TOKEN": account.token,
                "GITHUB_API_URL": self.github_url,
            }
        return self.running_town.make_home(name, **(settings | more))

    @asynccontextmanager
    async def soul(
        self,
        name: str,
        mind: Decide | None = None,
        *,
        social_only: bool = False,
        github: bool = True,
        pace: Mapping[str, int] | None = None,
        wait: bool = True,
        **settings: str,
    ) -> AsyncIterator[Soul]:
        """Yield the living SOUL `name`; with `wait` it is already in the room. `pace` sets keys of its config file."""
        if mind:
            self.minds[name] = mind
        home = self.make_home(name, github=github, **settings)
        if pace:
            home.memory.mkdir(parents=True, exist_ok=True)
            (home.memory / SPACE_CONFIG_FILE).write_text(json.dumps(dict(pace)))
        console = SilentConsole()
        async with open_soul(
            settings_of(home), home, console=console, clock=self.clock, rng=random.Random(name), social_only=social_only
        ) as app:
            soul = Soul(name, home, app, console)
            life = _live_quickly if isinstance(self.clock, Quick) else _live
            living = asyncio.create_task(life(soul), name=f"{name} lives")
            try:
                if wait:
                    await self.until(lambda: soul.is_in or living.done(), why=f"{name} stays out")
                yield soul
            finally:
                soul.ended.set()
                await living


@asynccontextmanager
async def open_society(
    running_town: RunningTown, clock: Clock | None = None, *, max_bytes: int = 0, elsewhere: str = ""
) -> AsyncIterator[Society]:
    """Open a room without members.

    Args:
        running_town: the town around it.
        clock: the clock of all; a quick one by default.
        max_bytes: the size at which the room's record rotates; 0 for the default.
        elsewhere: the address of a room that somebody else keeps; then no room is opened here.

    """
    clock = clock or Quick()
    github, faults, host = GitHubNetwork(clock=SystemClock()), GitHubFaults(), Onlooker()
    repo = github.create_repo(github.create_account("acme"), "site")
    folder = running_town.root / "room"
    record = ChatLog(folder, max_bytes=max_bytes) if max_bytes else ChatLog(folder)
    server = SpaceServer(record, host, clock=clock)
    if not elsewhere:
        assert isinstance(await server.start(0), Ok)
    try:
        async with serve(github_app(github, faults=faults)) as github_url:
            society = Society(running_town, clock, server, host, github, faults, github_url, repo, elsewhere=elsewhere)
            running_town.mind.answer = society.respond
            yield society
    finally:
        await server.stop()
        record.close()


async def _live(soul: Soul) -> None:
    """Run the SOUL as the program does."""
    await soul.app.wake()
    soul.awake.set()
    await soul.app.run(soul.ended)


async def _live_quickly(soul: Soul) -> None:
    """Run the loops of the room and of commitments at their own intervals until the end."""
    app = soul.app
    scheduler, clock = app.scheduler, app.services.clock
    app.stages.reach(Stage.LOGGED_IN)
    app.stages.reach(Stage.CHECKED)  # this SOUL never logs in to Bluesky, so no record there can pause it

    async def again_and_again(loop: Loop) -> None:
        while True:
            outcome = await scheduler.run_guarded(loop.name)
            await clock.sleep(outcome.next_in_s or loop.interval_ms / SECOND_MS)

    async def send_when_woken() -> None:
        while True:
            if await app.services.outbox.wait_for_work(1):
                await scheduler.run_guarded("outbox")

    tasks = [
        asyncio.create_task(doing)
        for doing in (
            app.services.integrations.room.run(),
            app.lives.commitments.keep_awake(scheduler),
            app.lives.space.loop.keep_awake(scheduler),
            again_and_again(app.lives.space.loop),
            again_and_again(app.lives.commitments),
            send_when_woken(),
        )
    ]
    try:
        await asyncio.wait([asyncio.create_task(soul.ended.wait()), *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end
