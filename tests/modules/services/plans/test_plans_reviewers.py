"""Who is asked to review: the same for all who work it out."""

from __future__ import annotations

from modules.services.plans.reviewers import pick_reviewers

PULL = "internet-development/www-lil-intdev-demo#31"
SOULS = ("sh-marvin", "sh-peterben", "sh-rebecca")


def test_the_lowest_hashes_are_asked_and_never_the_author() -> None:
    assert pick_reviewers(PULL, "ada", SOULS) == ["sh-rebecca", "sh-peterben"]
    assert pick_reviewers(PULL, "SH-Rebecca", SOULS) == ["sh-peterben", "sh-marvin"]
    assert pick_reviewers(PULL, "ada", SOULS, k=9) == ["sh-rebecca", "sh-peterben", "sh-marvin"]


def test_a_login_counts_once_in_any_case_and_nobody_has_to_be_there() -> None:
    assert pick_reviewers(PULL, "ada", ("SH-Marvin", "sh-marvin")) == ["sh-marvin"]
    assert pick_reviewers(PULL, "ada", ("ada", "")) == []
