"""Adds tasks to the body of a plan, behind those that stand there, and changes no byte of what stands there. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from modules.services.plans.lines import Scan, scan
from modules.services.plans.parse import parse_plan
from modules.services.plans.render import format_task_markdown
from modules.services.plans.types import Task

_RULE = "---"


def add_tasks_to_plan_body(body: str, title: str, tasks: Sequence[Task]) -> str | None:
    """Return the body of the plan with more tasks behind its own.

    None where they would not be read as they are, or would change how the tasks before them are read: a code block that
    was left open hides them, for example.
    """
    found, before = scan(body), parse_plan(body, title)
    if before is None or not found.tasks:
        return None
    place = max(block.end for block in found.tasks)
    added = "".join([*found.lines[:place], *_lines(found, place, tasks), *found.lines[place:]])
    after = parse_plan(added, title)
    if after is None or after.tasks[: len(before.tasks)] != before.tasks:
        return None
    read = [(task.number, task.title, task.status) for task in after.tasks[len(before.tasks) :]]
    as_they_are = read == [(task.number, " ".join(task.title.split()), task.status) for task in tasks]
    same_rest = (after.goal, after.context, after.verification) == (before.goal, before.context, before.verification)
    return added if as_they_are and same_rest else None


def _lines(found: Scan, place: int, tasks: Sequence[Task]) -> list[str]:
    """The lines of the tasks, with the line ends of the body, a rule before each and a blank line around it."""
    end = "\r\n" if found.lines[0].endswith("\r\n") else "\n"
    before = [line.strip() for line in found.texts[max(0, place - 2) : place]]
    lines = [] if found.lines[place - 1].endswith("\n") else [end]
    if _RULE not in before:
        lines += [end, _RULE + end]
    if before[-1:] != [""] or _RULE not in before:
        lines.append(end)
    for task in tasks:
        lines += [f"{line}{end}" for line in (*format_task_markdown(task).split("\n"), "", _RULE, "")]
    return lines
