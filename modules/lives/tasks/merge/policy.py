"""Whether a pull request of ours is merged now, and what is done where it cannot be. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from adapters.github.types import Account, PullRequest, Review
from common.clock import parse_iso

ALONE_AFTER = timedelta(minutes=30)
"""So old a pull request is that is merged without a review, where there is nobody who could review it."""
UNREVIEWED_AFTER = timedelta(hours=2)
"""After so long a review that was asked for is not waited for any more."""

MergeProblem = Literal["", "Closed", "Draft", "Changes Requested", "No Approval", "Review Awaited", "Not Mergeable"]
"""Why a pull request is not ready to be merged, "" where it is; a subsection of `Answers` in `pull-request-tools`."""

_VERDICTS = frozenset({"APPROVED", "CHANGES_REQUESTED"})
_NOT_READY = frozenset({"unstable", "blocked", "behind"})
"""States in which a check has not passed, or GitHub is told to refuse the merge."""


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """What a decision is made of.

    Attributes:
        pull: the pull request, as it was read by itself.
        reviews: its reviews, oldest first.
        pushers: who may push to the repository.
        at: the time.
        has_peers: whether there are SOULs who could be asked for a review.
        is_tested: whether its tests passed before its newest commit was pushed, or it changes documents only.
        may_merge_alone: whether the owner lets us merge without a review where there is nobody to give one.
        speed: at 10 all pauses are a tenth as long.

    """

    pull: PullRequest
    reviews: Sequence[Review]
    pushers: Collection[Account]
    at: datetime
    has_peers: bool
    is_tested: bool
    may_merge_alone: bool
    speed: float = 1.0

    @property
    def age(self) -> timedelta:
        """How long it has been open, at speed 1."""
        return (self.at - parse_iso(self.pull.created_at)) * self.speed


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """What is done with a pull request: `merge`, `ask_owner` for a yes to that, or `wait`; `reason` is for people."""

    code: Literal["merge", "ask_owner", "wait"]
    reason: str


def judge_merge(facts: MergeFacts) -> MergeDecision:
    """Return what is done with a pull request of ours that is open."""
    pull = facts.pull
    is_late = facts.age >= UNREVIEWED_AFTER
    problem = merge_problem(pull, facts.reviews, facts.pushers, waits_for_asked=not is_late)
    match problem:
        case "":
            return MergeDecision("merge", "it is approved as it stands")
        case "No Approval" if not (facts.has_peers or facts.reviews or pull.requested_reviewers):
            return _alone(facts)
        case _:
            return MergeDecision("wait", f"{problem.lower()}{f' ({pull.mergeable_state})' if not pull.draft else ''}")


def merge_problem(
    pull: PullRequest, reviews: Iterable[Review], pushers: Collection[Account], *, waits_for_asked: bool = True
) -> MergeProblem:
    """Return why a pull request is not ready to be merged; "" if it is.

    The last verdict of each reviewer who may push counts, and comments are none. At least one must be an approval of
    the commit that stands there now, none may ask for changes, and nobody's review may be awaited any more, unless it
    is not waited for. GitHub must find nothing that keeps it from being merged, such as a check that has not passed.
    """
    if pull.state != "open" or pull.draft:
        return "Closed" if pull.state != "open" else "Draft"
    counted = counted_reviews(pull, reviews, pushers)
    if any(one.state == "CHANGES_REQUESTED" for one in counted):
        return "Changes Requested"
    if not any(one.commit_id == pull.head.sha for one in counted):
        return "No Approval"
    if pull.requested_reviewers and waits_for_asked:
        return "Review Awaited"
    return "" if can_be_merged(pull) else "Not Mergeable"


def counted_reviews(pull: PullRequest, reviews: Iterable[Review], pushers: Collection[Account]) -> list[Review]:
    """Return the last verdict of each reviewer who may push, the author aside."""
    allowed = {one.id for one in pushers} - {pull.author_id, 0}
    last = {one.author_id: one for one in reviews if one.state in {*_VERDICTS, "DISMISSED"}}
    return [one for account_id, one in last.items() if account_id in allowed and one.state in _VERDICTS]


def can_be_merged(pull: PullRequest) -> bool:
    """Return whether GitHub finds nothing that keeps it from being merged."""
    return bool(pull.mergeable) and pull.mergeable_state not in _NOT_READY


def _alone(facts: MergeFacts) -> MergeDecision:
    """Nobody can review it: it is merged after a while where the owner lets us, else that is the owner's."""
    if facts.age < ALONE_AFTER or not can_be_merged(facts.pull):
        return MergeDecision("wait", "nobody is there to review it")
    if facts.may_merge_alone and facts.is_tested:
        return MergeDecision("merge", "nobody is there to review it, and its tests passed")
    missing = "you have not let me merge alone" if facts.is_tested else "no test speaks for it"
    return MergeDecision("ask_owner", f"nobody is there to review it, and {missing}")
