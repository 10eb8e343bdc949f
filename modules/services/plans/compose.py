"""Has the model make a plan of what people want built. Keeps nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adapters.github.types import Repo
from common.facts import QuestionFacts, TurnFacts
from common.text.untrusted import clean, one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import Message, NamedTool, ToolSpec
from modules.services.agent.framing import Framer
from modules.services.agent.skills.skills import Skills
from modules.services.plans.dependencies import resolve_dependencies
from modules.services.plans.types import Plan, Task

SKILL = "plan-synthesis"
TOOL = "plan_create"
MOST_TASKS = 12

_TOKENS = 2_000
_TITLE_CHARS, _GOAL_CHARS, _TEXT_CHARS, _FIELD_CHARS, _SAID_CHARS = 120, 400, 2_000, 200, 500
_MOST_FILES = 10
_TEMPERATURES = (0.0, 0.5)
"""Of the first try and of the second, which would go as the first one went."""
_STRINGS = {"type": "array", "items": {"type": "string"}}
_TASK = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "description": {"type": "string"},
        "estimate": {"type": "string"},
        "dependencies": _STRINGS,
        "files": _STRINGS,
    },
    "required": ["title", "description"],
}
_PLAN = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "goal": {"type": "string"},
        "context": {"type": "string"},
        "tasks": {"type": "array", "items": _TASK},
    },
    "required": ["title", "goal", "tasks"],
}


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a plan is for: `text` says more of it than `title`, `said` are our own words when we committed ourselves."""

    repo: Repo
    title: str
    text: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class PlanComposer:
    """Asks the model for a plan; `rng` draws the boundaries of untrusted text."""

    gateway: LLMGateway
    skills: Skills
    rng: random.Random

    async def compose(self, wanted: PlanRequest) -> Plan | None:
        """Return the plan that the model makes; None where it makes none with a task, also when asked once more.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        title = one_line(wanted.title, _TITLE_CHARS)
        framed = Framer(self.skills, self.rng).frame("post", author="several", uri="", text=wanted.text)
        said = one_line(wanted.said, _SAID_CHARS) or "-"
        repo = wanted.repo.full_name
        asked = self.skills.render(SKILL, "From a Commitment", repo=repo, title=title, wanted=framed, said=said)
        for temperature in _TEMPERATURES:
            result = await self.gateway.chat_with_tools(
                [Message("user", asked)],
                system=self.skills.section(SKILL, "System Prompt"),
                tools=[ToolSpec(TOOL, self.skills.section(SKILL, "Tool"), _PLAN)],
                tool_choice=NamedTool(TOOL),
                max_tokens=_TOKENS,
                temperature=temperature,
                purpose=SKILL,
                importance="commitment",
                facts=TurnFacts(QuestionFacts("plan", {"title": (title,), "wanted": (wanted.text,)})),
            )
            called = next((call for call in result.tool_calls if call.name == TOOL and not call.malformed), None)
            plan = read_plan(called.input, title=title) if called else None
            if plan:
                return plan
        return None


def read_plan(given: Mapping[str, Any], *, title: str) -> Plan | None:
    """Return the plan that a call of the tool holds, whatever else is in it; `title` stands in for one that lacks.

    None where it names no task. Tasks beyond `MOST_TASKS` and what is longer than a plan takes are cut off.
    """
    tasks, warnings = resolve_dependencies(_after_files(list(_tasks(given.get("tasks")))))
    if not tasks:
        return None
    return Plan(
        title=_line(given.get("title"), _TITLE_CHARS) or title,
        goal=_line(given.get("goal"), _GOAL_CHARS),
        context=_text(given.get("context")),
        tasks=tasks,
        warnings=warnings,
    )


def _tasks(given: object) -> Iterator[Task]:
    """The tasks, numbered from 1; a bare text is the title of one."""
    named = [{"title": one} if isinstance(one, str) else one for one in _list(given)]
    told = [one for one in named if isinstance(one, Mapping) and _line(one.get("title"), _TITLE_CHARS)]
    for number, one in enumerate(told[:MOST_TASKS], 1):
        yield Task(
            number,
            _line(one.get("title"), _TITLE_CHARS),
            estimate=_line(one.get("estimate"), _FIELD_CHARS) or None,
            dependencies=tuple(filter(None, (_line(name, _FIELD_CHARS) for name in _list(one.get("dependencies"))))),
            files=tuple(filter(None, (_line(path, _FIELD_CHARS) for path in _list(one.get("files"))[:_MOST_FILES]))),
            description=_text(one.get("description")),
        )


def _after_files(tasks: Sequence[Task]) -> list[Task]:
    """The tasks where each that waits for a file waits for the first other task that changes the file."""
    by_file: dict[str, Task] = {}
    for task in tasks:
        for path in task.files:
            by_file.setdefault(path.lower(), task)

    def named(text: str, task: Task) -> str:
        other = by_file.get(text.lower())
        return text if other is None or other is task else other.name

    return [replace(task, dependencies=tuple(named(one, task) for one in task.dependencies)) for task in tasks]


def _list(given: object) -> list[Any]:
    """A list as it is, another value as the only one of a list."""
    return list(given) if isinstance(given, list | tuple) else [] if given is None else [given]


def _line(given: object, most: int) -> str:
    return one_line(str(given), most) if isinstance(given, str | int) and not isinstance(given, bool) else ""


def _text(given: object) -> str:
    return clean(given).strip()[:_TEXT_CHARS] if isinstance(given, str) else ""
