"""The words of plans that stand in the skill `plans`."""

from __future__ import annotations

from dataclasses import dataclass

from modules.services.plans.docs_tasks import DocsTask, DocsWords
from modules.services.plans.issues import issues_of
from modules.services.plans.types import Plan
from modules.services.skills.skills import Skills

_SKILL = "plans"


@dataclass(frozen=True, slots=True)
class PlanWords:
    """The checks of a plan that names none, and the tasks that make and update the pages of a repository."""

    verification: tuple[str, ...]
    docs: DocsWords
    updates: DocsWords


def plan_words(skills: Skills, repo: str) -> PlanWords:
    """Return the words of a plan for the repository `owner/name`. Raises `SkillError`."""
    checks = skills.section(_SKILL, "Verification").splitlines()
    docs = DocsWords(_task(skills, "Agents Page", repo), _task(skills, "Scenarios Page", repo))
    updates = DocsWords(_task(skills, "Agents Update", repo), _task(skills, "Scenarios Update", repo))
    return PlanWords(tuple(check.removeprefix("- ").strip() for check in checks if check.strip()), docs, updates)


def issues_taken_up(plan: Plan, skills: Skills) -> tuple[int, ...]:
    """Return the issues that a plan says it is for. Raises `SkillError`."""
    return issues_of(plan, skills.section(_SKILL, "For Issues"))


def _task(skills: Skills, section: str, repo: str) -> DocsTask:
    title, description, estimate = (
        skills.render(_SKILL, section, part, repo=repo).strip() for part in ("Title", "Description", "Estimate")
    )
    return DocsTask(title, description, estimate)
