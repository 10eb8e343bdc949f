"""Asks the model for requested work that no task of a plan covers, and checks it against the request. Stores nothing.

The model is given the words of the request that are in no task, and is not asked if there are none. For each task it
quotes the words that ask for it. The quote must be in the request, and not yet in a task: so neither a model that
always finds something nor words in the plan can make a task that nobody asked for.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adapters.github.types import Repo
from common.facts import QuestionFacts
from common.text.closings import without_handles
from common.text.echo import plain_words, tokenize_with_stemming
from common.text.strings import normalized_title
from common.text.untrusted import one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.services.plans.compose import SKILL, read_tasks
from modules.services.plans.types import Plan, Task
from modules.services.skills.questions import ToolQuestion
from modules.services.skills.skills import Framer, Skills

TOOL = "plan_missing"
MOST_ADDED = 6

_TOKENS = 1_200
_ASKED_CHARS, _DESCRIPTION_CHARS, _TASKS_CHARS, _LEFT_CHARS = 200, 400, 12_000, 600
_MOST_READ = 20
_LEAST_WORDS = 2
_TEMPERATURE = 0.0
_MISSING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "missing": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "asked": {"type": "string"},
                    "title": {"type": "string"},
                    "description": {"type": "string"},
                    "files": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["asked", "title", "description"],
            },
        }
    },
    "required": ["missing"],
}


@dataclass(frozen=True, slots=True)
class MissingTask:
    """A task that a plan lacks; `asked` is the part of the request that asks for it."""

    asked: str
    task: Task


@dataclass(frozen=True, slots=True)
class PlanGaps:
    """Asks the model what a plan lacks; `rng` draws the boundaries of untrusted text."""

    gateway: LLMGateway
    skills: Skills
    rng: random.Random

    async def find(self, repo: Repo, plan: Plan, wanted: str) -> tuple[MissingTask, ...]:
        """Return the tasks that the request `wanted` asks for and the plan lacks, without dependencies.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        left = words_left(plan, wanted)
        if not left:
            return ()
        framer = Framer(self.skills, self.rng)
        listed = "\n".join(f"{task.name}: {task.title}\n{task.description[:_DESCRIPTION_CHARS]}" for task in plan.tasks)
        asked = self.skills.render(
            SKILL,
            "What Is Missing",
            repo=repo.full_name,
            wanted=framer.frame("post", author="your owner", uri="", text=wanted),
            tasks=framer.frame("reading", author="several", uri=repo.full_name, text=listed[:_TASKS_CHARS]),
            left=" ".join(left)[:_LEFT_CHARS],
        )
        texts = tuple(f"{task.title}\n{task.description}" for task in plan.tasks)
        facts = QuestionFacts("plan-missing", {"wanted": (wanted,), "tasks": texts})
        system, described = "Missing Prompt", "Missing Tool"
        question = ToolQuestion(
            self.gateway, self.skills, SKILL, TOOL, _MISSING, _TOKENS, "owner", system=system, described=described
        )
        return read_missing(await question.ask(asked, facts, _TEMPERATURE), plan, wanted)


def words_left(plan: Plan, wanted: str) -> list[str]:
    """Return the meaningful words of the request that are in no task, each once."""
    known = {stem for task in plan.tasks for stem in tokenize_with_stemming(f"{task.title}\n{task.description}")}
    words = dict.fromkeys(plain_words(without_handles(wanted)))
    return [word for word in words if (stems := tokenize_with_stemming(word)) and not known.issuperset(stems)]


def read_missing(given: Mapping[str, Any], plan: Plan, wanted: str) -> tuple[MissingTask, ...]:
    """Return the tasks in the model's call that are requested in `wanted` and missing in the plan."""
    named = given.get("missing")
    found: list[MissingTask] = []
    for asked, task in _named(named if isinstance(named, list) else []):
        known = [*plan.tasks, *(one.task for one in found)]
        if not _stands_in(asked, wanted) or _is_covered(asked, known) or _is_among(task, known):
            continue
        found.append(MissingTask(asked, replace(task, dependencies=())))
        if len(found) == MOST_ADDED:
            break
    return tuple(found)


def _named(given: list[Any]) -> Iterator[tuple[str, Task]]:
    """Yield the tasks that the model names, each with the words that it quotes."""
    for one in given[:_MOST_READ]:
        if not isinstance(one, Mapping) or not isinstance(quoted := one.get("asked"), str):
            continue
        if task := next(read_tasks([one]), None):
            yield one_line(quoted, _ASKED_CHARS), task


def _stands_in(asked: str, wanted: str) -> bool:
    """Return whether the request contains the quoted words in sequence; a single word is not enough."""
    words = plain_words(asked)
    whole = f" {' '.join(plain_words(without_handles(wanted)))} "
    return len(words) >= _LEAST_WORDS and bool(tokenize_with_stemming(asked)) and f" {' '.join(words)} " in whole


def _is_covered(asked: str, tasks: list[Task]) -> bool:
    """Return whether one task contains all meaningful words of the quote."""
    stems = set(tokenize_with_stemming(asked))
    return any(stems <= set(tokenize_with_stemming(f"{task.title}\n{task.description}")) for task in tasks)


def _is_among(task: Task, tasks: list[Task]) -> bool:
    title = normalized_title(task.title)
    return any(normalized_title(one.title) == title for one in tasks)
