"""Asks the model what a text of somebody says, in the words of a skill that asks nothing else. Keeps nothing.

The model is sent that text alone and a page of instructions with its examples, and is offered no tool. The caller reads
the answer strictly, so that nothing in the text can do more than be misread.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from common.facts import QuestionFacts, TurnFacts
from common.importance import Importance
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import Message
from modules.services.skills.skills import Skills

T = TypeVar("T")
_TEMPERATURES = (0.0, None)
_FIELD = re.compile(r"- (\w+): (.+)")
_QUOTES = str.maketrans(dict.fromkeys('"“”„«»', "'"))


@dataclass(frozen=True, slots=True)
class SkillQuestion:
    """Asks `gateway` in the words of `skill`, whose message and examples show a text as `field`."""

    gateway: LLMGateway
    skills: Skills
    skill: str
    field: str
    max_tokens: int

    async def ask(
        self, shown: str, texts: tuple[str, ...], importance: Importance, read: Callable[[str], T | None]
    ) -> T | None:
        """Return what `read` makes of an answer about `texts`, as `shown`; None where it makes nothing of two.

        Raises `SoulError`.
        """
        for temperature in _TEMPERATURES:
            answer = await self.gateway.chat(
                [*self._examples(), self._asked(shown)],
                system=self.skills.render(self.skill, "System Prompt"),
                max_tokens=self.max_tokens,
                temperature=temperature,
                purpose=self.skill,
                importance=importance,
                facts=TurnFacts(QuestionFacts(self.skill, {self.field: texts})),
            )
            if (found := read(answer)) is not None:
                return found
        return None

    def _examples(self) -> list[Message]:
        messages = []
        for page in self.skills.subsections(self.skill, "Examples").values():
            example = dict(_FIELD.findall(page))
            messages += [self._asked(example[self.field]), Message("assistant", example["answer"])]
        return messages

    def _asked(self, shown: str) -> Message:
        return Message("user", self.skills.render(self.skill, "Message", **{self.field: shown}))


def without_quotation_marks(text: str) -> str:
    """Return `text` with plain single quotation marks alone, so that nothing in it closes a quotation."""
    return text.translate(_QUOTES)
