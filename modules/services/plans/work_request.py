"""Asks the model whether those whose words count asked for the work of somebody else's issue. Keeps nothing.

The model is sent their comments and a page of instructions, nothing by anybody else, and offered no tool. What it
answers counts only where the words that it quotes stand in the comment that it names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from common.facts import QuestionFacts, TurnFacts
from common.text.github_text import own_words
from common.text.untrusted import one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import Message
from modules.services.agent.verdicts import numbered
from modules.services.skills.skills import Skills

SKILL = "work-request"
MOST_COMMENTS = 20
"""So many of the newest comments are read."""

_TOKENS = 120
_COMMENT_CHARS = 1_000
_ANSWER_CHARS = 2_000
_LEAST_QUOTE_CHARS = 2
_FIELD = re.compile(r"- (comments|answer): (.+)")
_COMMENT = re.compile(r'"comment"\s{0,3}:\s{0,3}(\d{1,3})')
_QUOTE = re.compile(r'"quote"\s{0,3}:\s{0,3}"((?:[^"\\]|\\.){0,1000})"')
_QUOTES = str.maketrans(dict.fromkeys('"“”„«»', "'"))


@dataclass(frozen=True, slots=True)
class WorkRequest:
    """The words that ask for the work, and the place of their comment among those that were read, from 0."""

    comment: int
    quote: str


@dataclass(frozen=True, slots=True)
class WorkRequestReader:
    """Asks `gateway` in the words of the skill `work-request`."""

    gateway: LLMGateway
    skills: Skills

    async def read(self, comments: Sequence[str]) -> WorkRequest | None:
        """Return who asked for the work; None where nobody did, or two answers of the model cannot be read.

        Raises `SoulError`.
        """
        said = [one_line("\n".join(own_words(one)), _COMMENT_CHARS) for one in comments]
        if not any(said):
            return None
        for temperature in (0.0, None):
            answer = await self.gateway.chat(
                self._messages(said),
                system=self.skills.render(SKILL, "System Prompt"),
                max_tokens=_TOKENS,
                temperature=temperature,
                purpose=SKILL,
                importance="own",
                facts=TurnFacts(QuestionFacts(SKILL, {"comments": tuple(said)})),
            )
            found = request_in(answer, said)
            if found != "unreadable":
                return found
        return None

    def _messages(self, said: Sequence[str]) -> list[Message]:
        messages = []
        for page in self.skills.subsections(SKILL, "Examples").values():
            example = dict(_FIELD.findall(page))
            messages += [self._asked(example["comments"]), Message("assistant", example["answer"])]
        return [*messages, self._asked(numbered(said))]

    def _asked(self, comments: str) -> Message:
        return Message("user", self.skills.render(SKILL, "Message", comments=comments))


def request_in(answer: str, said: Sequence[str]) -> WorkRequest | Literal["unreadable"] | None:
    """Return what a model's answer says of these comments: nothing but what stands in one of them counts. Pure."""
    found = _COMMENT.search(answer[:_ANSWER_CHARS])
    if found is None or int(found[1]) > len(said):
        return "unreadable"
    place = int(found[1]) - 1
    if place < 0:
        return None
    quote = _QUOTE.search(answer[:_ANSWER_CHARS])
    words = _plain(quote[1].replace('\\"', "'")) if quote else ""
    if len(words) < _LEAST_QUOTE_CHARS or words not in _plain(said[place]):
        return "unreadable"
    return WorkRequest(place, words)


def _plain(text: str) -> str:
    """A text as quotations are compared: in lower case, one kind of quotation mark, single blanks, no full stop."""
    return " ".join(text.translate(_QUOTES).lower().split()).rstrip(".!")
