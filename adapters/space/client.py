"""The client of the agent space: one connection to a room, what a SOUL knows of the room, and what it sends there.

One object for the whole process, which survives every loss of the connection. Its state is lost with the process: the
room replays its record to each newcomer.

A room is in the local network, so the connection uses no proxy, redirect or compression: it goes to the address that
discovery checked. The URL may contain a token, so the library's own request log is off.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from cachetools import FIFOCache
from websockets.asyncio.client import ClientConnection as WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from adapters.space.member import Member, NoticeKind
from adapters.space.member_cycle import Connect, Discover, MemberWait
from adapters.space.types import (
    ActionDone,
    AgentState,
    Claimed,
    Identified,
    IdentitySummary,
    Presence,
    PresenceList,
    Reflected,
    Request,
    SpaceEvent,
    StateChanged,
    Status,
    Typing,
    WorkspaceProgress,
)
from adapters.space.wire import Unreadable, decode_event, encode_event
from adapters.space.wire_fields import Chat, ChatDelivery
from common.clock import Clock, iso
from common.constants import SECOND_MS, SPACE_RECONNECT_INTERVAL_MS
from common.result import ApiResult, Err, Ok
from common.text.strings import base36

OPEN_WITHIN_S: Final = 10.0
CLOSE_WITHIN_S: Final = 1.0
MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
"""More than a room accepts from a member: the record of a busy room exceeds 1 MiB, and comes in one frame."""

_LIBRARY_LOG = logging.getLogger("adapters.space.websockets")
_LIBRARY_LOG.setLevel(logging.WARNING)
_TURNED_AWAY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True)
class Unreached:
    """No connection could be opened: the reason, and whether the room refused it (401 or 403)."""

    why: str
    refused: bool = False


class _Straight(connect):
    """A connection that follows no redirect."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def connect_to_room(url: str, *, keepalive_s: float) -> WebSocket | Unreached:
    """Connect to `url` within `OPEN_WITHIN_S`. It pings every `keepalive_s`, and waits as long for a pong."""
    try:
        async with asyncio.timeout(OPEN_WITHIN_S):
            return await _Straight(
                url,
                compression=None,
                proxy=None,
                open_timeout=None,
                ping_interval=keepalive_s,
                ping_timeout=keepalive_s,
                close_timeout=CLOSE_WITHIN_S,
                max_size=MAX_FRAME_BYTES,
                logger=_LIBRARY_LOG,
            )
    except TimeoutError:
        return Unreached(f"no answer within {OPEN_WITHIN_S:.0f} s")
    except InvalidStatus as error:
        status = error.response.status_code
        return Unreached(f"HTTP {status} instead of a room", refused=status in _TURNED_AWAY)
    except (InvalidURI, ValueError):
        return Unreached("its address is no ws:// or wss:// URL")
    except InvalidHandshake as error:
        return Unreached(f"what answers is no room ({type(error).__name__})")
    except (OSError, EOFError) as error:
        return Unreached(str(error) or type(error).__name__)


def without_secrets(url: str) -> str:
    """Return a URL without token and password, for display; "" if it is not a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/") if parts.netloc else ""


Find: TypeAlias = Callable[[], Awaitable[ApiResult[str]]]
Notify: TypeAlias = Callable[[NoticeKind, str, str], Awaitable[None]]

INBOUND_WINDOW_S: Final = 60.0
MAX_INBOUND_BYTES: Final = 64 * 1024 * 1024
"""Eight records of the largest size; a room of ten who all write without a pause sends a third of it in a minute."""
MAX_INBOUND_FRAMES: Final = 30_000
_FIND_WITHIN_S = 30.0
_SEND_WITHIN_S = 10.0
_ON_JOINED_WITHIN_S = 30.0
_DISCONNECT_WITHIN_S = 2 * CLOSE_WITHIN_S
_CLOSE_WITHIN_S = 2 * _DISCONNECT_WITHIN_S
_DELIVERIES_KEPT = 200
_YIELD_AFTER = 50  # frames, or a large one; a room that sends without a pause must not block everything else
_LARGE_CHARS = 64 * 1024
_FLOODED = "it sends more than a member can read"


class InboundLimiter:
    """Counts what comes in on one connection, in windows of a minute. Our own rooms stay below its limits."""

    def __init__(self) -> None:
        self._since = float("-inf")
        self._bytes = self._frames = 0

    def count_frame(self, size: int, now: float) -> bool:
        """Count a frame of `size` bytes or characters at `now` (monotonic s); return whether a limit is exceeded."""
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
        """Run until cancelled or closed. Must not run twice at a time."""
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
        """Make `run` return, and wait for it, at most 4 s."""
        self._closing.set()
        await first_of(self._stopped.wait(), asyncio.sleep(_CLOSE_WITHIN_S))

    async def send(self, request: Request) -> ApiResult[None]:
        """Send one frame."""
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
        """Return whether the member is about to rejoin; see `Member.renew`."""
        renewing = self._member.renew()
        if renewing:
            self._wake.set()
        return renewing

    def expect(self, chat: Chat) -> None:
        """Prepare to keep the outcome of a queued message for `delivery`."""
        self._deliveries[chat.id] = asyncio.get_running_loop().create_future()
        self._wake.set()

    async def delivery(self, chat_id: str) -> ChatDelivery | None:
        """Wait for the outcome of a message and return it; None for an unknown id."""
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
        """Receive until the connection ends, which its keepalive ensures, or exceeds the inbound limit."""
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
        """Send what is due, when it is due, until the connection must be closed."""
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
        """Wait until `until` or the member's next due time (monotonic s), or until something happens."""
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
    """Wait until one of them is done, and cancel the others. An exception of one is raised unchanged."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in doing]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failures:
        raise _first_in(failures) from None


def _first_in(failure: BaseException) -> BaseException:
    """Return the first exception inside nested groups, so that a caller handles several tasks like one."""
    return _first_in(failure.exceptions[0]) if isinstance(failure, BaseExceptionGroup) else failure


async def _disconnect(connection: WebSocket) -> None:
    """Close the connection; drop it if the other side does not answer."""
    try:
        async with asyncio.timeout(_DISCONNECT_WITHIN_S):
            await connection.close(1000, "Client disconnecting")
    except TimeoutError:
        connection.transport.abort()


KEEPALIVE_S: Final = 20.0

_FLOOD_WINDOW_S = 5.0
_MOST_IN_WINDOW = 15  # a room may cut off a member that sends more than 20 frames in 5 s, messages among them
_NOT_CONNECTED = Err("not connected to an agent space", "transient")


class SpaceClient:
    """A SOUL's membership in the agent space: `view` is what it sees of the room, `inbox` what came in.

    Args:
        agent_name: its name, unique in the room.
        agent_version: the version of this program.
        capabilities: returns which of `social`, `github`, `code` it has, called at each join; None means all.
        discover: finds the room's URL; see `discovery`.
        clock: the source of time.
        rng: spreads delays.
        reconnect_interval_s: returns the seconds between searches while there is no room; called each time.
        on_joined: called after each join, while frames are already sent and received; bounded to 30 s.
        notice: informs the owner: kind, message, detail.
        on_event: called with each event at once, for a terminal.
        keepalive_s: seconds between pings, and the time for an answer.

    """

    def __init__(
        self,
        *,
        agent_name: str,
        agent_version: str,
        capabilities: Callable[[], Sequence[str] | None],
        discover: Find,
        clock: Clock,
        rng: random.Random,
        reconnect_interval_s: Callable[[], float] = lambda: SPACE_RECONNECT_INTERVAL_MS / SECOND_MS,
        on_joined: Callable[[], Awaitable[None]] | None = None,
        notice: Notify | None = None,
        on_event: Callable[[SpaceEvent], None] | None = None,
        keepalive_s: float = KEEPALIVE_S,
    ) -> None:
        self.agent_id = f"{agent_name}-{base36(int(clock.now().timestamp() * SECOND_MS))}"
        self._member = Member(
            name=agent_name,
            agent_id=self.agent_id,
            version=agent_version,
            capabilities=capabilities,
            clock=clock,
            rng=rng,
            interval_s=reconnect_interval_s,
        )
        self.view, self.inbox = self._member.view, self._member.inbox
        self._connection = ClientConnection(
            member=self._member,
            find=discover,
            clock=clock,
            on_joined=on_joined,
            on_event=on_event,
            notice=notice,
            keepalive_s=keepalive_s,
        )
        self._clock = clock
        self._sent_at: deque[float] = deque(maxlen=_MOST_IN_WINDOW)

    @property
    def name(self) -> str:
        return self._member.name

    @property
    def refused_urls(self) -> list[str]:
        return self._member.refused_urls

    @property
    def status(self) -> Status:
        """The state of the connection."""
        return self._member.status

    @property
    def is_active(self) -> bool:
        """Whether this member is in a room and can send."""
        return self._member.is_active

    @property
    def url(self) -> str:
        """The URL of the current or the last room, without its token."""
        return without_secrets(self._connection.url)

    @property
    def room_id(self) -> str:
        """The id of the current or the last room, independent of its address; "" if the room has none."""
        return self._member.room_id

    @property
    def joins(self) -> int:
        """The number of joins in this process."""
        return self._member.joins

    async def run(self) -> None:
        """Join the room and reconnect, until cancelled or closed. Must not run twice at a time."""
        await self._connection.run()

    async def close(self) -> None:
        """Leave the room; `run` returns."""
        await self._connection.close()

    def renew(self) -> bool:
        """Rejoin if the capabilities changed since the join, which alone carries them; return whether it does.

        Must be called from time to time.
        """
        return self._connection.renew()

    async def wait_for_news(self, timeout_s: float) -> bool:
        """Wait until others said or did something since the last call; return False after `timeout_s`."""
        news = self._connection.news
        if not news.is_set():
            await first_of(news.wait(), self._clock.sleep(timeout_s))
        arrived = news.is_set()
        news.clear()
        return arrived

    def peers(self) -> dict[str, Presence]:
        """Return the other members by name, in the order in which they joined."""
        return self.view.peers()

    def has_active_claim(self, action: str, target: str) -> str | None:
        """Return the peer whose claim on the action was broadcast within the last minute, or None."""
        return self.view.claims.holder(action, target)

    async def send_chat(self, content: str) -> ApiResult[str]:
        """Queue a message, sent when the room's rate limit allows; return at once with an id for `delivered`."""
        if not self.is_active:
            return _NOT_CONNECTED
        if not content.strip():
            return Err("there is nothing to say", "invalid")
        if self._member.outgoing.is_full:
            return Err("too much waits to be said", "transient")
        chat = self._member.outgoing.add(content, self._clock.monotonic())
        self._connection.expect(chat)
        return Ok(chat.id)

    async def delivered(self, chat_id: str) -> ApiResult[bool]:
        """Wait for the outcome of a message, at most 66 s: True if the room echoed it, False if no echo came in 5 s.

        Return an `Err` if it was not sent.
        """
        delivery = await self._connection.delivery(chat_id)
        if delivery is None:
            return Err("no such message is on its way", "not_found")
        if delivery.state == "dropped":
            return Err(delivery.reason, "transient")
        return Ok(delivery.state == "echoed")

    async def send_typing(self) -> ApiResult[None]:
        """Announce that a message is being written."""
        return await self._send(Typing(*self._who, self._now()))

    async def send_identity(self, summary: IdentitySummary) -> ApiResult[None]:
        """Send our identity."""
        return await self._send(Identified(*self._who, summary, self._now()))

    async def send_claim(self, action: str, target: str) -> ApiResult[None]:
        """Claim an action, or renew a claim within each minute; `view.claims` tells if another member holds it."""
        claim = Claimed(*self._who, action, target, self._now())
        if self.is_active:
            self.view.claims.asked(action, target)
        return await self._send(claim)

    async def send_state(self, state: AgentState, detail: str = "") -> ApiResult[None]:
        """Send our state."""
        return await self._send(StateChanged(*self._who, state, self._now(), detail=detail))

    async def send_action_result(
        self, action: str, target: str, *, success: bool, link: str = "", error: str = ""
    ) -> ApiResult[None]:
        """Send the result of a claimed action, which ends the claim."""
        return await self._send(ActionDone(*self._who, action, target, success, self._now(), link=link, error=error))

    async def send_reflection(self, summary: str) -> ApiResult[None]:
        """Send a reflection."""
        return await self._send(Reflected(*self._who, summary, self._now()))

    async def send_workspace_state(
        self,
        workspace: str,
        *,
        total: float,
        completed: float,
        plan_number: float = 0,
        blocked: float = 0,
        in_progress: float = 0,
    ) -> ApiResult[None]:
        """Send the progress of a plan, in tasks."""
        counts = (plan_number, total, completed, blocked, in_progress)
        return await self._send(WorkspaceProgress(*self._who, workspace, *counts, self._now()))

    @property
    def _who(self) -> tuple[str, str]:
        return self._member.name, self.agent_id

    def _now(self) -> str:
        return iso(self._clock.now())

    async def _send(self, request: Request) -> ApiResult[None]:
        if not self.is_active:
            return _NOT_CONNECTED
        now = self._clock.monotonic()
        if len(self._sent_at) == _MOST_IN_WINDOW and now - self._sent_at[0] < _FLOOD_WINDOW_S:
            return Err("too much is told at once", "transient", retry_after=_FLOOD_WINDOW_S - (now - self._sent_at[0]))
        self._sent_at.append(now)
        return await self._connection.send(request)
