"""What a SOUL can do with skills beyond the shipped ones: load one, to follow it for the rest of the turn."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from common.provenance import Provenance
from local_tools.words import OWN_TOOLS, ToolWords
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.skills.skills import LocalSkills, Skills


class SkillLoadInput(BaseModel):
    """Which one."""

    name: str


class SkillTools:
    """The handler, with what it needs."""

    def __init__(self, local: LocalSkills, words: ToolWords) -> None:
        self._local = local
        self._words = words

    async def load(self, args: SkillLoadInput, turn: Turn) -> ToolResult:
        text = await self._local.load(args.name.strip())
        if text is not None:
            return ToolResult(text)
        names = ", ".join(entry.name for entry in await self._local.listing()) or "none"
        return self._words.error("No Skill", names=names)


def skill_tools(local: LocalSkills, skills: Skills) -> Sequence[Tool]:
    """The family, as the registry takes it."""
    words = ToolWords(skills, OWN_TOOLS)
    load = SkillTools(local, words).load
    return (words.tool("skill_load", SkillLoadInput, "self", Provenance.SELF, load, effect="look"),)
