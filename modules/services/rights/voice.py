"""Asks the model for the SOUL's own words to somebody whose request was carried out. Keeps nothing.

The model sees facts and a language, never the post: nothing in it can change the answer. Words that cannot be used are
replaced by those of the skill.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapters.atproto.richtext import detect_mentions, detect_urls
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.errors import BudgetExceeded, Fatal, SoulError
from common.facts import QuestionFacts
from common.importance import Importance
from common.text.graphemes import fit_post_text, grapheme_len
from common.text.rights_requests import RequestKind
from common.text.untrusted import one_line
from modules.services.agent.one_sentence import SentenceAsker, SentenceQuestion
from modules.services.skills.skills import Skills

SKILL = "rights-answer"
_TOOL = "answer_request"
_TOKENS = 300
_MOST_CHARS = 1_000
_LEAST_CHARS = 6
_NUMBER = re.compile(r"\d{1,3}(?:[.,'\u2019\u00a0\u202f\u066c]\d{3})+(?!\d)|\d+")
_WITH_FACTS: frozenset[RequestKind] = frozenset({"know", "why"})
_TOLD_ROOM = 0.9
"""The model is told of less room than there is: it does not count exactly."""
MOST = PORTABLE_MAX_GRAPHEMES
"""The most graphemes of an answer."""
_EDGES = " \"'`\u201c\u201d"


@dataclass(frozen=True, slots=True)
class RightsVoice:
    """What the SOUL says to whoever asked; `contact` is who answers for it."""

    contact: str
    sentences: SentenceAsker
    skills: Skills

    async def say(
        self, told: Mapping[RequestKind, Sequence[str]], language: str, importance: Importance, *, most: int = MOST
    ) -> str:
        """Return the answer to all requests of a post, each with its facts, in their order.

        It has at most `most` graphemes. What counts or explains gets the room that the other answers leave.

        Raises:
            BudgetExceeded: there is no budget for whoever asked.
            Fatal: the process must stop.

        """
        answers: dict[RequestKind, str] = {}
        joined = self.skills.section(SKILL, "Joined") if len(told) > 1 else ""
        # NOTE(self): of what is deleted within the hour nothing is left that anybody could show.
        contact = "" if "forget" in told else self.contact
        room = most - len(told) + 1
        for number, kind in enumerate(sorted(told, key=lambda kind: kind in _WITH_FACTS)):
            left = room - sum(map(grapheme_len, answers.values()))
            share = left // (len(told) - number)
            variables = {
                "facts": "\n".join(f"- {fact}" for fact in told[kind]),
                "language": language,
                "contact": contact,
            }
            answers[kind] = await self._say(kind, told[kind], variables, importance, most=share, joined=joined)
        return " ".join(answers[kind] for kind in told)

    async def _say(
        self,
        kind: RequestKind,
        facts: Sequence[str],
        variables: Mapping[str, str],
        importance: Importance,
        *,
        most: int,
        joined: str,
    ) -> str:
        asked = self.skills.render(SKILL, "Ask", kind, **variables, most=int(most * _TOLD_ROOM))
        said = await self._ask(kind, f"{asked}\n{joined}", facts, importance)
        if text := fitting_answer(said, facts if kind == "know" else None, contacts=(variables["contact"],), most=most):
            return text
        for kept in range(len(facts), -1, -1):
            shown = "; ".join((*facts[:kept], "\u2026") if kept < len(facts) else facts)
            plain = one_line(self.skills.render(SKILL, "Plain", kind, **{**variables, "facts": shown}), _MOST_CHARS)
            if grapheme_len(plain) <= most:
                break
        return fit_post_text(plain, max_graphemes=most)

    async def tell_owner(self, facts: Sequence[str], commands: Sequence[str], language: str) -> str:
        """Return the answer to the owner, with the `commands` in it word for word. Raises as `say`."""
        asked = self.skills.render(
            SKILL,
            "Ask",
            "owner",
            facts="\n".join(f"- {fact}" for fact in facts),
            language=language,
            command="` and `".join(commands),
        )
        text = fitting_answer(await self._ask("owner", asked, facts, "owner"), facts, contacts=commands)
        if text and all(command in text for command in commands):
            return text
        return fit_post_text(one_line(f"{'; '.join(facts)}.", _MOST_CHARS))

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


def fitting_answer(
    said: str, counted: Sequence[str] | None = None, *, contacts: Sequence[str] = (), most: int = MOST
) -> str:
    """Return the model's words on one line; "" if they are too short or long, or hold a link but the `contacts`.

    Nobody is named in them. Where facts were `counted`, no figure stands in the words that the facts do not tell; a
    number may be told in words, or not at all.
    """
    words = one_line(said, _MOST_CHARS)
    for span in reversed(detect_mentions(words)):
        words = words[: span.start] + words[span.start :].replace("@", "", 1)
    words = bare = words.strip(_EDGES)
    for contact in filter(None, contacts):
        bare = bare.replace(contact, "")
    if len(words) < _LEAST_CHARS or grapheme_len(words) > most or detect_urls(bare):
        return ""
    return words if counted is None or _figures(bare) <= _figures(" ".join(counted)) else ""


def _figures(text: str) -> set[int]:
    """The numbers that a text tells in digits of any script, whatever separates their thousands."""
    return {int("".join(filter(str.isdecimal, found))) for found in _NUMBER.findall(text)}
