"""What a SOUL can do with skills beyond the shipped ones: load one, to follow it for the rest of the turn."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from common.provenance import Provenance
from modules.services.agent.skills.local import LocalSkills
from modules.services.agent.tools.types import Tool, ToolResult, Turn


class SkillLoadInput(BaseModel):
    """Which one."""

    name: str = Field(description="The skill's name, as it is listed.")


class SkillTools:
    """The handler, with what it needs."""

    def __init__(self, skills: LocalSkills) -> None:
        self._skills = skills

    async def load(self, args: SkillLoadInput, turn: Turn) -> ToolResult:
        text = await self._skills.load(args.name.strip())
        if text is not None:
            return ToolResult(text)
        names = ", ".join(entry.name for entry in await self._skills.listing()) or "none"
        return ToolResult(f"Error: there is no skill of that name. There are: {names}.", is_error=True)


def skill_tools(skills: LocalSkills) -> Sequence[Tool]:
    """The family, as the registry takes it."""
    return (
        Tool(
            "skill_load",
            "Read one of the listed skills, to do what it is for.",
            SkillLoadInput,
            "self",
            Provenance.SELF,
            SkillTools(skills).load,
            effect="look",
        ),
    )
