"""The protocol core of a room, without I/O: connections, frames and time go in, effects come out.

The server reports what happens (`opened`, `received`, `ponged`, `closed`, `tick`); the host speaks (`say`) and closes
the room (`drain`, then `finish`). Each call returns the `Effect`s that the server must carry out, in order. The room
relays messages and never judges their content. Its state is lost with the process; the record is kept by the server.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from adapters.space.room_acts import act
from adapters.space.room_addressing import parse_addressed
from adapters.space.room_effects import Abort, Effect, Log, Ping
from adapters.space.room_joins import INVALID_JOIN, REPLACED, join, remove, remove_unresponsive
from adapters.space.room_members import MemberLink, RoomMember
from adapters.space.room_replay import Replay, dynamic_history_limit
from adapters.space.room_state import RoomState
from adapters.space.types import (
    HOST,
    HOST_ID_PREFIX,
    Claimed,
    Joined,
    LogEntry,
    Presence,
    Said,
    ShuttingDown,
    Typing,
)
from adapters.space.wire import Rejected, decode_request
from adapters.space.wire_fields import SPACE_MAX_CHAT_U16
from common.clock import Clock
from common.constants import MINUTE_MS, SECOND_MS
from common.text.utf16 import base36, u16_len, u16_slice

SPACE_JOIN_TIMEOUT_MS = 5 * SECOND_MS
SPACE_PING_INTERVAL_MS = 30 * SECOND_MS
SPACE_CLAIM_CLEANUP_INTERVAL_MS = 5 * MINUTE_MS

__all__ = ["Room", "dynamic_history_limit", "parse_addressed"]

GOING_AWAY = 1001
POLICY_VIOLATION = 1008
JOIN_TIMEOUT = 4001
MAX_UNJOINED = 16 * 1024
_JOIN_TIMEOUT_S = SPACE_JOIN_TIMEOUT_MS / 1000
_PING_INTERVAL_S = SPACE_PING_INTERVAL_MS / 1000
_CLEANUP_INTERVAL_S = SPACE_CLAIM_CLEANUP_INTERVAL_MS / 1000


class Room:
    """One room. The host speaks as `host_name`, with an id that is new for each instance.

    `new_token` returns a secret token; with it a member resumes its place after a lost connection.
    """

    def __init__(
        self, clock: Clock, *, host_name: str = HOST, new_token: Callable[[], str] = secrets.token_urlsafe
    ) -> None:
        self._state = RoomState(clock)
        self._host_name = host_name
        self._new_token = new_token
        self.host_id = f"{HOST_ID_PREFIX}{base36(int(clock.now().timestamp() * 1000))}"
        self._draining = False
        self._ping_at = clock.monotonic() + _PING_INTERVAL_S
        self._cleanup_at = clock.monotonic() + _CLEANUP_INTERVAL_S

    @property
    def agents(self) -> tuple[Presence, ...]:
        """The members, in the order in which they joined."""
        return tuple(member.presence() for member in self._state.members.values())

    @property
    def claims(self) -> tuple[Claimed, ...]:
        """The live claims, oldest first."""
        return self._state.claims.live(self._state.now)

    def remember(self, replay: Replay, room_id: str = "") -> None:
        """Sets the record of earlier runs and the room's id ("" for none). Must be called before the first `opened`."""
        self._state.replay, self._state.room_id = replay, room_id

    def opened(self, number: int, address: str = "") -> list[Effect]:
        """A connection from `address` was opened. `number` identifies it and is never used again."""
        now = self._state.now
        self._state.links[number] = MemberLink(number, now, address, self._state.addresses.acquire(address, now))
        return self._state.take_effects()

    def closed(self, number: int) -> list[Effect]:
        """A connection has ended, for any reason."""
        link = self._state.links.pop(number, None)
        if link is not None:
            with self._charging(link):
                member = self._state.member_of(link)
                if member is not None:
                    self._state.leave(member)
            self._state.addresses.release(link.address, link.allowance, self._state.now)
        return self._state.take_effects()

    def ponged(self, number: int) -> list[Effect]:
        """A pong was received."""
        link = self._state.links.get(number)
        if link is not None:
            link.mark_alive()
            member = self._state.member_of(link)
            if member is not None:
                member.last_seen = self._state.at
        return self._state.take_effects()

    def received(self, number: int, raw: str | bytes) -> list[Effect]:
        """A frame was received."""
        link = self._state.links.get(number)
        if link is not None and link.standing == "detached":
            self._state.close(link, REPLACED, "Replaced by new connection")
        elif link is not None and link.standing != "closing":
            with self._charging(link):
                self._receive(link, raw)
        return self._state.take_effects()

    def tick(self) -> list[Effect]:
        """Applies everything that depends on time. Must be called four times a second."""
        now = self._state.now
        for link in list(self._state.links.values()):
            if link.standing == "waiting" and now - link.opened_at >= _JOIN_TIMEOUT_S:
                self._state.refuse(link, "Join timeout: a join must come within 5 seconds")
                self._state.close(link, JOIN_TIMEOUT, "Join timeout")
        if now >= self._ping_at:
            self._ping_at = now + _PING_INTERVAL_S
            self._ping()
        if now >= self._cleanup_at:
            self._cleanup_at = now + _CLEANUP_INTERVAL_S
            self._state.claims.drop_expired(now)
        remove_unresponsive(self._state)
        self._state.send_presence()
        return self._state.take_effects()

    def say(self, text: str) -> list[Effect]:
        """The host sends a message. Blank text is ignored; text above the limit of a chat is cut."""
        if text.strip():
            if u16_len(text) > SPACE_MAX_CHAT_U16:
                text = u16_slice(text, SPACE_MAX_CHAT_U16)
                self._state.out.append(Log(f"The message was cut to {SPACE_MAX_CHAT_U16} characters"))
            addressed = tuple(parse_addressed(text, list(self._state.members)))
            self._state.share(Said(self._host_name, self.host_id, text, self._state.at, addressed=addressed))
        return self._state.take_effects()

    def remove(self, name: str) -> list[Effect]:
        """The host removes a member; no effects if nobody has this name."""
        remove(self._state, name)
        return self._state.take_effects()

    def drain(self) -> list[Effect]:
        """Announces the shutdown. Members stay connected; new joins are refused."""
        if not self._draining:
            self._draining = True
            self._state.broadcast(ShuttingDown("Server shutting down", self._state.at))
        return self._state.take_effects()

    def finish(self) -> list[Effect]:
        """Records that all members left, and closes every connection."""
        self._draining = True
        for member in self._state.members.values():
            self._state.record(LogEntry(self._state.at, member.name, member.id, "leave", ""))
        self._state.members.clear()
        for link in self._state.links.values():
            if link.standing != "closing":
                self._state.close(link, GOING_AWAY, "Server shutting down")
        return self._state.take_effects()

    @contextmanager
    def _charging(self, link: MemberLink) -> Iterator[None]:
        """Charges `link` for all broadcasts made inside the block."""
        state = self._state
        frames, chars = state.broadcast_frames, state.broadcast_chars
        yield
        link.allowance.charge_broadcasts(state.broadcast_frames - frames, state.broadcast_chars - chars)

    def _receive(self, link: MemberLink, raw: str | bytes) -> None:
        """Handles a frame if it is within the limits of its connection and its address."""
        state, size = self._state, len(raw)
        verdict = link.allowance.check(size, state.now)
        part = state.addresses.share_of(link.address)
        if verdict == "accept" and not (
            link.allowance.may_broadcast(part, state.now)
            and state.addresses.allows_frame(link.address, size, state.now)
        ):
            verdict = link.allowance.dropped(size)
        match verdict:
            case "accept" if link.standing == "waiting" and size > MAX_UNJOINED:
                state.refuse(link, "Must join first: a frame of this length is only read from members")
            case "accept":
                self._handle(link, raw)
            case "refuse":
                state.refuse(link, "Rate limited: too many messages, or too long ones")
            case "close":
                state.out.append(Log("Cut off: it sends without end", link.name or link.address))
                state.close(link, POLICY_VIOLATION, "Too many messages")
            case "ignore":
                pass

    def _handle(self, link: MemberLink, raw: str | bytes) -> None:
        member = self._state.member_of(link)
        who = (member.name, member.id) if member is not None else ("", "")
        request = decode_request(raw, *who, self._state.at)
        if isinstance(request, Rejected):
            self._reject(link, member, request)
        elif isinstance(request, Joined):
            if member is None:
                self._join(link, request)
        elif member is None or request is None:
            return
        elif isinstance(request, Typing):
            self._state.broadcast(request)
        else:
            act(self._state, member, request)

    def _reject(self, link: MemberLink, member: RoomMember | None, rejected: Rejected) -> None:
        if member is None and rejected.kind == "chat":
            self._state.refuse(link, "Must join before chatting")
        elif member is not None or rejected.kind in {"", "join"}:
            self._state.refuse(link, rejected.message)
        if rejected.kind == "join":
            self._state.close(link, INVALID_JOIN, "Invalid join message")

    def _join(self, link: MemberLink, request: Joined) -> None:
        if self._draining:
            self._state.close(link, GOING_AWAY, "Server shutting down")
        else:
            join(self._state, link, request, self._host_name, self._new_token())

    def _ping(self) -> None:
        listening = [link for link in self._state.links.values() if link.standing in {"joined", "detached"}]
        for link in [link for link in listening if not link.alive]:
            member = self._state.member_of(link)
            link.standing = "closing"
            self._state.out.append(Abort(link.number))
            if member is not None:
                self._state.leave(member)
        for link in [link for link in listening if link.standing != "closing"]:
            link.alive = False
            self._state.out.append(Ping(link.number))
