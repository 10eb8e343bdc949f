"""The host gets something that lasts: commitments are kept, the owner is asked again, and at last it acts anyway."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from common.schemas import Commitment
from modules.lives.space.host_request import count_rejection, is_claimed, is_open
from modules.lives.space.request_parser import parse_request
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.speak import build_forced_commitment, enriched, salvage, should_force_action, should_retry
from modules.lives.space.types import HostRequest, RequestContent
from tests.shipped_skills import phrase

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
OPEN = HostRequest("Open an issue for the login", "m1", NOW, fulfilled=False, cycles=3, attempts=1)
STUCK = RoomSnapshot(now=NOW, me="marvin", is_owner=True, is_open=True, request=OPEN, repo="acme/site")
ISSUE = Commitment(type="create_issue", title="Login")
POST = Commitment(type="post_bluesky", content="Out now")


def stuck(request: HostRequest, **changes: Any) -> RoomSnapshot:
    """The owner of `request`, after its own words came to nothing."""
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
