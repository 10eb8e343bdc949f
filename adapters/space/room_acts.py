"""What a member does in a room, once its frame has been found sound."""

from __future__ import annotations

from typing import TypeAlias

from adapters.space.room_allowance import CHAT_GAP_S
from adapters.space.room_effects import Tell
from adapters.space.room_floor import Floor
from adapters.space.room_members import Member
from adapters.space.types import (
    ActionDone,
    Claimed,
    Identified,
    Reflected,
    Said,
    StateChanged,
    WorkspaceProgress,
)
from adapters.space.wire_events import decode_summary
from adapters.space.wire_json import encode_message
from adapters.space.wire_requests import (
    ChatRequest,
    ClaimRequest,
    IdentityRequest,
    ReflectionRequest,
    ResultRequest,
    StateRequest,
    WorkspaceRequest,
)
from adapters.space.wire_room import identity_entry, identity_frame

Act: TypeAlias = (
    ChatRequest | IdentityRequest | ClaimRequest | StateRequest | ResultRequest | ReflectionRequest | WorkspaceRequest
)


def act(floor: Floor, member: Member, request: Act) -> None:
    """Carry out one request of `member`: its effects are then on the floor."""
    name, agent_id, at = member.name, member.id, floor.at
    member.last_seen = at
    member.link.lives()
    match request:
        case ChatRequest():
            _chat(floor, member, Said(name, agent_id, request.content, at, request.thread_id))
        case IdentityRequest():
            _identify(floor, member, request, at)
        case ClaimRequest():
            _claim(floor, member, Claimed(name, agent_id, request.action, request.target, at))
        case StateRequest():
            member.state = StateChanged(name, agent_id, request.state, at, request.detail)
            floor.share(member.state)
        case ResultRequest():
            what = (request.action, request.target, request.success)
            _end(floor, ActionDone(name, agent_id, *what, at, request.link, request.error))
        case ReflectionRequest():
            floor.share(Reflected(name, agent_id, request.summary, at))
        case WorkspaceRequest():
            done = (request.plan_number, request.total, request.completed, request.blocked, request.in_progress)
            progress = WorkspaceProgress(name, agent_id, request.workspace, *done, at)
            floor.workspaces.put(progress, floor.now)
            floor.share(progress)


def _chat(floor: Floor, member: Member, said: Said) -> None:
    now, allowance = floor.now, member.link.allowance
    if allowance.spoke_at is not None and now - allowance.spoke_at < CHAT_GAP_S:
        floor.refuse(member.link, "Rate limited: one message every 3 seconds")
        return
    if not floor.addresses.bears_chat(member.link.address, now):
        floor.refuse(member.link, "Rate limited: too many messages from one address")
        return
    allowance.spoke_at = now
    floor.share(said)


def _identify(floor: Floor, member: Member, request: IdentityRequest, at: str) -> None:
    """Tell who a member is, then who is present; what was told already is not told again."""
    name, agent_id = member.name, member.id
    is_new = member.identity != request.summary
    member.identity = request.summary
    floor.record(identity_entry(name, agent_id, request.summary, at))
    floor.deliver(encode_message(identity_frame(name, agent_id, request.summary, at)))
    floor.out.append(Tell(Identified(name, agent_id, decode_summary(request.summary), at)))
    if is_new:
        floor.presence_changed()


def _claim(floor: Floor, member: Member, wanted: Claimed) -> None:
    verdict, stands = floor.claims.ask(wanted, floor.now)
    match verdict:
        case "new":
            floor.share(stands)
        case "retold":
            floor.broadcast(stands)
        case "conflict":
            what = f"{stands.action}:{stands.target}"
            floor.refuse(member.link, f"Claim conflict: {stands.name} was first at {what}, before {member.name}")
        case "renewed":
            pass


def _end(floor: Floor, done: ActionDone) -> None:
    """Tell a result; whoever hears it forgets the claim, so one that still holds for somebody else is told again."""
    held = floor.claims.done(done.name, done.action, done.target, floor.now)
    floor.share(done)
    if held is not None:
        floor.broadcast(held)
