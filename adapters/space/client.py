"""A SOUL's place in the agent space: what is known of the room, what was heard there, and what to say.

One object per process, through every loss of the room. What it knows is lost with the process: the room replays its
record to whoever joins. How it gets there and stays is told in `client_connection`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from adapters.space.client_connection import ClientConnection, Find, Tell, first_of
from adapters.space.connecting import without_secrets
from adapters.space.member import Member
from adapters.space.types import (
    ActionDone,
    AgentState,
    Claimed,
    Event,
    Identified,
    IdentitySummary,
    Presence,
    Reflected,
    Request,
    Said,
    StateChanged,
    Status,
    Typing,
    WorkspaceProgress,
)
from adapters.space.wire_json import iso_now
from common.clock import Clock
from common.constants import SECOND_MS, SPACE_RECONNECT_INTERVAL_MS
from common.result import ApiResult, Err, Ok
from common.text.utf16 import base36

KEEPALIVE_S: Final = 20.0

_FLOOD_WINDOW_S = 5.0
_MOST_IN_WINDOW = 15  # a room may cut off whoever says more than 20 things in 5 s, words among them
_NOT_CONNECTED = Err("not connected to an agent space", "transient")


class SpaceClient:
    """A SOUL's place in the agent space.

    Args:
        agent_name: its name there; unique in the room.
        agent_version: of this program.
        capabilities: says which of `social`, `github`, `code` it has, asked at each join; None means all.
        discover: finds the room's address; see `discovery`.
        clock: the time.
        rng: spreads delays.
        reconnect_interval_s: seconds between looks for a room where there is none; asked each time.
        on_joined: called after each join, while the room already listens; bounded to 30 s.
        notice: tells the owner: kind, message, detail.
        on_event: shown each event at once, for a terminal.
        keepalive_s: seconds between pings, and how long an answer may take.

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
        notice: Tell | None = None,
        on_event: Callable[[Event], None] | None = None,
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
        self._told_at: deque[float] = deque(maxlen=_MOST_IN_WINDOW)

    @property
    def name(self) -> str:
        return self._member.name

    @property
    def status(self) -> Status:
        """Where we stand towards the room."""
        return self._member.status

    @property
    def is_active(self) -> bool:
        """Whether we are in a room, and what we say is heard."""
        return self._member.is_active

    @property
    def url(self) -> str:
        """Where the room is, or was last; without a token."""
        return without_secrets(self._connection.url)

    @property
    def room_id(self) -> str:
        """The id of the room that we are in, or were in last; it moves with the room. "" where the room tells none."""
        return self._member.room_id

    @property
    def joins(self) -> int:
        """How often we joined a room in this process."""
        return self._member.joins

    @property
    def fresh_room(self) -> bool:
        """Whether the latest join led into another room, or one that we do not know again.

        By the room's id, else by its record: not one word in it was known to us.
        """
        return self._member.inbox.fresh_room

    async def run(self) -> None:
        """Be in the room, and come back to it, until cancelled or closed. Only once at a time."""
        await self._connection.run()

    async def close(self) -> None:
        """Leave the room for good; `run` returns."""
        await self._connection.close()

    def renew(self) -> bool:
        """Leave and come in anew if what we can do is no longer what the room was told; whether we do.

        A room learns what a member can do only as it joins. To be called now and then.
        """
        return self._connection.renew()

    def get_and_flush_messages(self) -> list[Said]:
        """Words since the last call, the latest 500: those of others, and at a join what the room's record tells.

        The record comes once, marked `replayed`, without what was heard before; only in it are words of our own.
        """
        return self._member.inbox.take_messages()

    def take_events(self) -> list[Event]:
        """All that the room said since the last call, the latest 1000, the echo of our own words among it."""
        return self._member.inbox.take_events()

    async def wait_for_news(self, timeout_s: float) -> bool:
        """Wait until others have said or done something since the last call; False after `timeout_s` without."""
        news = self._connection.news
        if not news.is_set():
            await first_of(news.wait(), self._clock.sleep(timeout_s))
        heard = news.is_set()
        news.clear()
        return heard

    def peers(self) -> dict[str, Presence]:
        """Who else is in the room, by name, in the order in which they joined."""
        return self._member.view.peers()

    def typing(self) -> list[str]:
        """Who began to type within the last 10 s and has said nothing yet."""
        return self._member.view.typing(self._clock.monotonic())

    def identities(self) -> dict[str, IdentitySummary]:
        """Who peers say they are, by name."""
        return self._member.view.identities()

    def reflections(self) -> dict[str, Reflected]:
        """What peers last learned about themselves, by name."""
        return self._member.view.reflections()

    def states(self) -> dict[str, StateChanged]:
        """What peers are doing, by name."""
        return self._member.view.states()

    def workspace_states(self) -> dict[str, WorkspaceProgress]:
        """How far peers' plans have come, by workspace; nothing older than a day."""
        return self._member.view.workspace_states(self._clock.monotonic())

    def has_active_claim(self, action: str, target: str) -> str | None:
        """Which peer works at it, as far as told within the last minute."""
        return self._member.view.claims.holder(action, target, self._clock.monotonic())

    def claims(self) -> tuple[Claimed, ...]:
        """Peers' claims that still hold."""
        return self._member.view.claims.live(self._clock.monotonic())

    def lost_claims(self) -> set[tuple[str, str]]:
        """Claims of ours, as (action, target), that the room refused because somebody was first."""
        return self._member.view.claims.lost

    async def send_chat(self, content: str, *, thread_id: str = "") -> ApiResult[str]:
        """Say something, when the room's limiter lets it through; returns at once with an id for `delivered`."""
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
        """Wait for what becomes of a chat, 66 s at most: True when the room echoed it, False when 5 s brought no echo.

        An `Err` says that it was never said.
        """
        delivery = await self._connection.delivery(chat_id)
        if delivery is None:
            return Err("no such message is on its way", "not_found")
        if delivery.state == "dropped":
            return Err(delivery.reason, "transient")
        return Ok(delivery.state == "echoed")

    async def send_typing(self) -> ApiResult[None]:
        """Show that we are about to speak."""
        return await self._tell(Typing(*self._who, self._now()))

    async def send_identity(self, summary: IdentitySummary) -> ApiResult[None]:
        """Tell who we are."""
        return await self._tell(Identified(*self._who, summary, self._now()))

    async def send_claim(self, action: str, target: str) -> ApiResult[None]:
        """Tell that we work at something; `lost_claims` shows a moment later if somebody was first."""
        claim = Claimed(*self._who, action, target, self._now())
        if self.is_active:
            self._member.view.claims.asked(action, target, self._clock.monotonic())
        return await self._tell(claim)

    async def renew_claim(self, action: str, target: str) -> ApiResult[None]:
        """Tell that we still work at it; within each minute."""
        return await self.send_claim(action, target)

    async def send_state(self, state: AgentState, detail: str = "") -> ApiResult[None]:
        """Tell what we are doing."""
        return await self._tell(StateChanged(*self._who, state, self._now(), detail=detail))

    async def send_action_result(
        self, action: str, target: str, *, success: bool, link: str = "", error: str = ""
    ) -> ApiResult[None]:
        """Tell how a claimed action ended; the claim ends with it."""
        return await self._tell(ActionDone(*self._who, action, target, success, self._now(), link=link, error=error))

    async def send_reflection(self, summary: str) -> ApiResult[None]:
        """Tell what we learned about ourselves."""
        return await self._tell(Reflected(*self._who, summary, self._now()))

    # NOTE(self): kept for the loop that is to poll plans; rooms and members of other makers speak and hear it already.
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
        """Tell how far a plan has come, in tasks."""
        counts = (plan_number, total, completed, blocked, in_progress)
        return await self._tell(WorkspaceProgress(*self._who, workspace, *counts, self._now()))

    @property
    def _who(self) -> tuple[str, str]:
        return self._member.name, self.agent_id

    def _now(self) -> str:
        return iso_now(self._clock)

    async def _tell(self, request: Request) -> ApiResult[None]:
        if not self.is_active:
            return _NOT_CONNECTED
        now = self._clock.monotonic()
        if len(self._told_at) == _MOST_IN_WINDOW and now - self._told_at[0] < _FLOOD_WINDOW_S:
            return Err("too much is told at once", "transient", retry_after=_FLOOD_WINDOW_S - (now - self._told_at[0]))
        self._told_at.append(now)
        return await self._connection.send(request)
