"""Plans after edits by people: inserted prose and code, reordered fields, their own statuses, other line ends."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from modules.services.plans.plan_text import generate_plan_markdown, parse_plan
from modules.services.plans.types import ACTIVE_TASKS, Expected, Plan, Task, TaskChange
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
    "<!--\n### Task 1: hidden\n**Status:** pending\n## Tasks\n-->",
    "<!-- a form",
    "-->",
    "\\## no heading",
    "\t**Status:** tabbed",
)
_CHANGED = ("status", "assignee")
_VALUES = {
    "status": ("In Progress", "done ✅", "WIP", "todo", "blocked (waiting for Anna)", "after lunch", "", "complete it"),
    "assignee": ("none", "@anna (until Friday)", "unassigned", "anna and bob", "", "TBD", "-", "**@anna**", "ask @bob"),
    "dependencies": ("none.", "Task 1 and Task 2", "Tasks 1-3", "Task 9; Task 1", "the design", "", "Task 1, Task 1"),
    "estimate": ("an hour", ""),
    "files": ("`a.py`, `b.py`", "none"),
}


@dataclass(frozen=True)
class Line:
    """A line of an edited plan; `task` is the task whose header has it, or 0, and `mark` a person's word in it."""

    text: str
    task: int = 0
    mark: str = ""


@dataclass(frozen=True)
class EditedPlan:
    """A plan after a person's edits. `headings` are the headings of tasks that the person inserted."""

    lines: tuple[Line, ...]
    headings: tuple[str, ...]
    end: str
    tail: str

    @property
    def body(self) -> str:
        """The text of the plan."""
        return self.end.join(line.text for line in self.lines) + self.tail


@st.composite
def edited_plans(draw: st.DrawFn) -> EditedPlan:
    """Draw a plan after a person's edits; most of what they wrote contains a word that occurs nowhere else."""
    plan: Plan = draw(plans().filter(lambda one: bool(one.tasks)))
    lines, headings = _rendered(plan), list[str]()
    for count in range(draw(st.integers(0, 6))):
        mark = f"anna{count}x"
        labels = [place for place, line in enumerate(lines) if _label(line.text)]
        match draw(st.sampled_from(("put in", "put in", "value", "reorder", "leave out"))):
            case "put in":
                text = draw(st.sampled_from((*_PUT_IN, f"A word: {mark}")))
                put = [Line(one, mark=mark if mark in one else "") for one in text.split("\n")]
                headings += [one.text for one in put if one.text.startswith("### Task")]
                place = draw(st.integers(0, len(lines)))
                lines[place:place] = put
            case "value" if labels:
                place = draw(st.sampled_from(labels))
                line, label = lines[place], _label(lines[place].text)
                form = draw(st.sampled_from(("{}", "{} {}", "{} ({})", "{} <!-- {} -->")))
                value = draw(st.sampled_from(_VALUES[label]))
                is_marked = form != "{}" and (bool(value) or form != "{} {}")
                text = form.format(value, mark) if is_marked else value
                start = line.text[: line.text.lower().index(label) + len(label)]
                lines[place] = Line(f"{start}:** {text}", line.task, mark if is_marked else "")
            case "reorder" if labels:
                place = draw(st.sampled_from(labels))
                lines[place : place + 2] = reversed(lines[place : place + 2])
            case "leave out":
                if droppable := [
                    place for place in labels if lines[place].task and _label(lines[place].text) in _CHANGED
                ]:
                    del lines[draw(st.sampled_from(droppable))]
    end = draw(st.sampled_from(("\n", "\r\n")))
    return EditedPlan(tuple(lines), tuple(headings), end, draw(st.sampled_from(("", end))))


def _rendered(plan: Plan) -> list[Line]:
    """Return the lines of a generated plan; the two lines of each task that may change have its number."""
    lines = [Line(text) for text in generate_plan_markdown(plan).split("\n")]
    for task in plan.tasks:
        heading = next(place for place, line in enumerate(lines) if line.text.startswith(f"### Task {task.number}: "))
        for place in (heading + 1, heading + 2):
            lines[place] = Line(lines[place].text, task.number)
    return lines


def _label(text: str) -> str:
    """Return the name of the field that a line looks like, by its letters alone, or ""."""
    bare = text.strip().lstrip("-*+ \t").lower()
    return next((name for name in _VALUES if bare.startswith((f"{name}:", f"{name}**"))), "")


changes = st.builds(
    TaskChange,
    st.sampled_from((None, "pending", "claimed", "in_progress", "completed", "blocked")),
    st.sampled_from((None, "", "sh-marvin")),
)


def assert_nothing_is_lost(plan: EditedPlan, change: TaskChange) -> None:
    """Change each task of a plan, and assert that nothing else of the body changes."""
    edited = plan.body
    before = parse_plan(edited, "[PLAN]")
    assert before is not None
    for task in before.tasks:
        found = update_task_in_plan_body(edited, task.number, change)
        after = parse_plan(found.body, "[PLAN]")
        assert after is not None
        assert [one for one in after.tasks if one.number != task.number] == [
            one for one in before.tasks if one.number != task.number
        ]
        assert after.task(task.number) in _as_changed(task, change)
        assert (after.goal, after.context, after.verification) == (before.goal, before.context, before.verification)
        assert_other_lines_stand(plan, task.number, change, found.body)
        expected = Expected(frozenset({"somebody-else"}))
        assert update_task_in_plan_body(edited, task.number, change, expected).code == "conflict"


def _as_changed(task: Task, change: TaskChange) -> tuple[Task, Task]:
    """Return the task after the change in both readings: an active one without an assignee may be read as pending."""
    assignee = task.assignee if change.assignee is None else change.assignee or None
    changed = replace(task, status=change.status or task.status, assignee=assignee)
    is_somebodys = changed.status in ACTIVE_TASKS and assignee is None
    return changed, replace(changed, status="pending") if is_somebodys else changed


def assert_other_lines_stand(plan: EditedPlan, number: int, change: TaskChange, body: str) -> None:
    """Assert that each line is in the changed body once and in order, compared as plain text.

    Only the two values of the task may differ, and words that a person wrote beside them stay. A line that was missing
    may be added, right under the heading or under the status.
    """
    new = [line.removesuffix("\r") for line in body.split("\n")]
    old = [*plan.lines, Line("")] if plan.tail else [*plan.lines]
    missing = [f"**Status:** {change.status}"] * bool(change.status)
    missing += [f"**Assignee:** @{change.assignee}"] * bool(change.assignee)
    is_of_person = any(heading.startswith(f"### Task {number}:") for heading in plan.headings)
    at = 0
    for line in old:
        while at < len(new) and new[at] in missing and new[at] != line.text and not _is_changed(line, new[at]):
            assert _label(new[at - 1]) == "status" or new[at - 1].lstrip().lower().startswith("### task"), new[at - 1]
            missing.remove(new[at])
            at += 1
        assert at < len(new), f"{line} is missing"
        if new[at] != line.text:
            assert _is_changed(line, new[at]), (line, new[at])
            assert line.task in {0, number} or is_of_person, line
            assert line.mark in new[at]
        at += 1
    assert at == len(new), new[at:]
    assert all(body.count(line.mark) == 1 for line in old if line.mark)


def _is_changed(line: Line, text: str) -> bool:
    """Return whether `text` may be this line with a new value: the same field, with the same beginning."""
    label, start = _label(line.text), line.text.partition(":")[0]
    return label in _CHANGED and text.startswith(start)
