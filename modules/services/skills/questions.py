"""Asks the model for one call of one tool, with the texts of a skill. Stores nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.facts import QuestionFacts, TurnFacts
from common.provenance import Importance
from modules.runtime.llm.dialect import Message, ToolSpec
from modules.runtime.llm.gateway import LLMGateway
from modules.services.skills.skills import SYSTEM_SECTION, Skills


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """Asks the model; `system` and `described` name the sections of `skill` for the prompt and for the tool.

    `schema` is the JSON Schema of the tool's arguments; `profile` stands below the prompt.
    """

    gateway: LLMGateway
    skills: Skills
    skill: str
    tool: str
    schema: dict[str, Any]
    most_tokens: int
    importance: Importance = "own"
    system: str = SYSTEM_SECTION
    described: str = "Tool"
    profile: str = ""

    async def ask(self, asked: str, facts: QuestionFacts, temperature: float | None = None) -> dict[str, Any]:
        """Return the arguments of the call, or {} if the model makes no readable one.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        result = await self.gateway.chat_with_tools(
            [Message("user", asked)],
            system=f"{self.skills.section(self.skill, self.system)}\n\n{self.profile}".rstrip(),
            tools=[ToolSpec(self.tool, self.skills.section(self.skill, self.described), self.schema)],
            tool_choice="required",
            max_tokens=self.most_tokens,
            temperature=temperature,
            purpose=self.skill,
            importance=self.importance,
            facts=TurnFacts(facts),
        )
        return result.arguments(self.tool) or {}
