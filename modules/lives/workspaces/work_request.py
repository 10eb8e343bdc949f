"""Asks the model whether those whose words count asked for the work of somebody else's issue. Keeps nothing.

The model is sent their comments and a page of instructions, nothing by anybody else, and offered no tool. What it
answers counts only where the words that it quotes stand in the comment that it names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from common.text.github_text import own_words
from common.text.untrusted import one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.skill_question import SkillQuestion, without_quotation_marks
from modules.services.agent.verdicts import numbered
from modules.services.skills.skills import Skills

SKILL = "work-request"
MOST_COMMENTS = 20
"""So many of the newest comments are read."""

_TOKENS = 120
_COMMENT_CHARS = 1_000
_ANSWER_CHARS = 2_000
_LEAST_QUOTE_CHARS = 2
_COMMENT = re.compile(r'"comment"\s{0,3}:\s{0,3}(\d{1,3})')
_QUOTE = re.compile(r'"quote"\s{0,3}:\s{0,3}"((?:[^"\\]|\\.){0,1000})"')


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
        question = SkillQuestion(self.gateway, self.skills, SKILL, "comments", _TOKENS)
        found = await question.ask(numbered(said), tuple(said), "own", lambda answer: request_in(answer, said))
        return found if isinstance(found, WorkRequest) else None


def request_in(answer: str, said: Sequence[str]) -> WorkRequest | Literal["nobody"] | None:
    """Return what a model's answer says of these comments; None where that does not stand in one of them. Pure."""
    found = _COMMENT.search(answer[:_ANSWER_CHARS])
    if found is None or int(found[1]) > len(said):
        return None
    place = int(found[1]) - 1
    if place < 0:
        return "nobody"
    quote = _QUOTE.search(answer[:_ANSWER_CHARS])
    words = _plain(quote[1].replace('\\"', "'")) if quote else ""
    if len(words) < _LEAST_QUOTE_CHARS or words not in _plain(said[place]):
        return None
    return WorkRequest(place, words)


def _plain(text: str) -> str:
    """A text as quotations are compared: in lower case, one kind of quotation mark, single blanks, no full stop."""
    return " ".join(without_quotation_marks(text).lower().split()).rstrip(".!")
