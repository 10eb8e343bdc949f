"""Asks the model for the SOUL's own words to somebody whose request was carried out. Keeps nothing.

The model sees facts and a language, never the post: nothing in it can change the answer. Words that cannot be used are
replaced by those of the skill.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.atproto.richtext import detect_mentions, detect_urls
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.errors import BudgetExceeded, Fatal, SoulError
from common.facts import QuestionFacts
from common.text.graphemes import fit_post_text, grapheme_len
from common.text.rights_requests import RequestKind
from common.text.untrusted import one_line
from modules.runtime.llm.types import Importance
from modules.services.agent.one_sentence import SentenceAsker, SentenceQuestion
from modules.services.skills.skills import Skills

SKILL = "rights-answer"
_TOOL = "answer_request"
_TOKENS = 300
_MOST_CHARS = 1_000
_LEAST_CHARS = 6
_NUMBER = re.compile(r"\d+")
_EDGES = " \"'`\u201c\u201d"


@dataclass(frozen=True, slots=True)
class RightsVoice:
    """What the SOUL says to whoever asked; `contact` is who answers for it."""

    contact: str
    sentences: SentenceAsker
    skills: Skills

    async def say(self, kind: RequestKind, facts: Sequence[str], language: str, importance: Importance) -> str:
        """Return the answer to a request, at most 300 graphemes.

        Raises:
            BudgetExceeded: there is no budget for whoever asked.
            Fatal: the process must stop.

        """
        variables = {"facts": "\n".join(f"- {fact}" for fact in facts), "language": language, "contact": self.contact}
        said = await self._ask(kind, self.skills.render(SKILL, "Ask", kind, **variables), facts, importance)
        if text := fitting_answer(said, facts if kind == "know" else (), contact=self.contact):
            return text
        plain = self.skills.render(SKILL, "Plain", kind, **variables | {"facts": "; ".join(facts)})
        return fit_post_text(one_line(plain, _MOST_CHARS))

    async def tell_owner(self, facts: Sequence[str], command: str, language: str) -> str:
        """Return the answer to the owner, with the `command` in it word for word. Raises as `say`."""
        asked = self.skills.render(
            SKILL, "Ask", "owner", facts="\n".join(f"- {fact}" for fact in facts), language=language, command=command
        )
        text = fitting_answer(await self._ask("owner", asked, facts, "owner"), facts, contact=command)
        return text if command in text else fit_post_text(one_line(f"{'; '.join(facts)}.", _MOST_CHARS))

    async def _ask(self, kind: str, asked: str, facts: Sequence[str], importance: Importance) -> str:
        """Return what the model says; "" if it has no words now."""
        try:
            return await self._sentence(kind, asked, facts, importance)
        except (BudgetExceeded, Fatal):
            raise
        except SoulError:
            return ""

    async def _sentence(self, kind: str, asked: str, facts: Sequence[str], importance: Importance) -> str:
        about = QuestionFacts(f"{SKILL}: {kind}", {"facts": tuple(facts)})
        return await self.sentences.ask(SentenceQuestion(SKILL, asked, _TOOL, "Tool", about, _TOKENS, importance))


def fitting_answer(said: str, counted: Sequence[str] = (), *, contact: str = "") -> str:
    """Return the model's words on one line; "" if they are too short or long, or hold a link but `contact`.

    Nobody is named in them. Where facts were `counted`, one of their numbers and no other stands in the words.
    """
    words = one_line(said, _MOST_CHARS)
    for span in reversed(detect_mentions(words)):
        words = words[: span.start] + words[span.start :].replace("@", "", 1)
    words = words.strip(_EDGES)
    bare = words.replace(contact, "") if contact else words
    if len(words) < _LEAST_CHARS or grapheme_len(words) > PORTABLE_MAX_GRAPHEMES or detect_urls(bare):
        return ""
    told, known = set(_NUMBER.findall(bare)), set(_NUMBER.findall(" ".join(counted)))
    return words if not known or (told and told <= known) else ""
