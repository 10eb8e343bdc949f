"""Values on which the life in the agent space bases its decisions. Frozen; times are aware UTC, durations ms."""

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
    "waiting",  # a message waits for its moment
    "listening",  # something is new, and we let others finish first
    "undecided",  # the model gave no readable decision
    "declined",  # we decided to say nothing
    "overtaken",  # a peer or the host was first
    "unsaid",  # it could not be said, or the room never received it
    "spoke",
    "spent",  # the budget allows no call of the model
    "failed",  # something went wrong; it is tried again
]
"""The result of one check of the room."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: a code for the program, a sentence for people.

    `next_in_s` asks for the next check after that many seconds; None means after the usual interval.
    """

    code: CheckCode
    reason: str
    next_in_s: float | None = None

    @property
    def ran(self) -> bool:
        """Whether the check got as far as a decision about what is new."""
        return self.code in {"undecided", "declined", "overtaken", "unsaid", "spoke", "waiting"}


@dataclass(frozen=True, slots=True)
class Question:
    """A question that an agent asked in the room."""

    asker: str
    text: str


@dataclass(frozen=True, slots=True)
class HostLine:
    """A message of the host, as it is given to the classifier.

    Attributes:
        content: its text.
        before: the last lines before it, oldest first, each with its speaker.
        question: the question since the host's previous message that it may answer; None if there is none.

    """

    content: str
    before: tuple[str, ...] = ()
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a host message.

    Attributes:
        intent: its intent.
        answers: the question that it answers by saying what is to be done.
        takes_back: the ids of the promises that it takes back, if it says so of some out of several.
        spares_request: whether it takes back something earlier, and not the latest request.

    """

    intent: HostIntent
    answers: Question | None = None
    takes_back: tuple[str, ...] = ()
    spares_request: bool = False


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A message in the room, as it is stored.

    Attributes:
        id: unique in this process.
        name: who said it.
        content: its text, as far as it is read.
        at: when it was said, aware UTC.
        is_host: whether the host said it.
        is_me: whether we said it.
        replayed: whether it was said before we joined.
        addressed: whom it addresses, according to the room.
        addresses_me: whether its text names us.
        intent: its meaning if it is a message of the host; None while unknown.
        answers: the question of an agent that it answers with a go-ahead; None if it answers none.
        takes_back: as in `Meaning`.
        spares_request: as in `Meaning`.

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
    takes_back: tuple[str, ...] = ()
    spares_request: bool = False


@dataclass(frozen=True, slots=True)
class HostRequest:
    """The host's latest request, and its state so far.

    Attributes:
        content: its text; "" when there is none.
        entry_id: the id of the message that held it.
        requested_at: when it was said.
        fulfilled: whether somebody has committed to it or delivered it, or nothing was asked.
        cycles: how often we have looked at it unfulfilled.
        owner_rejections: how often our own try for it failed.
        attempts: how many tries of the model for it were completed since it was last opened.
        forced: how many forced actions were taken for it.
        reopened: how often it was opened again because a commitment for it was given up.
        claimed_until: until when a peer's claim on it holds.
        given_up: whether it was declined or reopened too often, so that nobody is urged any more.
        last_cycle_at: when `cycles` last grew.
        repo_asked: whether the host was asked for a repository.
        assignee: the agent that acts on it because the host answered its question; "" if one is elected.
        too_late: whether the host took it back when what we had promised could not be stopped any more.

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
    too_late: bool = False


@dataclass(frozen=True, slots=True)
class RequestContent:
    """What the text of a request asks for.

    Attributes:
        kind: what would answer it; an issue if nothing is asked.
        quoted: its first words in quotation marks; "" if there are none.
        issue_number: the number of the first issue that it names; None if it names none.

    """

    kind: CommitmentType = "create_issue"
    quoted: str = ""
    issue_number: int | None = None


@dataclass(frozen=True, slots=True)
class PeerEvent:
    """An act of a peer that concerns a request."""

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
    """Our own commitments: those still to be fulfilled, and those fulfilled in the last half hour."""

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
    """Why a message is stopped.

    Attributes:
        check: the check that stops it; None for a blank message.
        signature: how the log line begins after `[VALIDATION REJECTED] `.
        tag: what the terminal shows.
        reason: for people.
        salvage: whether its commitments may be kept.

    """

    check: Check | None
    signature: str
    tag: str
    reason: str
    salvage: bool = False


@dataclass(frozen=True, slots=True)
class ValidationOutcome:
    """The result of validating a message.

    Attributes:
        message: its text.
        stop: what stops it; None if it may be said.
        figures: what was counted, for the log.
        suspected: the checks whose suspicion a judge should confirm before the message is stopped.

    """

    message: str
    stop: Stop | None = None
    figures: Mapping[str, float | str] = field(default_factory=dict)
    suspected: tuple[Check, ...] = ()


Resolution = Literal["speak", "silent", "overtaken", "needs_repo"]
"""What follows from a model's decision: a message, silence, silence as a peer was first, or asking for a repository."""

Speech = Literal["spoke", "muted", "absent", "overtaken", "failed"]
"""What became of a message: said; not allowed; no room; others were first; never received."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Commitments kept from a message that could not be said, and the message that replaces it."""

    message: str
    commitments: tuple[Commitment, ...]


@dataclass(frozen=True, slots=True)
class RefusedWords:
    """A message or commitment of ours that was refused, and the reason."""

    what: str
    reason: str


class IntentClassifier(Protocol):
    """Classifies the host's messages."""

    async def classify_host_messages(self, lines: Sequence[HostLine]) -> Sequence[Meaning]:
        """Return the meaning of each message, in the given order."""
        ...

    def is_settled(self, line: HostLine) -> bool:
        """Return whether its meaning is known and not a guess."""
        ...

    async def taken_back(self, line: HostLine, asked: Sequence[str]) -> Sequence[int] | None:
        """Return the places in `asked` of what the withdrawal `line` takes back; None if that is not known yet."""
        ...

    def clear(self) -> None:
        """Forget all meanings, because another conversation begins."""
        ...
