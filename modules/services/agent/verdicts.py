"""Asks the model for one word about what somebody said.

Such calls are small and many, so they carry nothing of the SOUL: a page of instructions that stays the same, a few
examples, and the words in question. Those stand cleaned and quoted on one line each: no tool is offered, one label is
all that comes back, and small models lose the question among frames (of 15 repetitions one found 11 quoted, and 1
framed). Nothing is kept here; a call that fails, or takes too long, is an error of the ordinary tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from common.clock import Clock
from common.errors import Transient
from common.facts import QuestionFacts, TurnFacts
from common.importance import Importance
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
            example = dict(_EXAMPLE_FIELD.findall(page))
            messages += [self._asked(example[self.field]), Message("assistant", example["answer"])]
        return messages

    def _asked(self, shown: str) -> Message:
        return Message("user", self.skills.render(self.skill, "Message", **{self.field: shown}))


def without_quotation_marks(text: str) -> str:
    """Return `text` with plain single quotation marks alone, so that nothing in it closes a quotation."""
    return text.translate(_QUOTES)


ECHO_JUDGE_TIMEOUT_S = 3.0

SKILL = "space-judgement"
_ANSWER_TOKENS = 10
_MOST_CHARS = 2_000
_FIELD = re.compile(r"- (\w+): (.+)")
_ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Asks `gateway` in the words of the skill.

    Attributes:
        gateway: the model.
        skills: the words for it.
        clock: measures the deadline.
        timeout_s: how long one answer may take, in seconds, attempts and waits included.
        importance: for whom the calls are made.

    """

    gateway: LLMGateway
    skills: Skills
    clock: Clock
    timeout_s: float = ECHO_JUDGE_TIMEOUT_S
    importance: Importance = "own"

    async def ask(self, question: str, *, examples: str = "", **foreign: str | Sequence[str]) -> str:
        """Return the model's answer in upper case.

        Args:
            question: names two sections, `… System Prompt` and `… Message`.
            examples: a section whose subsections fill the message, one field a line, and tell the answer; a field that
                stands there several times is a list.
            foreign: what others wrote, as the message's variables; several texts are numbered.

        Raises:
            SoulError: as the gateway; `Transient` where it took too long.

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
    """What the model is sent beside the system prompt; arguments as for `Verdicts.ask`."""
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
    """The fields of an example; one that stands there several times has several texts."""
    found: dict[str, list[str]] = {}
    for name, text in _FIELD.findall(page):
        found.setdefault(name, []).append(text)
    return found


def quoted(text: str) -> str:
    """Return untrusted text as a quotation on one line; nothing in the text can close the quotation."""
    return f'"{without_quotation_marks(one_line(text, _MOST_CHARS))}"'


def numbered(texts: Sequence[str]) -> str:
    """Several quotations, numbered, a line each."""
    return "\n".join(f"{number}. {quoted(text)}" for number, text in enumerate(texts, 1))
