"""Joining a room: which names are accepted, and when a connection may replace a member.

A connection replaces a member only if it is the same process: it presents the resume token that the member got when it
joined or, for a member that knows no tokens, it has the same id and address. Any other join under a name that is taken,
or that looks like one, is refused. The holder of the name is then pinged, and removed if it does not answer.
"""

from __future__ import annotations

import hmac
import itertools
from collections.abc import Iterable
from dataclasses import replace

from adapters.space.room_effects import Abort, Log, NotifyHost, Ping
from adapters.space.room_members import MemberLink, RoomMember, presence_text
from adapters.space.room_replay import dynamic_history_limit
from adapters.space.room_state import RoomState
from adapters.space.types import Joined, LogEntry, SpaceEvent
from adapters.space.wire import encode_event, history_frame
from common.text.lookalikes import appearance, mixes_scripts

REPLACED = 4002
INVALID_JOIN = 4003
NAME_TAKEN = 4004
MAX_DETACHED = 5
ANSWER_WITHIN_S = 15.0
MAX_NEWCOMER_BYTES = 512 * 1024
_REMOVED = "the host removed this name"


def join(state: RoomState, link: MemberLink, request: Joined, host_name: str, resume: str) -> None:
    """Admits a connection, or refuses it with the reason. `resume` is the new token, for a member that knows tokens."""
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
    """Closes the connection of a member, and refuses its name to its address for ten minutes."""
    member = state.members.get(name)
    if member is None:
        return
    state.removed[appearance(name), member.link.address] = None
    state.refuse(member.link, f"Invalid join: {_REMOVED}")
    state.close(member.link, INVALID_JOIN, "Removed by the host")


def remove_unresponsive(state: RoomState) -> None:
    """Removes members that did not answer the ping after a refused join in time."""
    for member in list(state.members.values()):
        link = member.link
        if link.challenged_at is not None and state.now - link.challenged_at >= ANSWER_WITHIN_S:
            link.standing = "closing"
            state.out.append(Abort(link.number))
            state.leave(member)


def _wrong_with(name: str, host_name: str) -> str:
    """Returns why this name is not allowed, "" if it is."""
    if not appearance(name):
        return "nothing can be seen of this name"
    if appearance(name) == appearance(host_name):
        return "this name is the host's, or looks like it"
    return "a word of this name mixes Latin letters with those of another script" if mixes_scripts(name) else ""


def _removal(state: RoomState, link: MemberLink, name: str) -> str:
    """Returns `_REMOVED` while this name, or one that looks like it, is closed to the connection's address, else ""."""
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
    """Sends the newcomer the member list, the record, and the live workspaces, claims and states."""
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
    """The frames of these events, oldest first; the newest of them up to `MAX_NEWCOMER_BYTES`."""
    texts = [encode_event(event) for event in events]
    sizes = itertools.accumulate(len(text.encode()) for text in reversed(texts))
    count = sum(size <= MAX_NEWCOMER_BYTES for size in sizes)
    return texts[len(texts) - count :]
