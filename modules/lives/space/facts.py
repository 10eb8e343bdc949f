"""The facts of a turn about a room, as data beside its prompt. Pure."""

from __future__ import annotations

from dataclasses import replace

from common.facts import RoomFacts, SaidLine
from modules.lives.space.names import shown
from modules.lives.space.notes import alone_without_github
from modules.lives.space.requests import is_claimed
from modules.lives.space.scene import Scene


def room_facts(scene: Scene) -> RoomFacts:
    """What `scene` tells, for a turn that decides whether to speak."""
    waits = scene.is_open and not alone_without_github(scene) and not is_claimed(scene.request, scene.now)
    said = (SaidLine("" if one.is_me else shown(one.name, is_host=one.is_host), one.content) for one in scene.history)
    return RoomFacts(
        me=scene.me,
        present=tuple(map(shown, scene.room.peers)),
        said=tuple(said),
        new=len(scene.batch),
        mode=scene.mode,
        addressed=scene.addressed,
        request=scene.request.content if waits else "",
        critical=waits and scene.escalation == "critical",
        owner=scene.owner or "",
        is_owner=scene.is_owner,
        role=scene.role,
        signal=scene.signal,
        follow_up=scene.follow_up,
        links=tuple(scene.promised.work.links),
        repo=scene.repo or "",
        needs_repo=scene.needs_repo,
        without_github=alone_without_github(scene),
        opens=scene.opens,
    )


def action_facts(scene: Scene) -> RoomFacts:
    """What `scene` tells, for a turn that makes the commitment which the host asked for, and nothing else."""
    asked = RoomFacts(me=scene.me, repo=scene.repo or "", request=scene.request.content)
    return replace(asked, mode="action", owner=scene.me, is_owner=True)
