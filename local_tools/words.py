"""What the model is told about a family of tools, and what they answer: sections of one skill for each family."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import UnionType
from typing import Any

from pydantic import BaseModel

from common.provenance import Provenance
from modules.services.agent.tools.types import Capability, Effect, Tool, ToolResult, Turn
from modules.services.skills.skills import Skills
from modules.services.skills.tool_schema import read_description

OWN_TOOLS = "own-tools"


class ToolWords:
    """Reads the skill `skill_id` at each call, so that a reload counts at once."""

    def __init__(self, skills: Skills, skill_id: str) -> None:
        self._skills = skills
        self._skill_id = skill_id

    def tool(
        self,
        name: str,
        input_model: type[BaseModel],
        capability: Capability,
        needs: Provenance,
        handler: Callable[[Any, Turn], Awaitable[ToolResult]],
        *,
        page: str = "",
        effect: Effect = "act",
        holdable: bool = False,
        subject: type | UnionType | None = None,
        fits: Callable[[Turn], bool] | None = None,
        given: Mapping[type, frozenset[str]] | None = None,
        owner_fields: frozenset[str] = frozenset(),
    ) -> Tool:
        """Return a tool with its descriptions from the subsection `page` (its name, if left out).

        Raises `SkillError` if there is no such subsection.
        """
        description, fields = read_description(self._skills.subsection(self._skill_id, "Descriptions", page or name))
        return Tool(
            name,
            description,
            input_model,
            capability,
            needs,
            handler,
            subject=subject,
            fits=fits,
            effect=effect,
            holdable=holdable,
            fields=fields,
            given=given or {},
            owner_fields=owner_fields,
        )

    def answer(self, name: str, **values: object) -> str:
        """Return an answer with its variables filled in. Raises `SkillError` if it is missing."""
        return self._skills.render(self._skill_id, "Answers", name, **values).strip()

    def act_done(self, tool: str, **values: object) -> str:
        """Return what is told of an act that was done. Raises `SkillError` if it is missing."""
        return self._skills.render(self._skill_id, "Done", tool, **values).strip()

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
