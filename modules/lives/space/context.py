"""What a model should know beside the talk itself: our own words and promises, who the others are, and what they do.

Everything that others told is cleaned and cut here, line by line; `prompting.py` puts the frame around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex

from common.text.untrusted import one_line
from modules.lives.space.checks import check_echo_opener
from modules.lives.space.identity import sanitized
from modules.lives.space.names import shown
from modules.lives.space.notes import SKILL, note
from modules.lives.space.scene import Scene
from modules.services.agent.skills.skills import Skills
from modules.services.commitments.types import QueuedCommitment
from modules.services.peers.room_members import PeerRelationships

_OWN_SHOWN = 5
_OTHERS_SHOWN = 10
_LONG, _SHORT, _LINE = 300, 80, 120
_PROMISES = regex.compile(
    r"\b(?:I['\u2019]ll|I\ can|Let\ me|opening|creating|I\ will|I['\u2019]m\ going\ to|I\ am\ going\ to|posting"
    r"|commenting|writing\ up|documenting|filing|submitting)\b",
    regex.IGNORECASE | regex.VERBOSE,
)


def own_context(scene: Scene, skills: Skills) -> str:
    """What we said and promised, and what is pinned; "" if there is nothing."""
    said = [entry.content for entry in scene.history if entry.is_me][-_OWN_SHOWN:]
    parts = [
        listed(skills, "Own Messages", (one_line(text[: 4 * _LONG], _LONG) for text in said)),
        listed(skills, "Pending", map(_promise, scene.promised.pending)),
        listed(skills, "Fulfilled", map(_promise, scene.promised.fulfilled)),
    ]
    if scene.pinned:
        parts.append(note(skills, "Context", "Pinned", items=one_line("; ".join(scene.pinned), _LINE)))
    return "\n\n".join(filter(None, parts))


def foreign_context(scene: Scene, skills: Skills, relationships: PeerRelationships) -> str:
    """What the others told of themselves and their work, not yet framed; "" if there is nothing."""
    parts = (
        listed(skills, "Peers", _peers(scene, skills, relationships)),
        listed(skills, "Workspaces", _workspaces(scene, skills)),
        listed(skills, "Peer Results", _results(scene)),
        listed(skills, "Peer Claims", (*_claims(scene), *_promises(scene))),
        listed(skills, "Points", (one_line(point, _LINE) for point in scene.points)),
        listed(skills, "Echoes", _echoes(scene)),
    )
    return "\n\n".join(filter(None, parts))


def listed(skills: Skills, name: str, items: Iterable[str]) -> str:
    """The list of that name, "" if it is empty."""
    lines = [f"- {item}" for item in items if item]
    return note(skills, "Context", name, items="\n".join(lines)) if lines else ""


def _promise(commitment: QueuedCommitment) -> str:
    return f"[{commitment.type}] {one_line(commitment.description, _LINE)} ({commitment.status})"


def _peers(scene: Scene, skills: Skills, relationships: PeerRelationships) -> Iterator[str]:
    for name, presence in scene.room.peers.items():
        identity = scene.room.identities.get(name) or presence.identity
        reflected = scene.room.reflections.get(name)
        relationship = relationships.context(name, skills)
        if identity is None and reflected is None and relationship is None:
            continue
        card = sanitized(identity) if identity else None
        yield skills.render(
            SKILL,
            "Peer",
            name=shown(name),
            voice=card.voice if card else "",
            interests=", ".join(card.current_interests) if card else "",
            learning=", ".join(card.expertise) if card else "",
            essence=card.soul_essence if card else "",
            reflection=one_line(reflected.summary[: 4 * _LONG], _LONG) if reflected else "",
            relationship=relationship or "",
        )


def _workspaces(scene: Scene, skills: Skills) -> Iterator[str]:
    for one in scene.room.workspaces.values():
        yield skills.render(
            SKILL,
            "Progress",
            workspace=one_line(one.workspace),
            plan=f"{one.plan_number:g}",
            done=f"{one.completed:g}",
            total=f"{one.total:g}",
            active=f"{one.in_progress:g}",
            blocked=f"{one.blocked:g}",
        )


def _results(scene: Scene) -> Iterator[str]:
    for deed in [deed for deed in scene.deeds if deed.kind in {"success", "failure"}][-_OTHERS_SHOWN:]:
        yield f"{shown(deed.name)}: {one_line(deed.action)} {one_line(deed.target, _LINE)} ({deed.kind})"


def _claims(scene: Scene) -> Iterator[str]:
    for claim in scene.room.claims[-_OTHERS_SHOWN:]:
        yield f"{shown(claim.name)}: {one_line(claim.action)} {one_line(claim.target, _LINE)}"


def _promises(scene: Scene) -> Iterator[str]:
    """By their words alone, of those who claimed nothing."""
    claiming = {claim.name for claim in scene.room.claims}
    peers = [entry for entry in scene.history if not (entry.is_host or entry.is_me or entry.name in claiming)]
    for entry in [entry for entry in peers if _PROMISES.search(entry.content)][-_OTHERS_SHOWN:]:
        yield f'{shown(entry.name)}: "{one_line(entry.content[: 4 * _LINE], _LINE)}"'


def _echoes(scene: Scene) -> Iterator[str]:
    peers = [entry for entry in scene.history if not (entry.is_host or entry.is_me)]
    for entry in [entry for entry in peers if check_echo_opener(entry.content)][-_OTHERS_SHOWN:]:
        yield f'{shown(entry.name)}: "{one_line(entry.content[: 4 * _SHORT], _SHORT)}"'
