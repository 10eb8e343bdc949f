"""Plans as people leave them: prose and code put in, fields reordered, statuses in their own words, other line ends."""

from __future__ import annotations

from hypothesis import strategies as st

from modules.services.plans.fields import read_field
from modules.services.plans.lines import scan
from modules.services.plans.parse import parse_plan, read_header
from modules.services.plans.render import generate_plan_markdown
from modules.services.plans.types import Expected, Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from tests.modules.services.plans.plan_values import plans

_PUT_IN = (
    "A word from Anna: mind the gap.",
    "",
    "   ",
    "> quoted",
    "- [ ] and this",
    "**Note:** see below",
    "**Status:** completed",
    "- **Assignee**: @anna",
    "### Task 2: again",
    "### Task 77: outside",
    "### Not a task",
    "## Context",
    "## Notes of Anna",
    "## Tasks",
    "---",
    "***",
    "```\n### Task 1: in code\n**Status:** pending\n## Tasks\n```",
    "~~~sh",
    "```",
    "<!-- hidden -->",
    "\\## no heading",
    "\t**Status:** tabbed",
)
_NO_BRACKETS = str.maketrans("()", "  ")
_VALUES = {
    "status": ("In Progress", "done ✅", "WIP", "todo", "blocked (waiting for Anna)", "after lunch", "", "complete it"),
    "assignee": ("none", "@anna (until Friday)", "unassigned", "anna and bob", "", "TBD", "-", "**@anna**", "ask @bob"),
    "dependencies": ("none.", "Task 1 and Task 2", "Tasks 1-3", "Task 9; Task 1", "the design", "", "Task 1, Task 1"),
    "estimate": ("an hour", ""),
    "files": ("`a.py`, `b.py`", "none"),
}


@st.composite
def edited_plans(draw: st.DrawFn) -> str:
    """A body after a person's edits."""
    plan: Plan = draw(plans().filter(lambda one: bool(one.tasks)))
    lines = generate_plan_markdown(plan).split("\n")
    for _ in range(draw(st.integers(0, 6))):
        match draw(st.sampled_from(("put in", "put in", "value", "reorder", "leave out"))):
            case "put in":
                text = draw(st.sampled_from(_PUT_IN))
                lines[(place := draw(st.integers(0, len(lines)))) : place] = text.split("\n")
            case "value":
                places = [place for place, line in enumerate(lines) if read_field(line)]
                if places:
                    place = draw(st.sampled_from(places))
                    name, _ = read_field(lines[place]) or ("", "")
                    if name in _VALUES:
                        value = draw(st.sampled_from(_VALUES[name]))
                        lines[place] = f"{lines[place].partition(':**')[0]}:** {value}"
            case "reorder":
                places = [place for place in range(1, len(lines)) if read_field(lines[place - 1])]
                if places:
                    place = draw(st.sampled_from(places))
                    lines[place - 1 : place + 1] = lines[place], lines[place - 1]
            case _:
                places = [place for place, line in enumerate(lines) if line.startswith(("**Status", "**Assignee"))]
                if places:
                    del lines[draw(st.sampled_from(places))]
    end = draw(st.sampled_from(("\n", "\r\n")))
    return end.join(lines) + draw(st.sampled_from(("", end)))


changes = st.builds(
    TaskChange,
    st.sampled_from((None, "pending", "claimed", "in_progress", "completed", "blocked")),
    st.sampled_from((None, "", "sh-marvin")),
)


def assert_nothing_is_lost(edited: str, change: TaskChange) -> None:
    """Change each task of a plan, and hold that nothing else of the body changes."""
    before = parse_plan(edited, "[PLAN]")
    assert before is not None
    for task in before.tasks:
        found = update_task_in_plan_body(edited, task.number, change)
        after = parse_plan(found.body, "[PLAN]")
        assert after is not None
        assert [one for one in after.tasks if one.number != task.number] == [
            one for one in before.tasks if one.number != task.number
        ]
        assert after.task(task.number) == _as_changed(task, change)
        assert (after.goal, after.context, after.verification) == (before.goal, before.context, before.verification)
        _assert_other_lines_stand(edited, task, found.body)
        expected = Expected(frozenset({"somebody-else"}))
        assert update_task_in_plan_body(edited, task.number, change, expected).code == "conflict"


def _as_changed(task: Task, change: TaskChange) -> Task:
    return Task(
        task.number,
        task.title,
        change.status or task.status,
        task.assignee if change.assignee is None else change.assignee or None,
        task.estimate,
        task.dependencies,
        task.files,
        task.description,
    )


def _assert_other_lines_stand(edited: str, task: Task, body: str) -> None:
    found = scan(edited)
    block = next(one for one in found.tasks if one.number == task.number)
    header = read_header(found, block)
    changed = {*header.lines.get("status", ()), *header.lines.get("assignee", ())}
    old, new = edited.split("\n"), body.split("\n")
    more = len(new) - len(old)
    begin = (header.lines.get("status") or [block.heading])[0] + 1
    places = {begin, block.heading + 1}
    assert 0 <= more <= len(places) + 1
    assert any(_same_but(old, new[:place] + new[place + more :], changed) for place in places)
    assert all(_kept_words(old[place]) <= set(body.translate(_NO_BRACKETS).split()) for place in changed)


def _same_but(old: list[str], new: list[str], changed: set[int]) -> bool:
    pairs = enumerate(zip(old, new, strict=True))
    return all(a.rstrip("\r") == b.rstrip("\r") for place, (a, b) in pairs if place not in changed)


def _kept_words(line: str) -> set[str]:
    """What a person wrote into a line beside its value."""
    return {word for word in ("waiting", "Anna", "Friday", "lunch", "and", "bob") if word in line.split()}
