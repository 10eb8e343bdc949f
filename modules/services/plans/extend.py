"""Adds tasks to the body of a plan, behind those that stand there, and changes no byte of what stands there. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from common.text.strings import normalized_title
from modules.services.plans.lines import Scan, scan
from modules.services.plans.parse import parse_plan
from modules.services.plans.render import format_task_markdown
from modules.services.plans.types import Task

MOST_BODY_CHARS = 60_000
"""So long a plan may become; GitHub takes 65,536 characters."""

_RULE = "---"


def add_tasks_to_plan_body(body: str, title: str, tasks: Sequence[Task]) -> str | None:
    """Return the body of the plan with the tasks behind its own whose titles it lacks, numbered on; they wait for none.

    None where they would not be read as they are, or would change how the tasks before them are read, and where the
    body would be longer than `MOST_BODY_CHARS`.
    """
    found, before = scan(body), parse_plan(body, title)
    if before is None or not found.tasks:
        return None
    tasks = _new(before.tasks, tasks)
    if not tasks:
        return body
    place = max(block.end for block in found.tasks)
    added = "".join([*found.lines[:place], *_lines(found, place, tasks), *found.lines[place:]])
    after = parse_plan(added, title)
    if len(added) > MOST_BODY_CHARS or after is None or after.tasks[: len(before.tasks)] != before.tasks:
        return None
    read = [(task.number, task.title, task.status) for task in after.tasks[len(before.tasks) :]]
    as_they_are = read == [(task.number, " ".join(task.title.split()), task.status) for task in tasks]
    same_rest = (after.goal, after.context, after.verification) == (before.goal, before.context, before.verification)
    return added if as_they_are and same_rest else None


def _new(known: Sequence[Task], tasks: Sequence[Task]) -> list[Task]:
    """Those of the tasks whose titles no known task has, as the next ones."""
    titles, first = {normalized_title(one.title) for one in known}, max(one.number for one in known) + 1
    new = [one for one in tasks if normalized_title(one.title) not in titles]
    return [replace(one, number=number, dependencies=()) for number, one in enumerate(new, first)]


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
