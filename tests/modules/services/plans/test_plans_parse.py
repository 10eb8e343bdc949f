"""A plan can be read however people edited it, and no text makes that slow.

A change of a task changes no other byte of the body. A plan is written exactly as peers write it, and is read back the
same. A large plan that is made from issues ends with the tasks that update the pages.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from modules.services.claims.policy import get_claimable_tasks
from modules.services.plans.plan_text import (
    format_task_markdown,
    generate_plan_markdown,
    parse_plan,
    read_assignee,
    read_status,
)
from modules.services.plans.types import (
    UNDONE_TASKS,
    DocsTask,
    DocsWords,
    Expected,
    Plan,
    Task,
    TaskChange,
    TaskStatus,
    changes_more_than_documents,
    with_docs_updates,
)
from modules.services.plans.update import update_task_in_plan_body
from tests.cpu_time import takes_less
from tests.exploration import examples
from tests.modules.services.plans.hand_edits import EditedPlan, assert_nothing_is_lost, changes, edited_plans
from tests.modules.services.plans.plan_values import BODY, PLAN, plans

TITLES = ("Set up the database", "Import prices, weekly", "Draw the chart")


def _plan(tasks: str, title: str = "[PLAN] x") -> Plan:
    plan = parse_plan(f"# [PLAN] x\n\n## Tasks\n\n{tasks}", title)
    assert plan is not None
    return plan


def _needs(text: str, number: int = 4) -> tuple[tuple[str, ...], int]:
    """Return what the task of that number waits for, and the number of warnings."""
    headings = [f"### Task {place}: {title}" for place, title in enumerate((*TITLES, "Write it up"), 1)]
    headings[number - 1] += f"\n**Dependencies:** {text}"
    plan = _plan("\n\n".join(headings))
    task = plan.task(number)
    assert task is not None
    return task.dependencies, len(plan.warnings)


@pytest.mark.parametrize("body", ["", " \n", "## Goal\nx"])
def test_what_is_no_plan(body: str) -> None:
    assert parse_plan(body, "An issue") is None


def test_a_plan_is_known_by_its_title_or_its_body() -> None:
    task = "## Tasks\n### Task 1: a"
    assert parse_plan(task, "[PLAN] The [PLAN] of it") == Plan("The [PLAN] of it", tasks=(Task(1, "a"),))
    assert parse_plan(f"# [PLAN] Of the body\n## Goal\na\n\n b\n{task}", "") == Plan(
        "Of the body", "a b", tasks=(Task(1, "a"),)
    )


def test_a_plan_without_a_readable_task_is_told() -> None:
    assert len(_plan("#### Task 1: a\n**Status:** pending").warnings) == 1


def test_line_ends_of_another_system_change_nothing() -> None:
    assert parse_plan(BODY.replace("\n", "\r\n"), "[PLAN] Portfolio comparison") == PLAN


@pytest.mark.parametrize(
    ("plain", "pasted"),
    [
        (" ", "\u00a0"),
        ("### Task ", "###\u202fTask\u00a0"),
        ("## ", "##\u00a0"),
        ("### ", "\u200b### "),
        ("**Status:**", "**Sta\u00adtus:**\u2060"),
        ("- `", "-\u00a0`"),
        ("# [PLAN]", "\ufeff#\u00a0[PLAN]"),
    ],
)
def test_a_plan_that_was_pasted_is_read_as_it_looks(plain: str, pasted: str) -> None:
    body = BODY.replace(plain, pasted)
    assert body != BODY
    assert parse_plan(body, "[PLAN]\u00a0Portfolio comparison") == PLAN


def test_a_form_left_empty_names_nobody_and_nothing() -> None:
    task = _plan(
        "### Task 1: x\n**Assignee:** _No response_\n**Dependencies:** _No response_\n**Files:** _No response_"
    ).tasks[0]
    assert (task.assignee, task.dependencies, task.files, task.unclear) == (None, (), (), False)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("In Progress", "in_progress"),
        ("WIP", "in_progress"),
        ("**done**", "completed"),
        ("done ✅", "completed"),
        ("completed (by Anna)", "completed"),
        ("Open", "pending"),
        ("`blocked`", "blocked"),
        (":white_check_mark:", "completed"),
        ("[done](https://github.com/acme/site/pull/5)", "completed"),
        ("~~pending~~ done by @sh-marvin", "completed"),
        ("in progress since Monday", "in_progress"),
        ("⏳ **Pending**", "pending"),
        *(
            (text, None)
            for text in ("cancelled", "erledigt", "done?", "❌ done", "✅ pending", "open, but needs design")
        ),
        ("complete rewrite needed", None),
        ("", None),
    ],
)
def test_a_status_in_the_words_of_people(text: str, status: str | None) -> None:
    assert read_status(text) == status


@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("@sh-marvin", "sh-marvin"),
        ("**@sh-marvin**", "sh-marvin"),
        ("[@anna](https://github.com/anna)", "anna"),
        ("currently @bob", "bob"),
        ("acme_anna", "acme_anna"),
        *((text, None) for text in ("", "(empty if unclaimed)", "none", "None.", "_unassigned_", "n/a", "TBD", "-")),
        *((text, None) for text in ("(unassigned)", "none yet", "(ask @bob)", "<!-- @bob -->", "Ünal", "-x")),
    ],
)
def test_an_assignee_in_the_words_of_people(text: str, login: str | None) -> None:
    assert read_assignee(text) == login


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        *((text, ()) for text in ("none", "None.", "none (foundational)", "n/a", "-", "")),
        ("Task 1, Task 3", (1, 3)),
        ("3", (3,)),
        ("Task 3; Task 2 & task 1", (3, 2, 1)),
        ("Tasks 1-3", (1, 2, 3)),
        ("1\u20132", (1, 2)),
        ("Task 2 (the import)", (2,)),
        ("set up the DATABASE", (1,)),
        ("Draw the chart; Set up the database", (3, 1)),
        ("Set up the database in PostgreSQL", (1,)),
        ("Task 1, Task 1", (1,)),
    ],
)
def test_dependencies_in_the_words_of_people(text: str, needs: tuple[int, ...]) -> None:
    assert _needs(text) == (tuple(f"Task {number}" for number in needs), 0)


def test_what_waits_for_a_task_that_is_not_there_is_nobodys_to_take() -> None:
    plan = _plan("### Task 1: x\n**Dependencies:** Task 9\n\n### Task 2: y\n**Status:** sleeping\n\n### Task 3: z")
    assert [task.number for task in get_claimable_tasks(plan)] == [3]
    assert len(plan.warnings) == 2


@pytest.mark.parametrize(
    ("text", "needs"), [("Task 9", ()), ("Task 4", ()), ("Task 1, Task 9", (1,)), ("the board's blessing", ())]
)
def test_what_would_block_a_task_for_ever_is_dropped_with_a_warning(text: str, needs: tuple[int, ...]) -> None:
    assert _needs(text)[0] == tuple(f"Task {number}" for number in needs)
    assert _needs(text)[1] > 0


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("Task 1 / Task 2", (1, 2)),
        ("Task 1 + Task 3", (1, 3)),
        ("#1-#3", (1, 2, 3)),
        ("needs #1 and task-2 first", (1, 2)),
        ("none until Task 2", (2,)),
        ("depends on Task 1 (the 3 imports)", (1,)),
    ],
)
def test_dependencies_as_people_write_them_in_passing(text: str, needs: tuple[int, ...]) -> None:
    assert _needs(text) == (tuple(f"Task {number}" for number in needs), 0)


@pytest.mark.parametrize(
    "fields",
    [
        *(f"**Status:** {text}" for text in ("cancelled", "pending review", "erledigt", "on hold", "done?", "❌ done")),
        *(f"**Status:** {text}" for text in ("🚧 in progress", "claimed by @bob", "In Progress (Anna)")),
        *(f"**Assignee:** {text}" for text in ("太郎", "@李雷", "Ünal", "Анна", "🦊")),
        *(f"**Dependencies:** {text}" for text in ("the board's blessing", "TBD", "#12", "Tasks 2..3")),
        "**Files:**\n- `README.md`\n- whatever the parser needs",
        "| Status | done |",
        "> **Assignee:** @bob",
        "Words before it.\n**Status:** completed",
        "| Dependencies | Task 2 |",
    ],
)
def test_what_is_not_understood_is_nobodys_to_claim_and_is_named(fields: str) -> None:
    plan = _plan(f"### Task 1: Read\n{fields}\n\n### Task 2: Draw\n\n### Task 3: Ship")
    assert [task.number for task in get_claimable_tasks(plan)] == [2, 3]
    assert [line.partition(":")[0][:6] for line in plan.warnings] == ["Task 1"]


@pytest.mark.parametrize("heading", ["### ✅ Task 1: a", "### ~~Task 1: a~~\n**Status:** pending", "### [x] Task 1: a"])
def test_a_heading_that_says_otherwise_frees_no_task(heading: str) -> None:
    plan = _plan(heading)
    assert plan.tasks[0].title == "a"
    assert not get_claimable_tasks(plan)


@pytest.mark.parametrize("heading", ["### **Task 1: a**", "### Task **1**: a", "## Task 1: a", "### 📝 Task #1 - a"])
def test_the_heading_of_a_task_as_people_write_it(heading: str) -> None:
    plan = _plan(f"{heading}\nStatus: done\n\n### Task 2: b\n")
    assert plan.tasks == (Task(1, "a", "completed"), Task(2, "b"))


def test_a_heading_that_only_speaks_of_a_task_is_no_task_and_is_told() -> None:
    plan = _plan("### Task 1: Sow\n\n## Task 2 background\n\nIt rained.\n\n### Task 3\n")
    assert [(task.number, task.title) for task in plan.tasks] == [(1, "Sow"), (3, "Task 3")]
    assert any("Task 2 background" in warning for warning in plan.warnings)


def test_fields_in_plain_text_and_files_without_backticks() -> None:
    plan = _plan(
        "### Task 1: a\nStatus: In Progress\n- Assignee: @bob\n**Priority:** high\nDepends on: Task 2\nFiles:\n"
        "- src/a.ts\n- **src/b.ts** (new)\n* [ ] [c.ts](src/c.ts)\n\nWrite it.\n\n### Task 2: b\nFiles: a.py and b.py"
    )
    files = ("src/a.ts", "src/b.ts", "c.ts")
    first = Task(1, "a", "in_progress", "bob", None, ("Task 2",), files, "**Priority:** high\nWrite it.")
    assert plan.tasks == (first, Task(2, "b", files=("a.py", "b.py")))
    assert not plan.warnings


def test_tasks_that_wait_for_each_other_do_not_wait_for_ever() -> None:
    plan = _plan(
        "### Task 1: a\n**Dependencies:** Task 3\n### Task 2: b\n**Dependencies:** Task 1\n"
        "### Task 3: c\n**Dependencies:** Task 2, Task 4\n### Task 4: d"
    )
    assert [task.dependencies for task in plan.tasks] == [("Task 3",), (), ("Task 2", "Task 4"), ()]
    assert plan.warnings == ("Task 2 waits for Task 1, which waits for it",)


def test_a_task_that_is_called_like_another_is_not_taken_for_it() -> None:
    plan = _plan("### Task 1: a\n### Task 2: Task 1\n### Task 3: c\n**Dependencies:** Task 1")
    assert plan.tasks[2].dependencies == ("Task 1",)


def test_a_description_keeps_what_looks_like_a_part_of_the_plan() -> None:
    description = (
        "First\n**Status:** completed\n- `no/file.py`\n---\nmore\n```\n## Verification\n### Task 2: code\n```\n"
        "## Context\n    ### Task 3: indented"
    )
    plan = _plan(
        "## Goal\ng\n## Context\nc\n## Tasks\n### Task 1: a\n**Files:**\n- `a.py` the parser\n\n"
        f"{description}\n\n---\n\n### Task 2: b"
    )
    assert plan.tasks[0] == Task(1, "a", files=("a.py",), description=description)
    assert [task.title for task in plan.tasks] == ["a", "b"]


def test_another_heading_ends_the_tasks_and_a_number_that_comes_again_is_not_read() -> None:
    plan = _plan("### Task 1: a\n**Description:** in one line\n### Task 1: b\ntext\n## Notes\nx\n### Task 2: c\n")
    assert plan.tasks == (Task(1, "a", description="in one line"),)
    assert len(plan.warnings) == 2


def test_a_task_in_a_comment_that_nobody_sees_is_no_task_and_a_comment_that_nothing_closes_hides_none() -> None:
    said = "<!-- Copy this:\n### Task 2: b\n**Status:** pending\n-->\nRead it."
    plan = _plan(f"### Task 1: a\n{said}\n\n### Task 3: c\n<!-- later\n\n### Task 4: d")
    assert [task.number for task in plan.tasks] == [1, 3, 4]
    assert plan.tasks[0].description == said


@pytest.mark.parametrize("name", ["Assignees", "Assigned to", "Blocked by"])
def test_a_field_that_people_name_otherwise_counts(name: str) -> None:
    needs = name == "Blocked by"
    plan = _plan(f"### Task 1: a\n**{name}:** {'Task 2' if needs else '@anna'}\n\n### Task 2: b")
    assert (plan.tasks[0].assignee, plan.tasks[0].dependencies) == ((None, ("Task 2",)) if needs else ("anna", ()))


def test_a_code_block_that_nothing_closes_hides_no_task() -> None:
    assert [task.number for task in _plan("### Task 1: a\n```\nx\n\n---\n\n### Task 2: b").tasks] == [1, 2]


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((), "active"),
        (("completed", "completed"), "complete"),
        (("completed", "blocked"), "blocked"),
        (("completed", "pending"), "active"),
    ],
)
def test_the_status_of_a_plan_follows_from_its_tasks(statuses: tuple[TaskStatus, ...], status: str) -> None:
    tasks = [Task(number, "x", one) for number, one in enumerate(statuses, 1)]
    assert Plan("x", tasks=tuple(tasks)).status == status


@pytest.mark.perf
@pytest.mark.parametrize(
    ("start", "part"),
    [
        ("", "```\n"),
        ("", "~~~\n### Task 1:x\n"),
        ("", "### Task {}:x\n"),
        ("", "### Task {}:x{}\n**Dependencies:** Tasks 1-9999,zz\n"),
        ("### Task 1: a\n**Dependencies:** ", "and and "),
        ("### Task 1: a\n**Dependencies:** ", "task "),
        ("### Task 1: a\n**Dependencies:** ", "1-"),
        ("### Task 1: a\n**Dependencies:** x", " "),
        ("### Task 1: a\n**Status:** ", "in "),
        ("### Task 1: a\n**Assignee:** ", ". "),
        ("### Task 1: a\n**Files:** ", "`"),
        ("### Task 1: a\n", "- `a`\n"),
        ("### Task 1: a\n**Files:**\n", "- a.ts\n"),
        ("### Task 1: a\n**Status:** done ", "@a-"),
        ("### Task 1: a\n**Status:** ", "~~[x]("),
        ("### Task 1: a\n**Dependencies:** ", "#1/"),
        ("### Task 1: a\n", "> status "),
        ("### ", "[x] "),
        ("### Task 1", " "),
        ("", "\\"),
        ("", "<!--\n"),
    ],
)
def test_no_body_makes_reading_slow(start: str, part: str) -> None:
    text = start + "".join(part.replace("{}", str(place)) for place in range(65_000 // len(part)))
    assert takes_less(0.4, lambda: _plan(text), runs=5)


CLAIM = TaskChange("claimed", "sh-marvin")


def _task(lines: str) -> str:
    return f"# [PLAN] x\n\n## Tasks\n\n### Task 1: a\n{lines}"


def test_a_claim_changes_two_lines_and_nothing_else() -> None:
    found = update_task_in_plan_body(BODY, 2, CLAIM)
    assert found.code == "changed"
    old, new = BODY.split("\n"), found.body.split("\n")
    assert [(a, b) for a, b in zip(old, new, strict=True) if a != b] == [
        ("**Status:** pending", "**Status:** claimed"),
        ("**Assignee:** (empty if unclaimed)", "**Assignee:** @sh-marvin"),
    ]
    plan = parse_plan(found.body, "[PLAN] x")
    assert plan is not None
    task = plan.task(2)
    assert task is not None
    assert (task.status, task.assignee) == ("claimed", "sh-marvin")


def test_a_release_gives_back_the_same_bytes() -> None:
    claimed = update_task_in_plan_body(BODY, 2, CLAIM).body
    assert update_task_in_plan_body(claimed, 2, TaskChange("pending", "")).body == BODY


@pytest.mark.parametrize(
    ("lines", "changed"),
    [
        ("", "**Status:** claimed\n**Assignee:** @sh-marvin"),
        ("text", "**Status:** claimed\n**Assignee:** @sh-marvin\ntext"),
        ("**Status:** todo\r\ntext", "**Status:** claimed\r\n**Assignee:** @sh-marvin\r\ntext"),
        ("text\n**Status:** pending", "**Status:** claimed\n**Assignee:** @sh-marvin\ntext\n**Status:** pending"),
        ("- **Status**: In Progress\n- **Assignee**: TBD", "- **Status**: claimed\n- **Assignee**: @sh-marvin"),
        (
            "**Status:** blocked (by Anna)\n**Assignee:** @bob until Friday",
            "**Status:** claimed (by Anna)\n**Assignee:** @sh-marvin (until Friday)",
        ),
        (
            "**Status:** after lunch\n**Assignee:** <!-- ask Bob -->",
            "**Status:** claimed (after lunch)\n**Assignee:** @sh-marvin <!-- ask Bob -->",
        ),
        (
            "```\n**Status:** pending\n```",
            "**Status:** claimed\n**Assignee:** @sh-marvin\n```\n**Status:** pending\n```",
        ),
    ],
)
def test_lines_that_people_wrote_or_left_out(lines: str, changed: str) -> None:
    body = _task(lines)
    expected = _task(changed)
    if not lines:
        body, expected = body.rstrip("\n"), expected.rstrip("\n")
    if lines.startswith("**Status:** todo"):
        body, expected = body.replace("a\n", "a\r\n"), expected.replace("a\n", "a\r\n")
    assert update_task_in_plan_body(body, 1, CLAIM).body == expected


def test_a_task_that_is_not_there_and_one_that_says_so_already() -> None:
    assert update_task_in_plan_body(BODY, 9, CLAIM).code == "missing"
    claimed = update_task_in_plan_body(BODY, 2, CLAIM).body
    assert update_task_in_plan_body(claimed, 2, CLAIM) == update_task_in_plan_body(claimed, 2, TaskChange())
    assert update_task_in_plan_body(claimed, 2, CLAIM).code == "same"


@pytest.mark.parametrize(
    ("expected", "code"),
    [
        (Expected(frozenset({""})), "conflict"),
        (Expected(frozenset({"", "SH-Rebecca"})), "changed"),
        (Expected(statuses=frozenset({"in_progress"})), "changed"),
        (Expected(frozenset({"sh-rebecca"}), frozenset({"claimed"})), "conflict"),
    ],
)
def test_a_task_is_changed_only_where_it_is_as_expected(expected: Expected, code: str) -> None:
    found = update_task_in_plan_body(BODY, 3, TaskChange("blocked", ""), expected)
    assert found.code == code
    assert (found.body == BODY) == (code == "conflict")


@pytest.mark.parametrize("lines", ["**Status:** cancelled", "**Status:** pending\n**Assignee:** 太郎"])
def test_what_cannot_be_read_is_as_nobody_expects_it(lines: str) -> None:
    body = _task(lines)
    free = Expected(frozenset({"", "sh-marvin"}), UNDONE_TASKS)
    assert update_task_in_plan_body(body, 1, CLAIM, free).code == "conflict"


@given(edited_plans(), changes)
@settings(max_examples=examples(60))
@pytest.mark.slow
def test_what_a_person_wrote_stays(edited: EditedPlan, change: TaskChange) -> None:
    assert_nothing_is_lost(edited, change)


def test_the_plan_of_the_grammar_is_read_and_written_to_the_same_bytes() -> None:
    assert parse_plan(BODY, "[PLAN] Portfolio comparison") == PLAN
    assert generate_plan_markdown(PLAN) == BODY


def test_a_task_that_has_nothing_but_a_title_is_written_with_its_placeholder() -> None:
    assert format_task_markdown(Task(4, " Look\n around ")) == (
        "### Task 4: Look around\n**Status:** pending\n**Assignee:** (empty if unclaimed)\n**Dependencies:** none\n\n"
        "**Description:**\n"
    )


def test_a_task_without_a_title_is_refused() -> None:
    with pytest.raises(ValueError, match="Task 4 has no title"):
        format_task_markdown(Task(4, " \n"))


@given(plans())
@pytest.mark.slow
def test_what_was_written_is_read_and_written_to_the_same_bytes(plan: Plan) -> None:
    body = generate_plan_markdown(plan)
    read = parse_plan(body, f"[PLAN] {plan.title}")
    assert read is not None
    assert generate_plan_markdown(read) == body
    assert len(read.warnings) == (not plan.tasks)
    assert len(read.tasks) == len(plan.tasks)
    for task, kept in zip(plan.tasks, read.tasks, strict=True):
        assert replace(kept, description="") == replace(task, description="", title=" ".join(task.title.split()))
        assert _said(task.description) <= _said(kept.description)
    assert [item[2:] for item in read.verification] == list(plan.verification)


def _said(text: str) -> set[str]:
    return {line.rstrip() for line in text.split("\n") if line.strip()}


UPDATE = DocsWords(DocsTask("Update LIL-INTDEV-AGENTS.md", "d", "e"), DocsTask("Update SCENARIOS.md", "d", "e"))
FOUR = tuple(Task(number, title, files=(f"{title}.js",)) for number, title in enumerate("abcd", 1))


def test_the_pages_that_no_task_makes_are_updated_when_all_else_is_done() -> None:
    made = Task(5, "Tell what changed", files=("docs/scenarios.md",))
    plan = with_docs_updates(Plan("p", tasks=(*FOUR, made)), UPDATE)
    *_, last = plan.tasks
    assert [task.title for task in plan.tasks[4:]] == ["Tell what changed", "Update LIL-INTDEV-AGENTS.md"]
    assert last.dependencies == tuple(task.name for task in plan.tasks[:-1])


def test_a_small_plan_gets_no_task_for_the_pages() -> None:
    plan = Plan("p", tasks=(*FOUR[:3], Task(4, "Create SCENARIOS.md")))
    assert with_docs_updates(plan, UPDATE) == plan


@pytest.mark.parametrize(
    ("files", "more"), [(("SCENARIOS.md", "docs/a.MD"), False), (("a.md", "b.py"), True), ((), True)]
)
def test_a_plan_for_documents_alone_is_known(files: tuple[str, ...], *, more: bool) -> None:
    assert changes_more_than_documents(Plan("p", tasks=(Task(1, "t", files=files),))) is more
