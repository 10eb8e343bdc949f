"""Writes a plan as the body of an issue, to the byte as peers write it. Pure.

What it writes is read back as it was: text that would be read as a part of the plan gets a backslash, and a code block
that was left open is closed. It writes no words of its own; the checks of a plan are given with it.
"""

from __future__ import annotations

from common.text.markdown import close_code
from modules.services.plans.fields import assignee_text
from modules.services.plans.lines import escape, escape_line
from modules.services.plans.parse import BODY_MARK
from modules.services.plans.types import Plan, Task


def generate_plan_markdown(plan: Plan) -> str:
    """Return the body of a plan, its lines joined by newlines, without one at the end."""
    tasks = [line for task in plan.tasks for line in (format_task_markdown(task), "", "---", "")]
    return "\n".join(
        [
            f"{BODY_MARK} {_one_line(plan.title)}",
            "",
            "## Goal",
            escape_line(_one_line(plan.goal)),
            "",
            "## Context",
            _context(plan.context),
            "",
            "## Tasks",
            "",
            *tasks,
            "## Verification",
            *(_item(item) for item in plan.verification if item.strip()),
        ]
    )


def format_task_markdown(task: Task) -> str:
    """Return the text of one task, without the rule behind it. Raises `ValueError` for a task without a title."""
    if not (title := _one_line(task.title)):
        raise ValueError(f"{task.name} has no title")
    files = [f"- `{path}`" for one in task.files if (path := _one_line(one).replace("`", ""))]
    estimate = _one_line(task.estimate or "")
    return "\n".join(
        [
            f"### {task.name}: {title}",
            f"**Status:** {task.status}",
            f"**Assignee:** {assignee_text(task.assignee)}",
            *([f"**Estimate:** {estimate}"] if estimate else []),
            f"**Dependencies:** {', '.join(task.dependencies) or 'none'}",
            *(["**Files:**", *files] if files else []),
            "",
            "**Description:**",
            _description(task.description),
        ]
    )


def _description(text: str) -> str:
    """A description without blank lines before its first and white space behind its last."""
    lines = _plain(text).split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    return escape(close_code("\n".join(lines[first:]).rstrip()), in_task=True)


def _context(text: str) -> str:
    lines = (line.strip() for line in _plain(text).split("\n"))
    return escape(close_code("\n".join(line for line in lines if line)), in_task=False)


def _item(item: str) -> str:
    text = _one_line(item)
    return f"- [x] {text[1:].lstrip()}" if text.startswith("✓") else f"- [ ] {text.removeprefix('○').lstrip()}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
