"""Asks the model whether a post is a request about its author, and of which kind. Stores nothing.

The model gets that one post and a page of instructions, and no tools. Its answer is words from a fixed list and a
language code, so that nothing in the post can do more than ask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from common.provenance import Importance
from common.text.rights_requests import MOST_CHARS, RequestKind
from common.text.untrusted import one_line
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.verdicts import SkillQuestion, without_quotation_marks
from modules.services.skills.skills import Skills

SKILL = "rights-request"
_TOKENS = 80
_ANSWER_CHARS = 1_000
_FIELD = re.compile(r'"kinds?"\s{0,3}:\s{0,3}(?:"\w{1,20}"|\[[^\[\]]{0,200}\])')
_NAMED = re.compile(r'"(\w{1,20})"')
_LANGUAGE = re.compile(r'"language"\s{0,3}:\s{0,3}"([a-z]{2})\b')
_ENGLISH = "en"
_KINDS: Mapping[str, RequestKind | None] = {kind: kind for kind in get_args(RequestKind)} | {"none": None}


@dataclass(frozen=True, slots=True)
class Reading:
    """The requests in a post, in their order (none if there are none), and the two-letter code of its language."""

    kinds: tuple[RequestKind, ...] = ()
    language: str = _ENGLISH


@dataclass(frozen=True, slots=True)
class RequestReader:
    """Asks `gateway` with the texts of the skill `rights-request`."""

    gateway: LLMGateway
    skills: Skills

    async def read(self, text: str, importance: Importance) -> Reading | None:
        """Return what a post asks for, or None if two answers of the model cannot be read. Raises `SoulError`."""
        question = SkillQuestion(self.gateway, self.skills, SKILL, "post", _TOKENS)
        shown = without_quotation_marks(one_line(text, MOST_CHARS))
        return await question.ask(shown, (text,), importance, reading_of)


def reading_of(answer: str) -> Reading | None:
    """Return what a model's answer says, or None if it names no kind or an unknown one."""
    said = answer[:_ANSWER_CHARS].lower()
    found = _FIELD.search(said)
    named = _NAMED.findall(found[0].partition(":")[2]) if found else [said.strip(" .\"'`\n")]
    if not _KINDS.keys() >= set(named):
        return None
    language = _LANGUAGE.search(said)
    kinds = tuple(kind for one in dict.fromkeys(named) if (kind := _KINDS[one]))
    return Reading(kinds, language[1] if language else _ENGLISH)
