"""Proves that the host gets a lasting result: the assignee keeps commitments, is asked again, and finally acts anyway.

The repository is the one that the host named last, and what was asked for is read only from plain words.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.schemas import Commitment
from modules.lives.space.host_request import count_rejection, is_claimed, is_open
from modules.lives.space.request_parser import (
    answers,
    detect_repo,
    issue_number,
    may_be_a_post,
    named_repos,
    parse_request,
    quoted,
    repo_in,
    requested_type,
    wants_post,
)
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.speak import build_forced_commitment, enriched, salvage, should_force_action, should_retry
from modules.lives.space.types import HistoryEntry, HostRequest, RequestContent
from tests.shipped_skills import phrase

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
OPEN = HostRequest("Open an issue for the login", "m1", NOW, fulfilled=False, cycles=3, attempts=1)
STUCK = RoomSnapshot(now=NOW, me="marvin", is_owner=True, is_open=True, request=OPEN, repo="acme/site")
ISSUE = Commitment(type="create_issue", title="Login")
POST = Commitment(type="post_bluesky", content="Out now")


def stuck(request: HostRequest, **changes: Any) -> RoomSnapshot:
    """Return the snapshot of the assignee of `request` after its own words came to nothing."""
    stands = {"is_open": is_open(request), "is_claimed": is_claimed(request, NOW)}
    return replace(STUCK, request=request, **{**stands, **changes})


BODY = "The login form rejects every password with an accent in it."


def test_commitments_are_kept_with_words_that_say_so() -> None:
    kept = salvage([ISSUE, POST], social_only=False, phrase=phrase)
    assert kept is not None
    assert (kept.message, kept.commitments) == ("On it — create issue incoming.", (ISSUE, POST))


def test_without_github_only_the_rest_is_kept() -> None:
    kept = salvage([ISSUE, POST], social_only=True, phrase=phrase)
    assert kept is not None
    assert (kept.message, kept.commitments) == ("On it — post bluesky incoming.", (POST,))
    assert salvage([ISSUE], social_only=True, phrase=phrase) is None
    assert salvage([], social_only=False, phrase=phrase) is None


@pytest.mark.parametrize(
    ("where", "retries"),
    [
        (STUCK, True),
        (replace(STUCK, is_owner=False), False),
        (stuck(HostRequest()), False),
        (stuck(replace(OPEN, fulfilled=True)), False),
        (stuck(replace(OPEN, given_up=True)), False),
        (replace(STUCK, social_only=True), False),
        (stuck(replace(OPEN, owner_rejections=2)), True),
        (stuck(replace(OPEN, owner_rejections=3)), False),
        (replace(STUCK, repo=None), True),
    ],
    ids=[
        "stuck", "another's", "none", "kept", "given up", "social", "second", "third", "no repository",
    ],
)  # fmt: skip
def test_the_owner_is_asked_again_twice(where: RoomSnapshot, *, retries: bool) -> None:
    decision = should_retry(where, new_messages=True)
    assert (decision.code == "retry") is retries
    assert decision.reason
    assert should_retry(where, new_messages=False).code != "retry"


@pytest.mark.parametrize(
    ("where", "forces"),
    [
        (STUCK, True),
        (replace(STUCK, social_only=True), False),
        (stuck(replace(OPEN, cycles=2)), False),
        (stuck(replace(OPEN, cycles=0, owner_rejections=3)), True),
        (stuck(replace(OPEN, attempts=0)), False),
        (stuck(replace(OPEN, claimed_until=NOW + timedelta(seconds=1))), False),
        (stuck(replace(OPEN, claimed_until=NOW)), True),
        (stuck(replace(OPEN, forced=1)), True),
        (stuck(replace(OPEN, forced=2)), False),
        (stuck(replace(OPEN, fulfilled=True)), False),
        (stuck(replace(OPEN, given_up=True)), False),
        (replace(STUCK, is_owner=False), False),
        (replace(STUCK, repo=None), False),
        (replace(STUCK, repo=None, asked=RequestContent("post_bluesky")), True),
    ],
    ids=[
        "stuck", "social", "early", "rejected", "untried", "claimed", "claim over", "once forced", "twice forced",
        "kept", "given up", "another's", "no repository", "a post needs none",
    ],
)  # fmt: skip
def test_a_thing_is_made_without_the_model_only_where_nothing_else_helps(where: RoomSnapshot, *, forces: bool) -> None:
    decision = should_force_action(where)
    assert (decision.code == "force") is forces
    assert decision.reason


def test_who_knows_no_repository_asks_for_one_once() -> None:
    lost = replace(STUCK, repo=None)
    assert should_force_action(lost).code == "ask_for_repo"
    assert should_force_action(replace(lost, request=replace(lost.request, repo_asked=True))).code == "no_repo"
    assert should_force_action(STUCK).code == "force"


def test_an_owner_that_never_acts_is_asked_twice_more_and_then_passed_over() -> None:
    request, steps = replace(OPEN, cycles=1, attempts=1), []
    for _ in range(4):
        request = count_rejection(request)
        where = stuck(request)
        steps.append(
            "retry"
            if should_retry(where, new_messages=True).code == "retry"
            else "force"
            if should_force_action(where).code == "force"
            else ""
        )
    assert steps == ["retry", "retry", "force", "force"]


def built(request: str, repo: str | None = "acme/site", talk: str = "") -> Commitment:
    made = build_forced_commitment(request, parse_request(request), repo, talk, phrase=phrase)
    assert made is not None
    return made


def test_an_issue_is_made_of_the_request_and_the_whole_talk() -> None:
    made = built(
        "@marvin, @rebecca open an issue\nfor the login", talk="host: it fails\nrebecca: ask @anna of @acme/team"
    )
    assert (made.type, made.repo, made.title) == ("create_issue", "acme/site", "open an issue for the login")
    assert made.description == (
        "## Request\n\n> @\u200bmarvin, @\u200brebecca open an issue\n> for the login\n\n"
        "Asked by the host in the agent space.\n\n"
        "## Conversation\n\n> host: it fails\n> rebecca: ask @\u200banna of @\u200bacme/team"
    )


def test_a_title_is_cut_at_120_and_names_nobody_unless_nothing_else_is_left() -> None:
    assert built("x" * 200).title == "x" * 120
    assert built("@marvin").title == "@marvin"


def test_a_long_talk_loses_its_oldest_lines() -> None:
    made = built("Open an issue", talk="\n".join(f"rebecca: message {number} {'tea ' * 20}" for number in range(2_000)))
    assert len(made.description) <= 65_000
    assert made.description.startswith("## Request")
    assert "message 1999 " in made.description
    assert "message 0 " not in made.description
    assert all(
        line.startswith("> rebecca: message") for line in made.description.split("## Conversation\n\n")[1].splitlines()
    )


def test_a_request_too_long_for_github_is_cut() -> None:
    assert len(built("x" * 80_000, talk="rebecca: yes").description) == 65_000


def test_a_comment_and_a_post_are_made_where_they_were_asked_for() -> None:
    comment = built('Comment "it is fixed" on #12')
    assert (comment.type, comment.number, comment.description) == ("comment_issue", 12, "it is fixed")
    assert built("Comment on #12", talk="rebecca: fixed").description.endswith("> rebecca: fixed")
    assert built('Post on Bluesky: "It is out"', repo=None) == Commitment(type="post_bluesky", content="It is out")


def test_nothing_is_made_of_nothing() -> None:
    post, issue = "Post on Bluesky about tea", "Open an issue"
    assert build_forced_commitment(post, parse_request(post), "acme/site", "rebecca: tea", phrase=phrase) is None
    assert build_forced_commitment(issue, parse_request(issue), None, "", phrase=phrase) is None


def test_a_body_replaces_a_thin_one_only_if_it_is_one() -> None:
    assert enriched(ISSUE, BODY).description == BODY
    assert enriched(ISSUE, "x" * 50) == ISSUE
    assert enriched(ISSUE, None) == ISSUE


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
