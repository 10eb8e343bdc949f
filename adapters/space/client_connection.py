"""The connection of a member to its room: the loop that connects, receives, sends and reconnects.

The I/O around the protocol core `member`: it moves bytes and waits for times. Every wait for the room has a deadline,
so that a silent room cannot block a SOUL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeAlias

from cachetools import FIFOCache
from websockets.asyncio.client import ClientConnection as WebSocket
from websockets.exceptions import ConnectionClosed

from adapters.space.connecting import CLOSE_WITHIN_S, Unreached, connect_to_room, without_secrets
from adapters.space.member import Member, NoticeKind
from adapters.space.member_cycle import Connect, Discover, MemberWait
from adapters.space.outgoing import Chat, ChatDelivery
from adapters.space.types import PresenceList, Request, SpaceEvent, StateChanged, Typing
from adapters.space.wire import Unreadable, decode_event, encode_event
from common.clock import Clock
from common.result import ApiResult, Err, Ok
from common.tasks import first_failure

Find: TypeAlias = Callable[[], Awaitable[ApiResult[str]]]
Notify: TypeAlias = Callable[[NoticeKind, str, str], Awaitable[None]]

INBOUND_WINDOW_S: Final = 60.0
MAX_INBOUND_BYTES: Final = 64 * 1024 * 1024
"""Eight records of the largest size; a room of ten who all talk without a pause sends a third of it in a minute."""
MAX_INBOUND_FRAMES: Final = 30_000
_FIND_WITHIN_S = 30.0
_SEND_WITHIN_S = 10.0
_ON_JOINED_WITHIN_S = 30.0
_DISCONNECT_WITHIN_S = 2 * CLOSE_WITHIN_S
_CLOSE_WITHIN_S = 2 * _DISCONNECT_WITHIN_S
_DELIVERIES_KEPT = 200
_YIELD_AFTER = 50  # frames, or a large one; a room that talks without a pause must not hold up everything else
_LARGE_CHARS = 64 * 1024
_FLOODED = "it sends more than a member can read"


class InboundLimiter:
    """Counts what comes in on one connection, in windows of a minute. A room of ours stays below its limits."""

    def __init__(self) -> None:
        self._since = float("-inf")
        self._bytes = self._frames = 0

    def count_frame(self, size: int, now: float) -> bool:
        """Counts a frame of `size` bytes or characters at `now` (monotonic s); returns whether a limit is passed."""
        if now - self._since >= INBOUND_WINDOW_S:
            self._since, self._bytes, self._frames = now, 0, 0
        self._bytes += size
        self._frames += 1
        return self._bytes > MAX_INBOUND_BYTES or self._frames > MAX_INBOUND_FRAMES


class ClientConnection:
    """Keeps `member` in its room. `url` includes the token; `news` is set when other members did something."""

    def __init__(
        self,
        *,
        member: Member,
        find: Find,
        clock: Clock,
        on_joined: Callable[[], Awaitable[None]] | None,
        on_event: Callable[[SpaceEvent], None] | None,
        notice: Notify | None,
        keepalive_s: float,
    ) -> None:
        self.url = ""
        self.news = asyncio.Event()
        self._member = member
        self._find = find
        self._clock = clock
        self._on_joined = on_joined
        self._on_event = on_event
        self._notice = notice
        self._keepalive_s = keepalive_s
        self._connection: WebSocket | None = None
        self._flooded = False
        self._deliveries = FIFOCache[str, asyncio.Future[ChatDelivery]](_DELIVERIES_KEPT)
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def run(self) -> None:
        """Runs until cancelled or closed. Must not run twice at a time."""
        if not self._stopped.is_set():
            raise RuntimeError("this member lives already")
        self._stopped.clear()
        try:
            await first_of(self._run_cycle(), self._closing.wait())
        finally:
            self._member.outgoing.close("we left the agent space")
            self._settle()
            self._stopped.set()

    async def close(self) -> None:
        """Makes `run` return, and waits for it, at most 4 s."""
        self._closing.set()
        await first_of(self._stopped.wait(), asyncio.sleep(_CLOSE_WITHIN_S))

    async def send(self, request: Request) -> ApiResult[None]:
        """Sends one frame."""
        connection = self._connection
        if connection is None:
            return Err("not connected to an agent space", "transient")
        try:
            async with asyncio.timeout(_SEND_WITHIN_S):
                await connection.send(encode_event(request))
        except TimeoutError:
            connection.transport.abort()
            return Err(f"the room took nothing for {_SEND_WITHIN_S:.0f} s", "unknown_outcome")
        except ConnectionClosed:
            return Err("the connection was lost", "unknown_outcome")
        return Ok(None)

    def renew(self) -> bool:
        """Returns whether the member is about to rejoin; see `Member.renew`."""
        renewing = self._member.renew()
        if renewing:
            self._wake.set()
        return renewing

    def expect(self, chat: Chat) -> None:
        """Keeps the outcome of a queued message for `delivery`."""
        self._deliveries[chat.id] = asyncio.get_running_loop().create_future()
        self._wake.set()

    async def delivery(self, chat_id: str) -> ChatDelivery | None:
        """Waits for the outcome of a message; None for an unknown id."""
        waiting = self._deliveries.get(chat_id)
        return await asyncio.shield(waiting) if waiting else None

    async def _run_cycle(self) -> None:
        while True:
            match self._member.step():
                case MemberWait(until):
                    await self._wait_until(until)
                case Discover():
                    await self._discover()
                case Connect(url):
                    await self._stay_connected(url)
            await self._report()

    async def _discover(self) -> None:
        found: ApiResult[str]
        try:
            async with asyncio.timeout(_FIND_WITHIN_S):
                found = await self._find()
        except TimeoutError:
            found = Err(f"looking for it did not end within {_FIND_WITHIN_S:.0f} s", "transient")
        if isinstance(found, Err):
            self._member.not_found(found.error)
            return
        self._member.found(found.data)
        await self._notify("info", "Space discovered", without_secrets(found.data))

    async def _stay_connected(self, url: str) -> None:
        self.url = url
        connection = await connect_to_room(url, keepalive_s=self._keepalive_s)
        if isinstance(connection, Unreached):
            self._member.ended(why=connection.why, refused=connection.refused)
            return
        self._connection, self._flooded = connection, False
        try:
            await self.send(self._member.opened())
            await first_of(self._receive(connection), self._send_due())
        finally:
            self._connection = None
            await _disconnect(connection)
            why = _FLOODED if self._flooded else connection.close_reason or "the connection was lost"
            self._member.ended(connection.close_code, why, refused=self._flooded)

    async def _receive(self, connection: WebSocket) -> None:
        """Receives until the connection ends, which its keepalive ensures, or exceeds the inbound limit."""
        joins, frames, inbound = self._member.joins, 0, InboundLimiter()
        async with asyncio.TaskGroup() as group:
            greeting: asyncio.Task[None] | None = None
            while True:
                try:
                    raw = await connection.recv()
                except ConnectionClosed:
                    break
                self._flooded = inbound.count_frame(len(raw), self._clock.monotonic())
                if self._flooded:
                    break
                event = decode_event(raw)
                if isinstance(event, Unreadable):
                    self._member.unreadable(event.reason)
                else:
                    self._handle(event)
                if greeting is None and self._member.joins > joins:
                    greeting = group.create_task(self._call_on_joined())
                frames += 1
                if frames % _YIELD_AFTER == 0 or len(raw) > _LARGE_CHARS:
                    await asyncio.sleep(0)
            if greeting:
                greeting.cancel()

    def _handle(self, told: SpaceEvent) -> None:
        event = self._member.received(told)
        if self._on_event:
            self._on_event(event)
        ours = getattr(event, "name", "") == self._member.name
        if not ours and not isinstance(event, Typing | PresenceList | StateChanged):
            self.news.set()
        self._wake.set()

    async def _send_due(self) -> None:
        """Sends what is due, when it is due, until the connection must be closed."""
        while not self._member.overdue():
            if (said := self._member.due()) is not None:
                await self.send(said)
            await self._report()
            await self._wait_until(self._member.next_at())

    async def _call_on_joined(self) -> None:
        await self._notify("info", "Joined agent space", without_secrets(self.url))
        if self._on_joined is None:
            return
        try:
            async with asyncio.timeout(_ON_JOINED_WITHIN_S):
                await self._on_joined()
        except Exception as error:
            await self._notify("warn", "We could not introduce ourselves in the agent space", repr(error))

    async def _wait_until(self, until: float | None) -> None:
        """Waits until `until` or the member's next due time (monotonic s), or until something happens."""
        moments = [moment for moment in (until, self._member.next_at()) if moment is not None]
        if not self._wake.is_set():
            if moments:
                await first_of(self._wake.wait(), self._clock.sleep(min(moments) - self._clock.monotonic()))
            else:
                await self._wake.wait()
        self._wake.clear()

    async def _report(self) -> None:
        self._settle()
        for notice in self._member.take_notices():
            await self._notify(notice.kind, notice.message, notice.detail)

    def _settle(self) -> None:
        for delivery in self._member.settle():
            waiting = self._deliveries.get(delivery.chat.id)
            if waiting and not waiting.done():
                waiting.set_result(delivery)

    async def _notify(self, kind: NoticeKind, message: str, detail: str) -> None:
        if self._notice:
            await self._notice(kind, message, detail)


async def first_of(*doing: Coroutine[Any, Any, object]) -> None:
    """Waits until one of them is done, and cancels the others. An exception of one is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in doing]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failures:
        raise first_failure(failures) from None


async def _disconnect(connection: WebSocket) -> None:
    """Closes the connection; drops it if the other side does not answer."""
    try:
        async with asyncio.timeout(_DISCONNECT_WITHIN_S):
            await connection.close(1000, "Client disconnecting")
    except TimeoutError:
        connection.transport.abort()
