"""What the model is told about a family of tools, and what they answer: sections of one skill for each family."""

from __future__ import annotations

from typing import Any

from modules.services.agent.skills.skills import Skills
from modules.services.agent.tools.types import ToolResult

OWN_TOOLS = "own-tools"


class ToolWords:
    """Reads the skill `skill_id` at each call, so that a reload counts at once."""

    def __init__(self, skills: Skills, skill_id: str) -> None:
        self._skills = skills
        self._skill_id = skill_id

    def description(self, tool: str) -> str:
        """Return what the model reads about a tool. Raises `SkillError` if nothing is there."""
        return self._skills.subsection(self._skill_id, "Descriptions", tool).strip()

    def answer(self, name: str, **values: object) -> str:
        """Return an answer with its variables filled in. Raises `SkillError` if it is missing."""
        return self._skills.render(self._skill_id, "Answers", name, **values).strip()

    def done(self, name: str, **values: object) -> ToolResult:
        """Return an answer."""
        return ToolResult(self.answer(name, **values))

    def error(self, name: str, **values: object) -> ToolResult:
        """Return an answer that asks for something else."""
        return failed(self.answer(name, **values))

    def end(self, name: str, data: dict[str, Any], *, is_error: bool = False, **values: object) -> ToolResult:
        """Return an answer that ends the turn."""
        return ToolResult(self.answer(name, **values), is_error=is_error, ends_turn=True, data=data)


def failed(problem: str) -> ToolResult:
    """Return the answer of a tool that did nothing; `problem` says why."""
    return ToolResult(f"Error: {problem}", is_error=True)
