"""Asks the model for one word about what somebody said in the room.

Such calls are small and many, so they carry nothing of the SOUL: a page of instructions that stays the same, and the
words in question, framed. Nothing is kept here; a call that fails, or takes too long, is an error of the ordinary tree.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass

from common.constants import ECHO_JUDGE_TIMEOUT_S
from common.errors import Transient
from modules.foreign_text import Framer
from modules.llm_gateway.gateway import LLMGateway
from modules.llm_gateway.types import Importance, Message
from modules.skills import Skills

SKILL = "space-judgement"
_ANSWER_TOKENS = 10


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Asks `gateway` in the words of the skill.

    Attributes:
        gateway: the model.
        skills: the words for it.
        rng: draws the boundary that foreign words are framed with.
        timeout_s: how long one answer may take, in seconds, attempts and waits included.
        importance: for whom the calls are made.

    """

    gateway: LLMGateway
    skills: Skills
    rng: random.Random
    timeout_s: float = ECHO_JUDGE_TIMEOUT_S
    importance: Importance = "own"

    async def ask(self, question: str, **foreign: str) -> str:
        """The answer, upper case. `question` names two sections, `… System Prompt` and `… Message`.

        Raises:
            SoulError: as the gateway; `Transient` where it took too long.

        """
        framer = Framer(self.skills, self.rng)
        words = {name: framer.frame("conversation", author="", uri="", text=text) for name, text in foreign.items()}
        asked = Message("user", self.skills.render(SKILL, f"{question} Message", **words))
        try:
            async with asyncio.timeout(self.timeout_s):
                answer = await self.gateway.chat(
                    [asked],
                    system=self.skills.render(SKILL, f"{question} System Prompt"),
                    max_tokens=_ANSWER_TOKENS,
                    temperature=0,
                    purpose=SKILL,
                    importance=self.importance,
                )
        except TimeoutError as error:
            raise Transient(f"the model took longer than {self.timeout_s:g} s to answer one word") from error
        return answer.strip().upper()


def numbered(texts: Sequence[str]) -> str:
    """Texts as numbered quotes, each on a line of its own."""
    return "\n".join(f'{number}. "{" ".join(text.split())}"' for number, text in enumerate(texts, 1))
