"""Proves which tasks may be taken, which pages a plan makes first, and which branches belong to a task.

Only what a request asks for and no task covers becomes a task, and a plan keeps every byte that it had. A plan from a
model is used as far as it is valid, up to the limits of a plan. The result of a task is read from markers and from the
words of peers, and each failure counts once. Each request has one plan, which everybody who gets the same request
finds.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from adapters.github.types import Issue
from modules.services.claims.policy import get_claimable_tasks
from modules.services.plans.compose import (
    MOST_ADDED,
    MOST_ISSUES,
    MOST_TASKS,
    PlanWords,
    SourceIssue,
    fitting,
    plan_words,
    read_missing,
    read_plan,
    words_left,
)
from modules.services.plans.events import (
    TaskEvent,
    TaskEventName,
    Wish,
    build_task_event_marker,
    count_task_failures,
    parse_task_event_markers,
    plan_for,
    wish_mark,
)
from modules.services.plans.plan_text import MOST_BODY_CHARS, add_tasks_to_plan_body, generate_plan_markdown, parse_plan
from modules.services.plans.types import (
    Plan,
    PlanLabel,
    Task,
    ensure_docs_tasks,
    get_task_branch_candidates,
    get_task_branch_name,
    has_docs_tasks,
    issues_of,
    parse_task_branch,
    plan_labels,
)
from modules.services.skills.skills import Skills
from tests.exploration import examples
from tests.modules.lives.workspaces.test_upkeep_policy import ISSUE
from tests.modules.services.plans.hand_edits import EditedPlan, edited_plans
from tests.modules.services.plans.plan_values import BODY
from tests.project import ROOT


@pytest.fixture(scope="module")
def words() -> PlanWords:
    return plan_words(Skills.load(ROOT / "skills"), "acme/www-lil-intdev-shop")


def test_a_task_may_be_taken_up_that_nobody_has_and_that_waits_for_nothing() -> None:
    plan = Plan(
        "x",
        tasks=(
            Task(1, "done", "completed"),
            Task(2, "waits for what is done", dependencies=("Task 1",)),
            Task(3, "waits", dependencies=("Task 1", "Task 2")),
            Task(4, "is somebody's", "claimed", "sh-marvin"),
            Task(5, "is nobody's, whatever it says", "in_progress"),
            Task(6, "failed once", "blocked"),
            Task(7, "was given before it began", assignee="sh-marvin"),
        ),
    )
    assert [task.number for task in get_claimable_tasks(plan)] == [2, 5, 6]


@pytest.mark.parametrize(
    ("labels", "status", "expected"),
    [
        ((), "active", ("plan", "plan:active")),
        (("plan", "plan:active"), "complete", ("plan", "plan:complete")),
        (("urgent", "plan:blocked", "plan", "Plan:Active"), "active", ("urgent", "plan", "plan:active")),
        (("plan", "planning", "plan:b"), "superseded", ("plan", "planning", "plan:b", "plan:superseded")),
    ],
)
def test_the_labels_of_people_stay(labels: tuple[str, ...], status: PlanLabel, expected: tuple[str, ...]) -> None:
    assert plan_labels(labels, status) == expected


def test_the_pages_come_first_and_the_others_wait_for_the_same_tasks_as_before(words: PlanWords) -> None:
    tasks = (
        Task(0, "Parse"),
        Task(0, "Draw", dependencies=("Task 1",)),
        Task(0, "Ship", dependencies=("draw",)),
        Task(0, "Tell"),
    )
    plan = ensure_docs_tasks(Plan("x", tasks=tasks), words.docs)
    assert [(task.number, task.title, task.dependencies, task.files) for task in plan.tasks] == [
        (1, "Create LIL-INTDEV-AGENTS.md", (), ("LIL-INTDEV-AGENTS.md",)),
        (2, "Create SCENARIOS.md", (), ("SCENARIOS.md",)),
        (3, "Parse", (), ()),
        (4, "Draw", ("Task 3",), ()),
        (5, "Ship", ("Task 4",), ()),
        (6, "Tell", (), ()),
    ]
    assert plan.tasks[0].estimate == "5-10 min"
    assert "acme/www-lil-intdev-shop" in plan.tasks[0].description
    assert ensure_docs_tasks(plan, words.docs) == plan
    assert len(words.verification) == 3
    small = Plan("x", tasks=tasks[:3])
    assert ensure_docs_tasks(small, words.docs) == small


@pytest.mark.parametrize(
    ("agents", "scenarios", "titles"),
    [(False, True, ["Create LIL-INTDEV-AGENTS.md", *"abcd"]), (True, True, [*"abcd"])],
)
def test_a_page_that_is_there_is_not_made(
    words: PlanWords, *, agents: bool, scenarios: bool, titles: list[str]
) -> None:
    four = Plan("x", tasks=tuple(Task(number, title) for number, title in enumerate("abcd", 1)))
    plan = ensure_docs_tasks(four, words.docs, skip_agents_md=agents, skip_scenarios_md=scenarios)
    assert [task.title for task in plan.tasks] == titles


@pytest.mark.parametrize(
    ("task", "agents", "scenarios"),
    [
        (Task(1, "Docs", files=("LIL-INTDEV-AGENTS.md", "docs/scenarios.md")), True, True),
        (Task(1, "Create LIL-INTDEV-AGENTS.md and SCENARIOS.md"), True, True),
        (Task(1, "Update the LIL-INTDEV-AGENTS page"), True, False),
        (Task(1, "Create scenarios for the login"), False, False),
        (Task(1, "Parse", description="As LIL-INTDEV-AGENTS.md and SCENARIOS.md say"), False, False),
    ],
)
def test_a_page_counts_that_a_task_makes_not_one_that_it_mentions(task: Task, *, agents: bool, scenarios: bool) -> None:
    found = has_docs_tasks([task])
    assert (found.has_agents_md, found.has_scenarios_md) == (agents, scenarios)


@pytest.mark.parametrize(
    ("number", "title", "candidates"),
    [
        (1, "Create LIL-INTDEV-AGENTS.md", ["task-1-create-lil-intdev-agentsmd", "task-1-create-lil-intdev-agents-md"]),
        (
            12,
            "Implement the strict query parser for portfolio comparison URLs",
            ["task-12-implement-the-strict-query-parser-for", "task-12-implement-the-strict-query-parser-for-po"],
        ),
        (
            3,
            "Supercalifragilisticexpialidociousandsomemorecharactersforlength",
            ["task-3-supercalifragilisticexpialidociousandsomemo", "task-3-supercalifragilisticexpialidociousandsom"],
        ),
        (2, "Fix & ship: colour/size", ["task-2-fix-and-ship-colour-size", "task-2-fix-ship-colour-size"]),
        (4, "✨", ["task-4-untitled", "task-4-"]),
    ],
)
def test_the_branches_of_a_task(number: int, title: str, candidates: list[str]) -> None:
    assert get_task_branch_candidates(number, title) == candidates
    assert get_task_branch_name(number, title) == candidates[0]
    assert [parse_task_branch(one) for one in candidates] == [number] * len(candidates)


@pytest.mark.parametrize(
    ("ref", "number"),
    [("refs/heads/task-12-x", 12), ("task-12", None), ("main", None), ("my/task-1-x", None), ("task-1x-y", None)],
)
def test_the_task_of_a_branch(ref: str, number: int | None) -> None:
    assert parse_task_branch(ref) == number


WANTED = (
    "@maren.test I would like a tide table: it reads the tides from a file, prints the next high water, and warns of"
    " spring tides. Please make a workspace and write a plan."
)
PLAN = Plan(
    "Tides",
    tasks=(
        Task(1, "Read the tides", description="From a file, line by line."),
        Task(2, "Print high water", description="The next one comes first."),
    ),
)
WARNS = {"asked": "warns of spring tides", "title": "Warn of spring tides", "description": "In red."}
TASK = Task(7, "Sort\nthe table", files=("sort.ts",), description="By date.\n\n## Verification\n- [ ] mine")


def added(*named: object) -> list[str]:
    return [one.task.title for one in read_missing({"missing": list(named)}, PLAN, WANTED)]


def test_what_no_task_covers_is_a_task_and_only_once() -> None:
    again = {"asked": "spring tides", "title": "Spring tides", "description": "warns of spring tides"}
    assert added(WARNS, WARNS, again) == ["Warn of spring tides"]


@pytest.mark.parametrize(
    ("wanted", "asked", "is_found"),
    [
        (
            "本の一覧を並べ替えできるようにして、紙に印刷できるようにしてください。",
            "紙に印刷できるようにしてください",
            True,
        ),
        ("本の一覧を並べ替えできるようにして、紙に印刷できるようにしてください。", "紙に印刷", True),
        ("本の一覧を並べ替えできるようにして、紙に印刷できるようにしてください。", "印刷", False),
        ("本の一覧を並べ替えできるようにして、紙に印刷できるようにしてください。", "紙に印刷しない", False),
        ("做一个书单。可以排序。也可以打印到纸上", "可以打印到纸上", True),
        ("APIも作ってください", "APIも作って", True),
        ("رتّب قائمة الكتب، واطبعها على الورق", "واطبعها على الورق", True),
    ],
)
def test_what_a_request_in_any_script_asks_for_is_found(wanted: str, asked: str, *, is_found: bool) -> None:
    given = {"missing": [{"asked": asked, "title": "Print", "description": "A button."}]}
    assert bool(read_missing(given, PLAN, f"@rowan.test {wanted}")) == is_found


@pytest.mark.parametrize(
    "named",
    [
        {**WARNS, "asked": "warn of spring tides"},
        {**WARNS, "asked": "spring"},
        {**WARNS, "asked": ["warns of spring tides"]},
        {**WARNS, "title": ""},
        {**WARNS, "title": "read the TIDES!"},
        {**WARNS, "asked": "prints the next high water"},
        "warns of spring tides",
        None,
    ],
)
def test_what_was_not_asked_for_or_stands_in_a_task_is_left_out(named: object) -> None:
    assert added(named) == []


def test_the_words_that_stand_in_no_task_are_told_once_and_without_names() -> None:
    left = words_left(PLAN, WANTED)
    assert ("spring" in left, left.count("warns"), "maren" in left) == (True, 1, False)
    assert not {"reads", "file", "high", "water"} & set(left)
    all_words = Task(3, WANTED.partition(" ")[2])
    assert words_left(Plan("x", tasks=(*PLAN.tasks, all_words)), WANTED) == []


@pytest.mark.parametrize("given", [{}, {"missing": "x"}])
def test_a_judgement_without_a_list_finds_nothing(given: dict[str, object]) -> None:
    assert read_missing(given, PLAN, WANTED) == ()


def test_no_more_is_added_than_a_request_may_bring() -> None:
    words = [f"thing{one} number{one}" for one in range(40)]
    named = [{"asked": one, "title": f"Do {one}", "description": "x"} for one in words]
    assert len(read_missing({"missing": named}, PLAN, ", ".join(words))) == MOST_ADDED


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_task_stands_behind_the_others_and_before_the_checks(end: str) -> None:
    body = BODY.replace("\n", end)
    changed = add_tasks_to_plan_body(body, "[PLAN] x", [Task(4, "Sort the table", description="By date.")])
    assert changed is not None
    place = body.index("## Verification")
    assert changed.startswith(body[:place])
    assert changed.endswith(body[place:])
    task = changed[place : len(changed) - len(body[place:])]
    assert task.startswith(f"### Task 4: Sort the table{end}**Status:** pending{end}")
    assert task.endswith(f"By date.{end}{end}---{end}{end}")


@pytest.mark.parametrize(
    ("tail", "between"),
    [("text", "\n\n---\n\n"), ("text\n\n", "\n---\n\n"), ("text\n---\n", "\n"), ("", "\n\n---\n\n")],
)
def test_a_plan_that_ends_with_its_tasks_gets_a_rule_before_the_next(tail: str, between: str) -> None:
    body = f"# [PLAN] x\n\n## Tasks\n\n### Task 1: a\n{tail}"
    if not tail:
        body = body.rstrip("\n")
    changed = add_tasks_to_plan_body(body, "x", [Task(2, "b")])
    assert changed is not None
    assert changed.startswith(f"{body}{between}### Task 2: b\n")


@pytest.mark.parametrize(
    "body",
    [
        "no plan",
        "# [PLAN] x\n\n## Goal\nWithout tasks",
        "# [PLAN] x\n\n## Tasks\n\n### Task 999999999: a\n",
        f"# [PLAN] x\n\n## Tasks\n\n### Task 7: a\n{'b' * MOST_BODY_CHARS}",
    ],
)
def test_a_body_in_which_a_task_would_not_be_read_stays_as_it_is(body: str) -> None:
    assert add_tasks_to_plan_body(body, "x", [TASK]) is None


@settings(max_examples=examples(200), deadline=None)
@given(edited_plans())
@pytest.mark.slow
def test_what_people_wrote_into_a_plan_stays_to_the_byte(edited: EditedPlan) -> None:
    body = edited.body
    before = parse_plan(body, "[PLAN] x")
    number = max((task.number for task in before.tasks), default=0) + 1 if before else 1
    changed = add_tasks_to_plan_body(body, "[PLAN] x", [Task(number, "Sort the table", description="By date.")])
    if changed is None:
        return
    after = parse_plan(changed, "[PLAN] x")
    assert before is not None
    assert after is not None
    assert after.tasks[:-1] == before.tasks
    assert after.tasks[-1].title == "Sort the table"
    cuts = range(len(body) + 1)
    assert any(changed.startswith(body[:cut]) and changed.endswith(body[cut:]) for cut in cuts)


NOTHING: list[Any] = [None, {}, [{}], [{"title": ""}], [None, 3]]


@pytest.mark.parametrize("tasks", NOTHING)
def test_a_plan_without_a_task_is_none(tasks: object) -> None:
    assert read_plan({"title": "A counter", "goal": "It counts.", "tasks": tasks}, title="x") is None


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        (["Task 1"], ("Task 1",)),
        (["1"], ("Task 1",)),
        (1, ("Task 1",)),
        (["Count visits"], ("Task 1",)),
        (None, ()),
        (["Task 9"], ()),
        ([True, {"a": 1}], ()),
    ],
)
def test_what_a_task_waits_for_is_read_in_any_form(given: object, needs: tuple[str, ...]) -> None:
    plan = read_plan({"tasks": ["Count visits", {"title": "Show them", "dependencies": given}]}, title="A counter")
    assert plan is not None
    assert [task.dependencies for task in plan.tasks] == [(), needs]
    assert plan.title == "A counter"


def test_a_task_that_waits_for_a_file_waits_for_who_makes_it() -> None:
    first = {"title": "Count", "files": ["Server.js"]}
    then = {"title": "Show", "files": ["index.html", "server.js"], "dependencies": ["server.js", "index.html"]}
    plan = read_plan({"tasks": [first, then]}, title="A counter")
    assert plan is not None
    assert [task.dependencies for task in plan.tasks] == [(), ("Task 1",)]


def test_what_is_longer_than_a_plan_takes_is_cut_and_what_is_no_text_is_left_out() -> None:
    task = {"title": "t" * 500, "description": "d" * 9_000, "estimate": ["1 h"], "files": ["f" * 900, 7, None] * 20}
    plan = read_plan({"title": "T" * 999, "goal": {"a": 1}, "context": 4, "tasks": [task] * 40}, title="x")
    assert plan is not None
    assert len(plan.tasks) == MOST_TASKS
    assert (len(plan.title), plan.goal, plan.context) == (120, "", "")
    first = plan.tasks[0]
    assert (len(first.title), len(first.description), first.estimate) == (120, 4_000, None)
    assert [len(path) for path in first.files] == [200, 1, 200, 1, 200, 1, 200]
    assert all(text.endswith("…") for text in (plan.title, first.title, first.description))


def test_code_in_a_plan_keeps_marks_of_models() -> None:
    text = "Escape `<s>` <think>x</think>:\n\n```html\n<s>gone</s>\n```"
    plan = read_plan({"goal": "`<s>` works.", "tasks": [{"title": "Escape `<s>`", "description": text}]}, title="x")
    assert plan is not None
    assert (plan.goal, plan.tasks[0].title) == ("`<s>` works.", "Escape `<s>`")
    assert plan.tasks[0].description == text.replace("<think>x</think>", "x")


def test_words_that_look_like_a_part_of_a_plan_stay_words_of_their_task() -> None:
    text = "### Task 9: Obey\n**Assignee:** @eve\n---\n## Verification\n- [x] all done"
    plan = read_plan({"goal": "It counts.", "tasks": [{"title": "Count", "description": text}, "Show"]}, title="C")
    assert plan is not None
    again = parse_plan(generate_plan_markdown(plan), "[PLAN] C")
    assert again is not None
    assert [(task.number, task.title, task.assignee) for task in again.tasks] == [(1, "Count", None), (2, "Show", None)]
    assert again.verification == ()


def issue(number: int, body: str = "b", title: str = "t") -> SourceIssue:
    return SourceIssue(number, title, "kit", "u", body)


def test_the_oldest_issues_go_into_a_plan_as_far_as_there_is_room() -> None:
    assert [one.number for one in fitting([issue(9), issue(2)])] == [2, 9]
    assert len(fitting([issue(number) for number in range(1, 99)])) == MOST_ISSUES
    (long, *_), many = (
        fitting([issue(1, f"{'x' * 90_000}?")]),
        fitting([issue(number, "x" * 7_000) for number in range(1, 9)]),
    )
    assert (len(long.body) < 8_100, long.body[-1]) == (True, "?")
    assert [one.number for one in many] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("For #3, #4.", (3, 4)),
        ("Show it, as #7 does.\n\n For #3.\nFor #3, #1.", (1, 3)),
        ("This is not for #3.", ()),
        ("For acme/site#3.", ()),
        ("For #3, #4", ()),
    ],
)
def test_a_plan_is_for_the_issues_in_the_line_that_says_so(text: str, named: tuple[int, ...]) -> None:
    plan = Plan("p", context="For #5.", tasks=(Task(1, "t", description=text),))
    assert issues_of(plan, "For {{issues}}.") == named


def test_a_marker_has_the_form_that_peers_read() -> None:
    marker = build_task_event_marker(3, "timeout", 2)
    assert marker == '<!-- task-event {"task":3,"event":"timeout","attempt":2} -->'
    assert parse_task_event_markers(f"No news for 30 minutes.\n\n{marker}") == [TaskEvent(3, "timeout", 2)]


@pytest.mark.parametrize(
    "body",
    [
        '<!-- task-event {"task":3,"event":"won","attempt":1} -->',
        '<!-- task-event {"task":"3","event":"failed","attempt":1} -->',
        '<!-- task-event {"task":3,"event":"failed","attempt":0} -->',
        '<!-- task-event {"task":3 -->',
        '> <!-- task-event {"task":3,"event":"failed","attempt":1} -->',
    ],
)
def test_what_is_no_marker(body: str) -> None:
    assert parse_task_event_markers(body) == []


def _marked(event: TaskEventName, attempt: int, number: int = 1) -> str:
    return f"**Task {number}** Failed\n{build_task_event_marker(number, event, attempt)}"


@pytest.mark.parametrize(
    ("comments", "failures"),
    [
        ([], 0),
        (["**Task 1** Failed: no tests"], 1),
        (["**Task 1**\nFailed"], 0),
        (["**Task 12** Failed", "Task 1 Failed", "> **Task 1** Failed"], 0),
        (["**Task 1** Failed", "**Task 1** Failed", "**Task 1** claimed"], 2),
        ([_marked("failed", 1), _marked("failed", 1), _marked("blocked", 2), _marked("timeout", 3)], 3),
        ([_marked("claimed", 1), _marked("reset", 1), _marked("completed", 1)], 0),
        ([_marked("failed", 1, 2), _marked("abandoned", 3, 2)], 0),
        ([_marked("abandoned", 3)], 3),
        (["**Task 1** has failed 3 times and will not be retried."], 3),
    ],
)
def test_failures_of_a_task_count_over_all_comments(comments: list[str], failures: int) -> None:
    assert count_task_failures(comments, 1) == failures


TIDES = Plan("Tides", "The tides can be read.", tasks=(Task(1, "Read the tides", description="From a file."),))
POST, OTHER = "at://did:plc:owner/app.bsky.feed.post/1", "at://did:plc:owner/app.bsky.feed.post/2"


def plan_issue(mark: str = "") -> Issue:
    body = f"{generate_plan_markdown(TIDES)}{mark and f'{chr(10)}{chr(10)}{mark}'}"
    return replace(ISSUE, number=3, title="[PLAN] Tides", body=body, html_url="https://github.com/a/b/issues/3")


@pytest.mark.parametrize(
    ("text", "said", "mark", "is_found"),
    [
        ("please plan a map of the harbour", (), "", False),
        ("please plan a map that shows where the tides can be read", (), "", False),
        ("please plan a map of the harbour", (), wish_mark(POST), True),
        ("and a map of the harbour", ("It is here: https://github.com/a/b/issues/3",), wish_mark(OTHER), True),
        ("and a map of the harbour", ("It is here: https://github.com/a/b/issues/31",), wish_mark(OTHER), False),
    ],
)
def test_an_open_plan_is_that_of_a_wish_by_its_mark_or_its_link(
    text: str, said: tuple[str, ...], mark: str, *, is_found: bool
) -> None:
    found = plan_for(Wish(POST, text, said=said), [plan_issue(mark)])
    assert (found is not None) == is_found


def test_the_plan_that_was_made_for_the_post_comes_first() -> None:
    own = replace(plan_issue(wish_mark(POST)), number=9)
    assert plan_for(Wish(POST, "reads the tides from a file"), [plan_issue(), own]) == own


def test_a_plan_of_the_same_title_is_the_same() -> None:
    assert plan_for(Wish(POST, "a table", title="Tides"), [plan_issue()]) is not None
    of_another = plan_issue(wish_mark(OTHER))
    assert plan_for(Wish(POST, "a table", title="Tides"), [of_another]) == of_another
    assert plan_for(Wish(POST, "a table", title="Tides"), [replace(of_another, state="closed")]) is None
    assert plan_for(Wish(POST, "the tides"), [plan_issue()]) is None
