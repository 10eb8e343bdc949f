"""A SOUL's commitments with all that carries them out: a real outbox, a real room, and the town's GitHub over HTTP."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from adapters.space.client import SpaceClient
from adapters.space.server import SpaceServer
from adapters.space.types import SpaceEvent
from adapters.space.wire_fields import SPACING_S
from common.clock import Clock, FakeClock, SystemClock
from common.redact import Redactor
from common.result import ApiResult, Ok
from common.settings import Approval
from modules.runtime.console import SilentConsole
from modules.runtime.control import Standing
from modules.runtime.events import Event as BusEvent
from modules.runtime.journal.rows import Journal
from modules.runtime.scheduler.scheduler import Attention
from modules.services.commitments.acts import CommitmentAbandoned, CommitmentsReady
from modules.services.commitments.handle import CommitmentHandler, CommitmentPresence
from modules.services.commitments.naming import CommitmentRequest, QueuedCommitment
from modules.services.commitments.policy import COMMITMENT_CHECK_INTERVAL_MS
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.writer import Announcer, CommitmentWriter
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.gates import SecretScan
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.approval import ApprovalRule
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.rules import World
from modules.services.outbox.senders.github import GitHubSender
from modules.services.outbox.senders.space import EchoLog, SpaceSender
from modules.services.outbox.types import Intent, Pacing, Sent
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WorkTable
from soul.composition.wiring.commitments import COMMITMENTS
from tests.fresh_database import open_database
from tests.hasty_clock import SetAhead
from tests.loopback import github_at
from tests.patience import HANG_S, until, while_time_passes
from tests.shipped_skills import phrase
from tests.trusting import identity_of
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubFaults, StoredIssue, StoredRepo
from town.serving import serve

LOGIN, DID = "rowan-soul", "did:plc:rowan"
SECRET = "hunter2-hunter2"
PACING = Pacing(post_s=1800, reply_s=60, like_s=45, follow_s=3600, action_s=10)
ON_BLUESKY: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete")


@dataclass
class BlueskyRecords:
    """Stands in for Bluesky: stores the record of each intent under its own key."""

    records: dict[str, Intent] = field(default_factory=dict)

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        self.records[intent.rkey] = intent
        return Ok(self._sent(intent))

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        return Ok(self._sent(intent) if intent.rkey in self.records else None)

    @staticmethod
    def _sent(intent: Intent) -> Sent:
        return Sent(f"at://{DID}/app.bsky.feed.post/{intent.rkey}", "record", f"cid-{intent.rkey}")


@dataclass
class Town:
    """The world around the SOUL: GitHub with the repository acme/site, and a room."""

    url: str
    network: GitHubNetwork
    faults: GitHubFaults
    repo: StoredRepo
    server: SpaceServer
    clock: SetAhead

    def later(self) -> None:
        """Advance the clock past the pause between two messages that a room requires."""
        self.clock.ahead += SPACING_S

    def issues(self) -> list[StoredIssue]:
        return [issue for issue in self.repo.issues.values() if issue is not None]


@dataclass
class SoulInTown:
    """One SOUL. `wake` builds it from what is on disk; `sleep` ends it."""

    folder: Path
    town: Town
    clock: FakeClock = field(default_factory=FakeClock)
    console: SilentConsole = field(default_factory=SilentConsole)
    bluesky: BlueskyRecords = field(default_factory=BlueskyRecords)
    approval: Approval = "off"
    with_room: bool = True
    github_account: bool = True
    social_only: bool = False
    writer: CommitmentWriter | None = None
    attention: Attention = field(default_factory=Attention)
    abandoned: list[str] = field(default_factory=list)
    knows_room: bool = True
    pause: str = ""
    room: SpaceClient | None = None

    async def wake(self) -> None:
        self.database = await open_database(self.folder / "soul.db")
        redactor = Redactor([SECRET])
        self.journal = Journal(self.database, self.console, self.clock, redactor)
        account = self.town.network.find(LOGIN)
        login = LOGIN if self.github_account else ""
        token = account.token if account and self.github_account else ""
        self.github = github_at(self.town.url, login, self.clock, token, timeout_s=HANG_S)
        echo_log = EchoLog("rowan")
        self.room = (
            member(self.town.server.port, "rowan", echo_log.receive, clock=self.town.clock) if self.with_room else None
        )
        self.space_sender = SpaceSender(self.room, echo_log, self.journal)
        if self.room is not None:
            self._living = asyncio.create_task(self.room.run())
            await until(lambda: self.room is not None and self.room.is_active)
        world = World(
            own_did=lambda: DID,
            own_handle=lambda: "rowan.test",
            owner=lambda: ("did:plc:owner",),
            peers=tuple,
            follows_us=lambda *_: False,
            born_at=lambda: None,
            github=lambda: (LOGIN, "owner-hub"),
        )
        etiquette = Etiquette(world=world, database=self.database, clock=self.clock)
        github, approval = GitHubSender(identity_of(self.github, self.clock)), ApprovalRule(self.approval, world.circle)
        self.outbox = Outbox(
            database=self.database,
            journal=self.journal,
            clock=self.clock,
            senders={
                **dict.fromkeys(ON_BLUESKY, self.bluesky),
                "issue": github,
                "issue_comment": github,
                "space_chat": self.space_sender,
            },
            pacing=PACING,
            rules=(SecretScan(redactor), etiquette, approval),
            gates=(self.space_sender.gate, etiquette.gate),
            at_departure=(approval.at_departure,),
            own_did=lambda: DID,
        )
        table = WorkTable(self.database, self.clock)
        self.queue = CommitmentQueue(self.folder, table, self.clock, social_only=self.social_only, publish=self._told)
        await self.queue.open()
        handler = CommitmentHandler(
            queue=self.queue,
            outbox=self.outbox,
            clock=self.clock,
            phrase=phrase,
            announcer=Announcer(
                self.outbox,
                self.clock,
                phrase=phrase,
                writer=self.writer,
                attention=self.attention,
                publish=self._told,
                where=self.space_sender.where,
            ),
            presence=CommitmentPresence(self.room, self.clock),
            journal=self.journal,
            has_github=self.github.configured,
            social_only=self.social_only,
            knows_room=lambda: self.knows_room,
            pause=lambda: self.pause,
            was_delivered=self.space_sender.was_delivered,
        )
        self.loop = WorkLoop(
            name=COMMITMENTS,
            every_ms=COMMITMENT_CHECK_INTERVAL_MS,
            table=table,
            handlers=(handler,),
            perceivers=(handler,),
            accepted=self.outbox.accepted,
            journal=self.journal,
            attention=Attention(),
            clock=self.clock,
            standing=Standing,
        )

    def _told(self, event: BusEvent) -> None:
        if isinstance(event, CommitmentsReady):
            self.loop.wake()
        elif isinstance(event, CommitmentAbandoned):
            self.abandoned.append(event.commitment.id)

    async def sleep(self) -> None:
        if self.room is not None:
            await self.room.close()
            await self._living
        await self.github.aclose()
        await self.database.close()

    async def restart(self) -> None:
        await self.sleep()
        await self.wake()

    async def enqueue(self, request: CommitmentRequest) -> QueuedCommitment:
        commitment = (await self.queue.enqueue_commitment(request)).commitment
        assert commitment is not None
        return commitment

    async def live(self, seconds: float = 30, step_s: float = 1) -> None:
        """Let `seconds` pass in steps; each step runs the work loop and delivers what is due."""
        for _ in range(int(seconds / step_s)):
            await self.loop.run()
            await while_time_passes(self.clock, self.outbox.deliver_due())
            await self.clock.advance(step_s)
        await self.loop.run()

    def status(self, commitment: QueuedCommitment) -> QueuedCommitment:
        found = self.queue.get(commitment.id)
        assert found is not None
        return found

    def told(self) -> list[str]:
        return [f"{message} | {detail}" for _, message, detail in self.console.lines]


@dataclass
class Listener:
    """A peer in the room, and the chats that it received."""

    client: SpaceClient
    chats: list[str] = field(default_factory=list)

    async def receives(self, count: int) -> list[str]:
        """Wait until it has received `count` chats, and return all of them."""

        def enough() -> bool:
            self._listen()
            return len(self.chats) >= count

        await until(enough)
        return self.chats

    async def receives_from(self, name: str) -> None:
        """Wait until `name` has spoken; its chats are not kept."""
        await until(lambda: name in self._listen(leave_out=name))

    def _listen(self, leave_out: str = "") -> set[str]:
        received = self.client.inbox.take_messages()
        self.chats += [said.content for said in received if said.name != leave_out]
        return {said.name for said in received}


@asynccontextmanager
async def open_town() -> AsyncIterator[Town]:
    """Open a world with nobody in it yet."""
    async with AsyncExitStack() as stack:
        clock = SetAhead()
        network, faults, server = GitHubNetwork(clock=clock), GitHubFaults(), SpaceServer(clock=clock)
        network.create_account(LOGIN)
        repo = network.create_repo(network.create_account("acme"), "site")
        url = await stack.enter_async_context(serve(github_app(network, faults=faults)))
        await server.start(0)
        stack.push_async_callback(server.stop)
        yield Town(url, network, faults, repo, server, clock)


@asynccontextmanager
async def listening(town: Town, name: str = "marvin") -> AsyncIterator[Listener]:
    """Join the room as another member."""
    async with listening_at(town.server.port, name, town.clock) as listener:
        yield listener


@asynccontextmanager
async def listening_at(port: int, name: str = "marvin", clock: Clock | None = None) -> AsyncIterator[Listener]:
    """Join the room at this port as another member."""
    client = member(port, name, clock=clock)
    living = asyncio.create_task(client.run())
    await until(lambda: client.is_active)
    try:
        yield Listener(client)
    finally:
        await client.close()
        await living


def member(
    port: int, name: str, on_event: Callable[[SpaceEvent], None] | None = None, *, clock: Clock | None = None
) -> SpaceClient:
    """Return a member of the room that has not joined yet; its clock is real unless `clock` is given."""

    async def discover() -> ApiResult[str]:
        return Ok(f"ws://127.0.0.1:{port}")

    return SpaceClient(
        agent_name=name,
        agent_version="1",
        capabilities=lambda: None,
        discover=discover,
        clock=clock or SystemClock(),
        rng=random.Random(1),
        on_event=on_event,
    )
