"""A row of work, the handler of one kind of it, and its disposition."""

import sqlite3
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from common.provenance import Importance, Provenance
from common.schemas import Impressed
from common.wording import LineKind

MOST_TRIES = 3
PAUSE_S = 120.0
STOPPED = "stopped"
"""The code of an item that was cut off because the SOUL may not act."""
HELD = "held"
"""The code of an item that waits for the owner's decision about a draft. Like the draft, it keeps no SOUL awake."""
WorkState = Literal["pending", "done", "dropped"]
OWNER_LINE = "owner:line"
"""The kind of the rows that hold a line of the owner in the terminal or on the page, each until it is answered."""
OWNER_MESSAGE, OWNER_TALK = "owner-message", "owner-talk"
"""The kinds of the rows for the owner's messages, with the message's name as key: as received, and needing a turn."""


@dataclass(frozen=True, slots=True)
class NewWork:
    """Something to be done once.

    Attributes:
        kind: names the handler.
        key: identifies it within the kind, across restarts: `<name>/<local date>`, `<repo>#<n>`.
        payload: data for the handler; JSON.
        author: DID of the person who caused it; "" for nobody.
        importance: for the order of rows and for the budget.
        not_before: when it is due; None for now.
        cause_id: the cause of its intents in the outbox; "" for `<kind>:<key>`.
        rank: among rows with the same turn, the lowest goes first.
        version: a version that compares as later lets a known row wait again; "" if a key is handled only once.
        state: its initial state: a settled row is known and not handled.

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
    """A stored row. `attempts` are the failed tries so far; times are ISO-8601 UTC, `not_before` is "" if it is due.

    `outcome` is the code of the disposition that settled it or made it wait, "" if there was none. `failures` are the
    tries in a row that a service failed and that count as none, and `failing_since` is the time of the first.
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
    failures: int = 0
    failing_since: str = ""


@dataclass(frozen=True, slots=True)
class Disposition:
    """The result of handling an item.

    Attributes:
        act: what was done, in the handler's own word. `later` and `undecided` leave the row waiting, but only
            `undecided` counts as a try; `dropped` gives it up.
        code: the decision, for code and counts; stored as the outcome of the row, also while it waits. A tool leaves
            it to the life that runs the turn.
        reason: why, for the owner.
        retry_in_s: for `later` and `undecided`, lived seconds until the item is due again; 0 for the handler's pause.
        intent_id: of the intent that it made.
        held: whether that intent waits for the owner's approval.
        impression: the impression that the answered words left.
        wish: the work they ask for that only the owner can order, in the model's words; "" for none.
        is_chosen: whether the model decided and gave the reason in its own words; otherwise a rule decided.
        provenance: of the least trusted words behind it; a stranger's if unknown.

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
        """Whether the row is settled."""
        return self.act not in {"later", "undecided"}


class Handler(Protocol):
    """Handles one kind of work. A handler derives from this class and overrides what differs.

    Attributes:
        kind: the kind of its rows.
        most_tries: the row is dropped after this many undecided tries.
        is_public: rows wait while the SOUL may not act in public.
        line: the kind of line that shows the owner each disposition; None to show only problems.
        pause_s: lived seconds that a row waits if its disposition gives none; 0 until the next look at the table.
        tells: the handler records dispositions in the journal itself, except bugs of ours.
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
        """Return whether a row takes the SOUL's attention: it waits for a turn to end, and turns wait for it."""
        return True

    @abstractmethod
    async def handle(self, item: WorkItem) -> Disposition:
        """Handle one item. After a crash it is handled again, so each act must be one intent of its cause.

        Raises:
            BudgetExceeded: there is no budget for it; it waits.
            Fatal: nothing more can be done.
            Transient: a service is briefly unavailable; it waits, and no try is counted, but for a week at most.

        """
        ...

    async def finish(self, item: WorkItem, accepted: Sequence[Any]) -> Disposition | None:
        """Return the disposition of an item whose `accepted` intents precede a crash; None to handle it again."""
        first = accepted[0]
        return Disposition("done", "done-before", "done on an earlier try", 0.0, first.id, first.state == "held")

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Store what follows from a disposition that settles an item. A crash may repeat it."""
        return

    def settle(self, connection: sqlite3.Connection, item: WorkItem, disposition: Disposition) -> None:
        """Settle what an item stands for, as a step of the transaction that settles its row."""
        return

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal's summary of a disposition, without its reason."""
        did = "has to wait" if disposition.act == "later" else disposition.act
        return f"{item.kind} {item.key}: {did}{'; waits for your approval' if disposition.held else ''}"


class Perceiver(Protocol):
    """Adds rows for what is new or has come due; called before each look at the table."""

    async def perceive(self) -> None: ...


@runtime_checkable
class PausingPerceiver(Perceiver, Protocol):
    """A perceiver that does not look each time it is called."""

    def look_anew(self) -> None:
        """Make the next look a real one, however little time has passed."""
        ...
