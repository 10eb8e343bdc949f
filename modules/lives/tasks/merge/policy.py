"""Whether a pull request of ours is merged now, and what is done where it cannot be. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from adapters.github.types import Account, PullRequest, Review
from common.clock import Since, parse_iso
from modules.services.workspaces.reviewers import latest_verdicts

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

RoundState = Literal[
    "waits",  # a round waits, or is in work
    "expected",  # none is known yet for the newest commit, and rounds are left
    "none",  # the round for the newest commit is over, or all rounds are used up
]
"""What becomes of the round that answers the reviews of the newest commit, or resolves its conflict."""

_VERDICTS = frozenset({"APPROVED", "CHANGES_REQUESTED"})
_BEHIND = "behind"
_NOT_READY = frozenset({"unstable", "blocked", _BEHIND})
"""States in which a check has not passed, or GitHub is told to refuse the merge."""


_WAITS: dict[MergeProblem, str] = {
    "Draft": "it is a draft",
    "Changes Requested": "a reviewer asks for changes",
    "No Approval": "nobody has approved its newest commit yet",
    "Review Awaited": "a review that was asked for has not come yet",
}
_GITHUB_SAYS = {
    "unstable": "a check has not passed yet",
    "blocked": "a rule of the repository blocks the merge",
    _BEHIND: "its branch lacks the newest of its base",
}
_NOT_KNOWN_YET = "GitHub does not know yet whether it can be merged"
"""Why a pull request waits, for the owner."""


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """What a decision is made of.

    Attributes:
        pull: the pull request, as it was read by itself.
        reviews: its reviews, oldest first.
        pushers: who may push to the repository.
        since: tells how much was lived since a moment.
        has_peers: whether there are SOULs who could be asked for a review.
        untested: why nothing shows that its newest commit works; "" if tests ran for it and none failed that did not
            fail before, or if it changes documents only.
        may_merge_alone: whether the owner lets us merge without a review where there is nobody to give one.
        revision: what becomes of the changes that are asked for.
        conflict: what becomes of a conflict with the base.
        unchanged: earlier commits of the branch to which the newest adds nothing but its base, merged by GitHub: a
            review of one of them counts as a review of the newest.
        can_update: whether the branch may be updated once more.
        failing: the tests that fail with its merge and do not fail on its base.

    """

    pull: PullRequest
    reviews: Sequence[Review]
    pushers: Collection[Account]
    since: Since
    has_peers: bool
    untested: str
    may_merge_alone: bool
    revision: RoundState
    conflict: RoundState = "none"
    unchanged: Collection[str] = ()
    can_update: bool = True
    failing: Sequence[str] = ()

    @property
    def age(self) -> timedelta:
        """How long it can have stood as it stands: since it was opened, or an earlier commit of it was reviewed."""
        judges, sha = _judges(self.pull, self.pushers), self.pull.head.sha
        earlier = [one.submitted_at for one in self.reviews if one.author_id in judges and one.commit_id != sha]
        return self.since(max(map(parse_iso, (self.pull.created_at, *filter(None, earlier)))))


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """What is done with a pull request; `reason` is for people.

    `code` is `merge`; `ask_owner` to approve that; `ask_others` for a review; `update` its branch; `resolve` its
    conflict, or what fails with its merge; `give_back` the task, because of a conflict (`conflict`), of what fails with
    its merge (`breaks`) or of a review (`rejected`); or `wait`.
    """

    code: Literal["merge", "ask_owner", "ask_others", "update", "resolve", "give_back", "wait"]
    reason: str
    problem: Literal["", "conflict", "breaks", "rejected"] = ""


def judge_merge(facts: MergeFacts) -> MergeDecision:
    """Return what is done with a pull request of ours that is open."""
    pull = facts.pull
    if pull.mergeable is False and not pull.draft:
        return _to_mend(facts, f"it conflicts with {pull.base.ref}", "conflict")
    if facts.failing:
        return _to_mend(facts, f"together with {pull.base.ref} these fail: {', '.join(facts.failing)}", "breaks")
    if pull.mergeable_state == _BEHIND and facts.can_update:
        decision = _judge_by_review(replace(facts, pull=replace(pull, mergeable_state="clean")))
        is_ready = decision.code in {"merge", "ask_owner"}
        return MergeDecision("update", _GITHUB_SAYS[_BEHIND]) if is_ready else decision
    return _judge_by_review(facts)


def _judge_by_review(facts: MergeFacts) -> MergeDecision:
    """Return what is done with one that does not conflict."""
    pull = facts.pull
    waits_for_asked = facts.age < UNREVIEWED_AFTER
    problem = merge_problem(
        pull, facts.reviews, facts.pushers, waits_for_asked=waits_for_asked, unchanged=facts.unchanged
    )
    if problem == "":
        return MergeDecision("merge", "it is approved")
    if _is_held_up(facts, problem):
        return MergeDecision("ask_owner", f"GitHub has not let it be merged for a day ({pull.mergeable_state})")
    if problem == "Changes Requested":
        return _changes_asked(facts)
    if problem == "No Approval":
        judges = _judges(pull, facts.pushers)
        is_somebody_there = facts.has_peers or any(one.author_id in judges for one in facts.reviews)
        is_alone = not (is_somebody_there or pull.requested_reviewers)
        return _alone(facts) if is_alone else _undecided(facts, problem)
    return MergeDecision("wait", _WAITS.get(problem) or _GITHUB_SAYS.get(pull.mergeable_state, _NOT_KNOWN_YET))


def merge_problem(
    pull: PullRequest,
    reviews: Iterable[Review],
    pushers: Collection[Account],
    *,
    waits_for_asked: bool = True,
    unchanged: Collection[str] = (),
) -> MergeProblem:
    """Return why a pull request is not ready to be merged; "" if it is.

    The last verdict of each reviewer who may push counts, and comments are none. At least one must be an approval of
    the commit that stands there now, none may ask for changes, and nobody's review may be awaited any more, unless it
    is not waited for. GitHub must find nothing that keeps it from being merged, such as a check that has not passed.
    An approval of a commit in `unchanged` counts as one of the newest.
    """
    if pull.state != "open" or pull.draft:
        return "Closed" if pull.state != "open" else "Draft"
    counted = counted_reviews(pull, reviews, pushers)
    if any(one.state == "CHANGES_REQUESTED" for one in counted):
        return "Changes Requested"
    if not any(one.commit_id in {pull.head.sha, *unchanged} for one in counted):
        return "No Approval"
    if pull.requested_reviewers and waits_for_asked:
        return "Review Awaited"
    return "" if can_be_merged(pull) else "Not Mergeable"


def counted_reviews(pull: PullRequest, reviews: Iterable[Review], pushers: Collection[Account]) -> list[Review]:
    """Return the last verdict of each reviewer who may push, the author aside."""
    allowed, last = _judges(pull, pushers), latest_verdicts(reviews)
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


def _to_mend(facts: MergeFacts, why: str, problem: Literal["conflict", "breaks"]) -> MergeDecision:
    """Return what is done where it does not fit its base: one round mends it; where that failed the task goes back."""
    if facts.conflict == "expected":
        return MergeDecision("resolve", why)
    if facts.conflict == "waits":
        return MergeDecision("wait", f"{why}; that is being resolved")
    return MergeDecision("give_back", f"{why}; that was not resolved", problem)


def _alone(facts: MergeFacts) -> MergeDecision:
    """Nobody can review it: it is merged after a while where the owner lets us, else that is the owner's."""
    if facts.age < ALONE_AFTER or not can_be_merged(facts.pull):
        return MergeDecision("wait", "nobody can review it")
    if facts.may_merge_alone and not facts.untested:
        return MergeDecision("merge", "nobody can review it, and no test fails that did not fail before")
    return MergeDecision("ask_owner", f"nobody can review it, and {facts.untested or 'SOUL_MERGE_ALONE is off'}")


def _changes_asked(facts: MergeFacts) -> MergeDecision:
    """Changes are asked for: a round that answers them is waited for; without one the task goes back."""
    if facts.revision == "waits":
        return MergeDecision("wait", "the changes that a reviewer asked for are being made")
    if facts.revision == "none" and _is_rejected(facts):
        return MergeDecision("give_back", "a reviewer asked for changes, and none were made", "rejected")
    return _undecided(facts, "Changes Requested")


def _undecided(facts: MergeFacts, problem: MergeProblem) -> MergeDecision:
    """No verdict stands on the newest commit: others are asked once, then the owner; sooner after a mere comment."""
    is_commented = _is_only_commented(facts)
    others_after = timedelta() if is_commented else UNREVIEWED_AFTER
    owner_after = UNREVIEWED_AFTER if is_commented else LEFT_ALONE_AFTER
    if facts.age < others_after or not can_be_merged(facts.pull):
        return MergeDecision("wait", _WAITS[problem])
    if facts.age < owner_after:
        why = "its reviewers only commented" if is_commented else "nobody has reviewed its newest commit"
        return MergeDecision("ask_others", why)
    hours = owner_after.seconds // 3600
    return MergeDecision("ask_owner", f"nobody has approved its newest commit for {hours} hours")


def _is_only_commented(facts: MergeFacts) -> bool:
    """Whether a reviewer decided nothing on the newest commit, its author has answered, and nobody is asked again."""
    if facts.revision != "none" or facts.pull.requested_reviewers:
        return False
    judges, sha = _judges(facts.pull, facts.pushers), facts.pull.head.sha
    given = [one for one in facts.reviews if one.author_id in judges and one.commit_id == sha]
    return any(one.state == "COMMENTED" for one in given) and all(one.state not in _VERDICTS for one in given)


def _is_rejected(facts: MergeFacts) -> bool:
    """Whether changes to the newest commit were asked for long enough ago."""
    return any(
        one.commit_id == facts.pull.head.sha and facts.since(parse_iso(one.submitted_at)) >= REJECTED_AFTER
        for one in counted_reviews(facts.pull, facts.reviews, facts.pushers)
        if one.state == "CHANGES_REQUESTED" and one.submitted_at
    )
