"""The tasks for the pages of a workspace, its page for agents and that of scenarios, in a plan. Pure.

A large plan begins with those that make the pages; one that is made of issues ends with those that update them where
they are there already. A small plan has none: they would be more work than what was asked for.

What these tasks are called and say stands in the skill `plans`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from modules.services.plans.dependencies import resolve_dependencies
from modules.services.plans.types import Plan, Task

AGENTS_PAGE = "LIL-INTDEV-AGENTS.md"
SCENARIOS_PAGE = "SCENARIOS.md"

LARGE_PLAN = 4
"""A plan with so many tasks besides its pages gets tasks for them."""

_DOCUMENTS = (".md", ".markdown", ".txt", ".rst")
_MAKES = r"\b(?:create|write|update)(?:[ \t]+[^\s]{1,40}){0,3}[ \t]+[`\"'(]?"
_TITLES = {
    AGENTS_PAGE: re.compile(_MAKES + r"lil-intdev-agents(?![\w-])", re.IGNORECASE),
    SCENARIOS_PAGE: re.compile(_MAKES + r"(?:scenarios\.md|(?-i:SCENARIOS))(?!\w)", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class DocsTask:
    """The words of a task that makes a page."""

    title: str
    description: str
    estimate: str


@dataclass(frozen=True, slots=True)
class DocsWords:
    """The words of both tasks."""

    agents: DocsTask
    scenarios: DocsTask


@dataclass(frozen=True, slots=True)
class DocsTasks:
    """Which of the pages some task of a plan makes."""

    has_agents_md: bool
    has_scenarios_md: bool


def has_docs_tasks(tasks: Iterable[Task]) -> DocsTasks:
    """Return which pages are in the files of a task, or in its title behind "create", "write" or "update"."""
    told = list(tasks)
    return DocsTasks(*(any(_makes(task, page) for task in told) for page in (AGENTS_PAGE, SCENARIOS_PAGE)))


def ensure_docs_tasks(
    plan: Plan, words: DocsWords, *, skip_agents_md: bool = False, skip_scenarios_md: bool = False
) -> Plan:
    """Return a large plan with the tasks in front that make the pages it lacks; the others wait for the same as before.

    Skip a page that the repository has. The tasks are numbered from 1 on. A small plan is returned as it is.
    """
    if not _is_large(plan):
        return plan
    there = has_docs_tasks(plan.tasks)
    made = []
    if not (skip_agents_md or there.has_agents_md):
        made.append(_task(words.agents, AGENTS_PAGE))
    if not (skip_scenarios_md or there.has_scenarios_md):
        made.append(_task(words.scenarios, SCENARIOS_PAGE))
    counted = [replace(task, number=number) for number, task in enumerate(plan.tasks, 1)]
    resolved, warnings = resolve_dependencies(counted)
    shifted = [replace(task, dependencies=_shifted(task.dependencies, len(made))) for task in resolved]
    tasks = (replace(task, number=number) for number, task in enumerate([*made, *shifted], 1))
    return replace(plan, tasks=tuple(tasks), warnings=(*plan.warnings, *warnings))


def with_docs_updates(plan: Plan, words: DocsWords) -> Plan:
    """Return a large plan with tasks behind that update the pages once all others are done.

    A page that a task of the plan makes or updates already gets none.
    """
    tasks, waits = list(plan.tasks), tuple(task.name for task in plan.tasks)
    for page, word in ((AGENTS_PAGE, words.agents), (SCENARIOS_PAGE, words.scenarios)):
        if _is_large(plan) and not any(_makes(task, page) for task in plan.tasks):
            tasks.append(replace(_task(word, page), number=len(tasks) + 1, dependencies=waits))
    return replace(plan, tasks=tuple(tasks))


def changes_more_than_documents(plan: Plan) -> bool:
    """Whether a task of the plan changes a file that is no document, or does not say which files it changes."""
    return any(
        not task.files or any(not path.lower().endswith(_DOCUMENTS) for path in task.files) for task in plan.tasks
    )


def _is_large(plan: Plan) -> bool:
    own = [task for task in plan.tasks if not any(_makes(task, page) for page in (AGENTS_PAGE, SCENARIOS_PAGE))]
    return len(own) >= LARGE_PLAN


def _makes(task: Task, page: str) -> bool:
    named = (path.rpartition("/")[2].lower() == page.lower() for path in task.files)
    return any(named) or bool(_TITLES[page].search(task.title))


def _task(words: DocsTask, page: str) -> Task:
    return Task(0, words.title, estimate=words.estimate, files=(page,), description=words.description)


def _shifted(dependencies: Sequence[str], by: int) -> tuple[str, ...]:
    return tuple(f"Task {int(one.removeprefix('Task ')) + by}" for one in dependencies)
