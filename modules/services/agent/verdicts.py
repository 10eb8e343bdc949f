"""Asks the model for a one-word verdict on a text.

Such calls are short and frequent, so they carry nothing about the SOUL: only a constant page of instructions, a few
examples, and the text. The text is cleaned and quoted on one line instead of framed as untrusted: no tool is offered,
only one label comes back, and frames distract small models (of 15 repetitions, one model found 11 quoted but 1
framed). The module keeps no state; a call that fails or takes too long raises a `SoulError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from common.clock import Clock
from common.errors import Transient
from common.facts import QuestionFacts, TurnFacts
from common.provenance import Importance
from common.text.untrusted import one_line
from modules.runtime.llm.dialect import Message
from modules.runtime.llm.gateway import LLMGateway
from modules.services.skills.skills import Skills

T = TypeVar("T")
_TEMPERATURES = (0.0, None)
_EXAMPLE_FIELD = re.compile(r"- (\w+): (.+)")
_QUOTES = str.maketrans(dict.fromkeys('"“”„«»', "'"))


@dataclass(frozen=True, slots=True)
class SkillQuestion:
    """Asks `gateway` with the prompts of `skill`, whose message and examples hold the text in `field`."""

    gateway: LLMGateway
    skills: Skills
    skill: str
    field: str
    max_tokens: int

    async def ask(
        self, shown: str, texts: tuple[str, ...], importance: Importance, read: Callable[[str], T | None]
    ) -> T | None:
        """Return what `read` parses from an answer about `texts`, sent as `shown`; None if it can parse neither of two.

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
            example = dict(_EXAMPLE_FIELD.findall(page))
            messages += [self._asked(example[self.field]), Message("assistant", example["answer"])]
        return messages

    def _asked(self, shown: str) -> Message:
        return Message("user", self.skills.render(self.skill, "Message", **{self.field: shown}))


def without_quotation_marks(text: str) -> str:
    """Return `text` with every quotation mark replaced by `'`, so that nothing in it closes a quotation."""
    return text.translate(_QUOTES)


ECHO_JUDGE_TIMEOUT_S = 3.0

SKILL = "space-judgement"
_ANSWER_TOKENS = 10
MOST_CHARS = 2_000
"""How many characters of one text are shown; the rest is cut."""
_FIELD = re.compile(r"- (\w+): (.+)")
_ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Asks `gateway` with the prompts of the skill.

    Attributes:
        gateway: the model.
        skills: provides the prompts.
        clock: measures the deadline.
        timeout_s: most seconds that one answer may take, including retries and waits.
        importance: the importance of the calls for the budget.

    """

    gateway: LLMGateway
    skills: Skills
    clock: Clock
    timeout_s: float = ECHO_JUDGE_TIMEOUT_S
    importance: Importance = "own"

    async def ask(self, question: str, *, examples: str = "", **foreign: str | Sequence[str]) -> str:
        """Return the model's answer in upper case.

        Args:
            question: the prefix of two sections, `… System Prompt` and `… Message`.
            examples: a section whose subsections give the fields of the message, one a line, and the answer; a field
                that is repeated is a list.
            foreign: untrusted texts by variable of the message; several texts are numbered.

        Raises:
            SoulError: from the gateway; `Transient` if the answer took too long.

        """
        messages = messages_for(self.skills, question, examples=examples, **foreign)
        fields = {name: (text,) if isinstance(text, str) else tuple(text) for name, text in foreign.items()}
        try:
            async with self.clock.timeout(self.timeout_s):
                answer = await self.gateway.chat(
                    messages,
                    system=self.skills.render(SKILL, f"{question} System Prompt"),
                    max_tokens=_ANSWER_TOKENS,
                    temperature=0,
                    purpose=SKILL,
                    importance=self.importance,
                    facts=TurnFacts(QuestionFacts(question, fields)),
                )
        except TimeoutError as error:
            raise Transient(f"the model took longer than {self.timeout_s:g} s to answer one word") from error
        return answer.strip().upper()


def messages_for(skills: Skills, question: str, *, examples: str = "", **foreign: str | Sequence[str]) -> list[Message]:
    """Return the messages that follow the system prompt; arguments as for `Verdicts.ask`."""
    pages = skills.subsections(SKILL, examples).values() if examples else ()
    messages = []
    for example in map(_fields, pages):
        (answer,) = example.pop(_ANSWER)
        fields = {name: texts if len(texts) > 1 else texts[0] for name, texts in example.items()}
        messages += [_asked(skills, question, fields), Message("assistant", answer)]
    return [*messages, _asked(skills, question, foreign)]


def _asked(skills: Skills, question: str, fields: Mapping[str, str | Sequence[str]]) -> Message:
    words = {name: quoted(text) if isinstance(text, str) else numbered(text) for name, text in fields.items()}
    return Message("user", skills.render(SKILL, f"{question} Message", **words))


def _fields(page: str) -> dict[str, list[str]]:
    """Return the fields of an example; a repeated field has several texts."""
    found: dict[str, list[str]] = {}
    for name, text in _FIELD.findall(page):
        found.setdefault(name, []).append(text)
    return found


def quoted(text: str) -> str:
    """Return untrusted text as a quotation on one line; nothing in the text can close the quotation."""
    return f'"{without_quotation_marks(one_line(text, MOST_CHARS))}"'


def numbered(texts: Sequence[str]) -> str:
    """Return the texts as numbered quotations, one a line."""
    return "\n".join(f"{number}. {quoted(text)}" for number, text in enumerate(texts, 1))
