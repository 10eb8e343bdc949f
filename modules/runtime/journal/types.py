"""One entry of the journal: what was decided, about what, and why; and why a turn stopped."""

from dataclasses import dataclass, field
from typing import Any, Literal

from common.provenance import Provenance
from common.wording import LineKind

EntryKind = Literal["decision", "model", "act", "life", "error"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that happened, written at once.

    Attributes:
        kind: decision (something was decided), model (a call was made), act (an intent changed state), life (start,
            stop, heartbeat), error.
        loop: the loop or service that writes the entry, for example `awareness` or `outbox`.
        summary: one line for the owner.
        line: how the terminal shows it; None keeps it out of the terminal.
        reason: why, in words.
        trigger_uri: what it is about, if a post.
        author: handle of the trigger's author.
        intent_id: the intent that resulted.
        data: sizes, tokens, verdicts; JSON-like.
        dids: accounts, beside its trigger, that the entry is about: it is deleted or redacted when one is forgotten.
        provenance: of the least trusted words behind it; a stranger's if unknown. All entries about an act have that of
            the first one. The row has it as `rests_on` in `data`, unless it is a stranger's.

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


Stopped = Literal[
    "ended",  # a tool settled the matter, or the model had no more calls
    "no_calls",  # a call was required, and the model made none even when nudged
    "refused",  # the model service refused to answer
    "rounds",  # the limit of rounds
    "time",  # the wall clock: no further round begins
    "repeated_error",  # a call failed as before once more, although the model had been told so
    "repeated_call",  # the same calls had the same results, round after round
    "interrupted",  # the model service became unavailable after calls had been made
]

UNFINISHED: dict[str, str] = {
    "time": "the time was up",
    "interrupted": "the model became unavailable in the middle",
}
"""In words, why a turn stopped that may be continued later."""

CUT_OFF: dict[str, str] = {
    "no_calls": "the model called no tool, even when asked again",
    "refused": "the model service refused to answer",
    "rounds": "the limit of rounds was reached",
    "repeated_error": "the model made the same mistake again, although it was told so",
    "repeated_call": "the model made the same calls again and again, with the same results",
    **UNFINISHED,
}
"""In words, why a turn stopped before its end."""
