"""The protocol core of a room, without I/O: connections, frames and time go in, effects come out.

The server reports events (`opened`, `received`, `ponged`, `closed`, `tick`); the host sends messages (`say`) and closes
the room (`drain`, then `finish`). Each call returns the `Effect`s that the server must carry out, in order. The room
relays messages and never judges their content. Its state is lost with the process; the server keeps the record.
"""

import hmac
import itertools
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from adapters.space.room_addressing import parse_addressed
from adapters.space.room_allowance import CHAT_GAP_S, Replay, dynamic_history_limit
from adapters.space.room_state import (
    Abort,
    Effect,
    Log,
    MemberLink,
    NotifyHost,
    Ping,
    RoomMember,
    RoomState,
    presence_text,
)
from adapters.space.types import (
    HOST,
    HOST_ID_PREFIX,
    ActionDone,
    Claimed,
    Identified,
    Joined,
    LogEntry,
    Presence,
    Reflected,
    Said,
    ShuttingDown,
    SpaceEvent,
    StateChanged,
    Typing,
    WorkspaceProgress,
)
from adapters.space.wire import Rejected, decode_request, encode_event, history_frame
from adapters.space.wire_fields import SPACE_MAX_CHAT_U16
from common.clock import Clock
from common.constants import MINUTE_MS, SECOND_MS
from common.text.hidden import appearance, mixes_scripts
from common.text.strings import base36, u16_len, u16_slice

REPLACED = 4002
INVALID_JOIN = 4003
NAME_TAKEN = 4004
MAX_DETACHED = 5
ANSWER_WITHIN_S = 15.0
MAX_NEWCOMER_BYTES = 512 * 1024
_REMOVED = "the host removed this name"


def join(state: RoomState, link: MemberLink, request: Joined, host_name: str, resume: str) -> None:
    """Admit a connection, or refuse it with the reason. `resume` is the new token, if the member supports tokens."""
    if wrong := _wrong_with(request.name, host_name) or _removal(state, link, request.name):
        state.refuse(link, f"Invalid join: {wrong}")
        state.close(link, INVALID_JOIN, "Invalid join message")
        return
    incumbent = state.members.get(request.name)
    if incumbent is not None and not _is_same_process(incumbent, link, request):
        _refuse(state, link, incumbent, request, "is taken")
        return
    twin = next((each for each in state.members.values() if _is_twin(each, request.name)), None)
    if twin is not None:
        _refuse(state, link, twin, request, "looks like another's")
        return
    if incumbent is not None:
        _supersede(state, incumbent, link)
    _welcome(state, link, request, resume)


def remove(state: RoomState, name: str) -> None:
    """Close the connection of a member, and refuse its name to its address for ten minutes."""
    member = state.members.get(name)
    if member is None:
        return
    state.removed[appearance(name), member.link.address] = None
    state.refuse(member.link, f"Invalid join: {_REMOVED}")
    state.close(member.link, INVALID_JOIN, "Removed by the host")


def remove_unresponsive(state: RoomState) -> None:
    """Remove members that did not answer in time the ping that follows a refused join."""
    for member in list(state.members.values()):
        link = member.link
        if link.challenged_at is not None and state.now - link.challenged_at >= ANSWER_WITHIN_S:
            link.standing = "closing"
            state.out.append(Abort(link.number))
            state.leave(member)


def _wrong_with(name: str, host_name: str) -> str:
    """Return why this name is not allowed; "" if it is."""
    if not appearance(name):
        return "nothing can be seen of this name"
    if appearance(name) == appearance(host_name):
        return "this name is the host's, or looks like it"
    return "a word of this name mixes Latin letters with those of another script" if mixes_scripts(name) else ""


def _removal(state: RoomState, link: MemberLink, name: str) -> str:
    """Return `_REMOVED` while this name, or a similar one, is closed to the connection's address; else ""."""
    return _REMOVED if (appearance(name), link.address) in state.removed else ""


def _is_twin(member: RoomMember, name: str) -> bool:
    return member.name != name and appearance(member.name) == appearance(name)


def _is_same_process(incumbent: RoomMember, link: MemberLink, request: Joined) -> bool:
    if incumbent.id != request.id:
        return False
    if incumbent.resume:
        return hmac.compare_digest(incumbent.resume.encode(), (request.resume or "").encode())
    return request.resume is None and incumbent.link.address == link.address


def _refuse(state: RoomState, link: MemberLink, holder: RoomMember, request: Joined, why: str) -> None:
    state.refuse(link, f"Invalid join: the name {why}")
    state.out.append(Log(f"Refused: a name that {why}", f"{request.name} from {link.address}"))
    state.close(link, NAME_TAKEN, "Name taken")
    if holder.link.challenged_at is None:
        holder.link.challenged_at = state.now
        state.out.append(Ping(holder.link.number))


def _supersede(state: RoomState, incumbent: RoomMember, newcomer: MemberLink) -> None:
    old = incumbent.link
    spoke_at = old.allowance.spoke_at
    state.leave(incumbent)
    if spoke_at is not None:
        newcomer.allowance.spoke_at = spoke_at
    if incumbent.resume:
        state.close(old, REPLACED, "Replaced by new connection")
        return
    # NOTE(self): a reference member that is closed with 4002 rejoins every five seconds, endlessly. It sends nothing
    # on the old connection; if that connection sends anything, it is another process, and is closed so that it rejoins.
    old.standing = "detached"
    detached = [link for link in state.links.values() if link.standing == "detached" and link.id == old.id]
    for link in detached[:-MAX_DETACHED]:
        state.close(link, REPLACED, "Replaced by new connection")


def _welcome(state: RoomState, link: MemberLink, request: Joined, resume: str) -> None:
    at = state.at
    link.standing, link.name, link.id = "joined", request.name, request.id
    link.allowance.spoke_at = max(
        (
            spoke_at
            for spoke_at in (link.allowance.spoke_at, state.last_chats.get(request.name))
            if spoke_at is not None
        ),
        default=None,
    )
    newcomer = RoomMember(request.name, request.id, request.version, request.capabilities, at, at, link)
    if request.resume is not None:
        newcomer.resume = resume
    state.members[request.name] = newcomer
    state.record(LogEntry(at, request.name, request.id, "join", ""))
    joined = replace(request, resume=None)
    state.deliver(encode_event(joined))
    _send_newcomer(state, newcomer)
    state.out.append(NotifyHost(joined))
    state.presence_changed(told=newcomer)


def _send_newcomer(state: RoomState, newcomer: RoomMember) -> None:
    """Send the newcomer the member list, the record, and the live workspaces, claims and states."""
    alone = (newcomer.link.number,)
    state.deliver(presence_text(state.members.values(), newcomer.resume), alone)
    entries = state.replay.select(dynamic_history_limit(len(state.members)))
    state.deliver(history_frame(entries, state.room_id), alone)
    states = (member.state for member in state.members.values() if member.state is not None)
    for texts in (
        _newest_frames(state.workspaces.all()),
        _newest_frames(state.claims.live(state.now)),
        _newest_frames(states),
    ):
        for text in texts:
            state.deliver(text, alone)


def _newest_frames(events: Iterable[SpaceEvent]) -> list[str]:
    """Return the frames of the newest of these events, oldest first, up to `MAX_NEWCOMER_BYTES`."""
    texts = [encode_event(event) for event in events]
    sizes = itertools.accumulate(len(text.encode()) for text in reversed(texts))
    count = sum(size <= MAX_NEWCOMER_BYTES for size in sizes)
    return texts[len(texts) - count :]


Act: TypeAlias = Said | Identified | Claimed | StateChanged | ActionDone | Reflected | WorkspaceProgress


def act(state: RoomState, member: RoomMember, request: Act) -> None:
    """Apply one request of `member`, already stamped with its name, id and time."""
    member.last_seen = state.at
    member.link.mark_alive()
    match request:
        case Said():
            _chat(state, member, request)
        case Identified():
            _identify(state, member, request)
        case Claimed():
            _claim(state, member, request)
        case StateChanged():
            member.state = request
            state.share(request)
        case ActionDone():
            _end(state, request)
        case Reflected():
            state.share(request)
        case WorkspaceProgress():
            state.workspaces.put(request)
            state.share(request)


def _chat(state: RoomState, member: RoomMember, said: Said) -> None:
    now, allowance = state.now, member.link.allowance
    if allowance.spoke_at is not None and now - allowance.spoke_at < CHAT_GAP_S:
        state.refuse(member.link, "Rate limited: one message every 3 seconds")
        return
    if not state.addresses.allows_chat(member.link.address, now):
        state.refuse(member.link, "Rate limited: too many messages from one address")
        return
    allowance.spoke_at = now
    state.share(said)


def _identify(state: RoomState, member: RoomMember, identified: Identified) -> None:
    """Broadcast an identity; the member list follows only if the identity changed."""
    is_new = member.identity is None or member.identity.raw != identified.summary.raw
    member.identity = identified.summary
    state.share(identified)
    if is_new:
        state.presence_changed()


def _claim(state: RoomState, member: RoomMember, wanted: Claimed) -> None:
    verdict, stands = state.claims.claim(wanted, state.now)
    match verdict:
        case "new":
            state.share(stands)
        case "rebroadcast":
            state.broadcast(stands)
        case "conflict":
            what = f"{stands.action}:{stands.target}"
            state.refuse(member.link, f"Claim conflict: {stands.name} was first at {what}, before {member.name}")
        case "renewed":
            pass


def _end(state: RoomState, done: ActionDone) -> None:
    """Broadcast a result. Members drop the claim on it, so a claim that another member still holds is sent again."""
    held = state.claims.done(done.name, done.action, done.target, state.now)
    state.share(done)
    if held is not None:
        state.broadcast(held)


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
    """One room. The host writes as `host_name`, with an id that is new for each instance.

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
        """Set the record of earlier runs and the room's id ("" for none). Must be called before the first `opened`."""
        self._state.replay, self._state.room_id = replay, room_id

    def opened(self, number: int, address: str = "") -> list[Effect]:
        """Handle a new connection from `address`. `number` identifies it and is never used again."""
        now = self._state.now
        self._state.links[number] = MemberLink(number, now, address, self._state.addresses.acquire(address, now))
        return self._state.take_effects()

    def closed(self, number: int) -> list[Effect]:
        """Handle the end of a connection, for any reason."""
        link = self._state.links.pop(number, None)
        if link is not None:
            with self._charging(link):
                member = self._state.member_of(link)
                if member is not None:
                    self._state.leave(member)
            self._state.addresses.release(link.address, link.allowance, self._state.now)
        return self._state.take_effects()

    def ponged(self, number: int) -> list[Effect]:
        """Handle a pong."""
        link = self._state.links.get(number)
        if link is not None:
            link.mark_alive()
            member = self._state.member_of(link)
            if member is not None:
                member.last_seen = self._state.at
        return self._state.take_effects()

    def received(self, number: int, raw: str | bytes) -> list[Effect]:
        """Handle a received frame."""
        link = self._state.links.get(number)
        if link is not None and link.standing == "detached":
            self._state.close(link, REPLACED, "Replaced by new connection")
        elif link is not None and link.standing != "closing":
            with self._charging(link):
                self._receive(link, raw)
        return self._state.take_effects()

    def tick(self) -> list[Effect]:
        """Apply everything that depends on time. Must be called four times a second."""
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
        """Send a message of the host. Blank text is ignored; text above the limit of a chat is cut."""
        if text.strip():
            if u16_len(text) > SPACE_MAX_CHAT_U16:
                text = u16_slice(text, SPACE_MAX_CHAT_U16)
                self._state.out.append(Log(f"The message was cut to {SPACE_MAX_CHAT_U16} characters"))
            addressed = tuple(parse_addressed(text, list(self._state.members)))
            self._state.share(Said(self._host_name, self.host_id, text, self._state.at, addressed=addressed))
        return self._state.take_effects()

    def remove(self, name: str) -> list[Effect]:
        """Remove a member for the host; no effects if nobody has this name."""
        remove(self._state, name)
        return self._state.take_effects()

    def drain(self) -> list[Effect]:
        """Announce the shutdown. Members stay connected; new joins are refused."""
        if not self._draining:
            self._draining = True
            self._state.broadcast(ShuttingDown("Server shutting down", self._state.at))
        return self._state.take_effects()

    def finish(self) -> list[Effect]:
        """Record that all members left, and close every connection."""
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
        """Charge `link` for all broadcasts made inside the block."""
        state = self._state
        frames, chars = state.broadcast_frames, state.broadcast_chars
        yield
        link.allowance.charge_broadcasts(state.broadcast_frames - frames, state.broadcast_chars - chars)

    def _receive(self, link: MemberLink, raw: str | bytes) -> None:
        """Handle a frame if it is within the limits of its connection and its address."""
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
