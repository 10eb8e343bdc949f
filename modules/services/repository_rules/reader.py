"""Asks the model which pages may hold rules for AI agents, and which kind of rule a text has. Keeps nothing.

The model is sent names or a text and a page of instructions, and offered no tool; what it answers is numbers, or one
word of a fixed list, so that nothing in a name or a file can do more than be misjudged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from common.importance import Importance
from common.text.untrusted import clean
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.skill_question import SkillQuestion, without_quotation_marks
from modules.services.repository_rules.types import Rule
from modules.services.skills.skills import Skills

SKILL = "repository-rules"
PAGES_SKILL = "repository-pages"

_TOKENS = 40
_PAGES_TOKENS = 400
_PAGES_CHARS = 4_000
_ANSWER_CHARS = 400
_RULE = re.compile(r'"rule"\s{0,3}:\s{0,3}"(\w{1,20})"')
_PAGES = re.compile(r'"pages"\s{0,3}:\s{0,3}\[([\d,\s]*)\]')
_RULES: Mapping[str, Rule] = {
    "allowed": "allowed",
    "conditions": "conditions",
    "forbidden": "forbidden",
    "none": "none",
}


@dataclass(frozen=True, slots=True)
class RuleReader:
    """Asks `gateway` in the words of the skills `repository-pages` and `repository-rules`."""

    gateway: LLMGateway
    skills: Skills

    async def choose(self, names: str, importance: Importance) -> frozenset[int] | None:
        """Return the numbers of the pages that may hold rules, by their names; None if two answers cannot be read.

        Raises `SoulError`.
        """
        question = SkillQuestion(self.gateway, self.skills, PAGES_SKILL, "names", _PAGES_TOKENS)
        quoted = f'"{without_quotation_marks(clean(names))}"'
        return await question.ask(quoted, (names,), importance, pages_in)

    async def read(self, text: str, importance: Importance) -> Rule:
        """Return which kind of rule a text has, in any language; `conditions` if two answers cannot be read.

        Raises `SoulError`.
        """
        question = SkillQuestion(self.gateway, self.skills, SKILL, "rules", _TOKENS)
        quoted = f'"{without_quotation_marks(clean(text))}"'
        return await question.ask(quoted, (text,), importance, rule_in) or "conditions"


def pages_in(answer: str) -> frozenset[int] | None:
    """Return the numbers in a model's answer; None if it has no list of them."""
    found = _PAGES.search(answer[:_PAGES_CHARS])
    return frozenset(int(one) for one in re.findall(r"\d{1,6}", found[1])) if found else None


def rule_in(answer: str) -> Rule | None:
    """Return what a model's answer says; None if it names no rule."""
    said = answer[:_ANSWER_CHARS].lower()
    found = _RULE.search(said)
    return _RULES.get(found[1] if found else said.strip(" .\"'`\n"))
