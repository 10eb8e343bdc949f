"""Decides whether a pull request of ours is merged now, and what is done if not. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from adapters.github.types import Account, PullRequest, Review, latest_verdicts
from common.clock import Since, parse_iso
from modules.lives.tasks.documents import is_document
from modules.lives.tasks.offering import TESTS_FAILED, TESTS_PASSED, TESTS_UNRUN, TESTS_WEAKENED
from modules.services.outbox.github_bodies import PushBody

ALONE_AFTER = timedelta(minutes=30)
"""The age from which a pull request is merged without a review if nobody can review it."""
UNREVIEWED_AFTER = timedelta(hours=2)
"""How long a requested review is awaited; after this others are asked if there is none."""
LEFT_ALONE_AFTER = timedelta(hours=4)
"""After how long the owner is asked about what no reviewer decided."""
BLOCKED_AFTER = timedelta(hours=24)
"""After how long the owner is asked about what an unpassed check or a rule of the repository blocks."""
REJECTED_AFTER = timedelta(hours=1)
"""How long after a request for changes the task is given back, if no round answers it any more."""

MergeProblem = Literal["", "Closed", "Draft", "Changes Requested", "No Approval", "Review Awaited", "Not Mergeable"]
"""Why a pull request is not ready to be merged, "" if it is; a subsection of `Answers` in `pull-request-tools`."""

RoundState = Literal[
    "waits",  # a round waits, or is in progress
    "expected",  # none is known yet for the newest commit, and rounds are left
    "none",  # the round for the newest commit is over, or all rounds are used up
]
"""The state of the round that answers the reviews of the newest commit, or resolves its conflict."""

_VERDICTS = frozenset({"APPROVED", "CHANGES_REQUESTED"})
_BEHIND = "behind"
_NOT_READY = frozenset({"unstable", "blocked", _BEHIND})
"""States in which a check has not passed, or a rule makes GitHub refuse the merge."""


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
    """The facts on which a decision is based.

    Attributes:
        pull: the pull request, as read on its own, not from a list.
        reviews: its reviews, oldest first.
        pushers: who may push to the repository.
        since: returns how much time was lived since a moment.
        has_peers: whether there are SOULs who could be asked for a review.
        untested: why nothing shows that its newest commit works; "" if tests ran for it and none failed that did not
            fail before, or if it changes documents only.
        may_merge_alone: whether the owner lets us merge without a review if nobody can give one.
        revision: the state of the round that answers requested changes.
        conflict: the state of the round that resolves a conflict with the base.
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
        """How long its newest commit can have been there: since it was opened, or since an earlier one was reviewed."""
        judges, sha = _judges(self.pull, self.pushers), self.pull.head.sha
        earlier = [one.submitted_at for one in self.reviews if one.author_id in judges and one.commit_id != sha]
        return self.since(max(map(parse_iso, (self.pull.created_at, *filter(None, earlier)))))


@dataclass(frozen=True, slots=True)
class MergeDecision:
    """What to do with a pull request; `reason` is for people.

    `code` is `merge`; `ask_owner` to approve the merge; `ask_others` for a review; `update` its branch; `resolve` its
    conflict, or what fails with its merge; `give_back` the task, with the `problem` a conflict (`conflict`), tests that
    fail with its merge (`breaks`) or a review (`rejected`); or `wait`.
    """

    code: Literal["merge", "ask_owner", "ask_others", "update", "resolve", "give_back", "wait"]
    reason: str
    problem: Literal["", "conflict", "breaks", "rejected"] = ""


def judge_merge(facts: MergeFacts) -> MergeDecision:
    """Return what to do with a pull request of ours that is open."""
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
    """Return what to do with a pull request that does not conflict."""
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

    The last verdict of each reviewer who may push counts; comments are no verdicts. At least one must approve the
    newest commit, none may ask for changes, and with `waits_for_asked` no requested review may be outstanding. GitHub
    must find nothing that prevents the merge, such as a check that has not passed. An approval of a commit in
    `unchanged` counts as one of the newest.
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
    """Return the last verdict of each reviewer who may push, without the author's."""
    allowed, last = _judges(pull, pushers), latest_verdicts(reviews)
    return [one for account_id, one in last.items() if account_id in allowed and one.state in _VERDICTS]


def _judges(pull: PullRequest, pushers: Iterable[Account]) -> set[int]:
    """Return the ids of the accounts that may push, without the author."""
    return {one.id for one in pushers} - {pull.author_id, 0}


def can_be_merged(pull: PullRequest) -> bool:
    """Return whether GitHub finds nothing that prevents the merge."""
    return bool(pull.mergeable) and pull.mergeable_state not in _NOT_READY


def _is_held_up(facts: MergeFacts, problem: MergeProblem) -> bool:
    """Return whether a check or a rule of GitHub has blocked it for long enough, and no reviewer asks for changes.

    A verdict may be what a rule waited for, so it is given as long.
    """
    if problem in {"Closed", "Draft", "Changes Requested"} or facts.pull.mergeable_state not in _NOT_READY:
        return False
    given = counted_reviews(facts.pull, facts.reviews, facts.pushers)
    waited = (facts.since(parse_iso(one.submitted_at)) for one in given if one.submitted_at)
    return min((facts.age, *waited)) >= BLOCKED_AFTER


def _to_mend(facts: MergeFacts, why: str, problem: Literal["conflict", "breaks"]) -> MergeDecision:
    """Return what to do if it does not fit its base: a round mends it; if that failed, the task is given back."""
    if facts.conflict == "expected":
        return MergeDecision("resolve", why)
    if facts.conflict == "waits":
        return MergeDecision("wait", f"{why}; that is being resolved")
    return MergeDecision("give_back", f"{why}; that was not resolved", problem)


def _alone(facts: MergeFacts) -> MergeDecision:
    """Return what to do if nobody can review it: merge it after a while if the owner lets us, else ask the owner."""
    if facts.age < ALONE_AFTER or not can_be_merged(facts.pull):
        return MergeDecision("wait", "nobody can review it")
    if facts.may_merge_alone and not facts.untested:
        return MergeDecision("merge", "nobody can review it, and no test fails that did not fail before")
    return MergeDecision("ask_owner", f"nobody can review it, and {facts.untested or 'SOUL_MERGE_ALONE is off'}")


def _changes_asked(facts: MergeFacts) -> MergeDecision:
    """Return what to do if changes are requested: wait for the round that answers; without one, give the task back."""
    if facts.revision == "waits":
        return MergeDecision("wait", "the changes that a reviewer asked for are being made")
    if facts.revision == "none" and _is_rejected(facts):
        return MergeDecision("give_back", "the changes that a reviewer last asked for were not made", "rejected")
    return _undecided(facts, "Changes Requested")


def _undecided(facts: MergeFacts, problem: MergeProblem) -> MergeDecision:
    """Return what to do without a verdict on the newest commit: ask others, then the owner; sooner after a comment."""
    is_commented = _is_only_commented(facts)
    others_after = timedelta() if is_commented else UNREVIEWED_AFTER
    owner_after = UNREVIEWED_AFTER if is_commented else LEFT_ALONE_AFTER
    # NOTE(self): a rule that requires an approval blocks it until somebody gives one.
    is_blocked = facts.pull.mergeable_state == "blocked"
    if facts.age < others_after or not (is_blocked or can_be_merged(facts.pull)):
        return MergeDecision("wait", _WAITS[problem])
    if facts.age < owner_after or is_blocked:
        why = "its reviewers only commented" if is_commented else "nobody has reviewed its newest commit"
        return MergeDecision("ask_others", why)
    hours = owner_after.seconds // 3600
    return MergeDecision("ask_owner", f"nobody has approved its newest commit for {hours} hours")


def _is_only_commented(facts: MergeFacts) -> bool:
    """Return whether the newest commit has only comments, its author has answered, and no review is outstanding."""
    if facts.revision != "none" or facts.pull.requested_reviewers:
        return False
    judges, sha = _judges(facts.pull, facts.pushers), facts.pull.head.sha
    given = [one for one in facts.reviews if one.author_id in judges and one.commit_id == sha]
    return any(one.state == "COMMENTED" for one in given) and all(one.state not in _VERDICTS for one in given)


def _is_rejected(facts: MergeFacts) -> bool:
    """Return whether changes to the newest commit were requested at least `REJECTED_AFTER` ago."""
    return any(
        one.commit_id == facts.pull.head.sha and facts.since(parse_iso(one.submitted_at)) >= REJECTED_AFTER
        for one in counted_reviews(facts.pull, facts.reviews, facts.pushers)
        if one.state == "CHANGES_REQUESTED" and one.submitted_at
    )


_UNTESTED = {
    TESTS_WEAKENED: "it removes, renames or weakens tests",
    TESTS_FAILED: "tests fail that passed before",
    TESTS_UNRUN: "its tests could not be run here",
}
"""Why the tests of a pull request do not show that it works, by the mark in its text."""


def why_untested(text: str, pushed: Iterable[PushBody], shas: Collection[str]) -> str:
    """Return why no stored test shows that one of these commits works; "" if one does, or for documents alone.

    `text` is that with which the pull request was offered, `pushed` are our pushes to its branch.
    """
    made = list(pushed)
    documents = all(is_document(path) for one in made for path in one.paths or ("",))
    if not documents and TESTS_PASSED not in text:
        return next((why for mark, why in _UNTESTED.items() if mark in text), "it has no tests")
    what = "its documents were offered" if documents else "its tests passed"
    return "" if any(one.sha in shas for one in made) else f"{what} at an earlier commit than its newest"
