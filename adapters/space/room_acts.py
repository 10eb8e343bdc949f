"""The effects of a member's valid request on the room."""

from __future__ import annotations

from typing import TypeAlias

from adapters.space.room_allowance import CHAT_GAP_S
from adapters.space.room_members import RoomMember
from adapters.space.room_state import RoomState
from adapters.space.types import ActionDone, Claimed, Identified, Reflected, Said, StateChanged, WorkspaceProgress

Act: TypeAlias = Said | Identified | Claimed | StateChanged | ActionDone | Reflected | WorkspaceProgress


def act(state: RoomState, member: RoomMember, request: Act) -> None:
    """Applies one request of `member`, already stamped with its name, id and time."""
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
    """Broadcasts an identity; the member list follows only if the identity changed."""
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
    """Broadcasts a result. Members drop the claim on it, so a claim that another member still holds is sent again."""
    held = state.claims.done(done.name, done.action, done.target, state.now)
    state.share(done)
    if held is not None:
        state.broadcast(held)
