"""Proves when our pull request is merged, given back, or asked about, by the age of its newest commit."""

from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.github.types import Account, PullBranch, PullRequest, Review
from common.clock import FakeClock, iso
from modules.lives.tasks.merge.policy import MergeFacts, judge_merge, why_untested
from modules.lives.tasks.offering import TESTS_PASSED, TESTS_UNRUN
from modules.services.outbox.github_bodies import PushBody

NOW = FakeClock().now()
KIT, ZOE = Account(7, "kit"), Account(9, "zoe")


def ago(hours: float) -> str:
    return iso(NOW - timedelta(hours=hours))


PULL = PullRequest(
    number=31,
    title="Count",
    body="Part of #12",
    state="open",
    author="rowan",
    head=PullBranch("task-1-count", "b" * 40, "acme/site", 1),
    base=PullBranch("main", "c" * 40, "acme/site", 1),
    html_url="https://github.com/acme/site/pull/31",
    created_at=ago(48),
    updated_at=ago(0.1),
    mergeable=True,
    mergeable_state="clean",
    author_id=1,
)
ASKED = Review(1, "kit", "Off by one.", "CHANGES_REQUESTED", ago(0.5), "a" * 40, "", KIT.id)
FACTS = MergeFacts(
    pull=PULL,
    reviews=(ASKED,),
    pushers=(KIT,),
    since=lambda moment: NOW - moment,
    has_peers=True,
    untested="",
    may_merge_alone=False,
    revision="expected",
)


def test_what_fails_together_with_its_base_goes_a_round_and_goes_back_where_that_mended_nothing() -> None:
    approved = replace(ASKED, state="APPROVED", commit_id=PULL.head.sha)
    facts = replace(FACTS, reviews=(approved,), conflict="expected")
    assert judge_merge(facts).code == "merge"
    failing = replace(facts, failing=("test_beds",))
    assert "test_beds" in judge_merge(failing).reason
    decided = [judge_merge(replace(failing, conflict=state)) for state in ("expected", "waits", "none")]
    assert [(one.code, one.problem) for one in decided] == [("resolve", ""), ("wait", ""), ("give_back", "breaks")]


def test_the_owner_is_asked_of_what_is_blocked_a_day_after_its_last_verdict() -> None:
    blocked = replace(FACTS, pull=replace(PULL, mergeable_state="blocked"))
    for hours, code in ((1, "wait"), (25, "ask_owner")):
        approved = replace(ASKED, state="APPROVED", commit_id=PULL.head.sha, submitted_at=ago(hours))
        assert judge_merge(replace(blocked, reviews=(approved,))).code == code


@pytest.mark.parametrize("state", ["clean", "blocked", "unstable"])
def test_a_commit_that_answers_a_review_is_given_time_however_old_its_pull_request_is(state: str) -> None:
    facts = replace(FACTS, pull=replace(PULL, mergeable_state=state))
    assert judge_merge(facts).code == "wait"
    stale = replace(facts, reviews=(replace(ASKED, state="DISMISSED"),))
    assert judge_merge(stale).code == "wait"
    long_ago = replace(facts, reviews=(replace(ASKED, state="DISMISSED", submitted_at=ago(25)),))
    assert judge_merge(long_ago).code == "ask_owner"
    of_stranger = replace(ASKED, author="zoe", author_id=ZOE.id)
    assert judge_merge(replace(long_ago, reviews=(*long_ago.reviews, of_stranger))).code == "ask_owner"


def test_a_review_by_somebody_who_may_not_push_keeps_nobody_from_merging_alone() -> None:
    alone = replace(FACTS, reviews=(), has_peers=False, may_merge_alone=True)
    assert judge_merge(alone).code == "merge"
    weakened = judge_merge(replace(alone, untested="it removes, renames or weakens tests"))
    assert (weakened.code, weakened.reason) == (
        "ask_owner",
        "nobody can review it, and it removes, renames or weakens tests",
    )
    for state in ("COMMENTED", "APPROVED", "CHANGES_REQUESTED"):
        of_stranger = replace(ASKED, author="zoe", author_id=ZOE.id, state=state)
        assert judge_merge(replace(alone, reviews=(of_stranger,))).code == "merge"
    assert judge_merge(replace(alone, reviews=(replace(ASKED, state="COMMENTED"),))).code == "wait"


def test_what_reviewers_only_commented_on_goes_to_others_at_once_and_to_the_owner_after_two_hours() -> None:
    comment = replace(ASKED, state="COMMENTED", commit_id=PULL.head.sha)
    fresh = replace(FACTS, pull=replace(PULL, created_at=ago(0.5)), reviews=(comment,), revision="none")
    assert judge_merge(fresh).code == "ask_others"
    assert judge_merge(replace(fresh, revision="waits")).code == "wait"
    for age, state, code in ((0.5, "blocked", "ask_others"), (5, "blocked", "ask_others"), (0.5, "unstable", "wait")):
        held = replace(fresh.pull, created_at=ago(age), mergeable_state=state)
        assert judge_merge(replace(fresh, pull=held)).code == code
    assert judge_merge(replace(fresh, pull=replace(fresh.pull, requested_reviewers=(KIT,)))).code == "wait"
    assert judge_merge(replace(fresh, pull=replace(PULL, created_at=ago(2.5)))).code == "ask_owner"
    assert judge_merge(replace(fresh, reviews=(replace(comment, author_id=ZOE.id),))).code == "wait"


@pytest.mark.parametrize(
    ("paths", "text", "newest", "why"),
    [
        (("beds.py",), TESTS_PASSED, "a", ""),
        (("beds.py",), TESTS_PASSED, "b", "its tests passed at an earlier commit than its newest"),
        (("beds.py", "SCENARIOS.md"), TESTS_UNRUN, "a", "its tests could not be run here"),
        (("beds.py",), "", "a", "it has no tests"),
        ((), "", "a", "it has no tests"),
        (("SCENARIOS.md", "docs/guide.md"), "", "a", ""),
        (("SCENARIOS.md",), "", "b", "its documents were offered at an earlier commit than its newest"),
    ],
)
def test_work_is_shown_to_work_by_its_tests_and_documents_need_none(
    paths: tuple[str, ...], text: str, newest: str, why: str
) -> None:
    push = PushBody(repo="acme/site", branch="task-1", sha="a" * 40, folder="f", paths=paths)
    assert why_untested(text, [push], {newest * 40}) == why
