"""The client of the agent space: what a SOUL knows of its room, what it received there, and what it sends.

One object for the whole process, which survives every loss of the connection (`client_connection`). Its state is lost
with the process: the room replays its record to each newcomer.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from adapters.space.client_connection import ClientConnection, Find, Notify, first_of
from adapters.space.connecting import without_secrets
from adapters.space.member import Member
from adapters.space.types import (
    ActionDone,
    AgentState,
    Claimed,
    Identified,
    IdentitySummary,
    Presence,
    Reflected,
    Request,
    Said,
    SpaceEvent,
    StateChanged,
    Status,
    Typing,
    WorkspaceProgress,
)
from common.clock import Clock, iso
from common.constants import SECOND_MS, SPACE_RECONNECT_INTERVAL_MS
from common.result import ApiResult, Err, Ok
from common.text.utf16 import base36

KEEPALIVE_S: Final = 20.0

_FLOOD_WINDOW_S = 5.0
_MOST_IN_WINDOW = 15  # a room may cut off whoever says more than 20 things in 5 s, words among them
_NOT_CONNECTED = Err("not connected to an agent space", "transient")


class SpaceClient:
    """A SOUL's membership in the agent space.

    Args:
        agent_name: its name, unique in the room.
        agent_version: the version of this program.
        capabilities: returns which of `social`, `github`, `code` it has, called at each join; None means all.
        discover: finds the room's URL; see `discovery`.
        clock: the source of time.
        rng: spreads delays.
        reconnect_interval_s: returns the seconds between searches while there is no room; called each time.
        on_joined: called after each join, while frames are already sent and received; bounded to 30 s.
        notice: tells the owner: kind, message, detail.
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

    @property
    def fresh_room(self) -> bool:
        """Whether the latest join led into another room: by the rooms' ids or, without ids, if no message was known."""
        return self._member.inbox.fresh_room

    async def run(self) -> None:
        """Joins the room and reconnects, until cancelled or closed. Must not run twice at a time."""
        await self._connection.run()

    async def close(self) -> None:
        """Leaves the room; `run` returns."""
        await self._connection.close()

    def renew(self) -> bool:
        """Rejoins if the capabilities changed since the join, which alone carries them; returns whether it does.

        Must be called from time to time.
        """
        return self._connection.renew()

    def get_and_flush_messages(self) -> list[Said]:
        """Returns and clears the messages of others, at most the latest 500, and after a join those of the record.

        Messages of the record are marked `replayed`, come once, and are the only ones that may be our own.
        """
        return self._member.inbox.take_messages()

    def take_events(self) -> list[SpaceEvent]:
        """Returns and clears all events, at most the latest 1000, the echoes of our own messages included."""
        return self._member.inbox.take_events()

    async def wait_for_news(self, timeout_s: float) -> bool:
        """Waits until others said or did something since the last call; returns False after `timeout_s`."""
        news = self._connection.news
        if not news.is_set():
            await first_of(news.wait(), self._clock.sleep(timeout_s))
        arrived = news.is_set()
        news.clear()
        return arrived

    def peers(self) -> dict[str, Presence]:
        """The other members by name, in the order in which they joined."""
        return self._member.view.peers()

    def typing(self) -> list[str]:
        """The members that sent `typing` within the last 10 s and no message since."""
        return self._member.view.typing()

    def identities(self) -> dict[str, IdentitySummary]:
        """The identities of peers, by name."""
        return self._member.view.identities()

    def reflections(self) -> dict[str, Reflected]:
        """The last reflections of peers, by name."""
        return self._member.view.reflections()

    def states(self) -> dict[str, StateChanged]:
        """The states of peers, by name."""
        return self._member.view.states()

    def workspace_states(self) -> dict[str, WorkspaceProgress]:
        """The progress of peers' plans, by workspace; nothing older than a day."""
        return self._member.view.workspace_states()

    def has_active_claim(self, action: str, target: str) -> str | None:
        """The peer whose claim on it was broadcast within the last minute, or None."""
        return self._member.view.claims.holder(action, target)

    def claims(self) -> tuple[Claimed, ...]:
        """The live claims of peers."""
        return self._member.view.claims.live()

    def lost_claims(self) -> set[tuple[str, str]]:
        """Our claims, as (action, target), that the room refused because another member held them."""
        return self._member.view.claims.lost

    async def send_chat(self, content: str, *, thread_id: str = "") -> ApiResult[str]:
        """Queues a message, sent when the room's rate limit allows; returns at once with an id for `delivered`."""
        if not self.is_active:
            return _NOT_CONNECTED
        if not content.strip():
            return Err("there is nothing to say", "invalid")
        if self._member.outgoing.is_full:
            return Err("too much waits to be said", "transient")
        chat = self._member.outgoing.add(content, self._clock.monotonic(), thread_id=thread_id)
        self._connection.expect(chat)
        return Ok(chat.id)

    async def delivered(self, chat_id: str) -> ApiResult[bool]:
        """Waits for the outcome of a message, at most 66 s: True if the room echoed it, False if no echo came in 5 s.

        Returns an `Err` if it was not sent.
        """
        delivery = await self._connection.delivery(chat_id)
        if delivery is None:
            return Err("no such message is on its way", "not_found")
        if delivery.state == "dropped":
            return Err(delivery.reason, "transient")
        return Ok(delivery.state == "echoed")

    async def send_typing(self) -> ApiResult[None]:
        """Announces that a message is being written."""
        return await self._send(Typing(*self._who, self._now()))

    async def send_identity(self, summary: IdentitySummary) -> ApiResult[None]:
        """Sends our identity."""
        return await self._send(Identified(*self._who, summary, self._now()))

    async def send_claim(self, action: str, target: str) -> ApiResult[None]:
        """Claims an action; `lost_claims` contains it a moment later if another member holds it."""
        claim = Claimed(*self._who, action, target, self._now())
        if self.is_active:
            self._member.view.claims.asked(action, target)
        return await self._send(claim)

    async def renew_claim(self, action: str, target: str) -> ApiResult[None]:
        """Renews a claim; needed within each minute."""
        return await self.send_claim(action, target)

    async def send_state(self, state: AgentState, detail: str = "") -> ApiResult[None]:
        """Sends our state."""
        return await self._send(StateChanged(*self._who, state, self._now(), detail=detail))

    async def send_action_result(
        self, action: str, target: str, *, success: bool, link: str = "", error: str = ""
    ) -> ApiResult[None]:
        """Sends the result of a claimed action, which ends the claim."""
        return await self._send(ActionDone(*self._who, action, target, success, self._now(), link=link, error=error))

    async def send_reflection(self, summary: str) -> ApiResult[None]:
        """Sends a reflection."""
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
        """Sends the progress of a plan, in tasks."""
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
