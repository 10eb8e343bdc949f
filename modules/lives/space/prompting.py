"""What a model is told of a moment in the room: notes, context and the conversation.

Every word of ours comes from the skill. What others told is cleaned and cut line by line, and framed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import regex

from common.text.phrases import check_echo_opener
from common.text.untrusted import one_line
from modules.lives.space.config import SpaceConfig, format_space_config_for_prompt
from modules.lives.space.first_look import is_idle_talk
from modules.lives.space.host_request import is_claimed
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.transcript import listed as listed_names
from modules.lives.space.transcript import shown, transcript
from modules.services.commitments.types import QueuedCommitment
from modules.services.peers.room_identity import sanitized
from modules.services.peers.room_members import PeerRelationships
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills, interpolate

SPACE_DIGEST_ABOVE_TOKENS, SPACE_IDLE_TALK_TOKENS = 60_000, 800
"""Above so many tokens the oldest messages become a line each; the second where peers only talk among themselves."""

SKILL = "space-participation"

_NOTE_CHARS, _CRITICAL_CHARS = 150, 200
_CUT_BEFORE_CLEANING = 8
_SIGNALS = {"saturated": "Saturated", "spoken": "Own", "only_new": "Warning"}


def notes(snapshot: RoomSnapshot, skills: Skills) -> Iterator[str]:
    """The notes, in the order in which they are told."""
    if snapshot.repo:
        yield note(skills, "Repository", "Known", repo=one_line(snapshot.repo))
    is_talk = snapshot.mode == "discussion" or not snapshot.request.content  # "is it done?" where nothing was asked for
    yield note(skills, "Notes", "Discussion" if is_talk else "Action")
    if snapshot.social_only:
        yield note(skills, "Notes", "Limited")
    if snapshot.room.typing:
        yield note(skills, "Notes", "Typing")
    yield from _addressed(snapshot, skills)
    if snapshot.from_host and is_talk and snapshot.signal == "none" and not _for_others(snapshot):
        yield note(skills, "Notes", "Host Waits")
    if snapshot.signal in _SIGNALS:
        yield note(
            skills, "Saturation", _SIGNALS[snapshot.signal], agents=snapshot.counts.agents, own=snapshot.counts.own
        )
    yield from _request(snapshot, skills)
    if snapshot.needs_repo:
        yield note(skills, "Notes", "Needs Repository")
    if snapshot.opens:
        yield note(skills, "Notes", "Opener")


def note(skills: Skills, section: str, name: str, **values: object) -> str:
    """One note of the skill, its variables filled in."""
    return interpolate(skills.subsection(SKILL, section, name), values)


def alone_without_github(snapshot: RoomSnapshot) -> bool:
    """Whether an open request can be met by nobody, because we are alone and have no GitHub."""
    return snapshot.is_open and snapshot.social_only and not snapshot.room.peers and not snapshot.is_owner


def _for_others(snapshot: RoomSnapshot) -> bool:
    return bool(snapshot.addressed) and snapshot.me not in snapshot.addressed


def _addressed(snapshot: RoomSnapshot, skills: Skills) -> Iterator[str]:
    if snapshot.me in snapshot.addressed:
        yield note(skills, "Notes", "Addressed To You")
    elif _for_others(snapshot):
        yield note(skills, "Notes", "Addressed To Others", names=listed_names(snapshot.addressed))


def _request(snapshot: RoomSnapshot, skills: Skills) -> Iterator[str]:
    if snapshot.follow_up == "link":
        links = ", ".join(one_line(link, _CRITICAL_CHARS) for link in snapshot.own_commitments.work.links)
        yield note(skills, "Notes", "Follow Up Done", links=links or "-")
    elif snapshot.follow_up == "wake_commitments":
        yield note(skills, "Notes", "Follow Up Queued")
    if not snapshot.is_open:
        return
    if alone_without_github(snapshot):
        yield note(skills, "Notes", "Alone Without GitHub")
    elif not is_claimed(snapshot.request, snapshot.now):
        yield from _urgency(snapshot, skills)


def _urgency(snapshot: RoomSnapshot, skills: Skills) -> Iterator[str]:
    request, critical = snapshot.request, snapshot.escalation == "critical"
    waited = (snapshot.now - request.requested_at).total_seconds() if request.requested_at else 0
    if snapshot.role != "actor" and snapshot.owner:
        yield note(skills, "Role", snapshot.role.capitalize(), owner=shown(snapshot.owner))
    yield note(
        skills,
        "Request",
        "Critical" if critical else "Pending",
        request=_quotable(request.content, _CRITICAL_CHARS if critical else _NOTE_CHARS),
        seconds=max(0, int(waited)),
        cycles=request.cycles,
    )
    if snapshot.is_owner:
        yield note(skills, "Ownership", "Owner")
    elif snapshot.owner:
        yield note(skills, "Ownership", "Other", owner=shown(snapshot.owner))
    else:
        yield note(skills, "Ownership", "Nobody")


def _quotable(text: str, length: int) -> str:
    """Words of the host that stand between quotation marks of ours."""
    return one_line(text[: length * _CUT_BEFORE_CLEANING], length).replace('"', "'")


_OWN_SHOWN = 5
_OTHERS_SHOWN = 10
_LONG, _SHORT, _LINE = 300, 80, 120
_COMMITMENTS = regex.compile(
    r"\b(?:I['\u2019]ll|I\ can|Let\ me|opening|creating|I\ will|I['\u2019]m\ going\ to|I\ am\ going\ to|posting"
    r"|commenting|writing\ up|documenting|filing|submitting)\b",
    regex.IGNORECASE | regex.VERBOSE,
)


def own_context(snapshot: RoomSnapshot, skills: Skills, today: str = "") -> str:
    """What we said, did `today` and committed to, and what is pinned; "" if there is nothing."""
    said = [entry.content for entry in snapshot.history if entry.is_me][-_OWN_SHOWN:]
    parts = [
        listed(skills, "Own Messages", (one_line(text[: 4 * _LONG], _LONG) for text in said)),
        note(skills, "Context", "Today", items=today) if today else "",
        listed(skills, "Pending", map(_commitment_line, snapshot.own_commitments.pending)),
        listed(skills, "Fulfilled", map(_commitment_line, snapshot.own_commitments.fulfilled)),
    ]
    if snapshot.pinned:
        parts.append(note(skills, "Context", "Pinned", items=one_line("; ".join(snapshot.pinned), _LINE)))
    return "\n\n".join(filter(None, parts))


def foreign_context(snapshot: RoomSnapshot, skills: Skills, relationships: PeerRelationships) -> str:
    """What the others told of themselves and their work, not yet framed; "" if there is nothing."""
    parts = (
        listed(skills, "Peers", _peers(snapshot, skills, relationships)),
        listed(skills, "Workspaces", _workspaces(snapshot, skills)),
        listed(skills, "Peer Results", _results(snapshot)),
        listed(skills, "Peer Claims", (*_claims(snapshot), *_commitments(snapshot))),
        listed(skills, "Points", (one_line(point, _LINE) for point in snapshot.points)),
        listed(skills, "Echoes", _echoes(snapshot)),
    )
    return "\n\n".join(filter(None, parts))


def listed(skills: Skills, name: str, items: Iterable[str]) -> str:
    """The list of that name, "" if it is empty."""
    lines = [f"- {item}" for item in items if item]
    return note(skills, "Context", name, items="\n".join(lines)) if lines else ""


def _commitment_line(commitment: QueuedCommitment) -> str:
    return f"[{commitment.type}] {one_line(commitment.description, _LINE)} ({commitment.status})"


def _peers(snapshot: RoomSnapshot, skills: Skills, relationships: PeerRelationships) -> Iterator[str]:
    for name, presence in snapshot.room.peers.items():
        identity = snapshot.room.identities.get(name) or presence.identity
        reflected = snapshot.room.reflections.get(name)
        relationship = relationships.get_peer_relationship_context(name, skills)
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


def _workspaces(snapshot: RoomSnapshot, skills: Skills) -> Iterator[str]:
    for one in snapshot.room.workspaces.values():
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


def _results(snapshot: RoomSnapshot) -> Iterator[str]:
    ended = [event for event in snapshot.peer_events if event.kind in {"success", "failure"}]
    for event in ended[-_OTHERS_SHOWN:]:
        yield f"{shown(event.name)}: {one_line(event.action)} {one_line(event.target, _LINE)} ({event.kind})"


def _claims(snapshot: RoomSnapshot) -> Iterator[str]:
    for claim in snapshot.room.claims[-_OTHERS_SHOWN:]:
        yield f"{shown(claim.name)}: {one_line(claim.action)} {one_line(claim.target, _LINE)}"


def _commitments(snapshot: RoomSnapshot) -> Iterator[str]:
    """By their words alone, of those who claimed nothing."""
    claiming = {claim.name for claim in snapshot.room.claims}
    peers = [entry for entry in snapshot.history if not (entry.is_host or entry.is_me or entry.name in claiming)]
    for entry in [entry for entry in peers if _COMMITMENTS.search(entry.content)][-_OTHERS_SHOWN:]:
        yield f'{shown(entry.name)}: "{one_line(entry.content[: 4 * _LINE], _LINE)}"'


def _echoes(snapshot: RoomSnapshot) -> Iterator[str]:
    peers = [entry for entry in snapshot.history if not (entry.is_host or entry.is_me)]
    for entry in [entry for entry in peers if check_echo_opener(entry.content)][-_OTHERS_SHOWN:]:
        yield f'{shown(entry.name)}: "{one_line(entry.content[: 4 * _SHORT], _SHORT)}"'


_LEAST_TOKENS = 200
_HOST = "host"


@dataclass(frozen=True, slots=True)
class PromptWriter:
    """Puts a snapshot into words.

    Attributes:
        skills: have the words.
        relationships: whom we know.
        rng: draws the boundary around foreign words.
        estimate: tokens of a text.
        timezone: of the SOUL's day; "" for the machine's own.

    """

    skills: Skills
    relationships: PeerRelationships
    rng: random.Random
    estimate: Callable[[str], int]
    timezone: str = ""

    def user_message(self, snapshot: RoomSnapshot, config: SpaceConfig, *, room_tokens: int, today: str = "") -> str:
        """The message that the turn answers.

        `room_tokens` is all the space that there is for it, `today` what the room may know of our day.
        """
        framer = Framer(self.skills, self.rng)
        pressing = [format_space_config_for_prompt(config, self.skills), *notes(snapshot, self.skills)]
        told = "\n".join(filter(None, pressing))
        theirs = foreign_context(snapshot, self.skills, self.relationships)
        context = [own_context(snapshot, self.skills, today), self._framed(framer, snapshot, theirs)]
        beside = self.estimate(self._rendered(snapshot, context, "", told))
        most = SPACE_IDLE_TALK_TOKENS if is_idle_talk(snapshot) else SPACE_DIGEST_ABOVE_TOKENS
        left = max(_LEAST_TOKENS, min(most, room_tokens - beside))
        talk = transcript(snapshot.history, estimate=self.estimate, tokens=left, timezone=self.timezone)
        context.append(self._framed(framer, snapshot, listed(self.skills, "Digest", talk.digest)))
        said = "\n".join(talk.lines)
        conversation = (
            framer.frame("conversation", author="several", uri=snapshot.thread_uri, text=said) if said else "-"
        )
        return self._rendered(snapshot, context, conversation, told)

    def framed_post(self, snapshot: RoomSnapshot, text: str) -> str:
        """One message of the host, framed."""
        return Framer(self.skills, self.rng).frame("post", author=_HOST, uri=snapshot.thread_uri, text=text)

    def _rendered(self, snapshot: RoomSnapshot, context: list[str], conversation: str, told: str) -> str:
        return self.skills.render(
            SKILL,
            "User Message Template",
            present=", ".join(filter(None, (listed_names(snapshot.room.peers), _HOST))),
            typing=listed_names(snapshot.room.typing) or "-",
            context="\n\n".join(filter(None, context)),
            conversation=conversation,
            notes=told,
        )

    @staticmethod
    def _framed(framer: Framer, snapshot: RoomSnapshot, text: str) -> str:
        return framer.frame("reading", author="several", uri=snapshot.thread_uri, text=text) if text else ""
