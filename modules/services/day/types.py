"""What one day of a SOUL came to."""

from __future__ import annotations

from dataclasses import dataclass

from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.types import IntentState

LIKED_ONLY = "liked"
"""The outcome of what was liked and not answered."""


@dataclass(frozen=True, slots=True)
class DayReason:
    """Why posts, threads and messages were liked only or left alone: `act` and `reason` as in the journal.

    `who` are the handles of those who wrote them, each once. `is_chosen` says that the model chose it: then the reason
    is that of the newest, and hardly ever the same twice.
    """

    act: str
    reason: str
    count: int
    who: tuple[str, ...]
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class DayOrder:
    """An act that the owner ordered, or only approved: what it is, without its words, and its state in the outbox."""

    what: str
    state: IntentState
    was_ordered: bool


@dataclass(frozen=True, slots=True)
class DayRefusal:
    """Something that did not leave as it was meant: what it was, why, and how often."""

    what: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class TellingCase:
    """One decision as the journal tells it. `uri` is what it was about."""

    at: str
    act: str
    summary: str
    reason: str
    uri: str


@dataclass(frozen=True, slots=True)
class DayWaits:
    """What waits now: drafts for the owner's approval, acts for their turn, and all else for an answer.

    `tasks` are those that failed too often or ask a question on their plan.
    """

    drafts: int
    posts: int
    threads: int
    messages: int
    owner_messages: int
    tasks: int
    acts: int


@dataclass(frozen=True, slots=True)
class DayCommitments:
    """Titles: of those that are still to be fulfilled, and of those that were kept or given up on the day."""

    open: tuple[str, ...]
    kept: tuple[str, ...]
    given_up: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DayLearned:
    """How many memories were made or renewed, subjects of the newest, and why SELF.md changed."""

    memories: int
    subjects: tuple[str, ...]
    self_changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DaySpent:
    """Of the day's budget: tokens and dollars, reservations included; a cap is None where there is none.

    `usd` is None where a price is unknown, `fraction` of a past day is None, since the caps may have been others.
    """

    calls: int
    tokens: float
    tokens_cap: float | None
    usd: float | None
    usd_cap: float | None
    fraction: float | None


@dataclass(frozen=True, slots=True)
class DayTrouble:
    """What is wrong, or went wrong so often, and what the owner can do about it; "" if it mends itself."""

    what: str
    count: int
    remedy: str


@dataclass(frozen=True, slots=True)
class PublicDay:
    """What everybody may know of a day: how many public acts of each kind left, and how often it spoke in a room."""

    done: dict[IntentKind, int]
    room_words: int


@dataclass(frozen=True, slots=True)
class DaySummary:
    """One local day.

    Attributes:
        name: the SOUL's.
        day: `2026-01-31`.
        timezone: by which the day is counted, "" for the machine's.
        is_today: whether it is going on; `waits`, open commitments and `tasks` are as they stand now.
        awake: whether a process holds the home now.
        done: how many acts of each kind left; what the program itself writes to the owner is left out.
        with_whom: the handles of those to whom acts of a kind were done, each once, the newest first.
        orders: what the owner ordered or approved on the day, the newest first.
        room_words: how often it spoke in a room.
        reasons: why something was liked only or left alone, the most frequent first.
        wishes: who wants work that only the owner can order, the link or address of it, and what they want, in the
            model's words; the newest first.
        refused: acts that a rule, a gate or a service refused, or that expired; the most frequent first.
        sent_back: calls of tools that the model was asked to change.
        dropped: work of its own that was given up, such as a ritual or a commitment.
        cases: at most three, of as many kinds as there are, the rarest first.
        leaving: when each act leaves that waits for longer than a minute, and why not sooner.
        tasks: the tasks of plans that it holds, `owner/repo#12/task-3`.
        blocked: the tasks of plans that cannot go on by themselves; they stand among the troubles, too.
        rituals: names, each with the link to what came of it, or to its thread.
        troubles: the gravest first.
        kept_since: from when on the journal tells, ISO-8601, if only a part of the day; else "".

    """

    name: str
    day: str
    timezone: str
    is_today: bool
    awake: bool
    done: dict[IntentKind, int]
    with_whom: dict[IntentKind, tuple[str, ...]]
    orders: tuple[DayOrder, ...]
    room_words: int
    reasons: tuple[DayReason, ...]
    wishes: tuple[tuple[str, str, str], ...]
    refused: tuple[DayRefusal, ...]
    sent_back: tuple[DayRefusal, ...]
    dropped: tuple[DayRefusal, ...]
    cases: tuple[TellingCase, ...]
    waits: DayWaits
    leaving: tuple[str, ...]
    commitments: DayCommitments
    tasks: tuple[str, ...]
    blocked: tuple[DayTrouble, ...]
    rituals: dict[str, str]
    learned: DayLearned
    spent: DaySpent
    troubles: tuple[DayTrouble, ...]
    kept_since: str
