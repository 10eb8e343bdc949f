"""A whole outbox on a real file, and a small record service over real HTTP that can be told to misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx

from common.clock import FakeClock
from common.redact import Redactor
from common.result import ApiResult, Err, ErrKind, Ok
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.explanation.story import known_handles
from modules.services.outbox.bodies import IntentKind, LikeBody, PostBody, RecordRef, ReplyBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import DepartureRule, Gate, Intent, Pacing, ProposedAction, Rule, Sender, Sent
from tests.fresh_database import open_database
from tests.loopback import NO_TLS
from tests.patience import HANG_S

DID = "did:plc:soul"
KINDS: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete")
PACING = Pacing(post_s=1800, reply_s=60, like_s=45, follow_s=3600, action_s=10)
NO_PACING = Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0)

Fault = Literal["lost_request", "lost_answer", "busy", "slow_down", "who_are_you", "nonsense", "gone", "hang", "late"]
_STATUS = {"busy": 503, "slow_down": 429, "who_are_you": 401, "nonsense": 400, "gone": 410}
_MEANINGS: dict[int, tuple[str, ErrKind]] = {
    401: ("token refused", "auth"),
    400: ("not a record", "invalid"),
    410: ("account taken down", "fatal"),
}


class RecordService:
    """Stores records by key: `PUT /key` writes, `GET /key` reads. Each of `faults` affects one of the next writes.

    `late`: an earlier request that was lost arrives just before this write, which is then refused.
    """

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []
        self.faults: deque[Fault] = deque()
        self.lost: set[str] = set()
        self.down = False
        self.reached = asyncio.Event()
        self.url = ""
        self._connections: set[asyncio.StreamWriter] = set()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[RecordService]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            for writer in self._connections:
                writer.close()
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._answer(reader, writer)
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split(" ", 2)
        lengths = [line for line in head.splitlines() if line.lower().startswith("content-length:")]
        body = await reader.readexactly(int(lengths[0].split(":")[1])) if lengths else b""
        key = path.lstrip("/")
        fault = self.faults.popleft() if method == "PUT" and self.faults and not self.down else None
        self.reached.set()
        if self.down:
            return _reply(writer, 503, {})
        if method == "GET":
            return _reply(writer, 200 if key in self.records else 404, self.records.get(key, {}))
        if fault in _STATUS:
            return _reply(writer, _STATUS[fault], {})
        if fault == "lost_request":
            self.lost.add(key)
        else:
            self.writes.append(key)
            self.records[key] = json.loads(body)
        if fault == "hang":
            await reader.read()
        status = 400 if fault == "late" and key in self.lost else 200
        return None if fault in {"lost_request", "lost_answer", "hang"} else _reply(writer, status, {})


def _reply(writer: asyncio.StreamWriter, status: int, body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    extra = "Retry-After: 120\r\n" if status == _STATUS["slow_down"] else ""
    writer.write(
        f"HTTP/1.1 {status} X\r\n{extra}Connection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
    )


@dataclass
class HttpSender:
    """Sends to the record service, and translates its answers."""

    client: httpx.AsyncClient

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        try:
            response = await self.client.put(f"/{intent.rkey}", json={"target": intent.target, **intent.body.stored()})
        except httpx.ConnectError as error:
            return Err(str(error), "transient")
        except httpx.TransportError as error:
            return Err(f"no answer: {error}", "unknown_outcome")
        if response.status_code == 200:
            return Ok(Sent(uri=f"at://{DID}/{intent.kind}/{intent.rkey}", kind="record", id="cid"))
        meaning, kind = _MEANINGS.get(response.status_code, ("unable", "transient"))
        after = response.headers.get("retry-after")
        return Err(meaning, kind, response.status_code, float(after) if after else None)

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        try:
            response = await self.client.get(f"/{intent.rkey}")
        except httpx.TransportError as error:
            return Err(str(error), "transient")
        if response.status_code == 503:
            return Err("status 503", "transient", 503)
        if response.status_code == 404:
            return Ok(None)
        return Ok(Sent(uri=f"at://{DID}/{intent.kind}/{intent.rkey}", kind="record", id="cid"))


async def _confirmed() -> str:
    return ""


@dataclass
class RunningOutbox:
    """A running outbox with its file, terminal and clock, and the service to which it writes."""

    path: Path
    service: RecordService
    clock: FakeClock = field(default_factory=FakeClock)
    console: SilentConsole = field(default_factory=SilentConsole)
    pacing: Pacing = PACING
    rules: Sequence[Rule] = ()
    gates: Sequence[Gate] = ()
    at_departure: Sequence[DepartureRule] = ()
    senders: dict[IntentKind, Sender] = field(default_factory=dict)
    confirm: Callable[[], Awaitable[str]] = _confirmed
    sender_deadline_s: float = 60
    database: Database = field(init=False)
    journal: Journal = field(init=False)
    outbox: Outbox = field(init=False)
    client: httpx.AsyncClient = field(init=False)

    async def wake(self) -> None:
        self.database = await open_database(self.path)
        self.journal = Journal(
            self.database, self.console, self.clock, Redactor(["hunter2-hunter2"]), handles=known_handles
        )
        self.client = httpx.AsyncClient(base_url=self.service.url, timeout=HANG_S, verify=NO_TLS)
        sender: Sender = HttpSender(self.client)
        self.outbox = Outbox(
            database=self.database,
            journal=self.journal,
            clock=self.clock,
            senders={**dict.fromkeys(KINDS, sender), **self.senders},
            pacing=self.pacing,
            rules=self.rules,
            gates=self.gates,
            at_departure=self.at_departure,
            own_did=lambda: DID,
            confirm=self.confirm,
            sender_deadline_s=self.sender_deadline_s,
        )

    async def sleep(self) -> None:
        await self.client.aclose()
        await self.database.close()

    async def deliver(self, intent_id: str) -> Intent:
        """Run one round of deliveries; return the intent as it is after that."""
        await self.outbox.deliver_due()
        intent = await self.outbox.get(intent_id)
        assert intent is not None
        return intent

    async def restart(self) -> None:
        await self.sleep()
        await self.wake()

    async def die_while_sending(self) -> None:
        """Die like after kill -9, and restart: the request has left, and its answer was neither read nor stored."""
        self.service.faults.clear()
        self.service.faults.append("hang")
        self.service.reached.clear()
        task = asyncio.create_task(self.outbox.deliver_due())
        reached = asyncio.create_task(self.service.reached.wait())
        await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)
        for one in (task, reached):
            one.cancel()
        await asyncio.gather(task, reached, return_exceptions=True)
        self.service.faults.clear()
        await self.restart()

    async def drain(self, seconds: float, step_s: float = 10) -> None:
        """Let `seconds` pass, a step at a time, and deliver at each step."""
        for _ in range(int(seconds / step_s)):
            await self.outbox.deliver_due()
            await self.clock.advance(step_s)
        await self.outbox.deliver_due()

    def messages(self) -> list[str]:
        return [f"{message} | {detail}" for _, message, detail in self.console.lines]


def reply(target: str, text: str, *, urgent: bool = False) -> ProposedAction:
    return ProposedAction(
        ReplyBody(text=text, parent=RecordRef(uri=target, cid="cid"), root=RecordRef(uri=target, cid="cid")),
        cause_id=target,
        urgent=urgent,
    )


def post(text: str, media_id: str | None = None) -> ProposedAction:
    return ProposedAction(PostBody(text=text), media_id=media_id, cause_id="expression")


def like(target: str) -> ProposedAction:
    return ProposedAction(LikeBody(uri=target, cid="c"), cause_id=target)


@contextlib.asynccontextmanager
async def open_running_outbox(folder: Path) -> AsyncIterator[RunningOutbox]:
    """Open an outbox that is awake, with a service that stores its records; it sleeps again at the end."""
    async with RecordService().serving() as service:
        running_outbox = RunningOutbox(folder / "soul.db", service)
        await running_outbox.wake()
        yield running_outbox
        await running_outbox.sleep()
