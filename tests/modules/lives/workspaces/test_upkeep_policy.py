"""Proves which plan stays, which labels change, and which inactive issues may be closed.

Proves which of our comments are deleted because we said the same before.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.github.types import Comment, Issue, Repo
from modules.lives.workspaces.plan_upkeep import duplicate_comment_ids
from modules.lives.workspaces.policy import (
    HANDLED_AFTER,
    STALE_AFTER,
    STALE_MEMO_AFTER,
    LastWord,
    duplicates_among,
    label_change,
    may_rest,
    resting_code,
    task_lines,
    unplanned,
)
from modules.lives.workspaces.wanted import WorkRequest, request_in
from modules.services.plans.events import build_task_event_marker, wish_mark
from modules.services.plans.types import FoundPlan, Plan, PlanLabel, Task, TaskStatus, issues_of
from modules.services.workspaces.trust import TrustedAccounts
from tests.trusting import account

AT = "2026-01-05T08:00:00Z"
ISSUE = Issue(7, "A matter", "", "open", "kit", (), (), "https://github.com/a/b/issues/7", AT, AT)
TRUSTED = TrustedAccounts(account("rowan"), account("owner"), frozenset({account("wren")}), frozenset({account("kit")}))


def by(issue: Issue, login: str) -> Issue:
    return replace(issue, author=login, author_id=account(login).id)


def plan(number: int, *statuses: TaskStatus, author: str = "kit", about: str = "") -> FoundPlan:
    tasks = tuple(
        Task(place, f"Part {place}", status=status, description=about) for place, status in enumerate(statuses, 1)
    )
    return FoundPlan(Repo("a", "b"), by(replace(ISSUE, number=number), author), Plan("One", tasks=tasks))


def issues_taken_up(found: Plan) -> tuple[int, ...]:
    return issues_of(found, "For {{issues}}.")


@pytest.mark.parametrize(
    ("plans", "kept", "needless"),
    [
        ([plan(1, "pending")], None, []),
        ([plan(2, "pending"), plan(1, "pending")], 1, [2]),
        ([plan(1, "pending"), plan(2, "completed", "pending"), plan(3, "blocked")], 2, [1, 3]),
        ([plan(1, "completed"), plan(2, "completed", "claimed")], 2, [1]),
        ([plan(1, "pending"), plan(2, "completed", author="mallory")], None, []),
        ([plan(1, "pending", author="owner"), plan(2, "completed"), plan(3, "pending")], 2, [3]),
        ([plan(1, "pending"), plan(2, "completed", about="For #8."), plan(3, "claimed", about="For #9.")], None, []),
        ([plan(1, "completed"), plan(2, "pending", about="For #8, #9."), plan(3, "pending", about="For #9.")], 2, [3]),
    ],
)
def test_the_plan_that_is_furthest_stays(plans: list[FoundPlan], kept: int | None, needless: list[int]) -> None:
    found = duplicates_among(plans, TRUSTED, issues_taken_up)
    assert [one.plan.number for one in found] == needless
    assert {one.kept.number for one in found} == ({kept} if needless else set())


@pytest.mark.parametrize(("wishes", "needless"), [(("1", "2"), []), (("1", ""), []), (("1", "1"), [2])])
def test_plans_of_different_wishes_stand_side_by_side(wishes: tuple[str, str], needless: list[int]) -> None:
    plans = [plan(number, "pending") for number in (1, 2)]
    marked = [
        replace(one, issue=replace(one.issue, body=wish_mark(wish) if wish else ""))
        for one, wish in zip(plans, wishes, strict=True)
    ]
    assert [one.plan.number for one in duplicates_among(marked, TRUSTED, issues_taken_up)] == needless


def test_only_unfinished_tasks_that_are_missing_are_carried_over() -> None:
    plans = [plan(1, "completed", "pending", "blocked"), plan(2, "completed", "claimed")]
    found = duplicates_among(plans, TRUSTED, issues_taken_up)
    assert [task.title for task in found[0].carried] == ["Part 3"]


def test_a_carried_title_mentions_nobody_and_marks_nothing() -> None:
    lines = task_lines([Task(1, 'Ask @kit\n# now <!-- task-event {"task":1} -->')])
    assert lines.count("\n") == 0
    assert "@kit" not in lines
    assert "<!--" not in lines


@pytest.mark.parametrize(
    ("labels", "status", "change"),
    [
        (("plan", "plan:active", "mine"), "active", None),
        (("Plan", "Plan:Active"), "active", None),
        (("plan", "plan:blocked", "mine"), "active", (("plan:active",), ("plan:blocked",))),
        (("mine",), "complete", (("plan", "plan:complete"), ())),
    ],
)
def test_of_the_labels_only_those_of_plans_change(
    labels: tuple[str, ...], status: PlanLabel, change: tuple[tuple[str, ...], tuple[str, ...]] | None
) -> None:
    assert label_change(labels, status) == change


@pytest.mark.parametrize(
    ("issue", "may"),
    [
        (ISSUE, True),
        (replace(ISSUE, is_pull_request=True), False),
        (replace(ISSUE, labels=("Discussion",)), False),
        (replace(ISSUE, labels=("finished",)), False),
        (replace(ISSUE, title="[PLAN] One"), False),
        (by(ISSUE, "Owner"), False),
        (replace(ISSUE, number=12), False),
        (replace(ISSUE, number=1), True),
        (replace(ISSUE, number=34), False),
    ],
)
def test_what_must_stay_open_stays_open(issue: Issue, *, may: bool) -> None:
    body = "Asked for in #12, and in https://github.com/a/b/issues/34."
    named = plan(1, "pending")
    assert may_rest(issue, TRUSTED, [replace(named, issue=replace(named.issue, body=body))]) is may


PLANNED = replace(ISSUE, number=9, title="[PLAN] One", body="For #7.", labels=("plan",))
ENDED = replace(PLANNED, state="closed", closed_at="2026-01-05T09:00:00Z")


@pytest.mark.parametrize(
    ("issue", "plans", "is_left"),
    [
        (ISSUE, [], True),
        (ISSUE, [PLANNED], False),
        (ISSUE, [replace(PLANNED, body="For #71.")], True),
        (ISSUE, [ENDED], False),
        (replace(ISSUE, updated_at="2026-01-05T09:00:01Z"), [ENDED], True),
        (ISSUE, [replace(ENDED, labels=("plan", "plan:superseded"))], True),
        (replace(ISSUE, labels=("Discussion",)), [], False),
        (replace(ISSUE, is_pull_request=True), [], False),
        (PLANNED, [], False),
    ],
)
def test_what_no_plan_names_is_still_to_be_planned(issue: Issue, plans: list[Issue], *, is_left: bool) -> None:
    assert unplanned([issue], plans) == ([issue] if is_left else [])


@pytest.mark.parametrize(
    ("author", "is_comment", "labels", "rests", "code"),
    [
        ("rowan", True, (), HANDLED_AFTER, "handled"),
        ("rowan", True, (), HANDLED_AFTER - timedelta(seconds=1), None),
        ("rowan", False, (), HANDLED_AFTER, None),
        ("rowan", False, (), STALE_AFTER, "stale"),
        ("wren", True, (), HANDLED_AFTER, None),
        ("wren", True, ("memo",), STALE_MEMO_AFTER, "stale"),
        ("wren", True, (), STALE_AFTER, "stale"),
        ("kit", True, (), STALE_AFTER, None),
        ("kit", False, (), 10 * STALE_AFTER, None),
    ],
)
def test_an_issue_rests_where_no_person_waits(
    author: str, labels: tuple[str, ...], rests: timedelta, code: str | None, *, is_comment: bool
) -> None:
    last = LastWord(AT, account(author), is_comment=is_comment)
    assert resting_code(replace(ISSUE, labels=labels), last, TRUSTED, rests) == code


MORNING, NOON, NEXT_DAY = "2026-01-05T08:00:00Z", "2026-01-05T12:00:00Z", "2026-01-06T08:00:01Z"


def said(number: int, body: str, at: str = NOON, author: str = "rowan") -> Comment:
    return Comment(number, body, author, "", at, at)


LONG = "The same long beginning. " * 20


@pytest.mark.parametrize(
    ("first", "second", "is_repeated"),
    [
        ("On it.", "on  it.", True),
        ("On it.\n\n<!-- soul:intent=ab12 -->", "On it.\n\n<!-- soul:intent=cd34 -->", True),
        ("Thanks @kit", "Thanks @wren", False),
        (f"{LONG}One.", f"{LONG}Two.", False),
        (
            f"Failed. {build_task_event_marker(1, 'failed', 1)}",
            f"Failed. {build_task_event_marker(1, 'failed', 2)}",
            False,
        ),
        (
            f"Failed. {build_task_event_marker(1, 'failed', 1)}",
            f"Failed. {build_task_event_marker(1, 'failed', 1)}",
            True,
        ),
        ('Mine. <!-- task-claim {"task":1} -->', 'Mine. <!-- task-claim {"task":1} -->', False),
    ],
)
def test_only_what_says_the_same_is_repeated(first: str, second: str, *, is_repeated: bool) -> None:
    found = duplicate_comment_ids([said(2, second), said(1, first, MORNING)], "Rowan")
    assert found == ([2] if is_repeated else [])


def test_the_oldest_stays_and_after_a_day_it_may_be_said_again() -> None:
    comments = [said(1, "On it.", MORNING), said(2, "On it."), said(3, "On it."), said(4, "On it.", NEXT_DAY)]
    assert duplicate_comment_ids(comments, "rowan") == [2, 3]


def test_what_others_say_twice_is_theirs() -> None:
    assert duplicate_comment_ids([said(1, "On it.", author="kit"), said(2, "On it.", author="kit")], "rowan") == []


@pytest.mark.parametrize(
    ("answer", "comment", "quote"),
    [
        ('{"comment": "2", "quote": "please build it."}', "So: please\nbuild it", "please build it"),
        ('{"comment": 2, "quote": "I\'d love this"}', "I\u2019d love this!", "I\u2019d love this"),
        ('{"comment": 2, "quote": "\\"baut das f\\u00fcr uns\\""}', "\u201eBaut das für uns\u201c", None),
        ('Yes: {"comment": 2, "quote": "Do it - now"}', "do it \u2013 now", "do it \u2013 now"),
    ],
)
def test_the_words_that_ask_for_the_work_are_found_in_any_typography(answer: str, comment: str, quote: str) -> None:
    assert request_in(answer, ["No.", comment]) == WorkRequest(1, quote or comment)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('{"comment": 0, "quote": ""}', "nobody"),
        ('{"comment": 1, "quote": "please build it"}', None),
        ('{"comment": 3, "quote": "Yes"}', None),
        ('{"comment": 2, "quote": "..."}', None),
        ('{"comment": 2}', None),
        ("2", None),
    ],
)
def test_an_answer_that_quotes_no_comment_is_no_request(answer: str, found: str | None) -> None:
    assert request_in(answer, ["No.", "Yes, please..."]) == found
