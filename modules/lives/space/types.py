"""Values that the life in the agent space decides by. Frozen; times are aware UTC, durations ms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from common.schemas import Commitment, CommitmentType
from common.text.host_intent import HostIntent
from modules.services.commitments.naming import QueuedCommitment

Mode = Literal["action", "discussion"]
Role = Literal["actor", "reviewer", "observer"]
Escalation = Literal["none", "info", "critical"]
Check = Literal[
    "list",
    "empty_promise",
    "echo_opener",
    "deference",
    "repo_amnesia",
    "meta_discussion",
    "scope_inflation",
    "non_owner_action",
    "non_owner_discussion",
    "saturation",
    "observer",
    "semantic_echo",
    "echo_judge",
    "own_repetition",
    "role_budget",
]


CheckCode = Literal[
    "absent",  # we are in no room, or the room was left
    "muted",  # nothing may be said just now
    "resting",  # we have just spoken, or the model failed a moment ago
    "ended",  # the host has ended the talk
    "quiet",  # nothing is new and nothing is open
    "waiting",  # what is to be said waits for its moment
    "listening",  # something is new, and we let others finish first
    "undecided",  # the model gave no decision that can be read
    "declined",  # we decided to say nothing
    "overtaken",  # a peer or the host was first
    "unsaid",  # it could not be said, or the room never received it
    "spoke",
    "spent",  # the budget allows no call of a model
    "failed",  # something went wrong; it is tried again
]
"""What came of one check of the room."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What came of one check: a code for the program, a sentence for people.

    `next_in_s` asks for the next check after that many seconds; None: after the usual interval.
    """

    code: CheckCode
    reason: str
    next_in_s: float | None = None

    @property
    def ran(self) -> bool:
        """Whether the check came as far as thinking about what is new."""
        return self.code in {"undecided", "declined", "overtaken", "unsaid", "spoke", "waiting"}


@dataclass(frozen=True, slots=True)
class Question:
    """A question that an agent asked in the room."""

    asker: str
    text: str


@dataclass(frozen=True, slots=True)
class HostLine:
    """A message of the host, as it is classified.

    Attributes:
        content: its words.
        before: the last lines before it, oldest first, each with its speaker.
        question: what an agent last asked since the host spoke before; None if nothing was asked.

    """

    content: str
    before: tuple[str, ...] = ()
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a message of the host means; `answers` is the question to which it says what is to be done."""

    intent: HostIntent
    answers: Question | None = None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A message in the room as it is kept.

    Attributes:
        id: unique in this process.
        name: who said it.
        content: its text, as far as it is read.
        at: when, aware UTC.
        is_host: whether the host said it.
        is_me: whether we said it.
        replayed: said before we came.
        addressed: whom it addresses, by the room's word.
        addresses_me: whether its text names us.
        intent: what it means, of a message of the host; None while unknown.
        answers: the question of an agent that it answers with a go-ahead; None if it answers none.

    """

    id: str
    name: str
    content: str
    at: datetime
    is_host: bool = False
    is_me: bool = False
    replayed: bool = False
    addressed: tuple[str, ...] = ()
    addresses_me: bool = False
    intent: HostIntent | None = None
    answers: Question | None = None


@dataclass(frozen=True, slots=True)
class HostRequest:
    """The host's latest request, and what came of it so far.

    Attributes:
        content: its words; "" when there is none.
        entry_id: of the message that held it.
        requested_at: when it was said.
        fulfilled: whether somebody has committed to it or delivered it, or nothing was asked.
        cycles: how often we have looked at it unfulfilled.
        owner_rejections: how often our own try for it came to nothing.
        attempts: tries of the model that were completed since.
        forced: forced actions taken for it.
        reopened: how often a commitment for it was given up and it was opened again.
        claimed_until: a peer works at it until then.
        given_up: reopened too often: nobody is urged any more.
        last_cycle_at: when `cycles` last grew.
        repo_asked: the host was asked for a repository.
        assignee: the agent that acts on it because the host answered its question; "" where one is elected.

    """

    content: str = ""
    entry_id: str = ""
    requested_at: datetime | None = None
    fulfilled: bool = True
    cycles: int = 0
    owner_rejections: int = 0
    attempts: int = 0
    forced: int = 0
    reopened: int = 0
    claimed_until: datetime | None = None
    given_up: bool = False
    last_cycle_at: datetime | None = None
    repo_asked: bool = False
    assignee: str = ""


@dataclass(frozen=True, slots=True)
class RequestContent:
    """What the words of a request ask for.

    Attributes:
        kind: what would answer it; an issue where nothing is asked.
        quoted: its first words in quotation marks, "" if there are none.
        issue_number: of the first issue that it names; None if it names none.

    """

    kind: CommitmentType = "create_issue"
    quoted: str = ""
    issue_number: int | None = None


@dataclass(frozen=True, slots=True)
class PeerEvent:
    """What a peer did, as far as a request is concerned."""

    kind: Literal["claim", "success", "failure", "done_chat"]
    name: str
    at: datetime
    action: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class OwnWork:
    """Our own commitments for the request's conversation."""

    live: int = 0
    completed: int = 0
    failed_last: bool = False
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnCommitments:
    """Our own commitments: those still to be kept, and those kept in the last half hour."""

    pending: tuple[QueuedCommitment, ...] = ()
    fulfilled: tuple[QueuedCommitment, ...] = ()
    work: OwnWork = field(default_factory=OwnWork)


@dataclass(frozen=True, slots=True)
class Counts:
    """Messages since the host last spoke: of all agents, and our own."""

    agents: int
    own: int


@dataclass(frozen=True, slots=True)
class Stop:
    """What is told of a message that is stopped.

    Attributes:
        check: which check; None for blank words.
        signature: how the log line begins after `[VALIDATION REJECTED] `.
        tag: what the terminal shows.
        reason: for people.
        salvage: the commitments may be kept.

    """

    check: Check | None
    signature: str
    tag: str
    reason: str
    salvage: bool = False


@dataclass(frozen=True, slots=True)
class ValidationOutcome:
    """What became of a message.

    Attributes:
        message: the words.
        stop: what stops it; None if it may be said.
        figures: what was counted, for the log.
        suspected: the checks whose suspicion a judge should confirm before the message is stopped.

    """

    message: str
    stop: Stop | None = None
    figures: Mapping[str, float | str] = field(default_factory=dict)
    suspected: tuple[Check, ...] = ()


Resolution = Literal["speak", "silent", "overtaken", "needs_repo"]
"""What follows from a decision of the model: words, nothing, nothing since a peer was first, or a question."""

Speech = Literal["spoke", "muted", "absent", "overtaken", "failed"]
"""What became of words: said; not allowed; no room; others were first; never received."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Commitments kept from a message that could not be said, and the words that go with them."""

    message: str
    commitments: tuple[Commitment, ...]


@dataclass(frozen=True, slots=True)
class RefusedWords:
    """Something that we wanted to say or commit to and that did not happen, and the reason."""

    what: str
    reason: str


class IntentClassifier(Protocol):
    """Says what the host's messages mean."""

    async def classify_host_messages(self, lines: Sequence[HostLine]) -> Sequence[Meaning]:
        """Return what each means, in the order given."""
        ...

    def is_settled(self, line: HostLine) -> bool:
        """Return whether its meaning is known, and no guess."""
        ...

    def clear(self) -> None:
        """Forget what was understood: another conversation begins."""
        ...
