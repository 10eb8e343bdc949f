"""The facts of a turn about a room, as data beside its prompt. Pure."""

from __future__ import annotations

from dataclasses import replace

from common.facts import RoomFacts, SaidLine
from modules.lives.space.host_request import is_claimed
from modules.lives.space.prompting import alone_without_github
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.transcript import shown


def room_facts(snapshot: RoomSnapshot) -> RoomFacts:
    """What `snapshot` tells, for a turn that decides whether to speak."""
    waits = snapshot.is_open and not alone_without_github(snapshot) and not is_claimed(snapshot.request, snapshot.now)
    said = (
        SaidLine("" if one.is_me else shown(one.name, is_host=one.is_host), one.content) for one in snapshot.history
    )
    return RoomFacts(
        me=snapshot.me,
        present=tuple(map(shown, snapshot.room.peers)),
        said=tuple(said),
        new=len(snapshot.batch),
        mode=snapshot.mode,
        addressed=snapshot.addressed,
        request=snapshot.request.content if waits else "",
        critical=waits and snapshot.escalation == "critical",
        owner=snapshot.owner or "",
        is_owner=snapshot.is_owner,
        role=snapshot.role,
        signal=snapshot.signal,
        follow_up=snapshot.follow_up,
        links=tuple(snapshot.promised.work.links),
        repo=snapshot.repo or "",
        needs_repo=snapshot.needs_repo,
        without_github=alone_without_github(snapshot),
        opens=snapshot.opens,
    )


def action_facts(snapshot: RoomSnapshot) -> RoomFacts:
    """What `snapshot` tells, for a turn that makes the commitment which the host asked for, and nothing else."""
    asked = RoomFacts(me=snapshot.me, repo=snapshot.repo or "", request=snapshot.request.content)
    return replace(asked, mode="action", owner=snapshot.me, is_owner=True)
