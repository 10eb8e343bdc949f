"""The checks that a message must pass before it may be said.

Counts and turns are rules: an agent that has spoken enough, or was not elected, is silent. What the words suggest is
only a suspicion, and the judge, which is the model, must confirm it before the message is stopped; a message that
repeats an earlier one word for word needs no judge, unless it is our first answer to a question of the host. If several
agents have answered the same message of the host, the judge is asked even without a suspicion, because a repeated point
may share no word with the first. Exempt are the first two answers, questions, commitments, short remarks, and messages
with a new figure, link or name of code. An answer to a host who asks about a request is not compared, because it has to
repeat what was said.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from common.constants import SECOND_MS
from common.schemas import Commitment
from common.text.closings import asks, only_acknowledges
from common.text.echo import find_said_already, find_semantic_echo_ensemble
from common.text.phrases import (
    check_action_language,
    check_deference,
    check_empty_promise,
    check_meta_discussion,
    check_repo_amnesia,
    check_scope_inflation,
    count_sentences,
    has_list,
)
from common.text.strings import u16_len
from modules.lives.space.classifiers import MessageJudge, judge_wanted
from modules.lives.space.commitment_maker import OwnLines
from modules.lives.space.policy import COMPARED_CHARS, observer_threshold
from modules.lives.space.request_parser import shown
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import Check, HistoryEntry, Stop, ValidationOutcome

SPACE_NON_OWNER_HOLD_MS = 20 * SECOND_MS

Hits = Callable[[str, RoomSnapshot], bool]

_HOLD = timedelta(milliseconds=SPACE_NON_OWNER_HOLD_MS)


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One check of a message.

    Attributes:
        stop: what is recorded of a message that this check stops.
        hits: returns whether a message is stopped in the situation of a snapshot.
        action_only: whether it applies only in the mode `action`.
        uncommitted_only: whether it applies only to messages without commitments or refusals.
        by_words: whether a hit is only a suspicion, which the judge has to confirm.

    """

    stop: Stop
    hits: Hits
    action_only: bool = False
    uncommitted_only: bool = False
    by_words: bool = False

    def applies(self, message: str, snapshot: RoomSnapshot, *, settles: bool) -> bool:
        """Return whether the check stops or suspects `message`; `settles`: it has a commitment or is a refusal."""
        if (self.action_only and snapshot.mode != "action") or (self.uncommitted_only and settles):
            return False
        return self.hits(message, snapshot)


def _words(check: Callable[[str], bool]) -> Hits:
    def hits(message: str, _snapshot: RoomSnapshot) -> bool:
        return check(message)

    return hits


def _not_ours(snapshot: RoomSnapshot) -> bool:
    return snapshot.is_open and not snapshot.is_owner


def _acts_for_another(message: str, snapshot: RoomSnapshot) -> bool:
    return _not_ours(snapshot) and check_action_language(message)


def _spent(_message: str, snapshot: RoomSnapshot) -> bool:
    return bool(snapshot.peers) and snapshot.counts.own >= snapshot.budget


def _defers(message: str, snapshot: RoomSnapshot) -> bool:
    return check_deference(message, snapshot.peers)


def _forgets_repo(message: str, snapshot: RoomSnapshot) -> bool:
    return bool(snapshot.repo) and check_repo_amnesia(message)


def is_held(snapshot: RoomSnapshot) -> bool:
    """Return whether the assignee goes first for a moment: it is in the room, and we were not addressed ourselves."""
    asked_at = snapshot.request.requested_at
    young = asked_at is not None and snapshot.now - asked_at < _HOLD
    waits = _not_ours(snapshot) and young and snapshot.owner_is_here and snapshot.me not in snapshot.addressed
    return waits and snapshot.mode == "action"


def _held(_message: str, snapshot: RoomSnapshot) -> bool:
    return is_held(snapshot)


def _saturated(_message: str, snapshot: RoomSnapshot) -> bool:
    return snapshot.counts.agents >= snapshot.saturation


def _observes(_message: str, snapshot: RoomSnapshot) -> bool:
    return snapshot.role == "observer" and snapshot.counts.agents >= observer_threshold(snapshot.mode)


EMPTY = Stop(None, "Blank", "empty", "nothing to say", salvage=True)
ECHO = Stop("semantic_echo", "Semantic echo (ensemble)", "semantic echo", "says again what was said")
JUDGED = Stop("echo_judge", "Semantic echo (LLM judge)", "LLM echo judge", "says again in other words what was said")
REPEATED = Stop("own_repetition", "Own repetition", "own repetition", "says again word for word what we said before")

CHECKS: tuple[CheckRow, ...] = (
    CheckRow(
        Stop("non_owner_action", "Non-owner action", "not action owner", "another was elected to act on the request"),
        _acts_for_another,
        action_only=True,
        by_words=True,
    ),
    CheckRow(
        Stop("list", "Contains list", "list", "a list, where talk is prose", salvage=True),
        _words(has_list),
        by_words=True,
    ),
    CheckRow(
        Stop("empty_promise", "Empty commitment", "empty commitment", "announces work and commits to none"),
        _words(check_empty_promise),
        action_only=True,
        uncommitted_only=True,
        by_words=True,
    ),
    CheckRow(
        Stop("echo_opener", "Echo", "echo", "says nothing but that it agrees", salvage=True),
        _words(only_acknowledges),
        by_words=True,
    ),
    CheckRow(
        Stop("role_budget", "Role message budget exceeded", "budget", "spoken enough before the host speaks again"),
        _spent,
        uncommitted_only=True,
    ),
    CheckRow(
        Stop("deference", "Deference", "deference", "waits for somebody else to act", salvage=True),
        _defers,
        action_only=True,
        by_words=True,
    ),
    CheckRow(
        Stop("repo_amnesia", "Repo amnesia", "repo amnesia", "asks for the repository, which is known", salvage=True),
        _forgets_repo,
        action_only=True,
        by_words=True,
    ),
    CheckRow(
        Stop("meta_discussion", "Meta-discussion", "meta-discussion", "tells what to make instead of making it"),
        _words(check_meta_discussion),
        action_only=True,
        uncommitted_only=True,
        by_words=True,
    ),
    CheckRow(
        Stop("scope_inflation", "Scope inflation", "scope inflation", "asks for more than the host did"),
        _words(check_scope_inflation),
        action_only=True,
        uncommitted_only=True,
        by_words=True,
    ),
    CheckRow(
        Stop(
            "non_owner_discussion",
            "Non-owner discussion during pending action",
            "not action owner",
            "the one elected to act goes first",
        ),
        _held,
        uncommitted_only=True,
    ),
    CheckRow(
        Stop("saturation", "Conversation saturated", "saturated", "enough was said before the host speaks again"),
        _saturated,
        uncommitted_only=True,
    ),
    CheckRow(
        Stop("observer", "Observer silence enforced", "observer", "an observer adds nothing after others have spoken"),
        _observes,
        uncommitted_only=True,
    ),
)
"""The checks, in the order in which they are applied."""

_STOPS = {stop.check: stop for stop in (*(row.stop for row in CHECKS), ECHO, JUDGED)}


REJECTED = "[VALIDATION REJECTED] "

_PARTNERS = 10
_SHOWN_LINES = 6


def validate_space_message(
    message: str, commitments: Sequence[Commitment], snapshot: RoomSnapshot, *, declines: bool = False
) -> ValidationOutcome:
    """Return whether the message may be said, and what a judge should confirm first.

    A blank message is never said, but its commitments may be kept. A message that `declines` the open request is not
    compared, as it may have to repeat an earlier refusal.
    """
    if not message.strip():
        return ValidationOutcome(message, EMPTY)
    figures, settles = _figures(message, commitments, snapshot), bool(commitments) or declines
    found = [row for row in CHECKS if row.applies(message, snapshot, settles=settles)]
    stopped = next((row.stop for row in found if not row.by_words), None)
    if stopped:
        return ValidationOutcome(message, stopped, figures)
    suspected = tuple(row.stop.check for row in found if row.stop.check)
    outcome = ValidationOutcome(message, figures=figures, suspected=suspected)
    return outcome if settles or snapshot.is_settled else _compared(outcome, snapshot)


def echo_partners(snapshot: RoomSnapshot) -> tuple[str, ...]:
    """Return the newest ten messages of agents, oldest first: a message is compared with each, a judge sees them."""
    return snapshot.agent_messages[-_PARTNERS:]


def _owes_host(snapshot: RoomSnapshot) -> bool:
    """Return whether we owe the host an answer, which may be that of another, or of yesterday."""
    asked = next((entry.content for entry in reversed(snapshot.history) if entry.is_host), "")
    return asks(asked) and not snapshot.counts.own


def _compared(outcome: ValidationOutcome, snapshot: RoomSnapshot) -> ValidationOutcome:
    """Return the outcome after comparing the message with what agents, including us, said recently."""
    said, names, partners = snapshot.agent_messages, snapshot.names, echo_partners(snapshot)
    if not partners:
        return outcome
    if not _owes_host(snapshot) and (again := find_said_already(outcome.message, said, names)):
        figures = {**outcome.figures, "strategy": "word for word", "matched": again}
        return ValidationOutcome(outcome.message, ECHO, figures)
    compared = outcome.message[:COMPARED_CHARS]
    echo = find_semantic_echo_ensemble(compared, partners, said, names=names)
    answers = said[max(0, len(said) - snapshot.counts.agents) :]
    wanted = judge_wanted(compared, answers, echo, partners=len(partners), names=names)
    figures = {
        **outcome.figures,
        "score": echo.score,
        "novelty": echo.novelty,
        "strategy": echo.strategy,
        "matched": echo.matched_message or "",
        "judge": wanted.reason,
    }
    check: Check | None = "semantic_echo" if echo.is_echo else "echo_judge" if wanted.should else None
    return replace(outcome, figures=figures, suspected=(*outcome.suspected, *([check] if check else ())))


def _figures(message: str, commitments: Sequence[Commitment], snapshot: RoomSnapshot) -> dict[str, float | str]:
    return {
        "chars": u16_len(message),
        "sentences": count_sentences(message),
        "commitments": len(commitments),
        "agents_since_host": snapshot.counts.agents,
        "own_since_host": snapshot.counts.own,
        "saturation": snapshot.saturation,
        "budget": snapshot.budget,
        "role": snapshot.role,
        "mode": snapshot.mode,
    }


@dataclass(frozen=True, slots=True)
class MessageValidator:
    """Validates messages; `own_lines` are what this SOUL said within the last days."""

    judge: MessageJudge
    own_lines: OwnLines

    async def validate(
        self, message: str, commitments: tuple[Commitment, ...], snapshot: RoomSnapshot, *, declines: bool = False
    ) -> ValidationOutcome:
        """Return whether `message` may be said with `commitments`, by all checks. Raises `Fatal` as the gateway.

        `declines`: it refuses the open request.
        """
        outcome = validate_space_message(message, commitments, snapshot, declines=declines)
        is_compared = not (commitments or declines or snapshot.is_settled or _owes_host(snapshot))
        if not outcome.stop and is_compared and await self.own_lines.hold(outcome.message):
            return replace(outcome, stop=REPEATED)
        return await self._judged(outcome, outcome.suspected, snapshot)

    async def outdated(self, message: str, new: Sequence[HistoryEntry], snapshot: RoomSnapshot) -> str:
        """Return why a message that waited may no longer be said after others spoke (`new`) meanwhile; "" if it may.

        Raises `Fatal` as the gateway.
        """
        if any(entry.is_host for entry in new):
            return "the host has spoken meanwhile"
        outcome = validate_space_message(message, (), snapshot)
        echo = tuple(check for check in outcome.suspected if check == ECHO.check)
        outcome = await self._judged(outcome, echo, snapshot)
        return f"others have spoken meanwhile: {outcome.stop.tag}" if outcome.stop else ""

    async def _judged(
        self, outcome: ValidationOutcome, suspected: Sequence[Check], snapshot: RoomSnapshot
    ) -> ValidationOutcome:
        """Return the outcome, stopped by the first suspicion that the judge confirms, if any."""
        said = [f"{shown(one.name, is_host=one.is_host)}: {one.content}" for one in snapshot.history[-_SHOWN_LINES:]]
        for check in suspected:
            if check in {ECHO.check, JUDGED.check}:
                confirmed = await self.judge.is_echo_by_llm_judge(outcome.message, echo_partners(snapshot))
            else:
                confirmed = await self.judge.has_fault(check, outcome.message, said)
            if confirmed:
                return replace(outcome, stop=_STOPS[check])
        return outcome
