"""A town whose SOULs keep a ritual: a network, GitHub with a workspace, one clock, and SOULs that can be killed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from adapters.github.types import Repo
from common.clock import from_local, parse_iso
from common.facts import PostFacts, QuestionFacts
from common.files import write_atomic
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from modules.services.rituals.policy import ritual_role
from soul.app import App, open_soul
from soul.commands.run import phone_commands
from tests.outbox_rows import counted
from tests.running_town import KEY, PASSWORD, Mind, call, settings_of, write_home
from tests.striding_clock import StridingClock
from town.atproto.index import NetworkEvent
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, atproto_app
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubEvent, GitHubFaults, StoredIssue, StoredRepo
from town.model.service import model_app
from town.model.types import ChatRequest, Completion
from town.serving import serve

MONDAY = datetime(2026, 1, 5, 8, 50, tzinfo=UTC)
QUAY = Repo("acme", "www-lil-intdev-quay")
RITUAL = "Harbour watch"
KEY_OF_RITUAL = "harbour-watch"
OLD = timedelta(days=40)

_VIEWS = {
    "rowan": "The mole gauge runs twelve centimetres over the table, and the wind was calm.",
    "wren": "Look at the slack: the stream turned forty minutes late on both sides of the bar.",
    "linden": "Nobody checked the zero of the staff since the repair in October, so I doubt the twelve.",
    "hazel": "Two loggers disagree by a constant, which smells of a settled pile and no weather at all.",
}
_SEEN = (
    "the ferry's wake reached the staff",
    "the mole gauge stood high in a dead calm",
    "two loggers differ by a hand",
    "the barometer fell before noon",
    "weed hides the lower marks",
    "spring tide came a day early",
    "somebody moved the float",
    "the paper chart shows a gap at dawn",
    "ice pinned the needle for an hour",
    "the river ran brown and fast",
    "a gull sits on the sensor",
)


@dataclass
class RitualTown:
    """The simulated world and its SOULs."""

    root: Path
    clock: StridingClock
    network: Network
    github: GitHubNetwork
    repo: StoredRepo
    mind: Mind
    urls: dict[str, str]
    names: tuple[str, ...]
    souls: dict[str, RitualSoul] = field(default_factory=dict)
    faults: AtprotoFaults = field(default_factory=AtprotoFaults)
    github_faults: GitHubFaults = field(default_factory=GitHubFaults)

    def account(self, name: str) -> str:
        """Return the DID of `name`.test; create the account on first use."""
        found = self.network.find(f"{name}.test")
        return found.did if found else self.network.create_account(f"{name}.test", PASSWORD, display_name=name).did

    def threads(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return each opening post, oldest first, with the (name, text) of each answer in its thread."""
        posts = list(reversed(self.network.posts(10_000)))
        openings = [post for post in posts if post.reply is None and RITUAL in post.text]
        return [
            (
                opening.text,
                [
                    (one.author.handle.removesuffix(".test"), one.text)
                    for one in posts
                    if one.reply and one.reply.root.uri == opening.uri
                ],
            )
            for opening in openings
        ]

    def openings(self) -> list[str]:
        """Return the URIs of the opening posts, oldest first."""
        return [one.uri for one in reversed(self.network.posts(10_000)) if one.reply is None and RITUAL in one.text]

    def parts(self, uri: str) -> dict[str, str]:
        """Return the part of each SOUL in a thread, computed from public data only."""
        return {name: ritual_role(name, uri) for name in self.names}

    @property
    def memos(self) -> list[StoredIssue]:
        """The memos, oldest first."""
        return [one for one in self.repo.issues.values() if one and "memo" in {label.name for label in one.labels}]

    def authors_of(self, memo: StoredIssue) -> list[str]:
        """Return the logins of the author of a memo and of its commenters, in that order."""
        return [memo.author.login, *(one.author.login for one in memo.comments)]

    async def live(self, minutes: float, *, step_s: float = 300.0) -> None:
        """Let `minutes` pass; every `step_s` seconds each SOUL does what is due."""
        for _ in range(round(minutes * 60 / step_s)):
            for soul in self.souls.values():
                await soul.step()
            self.clock.stride(step_s)

    def sleep_until(self, moment: datetime) -> None:
        """Set the clock to `moment`, with no work in between."""
        self.clock.stride((moment - self.clock.now()).total_seconds())


class RitualSoul:
    """A SOUL of the town. `kill_at` decides at which request to the model or which own post its process ends."""

    def __init__(self, town: RitualTown, home: Home, name: str, *, social_only: bool = False) -> None:
        self.name, self.home = name, home
        self.kill_at: Callable[[object], bool] | None = None
        self.killed = 0
        self._town, self._social_only = town, social_only
        self._stack, self._app = AsyncExitStack(), None
        self._running: asyncio.Task[None] | None = None
        self._starts = 0

    _app: App | None

    @property
    def app(self) -> App:
        assert self._app, f"{self.name} is not awake"
        return self._app

    async def wake(self) -> None:
        """Start the program in the home."""
        self._starts += 1
        self._app = await self._stack.enter_async_context(
            open_ritual_soul(self.home, self._town.clock, f"{self.name}:{self._starts}", social_only=self._social_only)
        )

    async def end(self) -> None:
        """Close the program and release the home, even in the middle of its work."""
        self._app = None
        await self._stack.aclose()

    def met(self, event: object) -> None:
        """Cancel the running step if `kill_at` accepts this event."""
        if self.kill_at and self._running and self.kill_at(event):
            self.kill_at = None
            self._running.cancel()

    async def step(self) -> None:
        """Do what is due; restart the SOUL if it is killed meanwhile."""
        self._running = asyncio.create_task(self._step())
        try:
            await self._running
        except asyncio.CancelledError:
            self.killed += 1
            await self.end()
            await self.wake()
        finally:
            self._running = None

    async def _step(self) -> None:
        await do_what_is_due(self.app, self._town.clock, self.met)


@asynccontextmanager
async def open_ritual_soul(
    home: Home, clock: StridingClock, seed: str, *, social_only: bool = False
) -> AsyncIterator[App]:
    """Yield the app of an awake SOUL that has the workspace of its ritual."""
    async with open_soul(
        settings_of(home),
        home,
        console=SilentConsole(),
        clock=clock,
        rng=random.Random(seed),
        social_only=social_only,
        phone_commands=phone_commands,
    ) as app:
        await app.wake()
        app.services.workspaces.watch(QUAY)
        yield app


async def do_what_is_due(app: App, clock: StridingClock, met: Callable[[str], None]) -> None:
    """Run each loop once and send all waiting intents; call `met` at the end of each loop."""
    for loop in ("work", "awareness", "outbox"):
        await app.scheduler.run_guarded(loop)
        met(f"after {loop}")
        await asyncio.sleep(0)
    while (await counted(app.services.outbox)).get("pending"):
        report = await app.services.outbox.deliver_due()
        if report.next_in_s is None or report.next_in_s > 1800:
            break
        clock.stride(max(report.next_in_s, 1.0))


def think(request: ChatRequest) -> Completion:
    """Answer as a model that opens with a numbered question, answers an opening, and writes memos about the answers."""
    about, names = request.facts.about, {offer.name for offer in request.offers}
    name = request.facts.agent.handle.removesuffix(".test")
    if isinstance(about, QuestionFacts) and "open_ritual" in names:
        count = (parse_iso(request.facts.at).date() - MONDAY.date()).days + 1
        named = " ".join(f"@{handle}" for handle in about.fields["invited"])
        owner = "".join(f" The owner says: {line}" for line in about.fields["owner"])
        seen = _SEEN[count % len(_SEEN)]
        earlier = f" Last time I held that {_SEEN[(count - 1) % len(_SEEN)]}; I no longer do." if count > 1 else ""
        said = f"{RITUAL}, entry {_number(count)}: {seen}.{earlier}{owner}"
        return call("open_ritual", text=f"{said} {named} what moved first?")
    if isinstance(about, QuestionFacts) and "write_memo" in names:
        (part,), heard = about.fields["part"], about.fields["said"]
        body = f"As {part}: of {len(heard)} posts I keep the first. {_VIEWS[name]}"
        return call("write_memo", title=f"What {name} keeps", body=f"{body} `<s>`")
    if isinstance(about, PostFacts) and about.ritual and "bluesky_reply" in names:
        day = about.text.partition("entry ")[2].partition(":")[0]
        return call("bluesky_reply", text=f"{_VIEWS[name]} That is my reading of entry {day}, as {about.part}.")
    if "bluesky_like" in names and request.force:
        return call("bluesky_like", reason="it says it all")
    return Completion(text="Noted.")


def _number(count: int) -> str:
    words = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    return words[count] if count < len(words) else f"{words[count // 12]} dozen and {words[count % 12]}"


@asynccontextmanager
async def open_ritual_town(
    root: Path,
    names: tuple[str, ...],
    *,
    social_only: frozenset[str] = frozenset(),
    kind: type[RitualSoul] = RitualSoul,
    timezone: str = "UTC",
) -> AsyncIterator[RitualTown]:
    """Yield a town of awake SOULs of class `kind`, on a Monday at 8:50 there; the first name opens the ritual."""
    clock = StridingClock(from_local(MONDAY.replace(tzinfo=None), timezone) - OLD)
    network, github = Network(clock=clock), GitHubNetwork(clock=clock, git_folder=root / "git")
    tokens = {name: github.create_account(name).token for name in (*names, "owner")}
    organisation = github.create_account("acme", kind="Organization")
    repo = github.create_repo(organisation, QUAY.name, collaborators=list(names))
    souls: dict[str, RitualSoul] = {}
    mind, faults, github_faults = Mind(think), AtprotoFaults(), GitHubFaults()

    async def notice(request: ChatRequest) -> None:
        name = request.facts.agent.handle.removesuffix(".test")
        if name in souls:
            souls[name].met(request)
        await asyncio.sleep(0)

    mind.ponder = notice
    async with AsyncExitStack() as stack:
        urls = {
            "bluesky": await stack.enter_async_context(serve(atproto_app(network, faults=faults))),
            "model": await stack.enter_async_context(serve(model_app(mind, api_key=KEY))),
            "github": await stack.enter_async_context(serve(github_app(github, faults=github_faults))),
        }
        town = RitualTown(root, clock, network, github, repo, mind, urls, names, souls, faults, github_faults)
        for name in (*names, "owner"):
            town.account(name)
        clock.stride(OLD.total_seconds())
        for name in names:
            home = _home(town, name, tokens[name], opens=name == names[0], timezone=timezone)
            souls[name] = kind(town, home, name, social_only=name in social_only)
        network.subscribe(lambda event: _posted(town, event))
        github.subscribe(lambda event: _wrote(town, event))
        try:
            for soul in souls.values():
                await soul.wake()
            yield town
        finally:
            for soul in souls.values():
                await soul.end()


def _posted(town: RitualTown, event: NetworkEvent) -> None:
    for name, soul in town.souls.items():
        if event.did == town.account(name):
            soul.met(event)


def _wrote(town: RitualTown, event: GitHubEvent) -> None:
    if event.by in town.souls:
        town.souls[event.by].met(event)


def _home(town: RitualTown, name: str, token: str, *, opens: bool, timezone: str) -> Home:
    others = [f"{other}.test" for other in town.names if other != name]
    home = write_home(
        town.root / name,
        name,
        OWNER_BLUESKY_SOCIAL_HANDLE_DID=town.account("owner"),
        ATPROTO_SERVICE_URL=town.urls["bluesky"],
        AI_GATEWAY_BASE_URL=f"{town.urls['model']}/v1",
        AI_GATEWAY_FACTS="on",
        AGENT_GITHUB_USERNAME=name,
        AGENT_GITHUB_TOKEN=token,
        OWNER_GITHUB_USERNAME="owner",
        GITHUB_API_URL=town.urls["github"],
        WORKSPACE_ORG="acme",
        SOUL_PEERS=",".join(others),
        SOUL_ALLOW_PRIVATE_NET="on",
        SOUL_SPEED="1",
        SOUL_TIMEZONE=timezone,
    )
    role = "initiator" if opens else "participant"
    people = ", ".join(f"@{other}.test" for other in town.names)
    write_atomic(
        home.self_md,
        f"# {name.title()}\n\nI'm {name.title()}, an AI agent who reads gauges.\n\n## Daily Rituals\n\n"
        f"- **{RITUAL}** [weekdays 09:00] ({QUAY.name})\n  Participants: {people}\n  Role: {role}\n"
        "  We read the gauges of the quay, and say which one lies.\n",
    )
    return home
