"""The SOULs that are asked for a review: everybody computes the same ones."""

from dataclasses import replace

import pytest

from adapters.github.types import Account, PullBranch, PullRequest, Review, ReviewState
from modules.services.workspaces.acting import is_reviewed_by_test, pick_reviewers, review_cause
from modules.services.workspaces.trust import TrustedAccounts

PULL = "internet-development/www-lil-intdev-demo#31"
SOULS = ("sh-marvin", "sh-peterben", "sh-rebecca")
HEAD = "a" * 40
US, SOUL, PERSON, OTHER = Account(1, "sh-rebecca"), Account(2, "ada"), Account(3, "kit"), Account(4, "wren")
STRANGER = Account(5, "passerby")


def test_the_lowest_hashes_are_asked_and_never_the_author() -> None:
    assert pick_reviewers(PULL, "ada", SOULS) == ["sh-rebecca", "sh-peterben"]
    assert pick_reviewers(PULL, "SH-Rebecca", SOULS) == ["sh-peterben", "sh-marvin"]
    assert pick_reviewers(PULL, "ada", SOULS, k=9) == ["sh-rebecca", "sh-peterben", "sh-marvin"]


def test_a_login_counts_once_in_any_case_and_nobody_has_to_be_there() -> None:
    assert pick_reviewers(PULL, "ada", ("SH-Marvin", "sh-marvin")) == ["sh-marvin"]
    assert pick_reviewers(PULL, "ada", ("ada", "")) == []


def pull(author: Account, *requested: Account) -> PullRequest:
    return PullRequest(
        number=31,
        title="Beds",
        body="",
        state="open",
        author=author.login,
        head=PullBranch("task-1-beds", HEAD, "a/b", 7),
        base=PullBranch("main", "b" * 40, "a/b", 7),
        html_url="",
        created_at="",
        updated_at="",
        requested_reviewers=requested,
        author_id=author.id,
    )


def given(by: Account, commit: str, state: ReviewState = "COMMENTED") -> Review:
    return Review(1, by.login, "", state, "", commit, "", by.id)


@pytest.mark.parametrize(
    ("found", "reviews", "cause"),
    [
        (pull(PERSON), (), None),
        (pull(PERSON, US), (), "requested"),
        (pull(PERSON, US), (given(US, HEAD),), None),
        (pull(PERSON), (given(US, "c" * 40, "CHANGES_REQUESTED"),), "again"),
        (pull(PERSON, US), (given(US, HEAD, "PENDING"),), "requested"),
        (pull(SOUL), (), "designated"),
        (pull(SOUL, PERSON), (given(OTHER, HEAD, "APPROVED"),), None),
        (pull(SOUL, PERSON), (given(OTHER, HEAD),), "designated"),
        (pull(SOUL, PERSON), (given(STRANGER, HEAD, "APPROVED"),), "designated"),
        (pull(SOUL, PERSON, STRANGER), (), "designated"),
        (pull(SOUL), (given(OTHER, "c" * 40, "APPROVED"), given(PERSON, "c" * 40, "APPROVED")), "designated"),
    ],
)
def test_a_review_is_ours_where_it_was_asked_for_or_the_rule_names_us_and_a_person_is_left_alone(
    found: PullRequest, reviews: tuple[Review, ...], cause: str | None
) -> None:
    trusted = TrustedAccounts(US, peers=frozenset({SOUL}), pushers=frozenset({PERSON, OTHER}))
    assert review_cause(PULL, found, reviews, trusted, SOULS) == cause


@pytest.mark.parametrize(
    ("found", "is_tested"),
    [
        (pull(SOUL), True),
        (pull(US), False),
        (pull(Account(9, "stranger")), False),
        (replace(pull(SOUL), draft=True), False),
        (replace(pull(SOUL), state="closed"), False),
        (replace(pull(SOUL), head=PullBranch("task-1-beds", HEAD, "c/b", 8)), False),
    ],
)
def test_what_is_ready_by_somebody_who_counts_and_of_the_repository_itself_is_tried_out(
    found: PullRequest, *, is_tested: bool
) -> None:
    trusted = TrustedAccounts(US, peers=frozenset({SOUL}), pushers=frozenset({PERSON}))
    assert is_reviewed_by_test(found, trusted) is is_tested
