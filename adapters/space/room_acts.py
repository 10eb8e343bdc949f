"""What a member does in a room, once its frame has been found sound."""

from __future__ import annotations

from typing import TypeAlias

from adapters.space.room_allowance import CHAT_GAP_S
from adapters.space.room_floor import Floor
from adapters.space.room_members import Member
from adapters.space.types import ActionDone, Claimed, Identified, Reflected, Said, StateChanged, WorkspaceProgress

Act: TypeAlias = Said | Identified | Claimed | StateChanged | ActionDone | Reflected | WorkspaceProgress


def act(floor: Floor, member: Member, request: Act) -> None:
    """Carry out one request of `member`, which bears its name: its effects are then on the floor."""
    member.last_seen = floor.at
    member.link.lives()
    match request:
        case Said():
            _chat(floor, member, request)
        case Identified():
            _identify(floor, member, request)
        case Claimed():
            _claim(floor, member, request)
        case StateChanged():
            member.state = request
            floor.share(request)
        case ActionDone():
            _end(floor, request)
        case Reflected():
            floor.share(request)
        case WorkspaceProgress():
            floor.workspaces.put(request, floor.now)
            floor.share(request)


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


def _identify(floor: Floor, member: Member, identified: Identified) -> None:
    """Tell who a member is, then who is present; what was told already is not told again."""
    is_new = member.identity is None or member.identity.told != identified.summary.told
    member.identity = identified.summary
    floor.share(identified)
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
