"""What a row of work is, what handles one kind of it, and what became of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from common.importance import Importance
from common.impression import Impressed
from common.line_kind import LineKind
from common.provenance import Provenance

MOST_TRIES = 3
PAUSE_S = 120.0
STOPPED = "stopped"
"""The code of what was cut off because the SOUL may not act."""
WorkState = Literal["pending", "done", "dropped"]


@dataclass(frozen=True, slots=True)
class NewWork:
    """What is to be done once.

    Attributes:
        kind: names the handler.
        key: what happens once within the kind, across restarts: `<name>/<local date>`, `<repo>#<n>`.
        payload: what the handler must know; JSON.
        author: DID of whoever caused it; "" if nobody did.
        importance: for the order of rows and for the budget.
        not_before: when it is due; None if it is now.
        cause_id: the cause of its intents in the outbox; "" for `<kind>:<key>`.
        rank: among rows whose turn is the same, the lowest goes first.
        version: what compares as later than the version of a known row lets that row wait again; "" where a key is
            handled once for good.
        state: how far it is: what is settled is known, and not handled.

    """

    kind: str
    key: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    author: str = ""
    importance: Importance = "own"
    not_before: datetime | None = None
    cause_id: str = ""
    rank: int = 0
    version: str = ""
    state: WorkState = "pending"


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A stored row. `attempts` are the failed tries so far; times are ISO-8601 UTC, `not_before` "" if it is due.

    `outcome` is the code of the disposition that settled it or that it waits by, "" where there was none.
    """

    id: int
    kind: str
    key: str
    payload: Mapping[str, Any]
    author: str
    importance: Importance
    not_before: str
    attempts: int
    state: WorkState
    outcome: str
    cause_id: str
    created_at: str
    version: str


@dataclass(frozen=True, slots=True)
class Disposition:
    """What became of an item.

    Attributes:
        act: what was done, in the handler's own word. `later` and `undecided` leave the row waiting, of which only
            `undecided` counts as a try; `dropped` gives it up.
        code: what was decided, for code and counts; stored as the outcome of the row, also of one that waits. A tool
            leaves it to the life that runs the turn.
        reason: why, for the owner.
        retry_in_s: for `later` and `undecided`, lived seconds until the item is due again; 0 for the handler's pause.
        intent_id: of the intent that came of it.
        held: whether that intent waits for the owner's approval.
        impression: what the words that were answered left us with.
        wish: what work they ask for that only the owner can order, in the model's words; "" for none.
        is_chosen: whether the model chose it, and gave the reason in its own words; else a rule decided.
        provenance: of the least trusted words behind it; what is not known is a stranger's.

    """

    act: str
    code: str = ""
    reason: str = ""
    retry_in_s: float = 0.0
    intent_id: str | None = None
    held: bool = False
    impression: Impressed = ""
    wish: str = ""
    is_chosen: bool = False
    provenance: Provenance = Provenance.STRANGER

    @property
    def settles(self) -> bool:
        """Return whether the row is settled."""
        return self.act not in {"later", "undecided"}


class Handler(Protocol):
    """Handles one kind of work. A handler derives from this class and says only where it differs.

    Attributes:
        kind: the kind of its rows.
        most_tries: after so many undecided tries the row is dropped.
        is_public: rows wait while the SOUL may not act in public.
        line: the kind of line in which the owner is shown what became of a row; None for trouble alone.
        pause_s: lived seconds that a row waits where its disposition names none; 0 until the next look at the table.
        tells: it tells the journal itself what becomes of a row, but for a bug of ours.
        is_cut_off: it is cut off, with the programs that it runs, as soon as the SOUL may not act; the row waits.

    """

    kind: str
    most_tries: int = MOST_TRIES
    is_public: bool = True
    line: LineKind | None = None
    pause_s: float = PAUSE_S
    tells: bool = False
    is_cut_off: bool = False

    def is_ready(self) -> bool:
        """Return whether rows can be handled now; otherwise all of them wait."""
        return True

    def needs_attention(self, item: WorkItem) -> bool:
        """Return whether a row waits for a turn, and a turn until it is handled."""
        return True

    @abstractmethod
    async def handle(self, item: WorkItem) -> Disposition:
        """Handle one item. A crash in the middle leaves it waiting, so each act must be one intent of its cause.

        Raises:
            BudgetExceeded: there is no budget for it; it waits.
            Fatal: nothing can be done any more.
            Transient: the world is briefly unable; it waits, and no try is counted.

        """
        ...

    async def finish(self, item: WorkItem, accepted: Sequence[Any]) -> Disposition | None:
        """Return what becomes of an item whose `accepted` intents were made before a crash; None to handle it again."""
        first = accepted[0]
        return Disposition("done", "done-before", "done on an earlier try", 0.0, first.id, first.state == "held")

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Note what follows from a disposition that settles an item. A crash may repeat it."""
        return

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return what the journal says of a disposition, without its reason."""
        did = "has to wait" if disposition.act == "later" else disposition.act
        return f"{item.kind} {item.key}: {did}{'; waits for your approval' if disposition.held else ''}"


class Perceiver(Protocol):
    """Adds rows for what is new or has come due; called before each look at the table."""

    async def perceive(self) -> None: ...


@runtime_checkable
class PausingPerceiver(Perceiver, Protocol):
    """One that does not look each time that it is called."""

    def look_anew(self) -> None:
        """Let the next look be a real one, however little time passed since the last."""
        ...
