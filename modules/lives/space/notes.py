"""Which notes hold at a moment in the room, in the words of the skill; the most pressing last."""

from __future__ import annotations

from collections.abc import Iterator

from common.text.untrusted import one_line
from modules.lives.space.names import listed, shown
from modules.lives.space.requests import is_claimed
from modules.lives.space.scene import Scene
from modules.services.agent.skills.skills import Skills, interpolate

SKILL = "space-participation"

_NOTE_CHARS, _CRITICAL_CHARS = 150, 200
_CUT_BEFORE_CLEANING = 8
_SIGNALS = {"saturated": "Saturated", "spoken": "Own", "only_new": "Warning"}


def notes(scene: Scene, skills: Skills) -> Iterator[str]:
    """The notes, in the order in which they are told."""
    if scene.repo:
        yield note(skills, "Repository", "Known", repo=one_line(scene.repo))
    yield note(skills, "Notes", "Action" if scene.mode == "action" else "Discussion")
    if scene.social_only:
        yield note(skills, "Notes", "Limited")
    if scene.room.typing:
        yield note(skills, "Notes", "Typing")
    yield from _addressed(scene, skills)
    if scene.from_host and scene.mode == "discussion" and scene.signal == "none" and not _for_others(scene):
        yield note(skills, "Notes", "Host Waits")
    if scene.signal in _SIGNALS:
        yield note(skills, "Saturation", _SIGNALS[scene.signal], agents=scene.counts.agents, own=scene.counts.own)
    yield from _request(scene, skills)
    if scene.needs_repo:
        yield note(skills, "Notes", "Needs Repository")
    if scene.opens:
        yield note(skills, "Notes", "Opener")


def note(skills: Skills, section: str, name: str, **values: object) -> str:
    """One note of the skill, its variables filled in."""
    return interpolate(skills.subsection(SKILL, section, name), values)


def alone_without_github(scene: Scene) -> bool:
    """Whether an open wish can be met by nobody, because we are alone and have no GitHub."""
    return scene.is_open and scene.social_only and not scene.room.peers and not scene.is_owner


def _for_others(scene: Scene) -> bool:
    return bool(scene.addressed) and scene.me not in scene.addressed


def _addressed(scene: Scene, skills: Skills) -> Iterator[str]:
    if scene.me in scene.addressed:
        yield note(skills, "Notes", "Addressed To You")
    elif _for_others(scene):
        yield note(skills, "Notes", "Addressed To Others", names=listed(scene.addressed))


def _request(scene: Scene, skills: Skills) -> Iterator[str]:
    if scene.follow_up == "link":
        links = ", ".join(one_line(link, _CRITICAL_CHARS) for link in scene.promised.work.links)
        yield note(skills, "Notes", "Follow Up Done", links=links or "-")
    elif scene.follow_up == "hurry":
        yield note(skills, "Notes", "Follow Up Queued")
    if not scene.is_open:
        return
    if alone_without_github(scene):
        yield note(skills, "Notes", "Alone Without GitHub")
    elif not is_claimed(scene.request, scene.now):
        yield from _urgency(scene, skills)


def _urgency(scene: Scene, skills: Skills) -> Iterator[str]:
    request, critical = scene.request, scene.escalation == "critical"
    waited = (scene.now - request.requested_at).total_seconds() if request.requested_at else 0
    if scene.role != "actor" and scene.owner:
        yield note(skills, "Role", scene.role.capitalize(), owner=shown(scene.owner))
    yield note(
        skills,
        "Request",
        "Critical" if critical else "Pending",
        request=_quotable(request.content, _CRITICAL_CHARS if critical else _NOTE_CHARS),
        seconds=max(0, int(waited)),
        cycles=request.cycles,
    )
    if scene.is_owner:
        yield note(skills, "Ownership", "Owner")
    elif scene.owner:
        yield note(skills, "Ownership", "Other", owner=shown(scene.owner))
    else:
        yield note(skills, "Ownership", "Nobody")


def _quotable(text: str, length: int) -> str:
    """Words of the host that stand between quotation marks of ours."""
    return one_line(text[: length * _CUT_BEFORE_CLEANING], length).replace('"', "'")
