"""What a commitment says in public, and which words may hold one."""

from __future__ import annotations

from typing import Any

import pytest

from common.constants import GITHUB_BODY_MAX_CHARS
from modules.services.commitments import texts
from modules.services.commitments.acts import work_of
from modules.services.commitments.writer import contains_promise
from modules.services.outbox.github_bodies import IssueBody
from modules.services.outbox.senders.github_changes import marked
from tests.modules.services.commitments.commitment_values import queued
from tests.shipped_skills import phrase

UNSEEN = "\u200b"


def test_the_body_tells_what_is_wanted_then_the_commitment_and_where_it_was_made() -> None:
    in_room = texts.issue_body(queued(text="On it,\n@kit!"), "Do this.", phrase)
    assert in_room == (f"Do this.\n\n---\n\n> On it, @{UNSEEN}kit!\n\n*Committed in an agent space conversation.*")
    thread = "at://did:plc:kit/app.bsky.feed.post/3k"
    on_bluesky = texts.issue_body(queued(source="bluesky", thread=thread), "Do this.", phrase)
    assert on_bluesky.endswith("*Committed in [a Bluesky thread](https://bsky.app/profile/did:plc:kit/post/3k).*")


def test_however_long_it_is_the_mark_behind_it_fits_and_no_code_swallows_it() -> None:
    body = texts.issue_body(queued(text="so " * 5_000), "```\n" + "x" * 100_000, phrase)
    assert len(marked(body, "f" * 32)) < GITHUB_BODY_MAX_CHARS
    assert body.count("```") == 2
    assert "[…]" in body


@pytest.mark.parametrize(
    ("title", "number", "count", "expected"),
    [
        ("One\nline", 1, 1, "One line"),
        ("Tests", 2, 3, "Tests (2/3)"),
        ("x" * 300, 1, 1, "x" * 255 + "…"),
        ("x" * 300, 4, 5, "x" * 249 + "… (4/5)"),
    ],
)
def test_a_title_is_one_line_that_fits(title: str, number: int, count: int, expected: str) -> None:
    assert texts.numbered_title(title, number, count) == expected


def test_the_room_hears_the_title_and_never_the_body() -> None:
    long = queued(title="x" * 500, description="the whole body")
    assert texts.done_line(long, "https://g/1") == f"Done — issue opened: {'x' * 120}: https://g/1"
    assert texts.done_line(queued(title="Two\nlines"), "") == "Done — issue opened: Two lines"


@pytest.mark.parametrize(("count", "drafts"), [(None, 1), (0, 1), (3, 3), ("2", 2), (99, 5), (True, 1), ("many", 1)])
def test_a_commitment_makes_five_issues_at_most_and_several_only_for_host_or_owner(count: object, drafts: int) -> None:
    assert len(work_of(queued(count=count, hostRequest=True), phrase=phrase).actions) == drafts
    assert len(work_of(queued(count=count), phrase=phrase).actions) == 1


def test_every_act_of_a_commitment_has_a_target_of_its_own_and_names_the_commitment() -> None:
    one = queued(count=2, memo=True, hostRequest=True)
    work = work_of(one, phrase=phrase)
    assert [draft.target for draft in work.actions] == [f"{one.id}#1", f"{one.id}#2"]
    for draft in work.actions:
        assert isinstance(draft.body, IssueBody)
        assert (draft.body.commitment_id, draft.body.host_request, draft.body.labels) == (one.id, True, ("memo",))
        assert draft.body.title in draft.body.preview
        assert draft.body.body in draft.body.preview
        assert draft.text == ""


def test_a_post_that_is_too_long_keeps_its_first_sentences() -> None:
    (draft,) = work_of(queued(kind="post_bluesky", content=f"The weir holds. {'x' * 400}"), phrase=phrase).actions
    assert draft.text == draft.body.preview == "The weir holds."


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"owner": "", "repoName": ""}, "no_workspace_context"),
        ({"kind": "comment_issue"}, "it names no issue to comment on"),
    ],
)
def test_what_cannot_be_done_says_why(fields: dict[str, Any], problem: str) -> None:
    assert work_of(queued(**fields), phrase=phrase).problem == problem


@pytest.mark.parametrize(
    "words",
    [
        "I'll open an issue for that.",
        "Good point. I will write this up today",
        "Let me file that",
        "I'm going to post about it",
        "On it, give me a minute",
        "Opening the issue now",
        "consider it done",
    ],
)
def test_words_about_what_one_is_going_to_do_may_be_a_commitment(words: str) -> None:
    assert contains_promise(words)
