"""A room with SOULs in it for tests: real server, real members, minds over HTTP; tests run each check themselves."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.space.chatlog import ChatLog
from adapters.space.client import SpaceClient
from adapters.space.server import LogLevel, SpaceServer
from adapters.space.types import ELECTION_RULES, Said, SpaceEvent
from adapters.space.wire_fields import SPACING_S
from common.clock import Clock, SystemClock
from common.result import ApiResult, Ok
from common.schemas import SPACE_DECISION_TOOL
from common.text.host_intent import classify_host_intent_structural
from common.version import __version__
from modules.lives.space.config import SPACE_CONFIG_FILE, SpaceConfigFile
from modules.lives.space.types import Check, HostLine, IntentClassifier, Meaning
from modules.runtime.console import SilentConsole
from modules.runtime.events import EventBus
from modules.runtime.home import Home
from modules.runtime.journal.types import Entry, StoredEntry
from modules.runtime.scheduler.policy import Outcome
from modules.services.commitments.acts import CommitmentAbandoned
from modules.services.commitments.naming import QueuedCommitment
from modules.services.commitments.queue import CommitmentQueue
from soul.app import open_soul
from soul.composition.wiring.commitments import build_commitment_writer
from soul.composition.wiring.space import RoomSeat, SpaceLife, build_experiences, take_seat
from soul.resources import SKILLS
from tests.hasty_clock import HastyClock
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, call, settings_of
from town.model.types import ChatRequest, Completion

Decide = Callable[[ChatRequest], Completion]

REQUEST = "Can you open an issue about the clock in github.com/acme/site?"
QUESTION = "Which roof do you like, tin or slate?"
TIN = "Tin sings in the rain, slate only listens; I would take the one that sings."


class RoomClock(SystemClock):
    """Real time of a room and its members, which jumps by one speaking pause after each message."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@dataclass
class Onlooker:
    """The host's view: keeps the room's events and log lines."""

    clock: Clock | None = None
    seen: list[SpaceEvent] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)

    def happened(self, event: SpaceEvent) -> None:
        self.seen.append(event)
        if isinstance(event, Said) and isinstance(self.clock, RoomClock):
            self.clock.ahead += SPACING_S

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        self.logged.append(f"{level} {message} {detail}")

    def said(self, name: str) -> list[str]:
        return [event.content for event in self.seen if isinstance(event, Said) and event.name == name]

    def chats(self) -> list[Said]:
        """Return the messages of agents, oldest first."""
        return [event for event in self.seen if isinstance(event, Said) and not event.by_host]


def speaks(message: str, *commitments: dict[str, Any], **more: Any) -> Completion:
    """Return the completion of a mind that speaks."""
    said = {"shouldSpeak": True, "reason": "a test", "message": message, "commitments": list(commitments), **more}
    return call(SPACE_DECISION_TOOL, **said)


def declines(reason: str = "nothing to add", **more: Any) -> Completion:
    """Return the completion of a mind that stays silent."""
    return call(SPACE_DECISION_TOOL, shouldSpeak=False, reason=reason, **more)


def an_issue(title: str = "Clock stops", repo: str = "acme/site", **more: Any) -> dict[str, Any]:
    """Return a complete commitment to create an issue."""
    body = "The clock of the page stops at midnight and shows dashes until the page is loaded again by hand."
    return {"type": "create_issue", "repo": repo, "title": title, "description": body, **more}


class ByForm:
    """Classifies the host's messages by form alone; keeps what it was `asked`, and is unsure of `unsettled` lines."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.unsettled: set[str] = set()

    async def classify_host_messages(self, lines: Sequence[HostLine]) -> list[Meaning]:
        self.asked += [line.content for line in lines]
        return [Meaning(classify_host_intent_structural(line.content).intent) for line in lines]

    async def taken_back(self, line: HostLine, asked: Sequence[str]) -> list[int]:
        return [len(asked) - 1] if line.content else []

    def is_settled(self, line: HostLine) -> bool:
        return line.content not in self.unsettled

    def clear(self) -> None:
        """Do nothing, since nothing is kept."""


class WordsJudge:
    """Confirms each fault that the words suggest, and finds no echo."""

    async def is_echo_by_llm_judge(self, candidate: str, peers: Sequence[str]) -> bool:
        return False

    async def has_fault(self, check: Check, candidate: str, said: Sequence[str]) -> bool:
        return True

    def clear(self) -> None:
        """Do nothing, since nothing is kept."""


@dataclass
class Agent:
    """A SOUL in the room."""

    life: RunningSoul
    space: SpaceLife
    client: SpaceClient
    queue: CommitmentQueue
    clock: HastyClock
    mute_reason: list[str]
    mute_unasked: list[str]
    found: list[str]
    """Holds something if the room was only found on the network."""

    async def check(self, meanwhile: Callable[[], Awaitable[None]] | None = None) -> Outcome:
        """Run one check as the loop does, and those that it asks for while a message waits for its moment.

        `meanwhile` runs once, before that moment comes.
        """
        outcome = await self.space.loop.run()
        while self.space.participation.waits:
            if meanwhile:
                await meanwhile()
                meanwhile = None
            self.later(outcome.next_in_s or 0.0)
            outcome = await self.space.loop.run()
        return outcome

    async def receives(self, text: str) -> None:
        """Wait until the room's message `text` has reached this SOUL."""
        talk = self.client._member.inbox

        def there() -> bool:
            return any(said.content == text for said in talk._messages)

        await until(there)

    def queued_commitments(self) -> list[QueuedCommitment]:
        return self.queue.all()

    def lines(self) -> list[str]:
        """Return the owner's console lines of this life, without `[space] `."""
        lines = [message for _, message, _ in self.life.console.lines]
        return [line.removeprefix("[space] ") for line in lines if line.startswith("[space] ")]

    async def entries(self) -> list[StoredEntry]:
        found = await self.life.app.services.journal.recent(200)
        return [one for one in reversed(found) if one.entry.loop == "space-participation"]

    def later(self, seconds: float) -> None:
        """Let time pass for this SOUL."""
        self.clock.ahead += seconds


@dataclass
class Room:
    """A room and its host, which SOULs and other members can join."""

    running_town: RunningTown
    server: SpaceServer
    host: Onlooker
    clock: Clock

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.server.port}"

    async def says(self, text: str, *hearers: Agent) -> None:
        """Let the host speak, and wait until `hearers` have received it."""
        self.server.broadcast_from_host(text)
        for agent in hearers:
            await agent.receives(text)

    @asynccontextmanager
    async def soul(
        self,
        name: str,
        decide: Decide | None = None,
        *,
        social_only: bool = False,
        settings: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        skills: Path = SKILLS,
        asks_intents: bool = False,
    ) -> AsyncIterator[Agent]:
        """Let a SOUL join. With `decide`, all minds of this town answer by it.

        `asks_intents`: its mind is asked what the host means wherever the form of the words does not show it.
        """
        if decide:
            self.running_town.mind.answer = decide
        home = self.running_town.make_home(name, **(settings or {}))
        async with asleep(home, social_only=social_only, skills=skills) as life:
            able = ("social",) if social_only else ("social", "github", "code")
            capabilities = (*able, *ELECTION_RULES)
            async with self.member(name, capabilities, clock) as client:
                agent = _agent(life, client, social_only=social_only, asks_intents=asks_intents)
                await agent.queue.open()
                yield agent

    @asynccontextmanager
    async def member(
        self, name: str, capabilities: tuple[str, ...] | None = ("social", "github", "code"), clock: Clock | None = None
    ) -> AsyncIterator[SpaceClient]:
        """Let a member join whose messages the test chooses."""

        async def discover() -> ApiResult[str]:
            return Ok(self.url)

        client = SpaceClient(
            agent_name=name,
            agent_version=__version__,
            capabilities=lambda: capabilities,
            discover=discover,
            clock=clock or self.clock,
            rng=random.Random(1),
        )
        running = asyncio.create_task(client.run())
        try:
            await until(lambda: client.is_active)
            yield client
        finally:
            await client.close()
            await running


@asynccontextmanager
async def asleep(home: Home, *, social_only: bool, skills: Path = SKILLS) -> AsyncIterator[RunningSoul]:
    """Build a SOUL that is not logged in anywhere, since the room needs no login."""
    console = SilentConsole()
    async with open_soul(
        settings_of(home),
        home,
        console=console,
        clock=SystemClock(),
        rng=random.Random(1),
        social_only=social_only,
        skills_folder=skills,
    ) as app:
        yield RunningSoul(app, console, app.services.clock)


@asynccontextmanager
async def open_room(running_town: RunningTown, *, log: bool = False, clock: Clock | None = None) -> AsyncIterator[Room]:
    """Open an empty room on loopback; with `clock`, the room's machine has that clock and its members do not."""
    time = clock or RoomClock()
    host = Onlooker(time)
    record = ChatLog(running_town.root / "space") if log else None
    server = SpaceServer(record, host, clock=time)
    started = await server.start(0)
    assert isinstance(started, Ok)
    room = Room(running_town, server, host, SystemClock() if clock else time)
    try:
        yield room
    finally:
        await room.server.stop()
        if record:
            record.close()


def asked_of(running_town: RunningTown, purpose: str) -> list[str]:
    """Return the last message of each request to the mind, where it contains `purpose`."""
    texts = [request.messages[-1].text for request in running_town.mind.asked]
    return [text for text in texts if purpose in text]


def _agent(life: RunningSoul, client: SpaceClient, *, social_only: bool, asks_intents: bool) -> Agent:
    services, clock = life.app.services, HastyClock()
    mute_reason: list[str] = []
    mute_unasked: list[str] = []
    found: list[str] = []
    bus = EventBus(services.journal)
    queue = CommitmentQueue(
        services.home.memory,
        services.work,
        clock,
        social_only=social_only,
        redactor=services.redactor,
        publish=bus.publish,
    )
    turn_services = life.app.lives.turn_services
    seat = RoomSeat(
        client=client,
        config=SpaceConfigFile(services.home.memory / SPACE_CONFIG_FILE, clock),
        queue=queue,
        writer=build_commitment_writer(services, turn_services.sentences),
        intents=_asking(life) if asks_intents else ByForm(),
        judge=WordsJudge(),
        first_look=None,
        mute_reason=lambda: "; ".join(mute_reason),
        mute_unasked=lambda: "; ".join((*mute_reason, *mute_unasked)),
        is_trusted_room=lambda: not found,
        social_only=social_only,
        clock=clock,
        rng=random.Random(3),
    )
    space = take_seat(services, turn_services, seat, build_experiences(services, seat))
    bus.subscribe(CommitmentAbandoned, lambda event: space.participation.given_up(event.commitment))
    return Agent(life, space, client, queue, clock, mute_reason, mute_unasked, found)


def _asking(life: RunningSoul) -> IntentClassifier:
    return life.app.lives.space.participation.snapshots.intents


def in_turn(*model_calls: Completion) -> Callable[[ChatRequest], Completion]:
    """Return a mind that gives these answers one by one, and then repeats the last."""
    left = list(model_calls)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def summaries(agent: Agent) -> list[str]:
    return [one.entry.summary.removeprefix("[space] ") for one in await agent.entries()]


async def decision(agent: Agent, summary: str) -> Entry:
    (found,) = [one.entry for one in await agent.entries() if one.entry.summary == f"[space] {summary}"]
    return found


def labelling(label: str, *words: str, decide: Decide) -> Decide:
    """Return a mind that labels a host message `label` if it is shown all of `words`, else DISCUSSION."""

    def respond(request: ChatRequest) -> Completion:
        text = request.messages[-1].text
        if "Label:" in text:
            return Completion(text=label if all(one in text for one in words) else "DISCUSSION")
        return decide(request)

    return respond
