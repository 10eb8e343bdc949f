"""The values of a memory, and what a turn may save as one, depending on whose words are in it. Pure.

A memory stays for long and comes up in other turns. What strangers say may become a note about them, but never a rule
for the SOUL, nor anything from the owner's own talks that is passed on.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from common.provenance import Provenance, Trust
from common.session_keys import OWNER_SESSION

Kind = Literal["fact", "preference", "person", "lesson", "protocol", "decision", "episode", "curated", "daily"]
KINDS: tuple[Kind, ...] = get_args(Kind)

PRIVATE_KINDS: frozenset[Kind] = frozenset({"preference", "curated"})
OWNER_SOURCE, ROOM_SOURCE = "owner:", "space:"
READING_SOURCE = "reading:"
"""The source of what was read on Bluesky in a turn of the SOUL's own."""
PRIVATE_SOURCES = (OWNER_SOURCE, ROOM_SOURCE)
"""The sources of private words: the owner's own talks, and rooms."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """Something to remember.

    Attributes:
        kind: its kind.
        subject: what it is about, in a few words; a new body under the same kind and subject replaces the old one.
        body: the content.
        tags: words to find it by.
        importance: 1 (a detail) to 5 (never forget).
        source: where it comes from: a session's key, `self`, or `file:MEMORY.md`.
        trust: whose words it rests on.
        shareable: whether it may be told outside the owner's own sessions although it came from one.
        dids: the accounts of others whose words it rests on; it is deleted when one of them is forgotten.
        about: the accounts that it names, as of when it was saved; it is deleted when one of them is forgotten.
        resolved: the handles in it whose accounts are in `about` already, or are known to be nobody's.
        filed: a subject that is never shown, to replace memories under it where `subject` is the owner's line.

    """

    kind: Kind
    subject: str
    body: str
    tags: tuple[str, ...] = ()
    importance: int = 3
    source: str = "self"
    trust: Trust = "self"
    shareable: bool = False
    dids: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    filed: str = ""

    @property
    def private(self) -> bool:
        """Whether only the owner may be told."""
        return self.kind in PRIVATE_KINDS or (self.source.startswith(PRIVATE_SOURCES) and not self.shareable)


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory. Times are ISO-8601 UTC; `superseded_by` is the id of the memory that replaced it."""

    id: int
    kind: Kind
    subject: str
    body: str
    tags: tuple[str, ...]
    importance: int
    source: str
    trust: Trust
    private: bool
    created_at: str
    updated_at: str
    last_recalled_at: str | None = None
    recall_count: int = 0
    superseded_by: int | None = None
    dids: tuple[str, ...] = ()
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A search in memory.

    Attributes:
        text: the words of the person who asks; "" finds the newest.
        kinds: only these; empty for all.
        since: only what was updated since then.
        limit: the most entries, 1 to 20.
        public_only: leave out what only the owner may be told.

    """

    text: str
    kinds: Collection[Kind] = ()
    since: datetime | None = None
    limit: int = 8
    public_only: bool = False


SUBJECT_LENGTH, BODY_LENGTH, TAG_LENGTH, MOST_TAGS = 200, 4000, 40, 8

_FROM_STRANGERS: frozenset[Kind] = frozenset({"person", "episode", "fact"})
_FROM_PEERS: frozenset[Kind] = _FROM_STRANGERS | {"lesson", "decision"}
_OF_OTHERS_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class WordsOrigin:
    """The origin of the words of a turn.

    Attributes:
        asked_by: who began the turn.
        provenance: the least trusted words in it.
        session: the key of the session, or what else the turn is about; "" for the SOUL's own turns.

    """

    asked_by: Provenance
    provenance: Provenance
    session: str = ""

    @property
    def trust(self) -> Trust:
        return trust_of(self.provenance)

    @property
    def source(self) -> str:
        """The source of its memories; the owner's turn always has the owner's session, whatever it is about."""
        if self.asked_by is Provenance.OWNER:
            return self.session if self.session.startswith(OWNER_SOURCE) else OWNER_SESSION
        own = self.asked_by is Provenance.SELF or not self.session or self.session.startswith(OWNER_SOURCE)
        return "self" if own else self.session


def trust_of(provenance: Provenance) -> Trust:
    """Return the trust of a memory that rests on such words."""
    match provenance:
        case Provenance.OWNER:
            return "owner"
        case Provenance.SELF:
            return "self"
        case Provenance.PEER:
            return "peer"
        case Provenance.STRANGER:
            return "stranger"


def kinds_from(provenance: Provenance) -> frozenset[Kind]:
    """Return the kinds of memory that may rest on such words."""
    if provenance >= Provenance.SELF:
        return frozenset(KINDS)
    return _FROM_PEERS if provenance is Provenance.PEER else _FROM_STRANGERS


def refusal(kind: Kind, words: WordsOrigin) -> str:
    """Return "" if a turn may save a memory of that kind; otherwise the kinds that it may save."""
    allowed = kinds_from(words.provenance)
    if kind in allowed:
        return ""
    return ", ".join(name for name in KINDS if name in allowed)


def admitted(proposed: NewMemory, words: WordsOrigin) -> NewMemory:
    """Return `proposed` with the source and trust that the words of the turn give it.

    Only what the owner alone said may be marked as shareable; the importance of others' words is at most 3.
    """
    others = words.provenance < Provenance.SELF
    return NewMemory(
        kind=proposed.kind,
        subject=proposed.subject,
        body=proposed.body,
        tags=proposed.tags,
        importance=min(proposed.importance, _OF_OTHERS_AT_MOST) if others else proposed.importance,
        source=words.source,
        trust=words.trust,
        shareable=proposed.shareable and words.provenance is Provenance.OWNER,
    )
