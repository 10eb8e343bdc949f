"""The repository is the one that the host named last, and what was asked for is read only from plain words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.schemas import Commitment
from modules.lives.space.request_parser import (
    answers,
    detect_repo,
    issue_number,
    may_be_a_post,
    named_repos,
    quoted,
    repo_in,
    requested_type,
    wants_post,
)
from modules.lives.space.types import HistoryEntry

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def said(name: str, content: str) -> HistoryEntry:
    return HistoryEntry(content, name, content, NOW, is_host=name == "host", is_me=name == "marvin")


@pytest.mark.parametrize(
    ("text", "repo"),
    [
        ("see (https://github.com/acme/site), please", "acme/site"),
        ("http://www.github.com/acme/my_site-2.0/issues/4?x=1", "acme/my_site-2.0"),
        ("git@github.com:acme/site.git", "acme/site"),
        ("first github.com/acme/old then github.com/acme/new", "acme/new"),
        ("github.com/orgs/acme", None),
        ("github.com/acme", None),
        ("gist.github.com/acme/12345", None),
        ("notgithub.com/acme/site", None),
        ("github.com/-acme/site", None),
        ("acme/site", None),
    ],
)
def test_a_link_names_a_repository_without_the_signs_around_it(text: str, repo: str | None) -> None:
    assert repo_in(text) == repo


def test_the_newest_mention_of_the_host_counts_before_any_of_a_peer() -> None:
    talk = [
        said("host", "work in github.com/acme/old"),
        said("host", "no, in github.com/acme/new"),
        said("rebecca", "mine is github.com/rebecca/own"),
        said("host", "go on"),
    ]
    assert detect_repo(talk) == "acme/new"
    assert detect_repo([entry for entry in talk if not entry.is_host]) == "rebecca/own"


def test_what_we_linked_ourselves_names_no_repository() -> None:
    assert detect_repo([said("marvin", "Done — https://github.com/acme/site/issues/1")]) is None
    assert detect_repo([]) is None


ALMANAC, PRICES, SITE = "acme/www-lil-intdev-almanac", "acme/www-lil-intdev-pricebook", "acme/site"


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (["Please make an issue in pricebook: rename the package"], [PRICES]),
        (["work in github.com/acme/old", "Add tides to the almanac"], [ALMANAC]),
        (["In pricebook: it is wrong", "Make an issue in almanac: tell what a pricebook is"], [ALMANAC]),
        (["The pricebook adds wrongly, open an issue"], [PRICES]),
        (["in www-lil-intdev-almanac"], [ALMANAC]),
        (["in acme/site, and in github.com/acme/www-lil-intdev-pricebook"], [PRICES, SITE]),
        (["Open an issue in almanac and one in pricebook"], [ALMANAC, PRICES]),
        (["Open an issue in almanac and pricebook: say hello"], [ALMANAC, PRICES]),
        (["in pricebook", "Go ahead"], [PRICES]),
        (["github.com/acme/www-lil-intdev-pricebook"], [PRICES]),
        (["Open an issue"], []),
    ],
)
def test_the_hosts_newest_words_name_a_watched_repository_in_short(lines: list[str], named: list[str]) -> None:
    talk = [said("host", line) for line in lines] + [said("rebecca", "mine is github.com/rebecca/own")]
    assert sorted(named_repos(talk, (ALMANAC, PRICES, SITE))) == sorted(named)


@given(st.text(alphabet="acme-_./:github.comGIT ", max_size=80))
def test_whatever_is_found_can_be_committed(text: str) -> None:
    found = repo_in(f"github.com/{text}")
    if found is not None:
        assert Commitment(type="create_issue", repo=found, title="t").repo == found


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        ("Open an issue for the login", "create_issue"),
        ("Comment on #12 that it is fixed", "comment_issue"),
        ("please add a comment to https://github.com/acme/site/issues/7", "comment_issue"),
        ("Leave a comment on issue 9", "comment_issue"),
        ("Add a comment somewhere", "create_issue"),
        ("Post on Bluesky that the release is out", "post_bluesky"),
        ("Write a skeet about tea", "post_bluesky"),
        ("Open an issue about the Bluesky client", "create_issue"),
        ("Fix the login", "create_issue"),
    ],
)
def test_only_plain_words_ask_for_anything_but_an_issue(request_: str, kind: str) -> None:
    assert requested_type(request_) == kind


@pytest.mark.parametrize(
    ("text", "number"),
    [("#12 and #13", 12), ("issue 9", 9), ("/issues/7", 7), ("&#39; a#5", None), ("v2", None), ("#1234567890", None)],
)
def test_an_issue_is_named_by_its_number(text: str, number: int | None) -> None:
    assert issue_number(text) == number


def test_posting_may_be_meant_where_bluesky_is_not_named() -> None:
    assert may_be_a_post("Post about the release")
    assert not wants_post("Post about the release")
    assert not may_be_a_post("Post about the release in the repo")


@pytest.mark.parametrize(
    ("text", "words"),
    [('say "it is out" today', "it is out"), ("say “it is out”", "it is out"), ('a "b', ""), ("none", "")],
)
def test_quoted_words_are_found(text: str, words: str) -> None:
    assert quoted(text) == words


@pytest.mark.parametrize(
    ("action", "request_", "by_owner", "does"),
    [
        ("create_issue", "Open an issue", False, True),
        ("comment_issue", "Open an issue", False, False),
        ("comment_issue", "Open an issue", True, True),
        ("comment_issue", "Comment on #3", False, True),
        ("post_bluesky", "Open an issue", False, False),
        ("merge_pr", "Open an issue", True, False),
        ("", "Open an issue", True, False),
    ],
)
def test_a_complement_of_a_bystander_answers_no_request(
    action: str, request_: str, *, by_owner: bool, does: bool
) -> None:
    assert answers(action, request_, by_owner=by_owner) is does
