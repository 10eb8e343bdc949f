"""A plan issue exactly as the grammar shows it, and a strategy that generates plans."""

from typing import get_args

from hypothesis import strategies as st

from modules.services.plans.types import Plan, Task, TaskStatus

BODY = """\
# [PLAN] Portfolio comparison

## Goal
People compare two portfolios on one page

## Context
Asked for in #12
The old page stays until this one works

## Tasks

### Task 1: Parse the query
**Status:** completed
**Assignee:** @sh-marvin
**Estimate:** 20 min
**Dependencies:** none
**Files:**
- `src/query.ts`
- `src/query.test.ts`

**Description:**
Read `a` and `b` from the address.

    indented as a person left it

---

### Task 2: Show both portfolios
**Status:** pending
**Assignee:** (empty if unclaimed)
**Dependencies:** Task 1

**Description:**
Two columns, the newer one on the right.

---

### Task 3: Write it down
**Status:** in_progress
**Assignee:** @sh-rebecca
**Dependencies:** Task 1, Task 2

**Description:**
What changed, and why.

---

## Verification
- [ ] All tasks are completed
- [x] The tests pass"""

PLAN = Plan(
    title="Portfolio comparison",
    goal="People compare two portfolios on one page",
    context="Asked for in #12\nThe old page stays until this one works",
    tasks=(
        Task(
            1,
            "Parse the query",
            "completed",
            "sh-marvin",
            "20 min",
            (),
            ("src/query.ts", "src/query.test.ts"),
            "Read `a` and `b` from the address.\n\n    indented as a person left it",
        ),
        Task(
            2, "Show both portfolios", dependencies=("Task 1",), description="Two columns, the newer one on the right."
        ),
        Task(
            3,
            "Write it down",
            "in_progress",
            "sh-rebecca",
            dependencies=("Task 1", "Task 2"),
            description="What changed, and why.",
        ),
    ),
    verification=("○ All tasks are completed", "✓ The tests pass"),
)

_WORDS = ("plan", "Task 1", "none", "ä", "done", "e", "(x)", "**Status:**", "`a.py`", "#12", "日本", "\\", "-", "x_y")
_LINES = (
    "",
    "    code",
    "---",
    "## Context",
    "## Verification",
    "## Anything",
    "##",
    "### Task 2: inside",
    "### task 7 - inside",
    "\\## Goal",
    "\\\\### Task 1: x",
    "```",
    "```py",
    "````",
    "~~~",
    "   ~~~",
    "    ```",
    "\\```",
    "**Status:** completed",
    "**Assignee:** @nobody",
    "**Description:** again",
    "- `file.py`",
    "- [ ] a box",
    "<!-- task-event -->",
    "<!-- a form",
    "-->",
    "\\<!-- shown",
    "# [PLAN] another",
)

line = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join)
text = st.lists(st.one_of(st.sampled_from(_LINES), line), max_size=6).map("\n".join)
login = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,8}[A-Za-z0-9]", fullmatch=True).filter(
    lambda name: name.lower() not in {"none", "unassigned", "unclaimed", "na", "tbd", "nobody"}
)
path = st.from_regex(r"[a-z]{1,6}(/[a-z]{1,6}){0,2}\.[a-z]{2}", fullmatch=True)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(0, 5))
    tasks = tuple(
        Task(
            number,
            draw(line),
            draw(st.sampled_from(get_args(TaskStatus))),
            draw(st.none() | login),
            draw(st.none() | line),
            tuple(f"Task {one}" for one in range(1, number) if draw(st.booleans())),
            tuple(draw(st.lists(path, max_size=3, unique=True))),
            draw(text),
        )
        for number in range(1, count + 1)
    )
    items = tuple(draw(st.lists(line, max_size=3)))
    return Plan(draw(line), draw(line | st.just("")), draw(text), tasks, items)
