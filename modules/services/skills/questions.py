"""Asks the model one short question with the texts of a skill. Stores nothing."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from common.facts import QuestionFacts, TurnFacts
from common.provenance import Importance
from modules.runtime.llm.dialect import Message, ToolSpec
from modules.runtime.llm.gateway import LLMGateway
from modules.services.skills.skills import SYSTEM_SECTION, Skills

T = TypeVar("T")
_TEMPERATURES = (0.0, None)
_EXAMPLE_FIELD = re.compile(r"- (\w+): (.+)")


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """Asks for a call of `tool`, or for text if that is "".

    `system` and `described` name the sections of `skill` for the prompt and for the tool. `schema` is the JSON Schema
    of the tool's arguments; `profile` stands below the prompt.
    """

    gateway: LLMGateway
    skills: Skills
    skill: str
    most_tokens: int
    importance: Importance = "own"
    tool: str = ""
    schema: dict[str, Any] = field(default_factory=dict)
    system: str = SYSTEM_SECTION
    described: str = "Tool"
    profile: str = ""

    async def call(self, asked: str, facts: QuestionFacts, temperature: float | None = None) -> dict[str, Any]:
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

    async def read(self, name: str, shown: str, texts: tuple[str, ...], parse: Callable[[str], T | None]) -> T | None:
        """Return what `parse` finds in an answer in text; None if it finds nothing in two.

        The question is about `texts`, sent as `shown`; `name` is their field in the sections `Message` and `Examples`.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """

        def message(text: str) -> Message:
            return Message("user", self.skills.render(self.skill, "Message", **{name: text}))

        messages = []
        for page in self.skills.subsections(self.skill, "Examples").values():
            example = dict(_EXAMPLE_FIELD.findall(page))
            messages += [message(example[name]), Message("assistant", example["answer"])]
        for temperature in _TEMPERATURES:
            answer = await self.gateway.chat(
                [*messages, message(shown)],
                system=self.skills.render(self.skill, self.system),
                max_tokens=self.most_tokens,
                temperature=temperature,
                purpose=self.skill,
                importance=self.importance,
                facts=TurnFacts(QuestionFacts(self.skill, {name: texts})),
            )
            if (found := parse(answer)) is not None:
                return found
        return None
