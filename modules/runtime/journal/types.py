"""One entry of the journal: what was decided, about what, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from common.line_kind import LineKind
from common.provenance import Provenance

EntryKind = Literal["decision", "model", "act", "life", "error"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What happened, as it happens.

    Attributes:
        kind: decision (something was weighed), model (a call was made), act (an intent moved), life (start,
            stop, heartbeat), error.
        loop: the loop or service that writes the entry, for example `awareness` or `outbox`.
        summary: one line for the owner.
        line: how the terminal shows it; None keeps it out of the terminal.
        reason: why, in words.
        trigger_uri: what it is about, if a post.
        author: handle of the trigger's author.
        intent_id: the intent that came of it.
        data: sizes, tokens, verdicts; JSON-like.
        dids: accounts that the entry tells of beside its trigger: it goes, or names somebody, when one is forgotten.
        provenance: of the least trusted words behind it; what is not known is a stranger's. What is told of an act
            has that of the first entry about it. Its row has it as `rests_on` in `data`, but for a stranger's.

    """

    kind: EntryKind
    loop: str
    summary: str
    line: LineKind | None = "info"
    reason: str = ""
    trigger_uri: str | None = None
    author: str | None = None
    intent_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    dids: tuple[str, ...] = ()
    provenance: Provenance = Provenance.STRANGER


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry with its number and time (ISO-8601 UTC)."""

    id: int
    at: str
    entry: Entry
