"""Whom the SOUL has talked with in rooms, across lives: `.memory/peer_relationships.json`.

People and other agents read this file, so its names are camelCase and what we do not know in it stays. Written in one
step after each change and kept across versions; a crash loses at most the change that it interrupted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from common.clock import Clock, iso, parse_iso_or_none
from common.constants import SPACE_IDLE_RESET_MS
from common.state import Json, load_state, save_state
from common.text.closings import asks, content_words
from common.text.strings import straighten
from common.text.untrusted import one_line
from modules.services.skills.skills import Skills, interpolate

ROOM_MEMBERS_FILE = "peer_relationships.json"

_KEPT_EXCHANGES = 5
_KEPT_STRENGTHS = 3
_KEPT_PEERS = 500
_MAX_CHARS = 200
_REASON_WORDS = 4
_AGREES = re.compile(
    r"""\W{0,3}(?:(?:yes|yeah|yep|oh|ah|and|i)\W{1,3}){0,3}(?:
        agreed? | exactly | absolutely | definitely | precisely | indeed | likewise | same\ here | well\ said | spot\ on
      | good\ (?:point|catch|idea) | fair\ point | (?:that\ )?makes\ sense | couldn't\ agree\ more | true | right | \+1
      | (?:you're|you\ are|that's|that\ is)\ right
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
_DISAGREES = re.compile(
    r"""\W{0,3}(?:
        i\ (?:(?:strongly|respectfully|rather|still)\ )?(?:disagree|doubt|beg\ to\ differ)\b
      | (?:i'm|i\ am)\ not\ (?:so\ )?sure | i\ (?:don't|do\ not)\ (?:think|agree|believe)
      | i\ see\ (?:it|that)\ differently
      | not\ (?:so|quite|really|necessarily)\b | no[,.!;:] | nope\b | on\ the\ contrary | wrong\b
      | actually,?\ (?:no|it|that)\b | (?:yes|sure|true|agreed|right|fair)\W{1,3}but\b | but\b | however\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_LIMITS = re.compile(r"\b(?:but|however|though|although|except|unless)\b", re.IGNORECASE)
_KEY = "relationships"
_SKILL = "space-participation"


Stance = Literal["agrees", "disagrees"]


class PeerRelationship(BaseModel):
    """What we remember of one peer; `last_interaction` is ISO-8601 UTC, "" before the first."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="allow", defer_build=True
    )

    peer_name: str
    space_conversations: int = 0
    issues_co_created: int = 0
    prs_reviewed: int = 0
    productive_disagreements: int = 0
    agreements: int = 0
    last_interaction: str = ""
    memorable_exchanges: tuple[str, ...] = ()
    complementary_strengths: tuple[str, ...] = ()


class PeerRelationships:
    """The store. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, clock: Clock) -> None:
        loaded = load_state(path, {})
        self._path = path
        self._clock = clock
        self.notice = loaded.notice
        self._rest = loaded.data
        self._unread: Json = {}
        self._peers: dict[str, PeerRelationship] = {}
        entries = self._rest.pop(_KEY, {})
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            try:
                self._peers[name] = PeerRelationship.model_validate(entry)
            except ValidationError:
                self._unread[name] = entry
        if self._unread:
            self.notice = f"{path.name}: {len(self._unread)} entries cannot be read and stay as they are"

    def get(self, name: str) -> PeerRelationship | None:
        """What we remember of `name`, in any case."""
        return self._peers.get(name.lower())

    def record_space_interaction(self, names: Iterable[str]) -> None:
        """They spoke where we are. It counts as one conversation for as long as nobody pauses for long."""
        now = self._clock.now()
        for name in {name.lower(): name for name in names}.values():
            known = self._known(name)
            more = 1 if _is_over(known.last_interaction, now) else 0
            self._put(known, space_conversations=known.space_conversations + more, last_interaction=iso(now))
        self._save()

    def record_co_creation(self, name: str) -> None:
        """We worked on an issue together."""
        known = self._known(name)
        self._put(known, issues_co_created=known.issues_co_created + 1)
        self._save()

    def record_pr_review(self, name: str) -> None:
        """One of us looked at the other's pull request."""
        known = self._known(name)
        self._put(known, prs_reviewed=known.prs_reviewed + 1)
        self._save()

    def record_memorable_exchange(self, name: str, text: str) -> None:
        """Words between us that are worth keeping; the newest five are."""
        known = self._known(name)
        exchanges = (*known.memorable_exchanges, one_line(text, _MAX_CHARS))[-_KEPT_EXCHANGES:]
        self._put(known, memorable_exchanges=exchanges)
        self._save()

    def record_complementary_strengths(self, name: str, texts: Iterable[str]) -> None:
        """Remember what they are good at: the first three of these, and of the earlier ones as many as still fit."""
        known = self._known(name)
        told = [one_line(text, _MAX_CHARS) for text in texts]
        kept = tuple(dict.fromkeys([*filter(None, told), *known.complementary_strengths]))[:_KEPT_STRENGTHS]
        if kept != known.complementary_strengths:
            self._put(known, complementary_strengths=kept)
            self._save()

    def get_peer_relationship_context(self, name: str, skills: Skills) -> str | None:
        """What a prompt is told about us two; None if we never talked."""
        known = self.get(name)
        if known is None or not known.space_conversations:
            return None
        numbers = {
            "Conversations": known.space_conversations,
            "Issues": known.issues_co_created,
            "Reviews": known.prs_reviewed,
            "Exchange": known.memorable_exchanges[-1] if known.memorable_exchanges else "",
        }
        words = skills.subsections(_SKILL, "Relationship")
        return " · ".join(interpolate(words[part], {"value": value}) for part, value in numbers.items() if value)

    def _known(self, name: str) -> PeerRelationship:
        return self.get(name) or PeerRelationship(peer_name=name)

    def _put(self, known: PeerRelationship, **changes: object) -> None:
        self._peers[known.peer_name.lower()] = known.model_copy(update=changes)

    def _forget_passers_by(self) -> None:
        """A room may be full of names that come once; whom we know best, and saw last, stay."""
        if len(self._peers) > _KEPT_PEERS:
            ranked = sorted(self._peers.items(), key=lambda item: _closeness(item[1]))
            for name, _ in ranked[: len(self._peers) - _KEPT_PEERS]:
                del self._peers[name]

    def _save(self) -> None:
        self._forget_passers_by()
        written = {name: peer.model_dump(mode="json", by_alias=True) for name, peer in self._peers.items()}
        save_state(self._path, {_KEY: {**self._unread, **written}, **self._rest})


def stance_of(answer: str) -> Stance | None:
    """Return whether an answer says that it agrees, or that it disagrees and why; None for anything else."""
    text = straighten(answer)
    if asks(text):
        return None
    if _DISAGREES.match(text):
        return "disagrees" if len(content_words(text)) >= _REASON_WORDS else None
    return "agrees" if _AGREES.match(text) and not _LIMITS.search(text) else None


def _is_over(last: str, now: datetime) -> bool:
    before = parse_iso_or_none(last)
    return before is None or abs(now - before) > timedelta(milliseconds=SPACE_IDLE_RESET_MS)


def _closeness(peer: PeerRelationship) -> tuple[int, str]:
    return peer.issues_co_created + peer.prs_reviewed + peer.space_conversations, peer.last_interaction
