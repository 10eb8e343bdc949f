"""The rules of a room, without sockets and files: what came in goes in, what is to be done comes out.

A shell tells it of connections, frames and time (`opened`, `received`, `ponged`, `closed`, `tick`), its host speaks
(`say`) and closes it (`drain`, then `finish`); each call returns `Effect`s to be carried out in their order. It relays
and never judges words. All that it knows ends with the process, but for the record, which a shell keeps.
"""

from __future__ import annotations

from adapters.space.room_acts import act
from adapters.space.room_addressing import parse_addressed
from adapters.space.room_effects import Abort, Effect, Log, Ping, Tell
from adapters.space.room_floor import Floor
from adapters.space.room_members import Link, Member, presence_text
from adapters.space.room_replay import Replay, dynamic_history_limit
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
from adapters.space.wire_json import encode_message
from adapters.space.wire_requests import ChatRequest, JoinRequest, Rejected, Request, TypingRequest, decode_request
from adapters.space.wire_room import Told, event_frame, history_text
from common.clock import Clock
from common.constants import (
    SPACE_CLAIM_CLEANUP_INTERVAL_MS,
    SPACE_JOIN_TIMEOUT_MS,
    SPACE_MAX_CHAT_U16,
    SPACE_PING_INTERVAL_MS,
)
from common.text.utf16 import base36, u16_len, u16_slice

__all__ = ["Room", "dynamic_history_limit", "parse_addressed"]

GOING_AWAY = 1001
POLICY_VIOLATION = 1008
JOIN_TIMEOUT = 4001
REPLACED = 4002
INVALID_JOIN = 4003
MAX_DETACHED = 5
_JOIN_TIMEOUT_S = SPACE_JOIN_TIMEOUT_MS / 1000
_PING_INTERVAL_S = SPACE_PING_INTERVAL_MS / 1000
_CLEANUP_INTERVAL_S = SPACE_CLAIM_CLEANUP_INTERVAL_MS / 1000


class Room:
    """One room. The host speaks under `host_name`, and under an id that is made anew each time."""

    def __init__(self, clock: Clock, *, host_name: str = HOST) -> None:
        self._floor = Floor(clock)
        self._host_name = host_name
        self.host_id = f"{HOST_ID_PREFIX}{base36(int(clock.now().timestamp() * 1000))}"
        self._draining = False
        self._ping_at = clock.monotonic() + _PING_INTERVAL_S
        self._cleanup_at = clock.monotonic() + _CLEANUP_INTERVAL_S

    @property
    def agents(self) -> tuple[Presence, ...]:
        """Who is in the room, in the order of joining."""
        return tuple(member.presence() for member in self._floor.members.values())

    @property
    def claims(self) -> tuple[Claimed, ...]:
        """What is being worked at."""
        return self._floor.claims.live(self._floor.now)

    def remember(self, replay: Replay) -> None:
        """What the record holds from before; to be told before anybody comes."""
        self._floor.replay = replay

    def opened(self, number: int) -> list[Effect]:
        """A connection stands; `number` has never been used before."""
        self._floor.links[number] = Link(number, self._floor.now)
        return self._floor.taken()

    def closed(self, number: int) -> list[Effect]:
        """A connection is gone, for whatever reason."""
        link = self._floor.links.pop(number, None)
        member = None if link is None else self._floor.member_of(link)
        if member is not None:
            self._floor.leave(member)
        return self._floor.taken()

    def ponged(self, number: int) -> list[Effect]:
        """Somebody answered a ping."""
        link = self._floor.links.get(number)
        if link is not None:
            link.alive = True
            member = self._floor.member_of(link)
            if member is not None:
                member.last_seen = self._floor.at
        return self._floor.taken()

    def received(self, number: int, raw: str | bytes) -> list[Effect]:
        """A frame came in."""
        link = self._floor.links.get(number)
        if link is not None and link.standing in {"waiting", "joined"}:
            match link.flood.judge(self._floor.now):
                case "hear":
                    self._hear(link, decode_request(raw))
                case "refuse":
                    self._floor.refuse(link, "Rate limited: too many messages")
                case "close":
                    self._floor.out.append(Log("warn", "Cut off: it sends without end", link.name))
                    self._floor.close(link, POLICY_VIOLATION, "Too many messages")
                case "ignore":
                    pass
        return self._floor.taken()

    def tick(self) -> list[Effect]:
        """Time has passed; call this at least once a second."""
        now = self._floor.now
        for link in list(self._floor.links.values()):
            if link.standing == "waiting" and now - link.opened_at >= _JOIN_TIMEOUT_S:
                self._floor.refuse(link, "Join timeout: a join must come within 5 seconds")
                self._floor.close(link, JOIN_TIMEOUT, "Join timeout")
        if now >= self._ping_at:
            self._ping_at = now + _PING_INTERVAL_S
            self._ping()
        if now >= self._cleanup_at:
            self._cleanup_at = now + _CLEANUP_INTERVAL_S
            self._floor.claims.drop_expired(now)
            self._floor.workspaces.drop_stale(now)
        if self._floor.presence_due:
            self._floor.tell_presence()
        return self._floor.taken()

    def say(self, text: str) -> list[Effect]:
        """The host speaks; blank words are none, and what is longer than a chat may be is cut."""
        if text.strip():
            if u16_len(text) > SPACE_MAX_CHAT_U16:
                text = u16_slice(text, SPACE_MAX_CHAT_U16)
                self._floor.out.append(Log("warn", f"The message was cut to {SPACE_MAX_CHAT_U16} characters"))
            addressed = tuple(parse_addressed(text, list(self._floor.members)))
            self._floor.share(Said(self._host_name, self.host_id, text, self._floor.at, addressed=addressed))
        return self._floor.taken()

    def drain(self) -> list[Effect]:
        """Announce the end: members may finish what they do, nobody new comes in."""
        if not self._draining:
            self._draining = True
            self._floor.broadcast(ShuttingDown("Server shutting down", self._floor.at))
        return self._floor.taken()

    def finish(self) -> list[Effect]:
        """The end: the record says that all have left, and every connection is closed."""
        self._draining = True
        for member in self._floor.members.values():
            self._floor.record(LogEntry(self._floor.at, member.name, member.id, "leave", ""))
        self._floor.members.clear()
        for link in self._floor.links.values():
            if link.standing != "closing":
                self._floor.close(link, GOING_AWAY, "Server shutting down")
        return self._floor.taken()

    def _hear(self, link: Link, request: Request | Rejected | None) -> None:
        member = self._floor.member_of(link)
        if isinstance(request, Rejected):
            self._reject(link, member, request)
        elif isinstance(request, JoinRequest):
            if member is None:
                self._join(link, request)
        elif member is None:
            if isinstance(request, ChatRequest):
                self._must_join(link)
        elif isinstance(request, TypingRequest):
            self._floor.broadcast(Typing(member.name, member.id, self._floor.at))
        elif request is not None:
            act(self._floor, member, request)

    def _reject(self, link: Link, member: Member | None, rejected: Rejected) -> None:
        if member is None and rejected.kind == "chat":
            self._must_join(link)
        elif member is not None or rejected.kind in {"", "join"}:
            self._floor.refuse(link, rejected.message)
        if rejected.kind == "join":
            self._floor.close(link, INVALID_JOIN, "Invalid join message")

    def _must_join(self, link: Link) -> None:
        self._floor.refuse(link, "Must join before chatting")

    def _join(self, link: Link, request: JoinRequest) -> None:
        if request.name.casefold() == self._host_name.casefold():
            self._reject(link, None, Rejected("join", "Invalid join: this name is the host's"))
            return
        if self._draining:
            self._floor.close(link, GOING_AWAY, "Server shutting down")
            return
        floor = self._floor
        incumbent = floor.members.get(request.name)
        if incumbent is not None:
            self._supersede(incumbent, request.id)
        at = floor.at
        link.standing, link.name, link.id = "joined", request.name, request.id
        newcomer = Member(request.name, request.id, request.version, request.capabilities, at, at, link)
        floor.members[request.name] = newcomer
        floor.record(LogEntry(at, request.name, request.id, "join", ""))
        joined = Joined(request.name, request.id, request.version, request.capabilities)
        floor.deliver(encode_message(event_frame(joined)))
        self._welcome(link)
        floor.out.append(Tell(joined))
        floor.tell_presence()

    def _welcome(self, link: Link) -> None:
        """What only the newcomer gets: who is here, what was said, and what is going on."""
        floor, alone = self._floor, (link.number,)
        floor.deliver(presence_text(floor.members.values()), alone)
        floor.deliver(history_text(floor.replay.select(dynamic_history_limit(len(floor.members)))), alone)
        states = (member.state for member in floor.members.values() if member.state is not None)
        going_on: tuple[Told, ...] = (*floor.workspaces.all(), *floor.claims.live(floor.now), *states)
        for event in going_on:
            floor.deliver(encode_message(event_frame(event)), alone)

    def _supersede(self, incumbent: Member, newcomer_id: str) -> None:
        old = incumbent.link
        self._floor.leave(incumbent)
        if incumbent.id != newcomer_id:
            self._floor.close(old, REPLACED, "Replaced by new connection")
            return
        # NOTE(self): a member of the reference make that is told 4002 joins again for ever, every five seconds.
        old.standing = "detached"
        detached = [link for link in self._floor.links.values() if link.standing == "detached" and link.id == old.id]
        for link in detached[:-MAX_DETACHED]:
            self._floor.close(link, REPLACED, "Replaced by new connection")

    def _ping(self) -> None:
        listening = [link for link in self._floor.links.values() if link.standing in {"joined", "detached"}]
        for link in [link for link in listening if not link.alive]:
            member = self._floor.member_of(link)
            link.standing = "closing"
            self._floor.out.append(Abort(link.number))
            if member is not None:
                self._floor.leave(member)
        for link in [link for link in listening if link.standing != "closing"]:
            link.alive = False
            self._floor.out.append(Ping(link.number))
