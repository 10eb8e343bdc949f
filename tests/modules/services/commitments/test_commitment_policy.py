"""Proves when two commitments are the same, when one is tried, and when it is given up.

Proves what a commitment says in public, and which words may contain one.
"""

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from adapters.github.types import Repo
from common.constants import GITHUB_BODY_MAX_CHARS
from modules.services.commitments import policy, texts
from modules.services.commitments.acts import plan_result, work_of
from modules.services.commitments.naming import (
    CommitmentRequest,
    QueuedCommitment,
    extract_fulfillment_url,
    generate_commitment_hash,
    read_params,
    repo_of,
)
from modules.services.commitments.writer import contains_promise
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody
from modules.services.outbox.senders.github_changes import marked
from tests.modules.services.commitments.commitment_values import NOON, queued, wanted
from tests.shipped_skills import phrase

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def test_the_hash_is_sixteen_digits_of_conversation_and_plain_words() -> None:
    expected = hashlib.sha256(b"at://a/b/c:open an issue about x").hexdigest()[:16]
    assert generate_commitment_hash("at://a/b/c", "  Open an\n Issue   about X ") == expected
    assert generate_commitment_hash("at://a/b/d", "open an issue about x") != expected


def as_queued(one_commitment: CommitmentRequest, **fields: Any) -> QueuedCommitment:
    name = generate_commitment_hash(one_commitment.source_thread_uri, one_commitment.description)
    return queued(
        name=name,
        description=one_commitment.description,
        kind=one_commitment.type,
        thread=one_commitment.source_thread_uri,
        **fields,
        **one_commitment.params.as_json(),
    )


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({}, True),
        ({"status": "failed", "attempts": 1}, True),
        ({"status": "abandoned"}, False),
        ({"status": "completed", "last": NOON - 2 * HOUR}, True),
        ({"status": "completed", "last": NOON - 25 * HOUR, "created": NOON - 26 * HOUR}, False),
    ],
)
def test_what_is_committed_or_was_just_kept_is_not_committed_again(fields: dict[str, Any], *, same: bool) -> None:
    found = policy.duplicate_of([as_queued(wanted(), **fields)], wanted(), NOON)
    assert (found is not None) == same
    if found:
        assert found[1]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (wanted("Do it", title="Release checklist"), wanted("Now", title="release  Checklist.", thread="at://x"), True),
        (wanted("Do it", title="Release checklist"), wanted("Now", title="Release notes", thread="at://x"), False),
        (wanted("C", title="Support C++"), wanted("D", title="Support C"), False),
        (wanted("A", repo="acme/site"), wanted("A", thread="at://x", owner="Acme", repoName="Site"), True),
        (wanted("A"), wanted("A", thread="at://x", repoName="docs"), False),
        (wanted("A"), wanted("A", thread="at://x", kind="create_plan"), False),
        (wanted("A"), wanted("A", owner=""), True),
        (wanted("A"), wanted("A", repoName="docs"), False),
        (wanted("A"), wanted("A", kind="post_bluesky", content="Herons."), False),
        (
            wanted("Ask", kind="comment_issue", issueNumber=4, body="For a test."),
            wanted("Ask", kind="comment_issue", issueNumber=5, body="For a test of the latch."),
            False,
        ),
        (
            wanted("first", kind="comment_issue", issueNumber=4, body="Cache it."),
            wanted("second", kind="comment_issue", issueNumber=4, body="Drop it."),
            False,
        ),
        (
            wanted("first", kind="comment_issue", issueNumber=4, body="Cache it."),
            wanted("second", kind="comment_issue", issueNumber=5, body="Cache it."),
            False,
        ),
        (
            wanted("first", kind="comment_issue", issueNumber=4, body="Cache it."),
            wanted("second", kind="comment_issue", issueNumber=4, body="cache IT"),
            True,
        ),
        (
            wanted("x", kind="post_bluesky", content="We shipped it"),
            wanted("y", kind="post_bluesky", content="we  shipped it!", thread="at://x"),
            True,
        ),
    ],
)
def test_the_same_work_is_the_same_commitment_wherever_it_is_made(
    one: CommitmentRequest, other: CommitmentRequest, *, same: bool
) -> None:
    assert (policy.duplicate_of([as_queued(one)], other, NOON) is not None) == same


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, 0),
        ({"until": NOON + HOUR}, 3600),
        ({"until": NOON + 25 * HOUR}, 0),
        ({"status": "in_progress"}, None),
        ({"status": "failed", "attempts": 3}, None),
        ({"status": "failed", "attempts": 1, "last": NOON - timedelta(seconds=20)}, 40),
        ({"status": "failed", "attempts": 1, "last": NOON - MINUTE}, 0),
        ({"status": "failed", "attempts": 2, "last": NOON - MINUTE}, 240),
        ({"status": "failed", "attempts": 0, "last": NOON - timedelta(seconds=20)}, 40),
        ({"status": "failed", "attempts": 2, "last": NOON + HOUR}, 0),
    ],
)
def test_a_failed_try_is_repeated_after_a_minute_and_then_after_five(
    fields: dict[str, Any], seconds: float | None
) -> None:
    assert policy.due_in_s(queued(**fields), NOON) == seconds


def test_three_failures_end_a_commitment_and_what_is_not_its_fault_does_not_count() -> None:
    one = policy.failed(policy.started(queued(), NOON), "no such repository", {"issues": [], "count": 2})
    two = policy.put_off(policy.started(one, NOON), "GitHub is down")
    assert (one.status, one.attempt_count, two.status, two.attempt_count) == ("failed", 1, "failed", 1)
    assert two.result == {"issues": [], "count": 2}
    third = policy.failed(policy.failed(two, "again"), "and again")
    assert (third.status, third.attempt_count, third.error) == ("abandoned", 3, "and again")


def test_what_the_outbox_put_off_waits_at_least_for_a_while_and_uses_no_try() -> None:
    begun = policy.started(queued(attempts=1), NOON)
    soon, late = (
        policy.waiting(begun, NOON + pause, NOON + MINUTE, {"count": 1}) for pause in (timedelta(seconds=1), HOUR)
    )
    assert (soon.status, soon.attempt_count, soon.result, soon.error) == ("pending", 1, {"count": 1}, None)
    assert (policy.due_in_s(soon, NOON), policy.due_in_s(late, NOON)) == (60, 3600)
    assert not policy.can_retry_now(late, NOON + MINUTE)
    assert policy.started(late, NOON + HOUR).not_before is None


def test_what_a_crash_interrupted_is_due_at_once_and_has_lost_no_attempt() -> None:
    after = policy.interrupted(policy.started(queued(attempts=2), NOON))
    assert (after.status, after.attempt_count) == ("failed", 2)
    assert policy.due_in_s(after, NOON) == 0


@pytest.mark.parametrize(
    ("fields", "timed_out", "stale"),
    [
        ({"status": "in_progress", "last": NOON - 11 * MINUTE}, True, False),
        ({"status": "in_progress", "last": NOON - 9 * MINUTE}, False, False),
        ({"status": "failed", "attempts": 1, "last": NOON - HOUR}, False, False),
        ({"created": NOON - 25 * HOUR}, False, True),
        ({"created": NOON - 23 * HOUR}, False, False),
    ],
)
def test_tries_end_after_ten_minutes_and_commitments_after_a_day(
    fields: dict[str, Any], *, timed_out: bool, stale: bool
) -> None:
    one = queued(**fields)
    assert (policy.is_timed_out(one, NOON), policy.is_stale(one, NOON)) == (timed_out, stale)


@pytest.mark.parametrize(("days", "forgotten"), [(6.9, False), (7.1, True)])
def test_only_what_is_over_is_forgotten_and_only_after_a_week(days: float, *, forgotten: bool) -> None:
    created = NOON - timedelta(days=days)
    assert policy.is_forgotten(queued(status="completed", created=created), NOON) == forgotten
    assert policy.is_forgotten(queued(status="abandoned", created=created), NOON) == forgotten
    assert not policy.is_forgotten(queued(status="failed", created=created), NOON)


@pytest.mark.parametrize(
    ("request_", "social_only", "leaks", "taken"),
    [
        (wanted(), True, False, False),
        (wanted(kind="post_bluesky"), True, False, True),
        (wanted(), False, False, True),
        (wanted("   "), False, False, False),
        (wanted(), False, True, False),
    ],
)
def test_a_request_is_refused_where_this_life_or_its_words_allow_no_commitment(
    request_: CommitmentRequest, *, social_only: bool, leaks: bool, taken: bool
) -> None:
    answer = policy.judged(request_, {}, NOON, social_only=social_only, leaks=leaks)
    assert (answer.commitment is not None, answer.new, not answer.reason) == (taken, taken, taken)


@pytest.mark.parametrize(
    ("params", "default", "found"),
    [
        ({"owner": "acme", "repoName": "site"}, None, "acme/site"),
        ({"repo": "acme/site"}, None, "acme/site"),
        ({"repoName": "acme/site", "owner": "other"}, None, "other/site"),
        ({"repo": "https://github.com/acme/site.git"}, None, "acme/site"),
        ({"repo": "site"}, None, None),
        ({"repo": "site"}, Repo("acme", "docs"), "acme/site"),
        ({}, Repo("acme", "docs"), "acme/docs"),
        ({"repo": "../.."}, None, None),
        ({"owner": "acme"}, Repo("acme", "docs"), None),
    ],
)
def test_a_repository_is_found_however_it_was_named(
    params: dict[str, Any], default: Repo | None, found: str | None
) -> None:
    repo = repo_of(read_params("create_issue", params), default)
    assert (repo.full_name if repo else None) == found


@pytest.mark.parametrize(
    ("params", "title", "number"),
    [
        ({"issueNumber": 7}, "", 7),
        ({"issueNumber": "#7"}, "", 7),
        ({"issueNumber": True}, "see #9", 9),
        ({}, "see #12, and #13", 12),
        ({}, "page#3", None),
    ],
)
def test_an_issue_is_found_by_its_number(params: dict[str, Any], title: str, number: int | None) -> None:
    work = work_of(queued(kind="comment_issue", title=title, body="Say it", **params), phrase=phrase)
    found = [one.body.number for one in work.actions if isinstance(one.body, IssueCommentBody)]
    assert found == ([number] if number else [])


@pytest.mark.parametrize(
    ("kind", "result", "url"),
    [
        ("create_issue", {"issues": [{"url": "https://g/1"}, {"url": "https://g/2"}]}, "https://g/1"),
        ("create_issue", {"issues": []}, ""),
        ("create_plan", {"issueUrl": "https://g/3"}, "https://g/3"),
        ("comment_issue", {"url": "https://g/4#c"}, "https://g/4#c"),
        ("post_bluesky", {"uri": "at://did:plc:a/app.bsky.feed.post/k"}, "https://bsky.app/profile/did:plc:a/post/k"),
    ],
)
def test_each_kind_of_work_has_its_link(kind: Any, result: Any, url: str) -> None:
    assert extract_fulfillment_url(kind, result) == url


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
    made = {"issues": [{"url": "https://g/1"}]}
    assert texts.done_line(long, made) == f"Done — issue opened: {'x' * 120}: https://g/1"
    assert texts.done_line(queued(title="Two\nlines"), {}) == "Done — issue opened: Two lines"
    plan = queued(kind="create_plan", title="Checklist")
    assert texts.done_line(plan, plan_result(2, "https://g/2")) == "Done — plan stands: Checklist: https://g/2"
    stood = plan_result(2, "https://g/2") | {"deduplicated": True}
    assert texts.done_line(plan, stood) == "Done — stood there already: Checklist: https://g/2"


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
    (draft,) = work_of(queued(kind="post_bluesky", content=f"The `<s>` holds. {'x' * 400}"), phrase=phrase).actions
    assert draft.text == draft.body.preview == "The `<s>` holds."


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
