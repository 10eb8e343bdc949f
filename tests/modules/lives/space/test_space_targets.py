"""A commitment has one name wherever it is claimed, and two that mean the same are known as such."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.space.types import Claimed
from common.schemas import Commitment, CommitmentType
from common.text.utf16 import u16_len
from modules.lives.space.commitment_filter import alike, claim_target, planned, same_target
from modules.lives.space.request_parser import conversation_thread_uri, point_summary
from modules.lives.space.snapshot import RoomSnapshot
from modules.services.commitments.naming import CommitmentRequest

ISSUE = Commitment(type="create_issue", repo="acme/site", title="Release checklist", description="What must be done")


def handed(commitment: Commitment, default: str | None) -> CommitmentRequest:
    room = RoomSnapshot(datetime(2026, 1, 5, tzinfo=UTC), "marvin", repo=default, thread_uri="space://conversation/1")
    (one,) = planned((commitment,), room)
    return one.request


def claim(target: str, action: CommitmentType = "create_issue") -> Claimed:
    return Claimed("rebecca", "rebecca-1", action, target, "2026-01-05T12:00:00.000Z")


@pytest.mark.parametrize(
    ("commitment", "default", "target"),
    [
        (ISSUE, "acme/other", "acme/site#Release checklist"),
        (Commitment(type="create_issue", title="x" * 60), "acme/other", f"acme/other#{'x' * 50}"),
        (Commitment(type="create_plan", description="Only a body"), None, "unknown#Only a body"),
        (Commitment(type="post_bluesky", content="Words to post"), None, "unknown#Words to post"),
        (Commitment(type="create_issue", title="\U0001f3a8" * 30), None, "unknown#" + "\U0001f3a8" * 25),
    ],
)
def test_a_claim_names_the_repository_and_the_first_fifty_units(
    commitment: Commitment, default: str | None, target: str
) -> None:
    assert claim_target(commitment, default) == target


@given(st.text(min_size=1, max_size=200).filter(lambda text: text.strip() != ""), st.sampled_from([None, "acme/site"]))
def test_the_target_travels_with_the_commitment(title: str, default: str | None) -> None:
    commitment = Commitment(type="create_issue", title=title)
    target = claim_target(commitment, default)
    assert handed(commitment, default).params.as_json()["target"] == target
    assert u16_len(target.partition("#")[2]) <= 50
    assert alike([claim(target)], commitment.type, target) is not None


def test_conversations_that_begin_alike_are_told_apart() -> None:
    one = conversation_thread_uri("host", "Create an issue for A")
    other = conversation_thread_uri("host", "Create an issue for B")
    assert one == "space://conversation/07ca28433dbb13b5"
    assert one != other
    assert one == conversation_thread_uri("host", "Create an issue for A")
    assert conversation_thread_uri("host", "half a sign \ud83c") != one


@pytest.mark.parametrize(
    ("content", "point"),
    [
        ("Well, I think — honestly — that's it!", "rebecca: Well I think honestly thats it"),
        (
            "one two three four five six seven eight nine ten eleven",
            "rebecca: one two three four five six seven eight nine ten",
        ),
        ("", "rebecca: "),
        ("Größe zählt: été!", "rebecca: Größe zählt été"),
    ],
)
def test_a_point_is_the_first_ten_words(content: str, point: str) -> None:
    assert point_summary("rebecca", content) == point


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("acme/site#Release checklist", "Acme/Site#The release checklists for the site", True),
        ("acme/site#Release checklist", "acme/other#Release checklist", False),
        ("acme/site#Release checklist", "unknown#Release checklist", False),
        ("acme/site#Fix the login page", "acme/site#Rework the retry queue", False),
        ("acme/site#Fix login", "acme/site#Fix logout flow on mobile", False),
        ("acme/site#!!!", "acme/site#!!! ", True),
    ],
)
def test_targets_are_the_same_by_repository_and_likeness_of_title(one: str, other: str, *, same: bool) -> None:
    assert same_target(one, other) is same
    assert same_target(other, one) is same


def test_only_the_same_action_of_a_peer_rivals_a_commitment() -> None:
    rival = claim("acme/site#Checklist for release")
    claims = [claim("acme/site#Release checklist", "create_plan"), claim("acme/site#Colours"), rival]
    assert alike(claims, ISSUE.type, claim_target(ISSUE, None)) is rival
    assert alike(claims[:2], ISSUE.type, claim_target(ISSUE, None)) is None


def test_the_queue_is_told_what_it_needs_to_keep_the_commitment() -> None:
    assert handed(ISSUE, "acme/other").params.as_json() == {
        "title": "Release checklist",
        "description": "What must be done",
        "repo": "site",
        "owner": "acme",
        "repoName": "site",
        "target": "acme/site#Release checklist",
    }
    assert handed(Commitment(type="create_issue", title="Login"), "acme/other").params.as_json()["repoName"] == "other"


def test_a_comment_carries_its_number_and_a_post_no_repository() -> None:
    comment = Commitment(type="comment_issue", content="As I said in #12")
    assert handed(comment, "acme/site").params.as_json()["issueNumber"] == 12
    post = Commitment(type="post_bluesky", content="Out now")
    assert handed(post, "acme/site").params.as_json() == {"content": "Out now", "target": "acme/site#Out now"}
