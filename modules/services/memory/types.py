"""What a memory is, and what a store of memories must be able to do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from common.provenance import Trust

Kind = Literal["fact", "preference", "person", "lesson", "protocol", "decision", "episode", "curated", "daily"]
KINDS: tuple[Kind, ...] = get_args(Kind)

PRIVATE_KINDS: frozenset[Kind] = frozenset({"preference", "curated"})
OWNER_SOURCE, ROOM_SOURCE = "owner:", "space:"
PRIVATE_SOURCES = (OWNER_SOURCE, ROOM_SOURCE)
"""What was said among few: in the owner's own talks, and in a room."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """Something to remember.

    Attributes:
        kind: what sort of thing it is.
        subject: what it is about, in a few words; a new body under the same kind and subject takes the old one's place.
        body: the thing itself.
        tags: words to find it by.
        importance: 1 (a detail) to 5 (never forget).
        source: where it comes from: a session's key, `self`, or `file:MEMORY.md`.
        trust: whose words it rests on.
        shareable: whether it may be told outside the owner's own sessions although it came from one.
        dids: the accounts of others whose words it rests on: it goes when one of them is forgotten.

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

    @property
    def private(self) -> bool:
        """Whether only the owner may be told."""
        return self.kind in PRIVATE_KINDS or (self.source.startswith(PRIVATE_SOURCES) and not self.shareable)


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as it is kept. Times are ISO-8601 UTC; `superseded_by` is the id of what took its place."""

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


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for.

    Attributes:
        text: the words of whoever asks, as they are; "" finds the newest.
        kinds: only these; empty for all.
        since: only what was updated from then on.
        limit: at most so many, 1 to 20.
        public_only: leave out what only the owner may be told.

    """

    text: str
    kinds: Collection[Kind] = ()
    since: datetime | None = None
    limit: int = 8
    public_only: bool = False
