"""Whether a pull request of ours is merged now, and what is done where it cannot be. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from adapters.github.types import Account, PullRequest, Review
from common.clock import Since, parse_iso

ALONE_AFTER = timedelta(minutes=30)
"""So old a pull request is that is merged without a review, where there is nobody who could review it."""
UNREVIEWED_AFTER = timedelta(hours=2)
"""After so long a review that was asked for is not waited for any more, and others are asked where there is none."""
LEFT_ALONE_AFTER = timedelta(hours=4)
"""After so long the owner is asked for what no reviewer decided."""
BLOCKED_AFTER = timedelta(hours=24)
"""After so long the owner is asked for what a check that has not passed, or a rule of the repository, holds up."""
REJECTED_AFTER = timedelta(hours=1)
"""So long after changes were asked for the task goes back, where no round answers them any more."""

MergeProblem = Literal["", "Closed", "Draft", "Changes Requested", "No Approval", "Review Awaited", "Not Mergeable"]
"""Why a pull request is not ready to be merged, "" where it is; a subsection of `Answers` in `pull-request-tools`."""

RevisionState = Literal[
    "waits",  # a round that answers what the reviewers ask for waits, or is in work
    "expected",  # none is known yet for the newest commit, and rounds are left
    "none",  # the round for the newest commit is over, or all rounds are used up
]

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
        since: tells how much was lived since a moment.
        has_peers: whether there are SOULs who could be asked for a review.
        is_tested: whether tests ran for its newest commit and none failed that did not fail before, or it changes
            documents only.
        may_merge_alone: whether the owner lets us merge without a review where there is nobody to give one.
        revision: what becomes of the changes that are asked for.

    """

    pull: PullRequest
    reviews: Sequence[Review]
    pushers: Collection[Account]
    since: Since
    has_peers: bool
    is_tested: bool
    may_merge_alone: bool
    revision: RevisionState

    @property
    def age(self) -> timedelta:
        """How long it can have stood as it stands: since it was opened, or an earlier commit of it was reviewed."""
        judges, sha = _judges(self.pull, self.pushers), self.pull.head.sha
        earlier = [one.submitted_at for one in self.reviews if one.author_id in judges and one.commit_id != sha]
        return self.since(max(map(parse_iso, (self.pull.created_at, *filter(None, earlier)))))


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """What is done with a pull request; `reason` is for people.

    `code` is `merge`; `ask_owner` for a yes to that; `ask_others` for a review; `give_back` the task, because it
    conflicts (`conflict`) or was turned down (`rejected`); or `wait`.
    """

    code: Literal["merge", "ask_owner", "ask_others", "give_back", "wait"]
    reason: str
    problem: Literal["", "conflict", "rejected"] = ""


def judge_merge(facts: MergeFacts) -> MergeDecision:
    """Return what is done with a pull request of ours that is open."""
    pull = facts.pull
    if pull.mergeable is False and not pull.draft:
        return MergeDecision("give_back", f"it conflicts with {pull.base.ref}", "conflict")
    waits_for_asked = facts.age < UNREVIEWED_AFTER
    problem = merge_problem(pull, facts.reviews, facts.pushers, waits_for_asked=waits_for_asked)
    if problem == "":
        return MergeDecision("merge", "it is approved as it stands")
    if _is_held_up(facts, problem):
        return MergeDecision("ask_owner", f"GitHub has held it up for a day ({pull.mergeable_state})")
    if problem == "Changes Requested":
        return _changes_asked(facts)
    if problem == "No Approval":
        is_alone = not (facts.has_peers or facts.reviews or pull.requested_reviewers)
        return _alone(facts) if is_alone else _undecided(facts, problem)
    return MergeDecision("wait", f"{problem.lower()} ({pull.mergeable_state or 'state not known yet'})")


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
    allowed = _judges(pull, pushers)
    last = {one.author_id: one for one in reviews if one.state in {*_VERDICTS, "DISMISSED"}}
    return [one for account_id, one in last.items() if account_id in allowed and one.state in _VERDICTS]


def _judges(pull: PullRequest, pushers: Iterable[Account]) -> set[int]:
    """Return the ids of those who may push, the author aside."""
    return {one.id for one in pushers} - {pull.author_id, 0}


def can_be_merged(pull: PullRequest) -> bool:
    """Return whether GitHub finds nothing that keeps it from being merged."""
    return bool(pull.mergeable) and pull.mergeable_state not in _NOT_READY


def _is_held_up(facts: MergeFacts, problem: MergeProblem) -> bool:
    """Whether nothing but a check or a rule of GitHub has kept it from being judged for long enough."""
    is_judged = problem not in {"Closed", "Draft", "Changes Requested"}
    return is_judged and facts.pull.mergeable_state in _NOT_READY and facts.age >= BLOCKED_AFTER


def _alone(facts: MergeFacts) -> MergeDecision:
    """Nobody can review it: it is merged after a while where the owner lets us, else that is the owner's."""
    if facts.age < ALONE_AFTER or not can_be_merged(facts.pull):
        return MergeDecision("wait", "nobody is there to review it")
    if facts.may_merge_alone and facts.is_tested:
        return MergeDecision("merge", "nobody is there to review it, and no test fails that did not before")
    missing = "you have not let me merge alone" if facts.is_tested else "no test speaks for it"
    return MergeDecision("ask_owner", f"nobody is there to review it, and {missing}")


def _changes_asked(facts: MergeFacts) -> MergeDecision:
    """Changes are asked for: a round that answers them is waited for; without one the task goes back."""
    if facts.revision == "waits":
        return MergeDecision("wait", "the changes that were asked for are in work")
    if facts.revision == "none" and _is_rejected(facts):
        return MergeDecision("give_back", "changes were asked for, and none came", "rejected")
    return _undecided(facts, "Changes Requested")


def _undecided(facts: MergeFacts, problem: MergeProblem) -> MergeDecision:
    """No verdict stands on the newest commit: others are asked once, then the owner."""
    if facts.age < UNREVIEWED_AFTER or not can_be_merged(facts.pull):
        return MergeDecision("wait", problem.lower())
    if facts.age < LEFT_ALONE_AFTER:
        return MergeDecision("ask_others", "nobody has reviewed it as it stands")
    return MergeDecision("ask_owner", f"nobody has approved it as it stands after {LEFT_ALONE_AFTER.seconds // 3600} h")


def _is_rejected(facts: MergeFacts) -> bool:
    """Whether changes to the newest commit were asked for long enough ago."""
    return any(
        one.commit_id == facts.pull.head.sha and facts.since(parse_iso(one.submitted_at)) >= REJECTED_AFTER
        for one in counted_reviews(facts.pull, facts.reviews, facts.pushers)
        if one.state == "CHANGES_REQUESTED" and one.submitted_at
    )
