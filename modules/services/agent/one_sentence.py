"""Asks the model for one sentence in the SOUL's voice, through a tool that takes only that sentence. Stores nothing."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from adapters.atproto.richtext import detect_mentions, detect_urls
from common.clock import Clock, iso
from common.facts import AgentFacts, QuestionFacts, TurnFacts
from common.provenance import Importance, Provenance
from common.text.echo import plain_words
from common.text.graphemes import grapheme_len, leading_sentences, truncate_graphemes
from common.text.handles import WORD
from common.text.untrusted import one_line
from modules.runtime.llm.dialect import Message, ToolSpec
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.prompt.prompter import Prompter
from modules.services.skills.skills import Skills

MOST_CHARS = 1_000
"""How many characters of a model's answer are read."""

_LEAST_WORDS = 3
_RUN = 6
_MOST_GRAPHEMES = 200
_BARE_LINK = re.compile(r"\b(?:www\.)?github\.com/\S*", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"[\[<{][^\[\]<>{}]*[\]>}]")
_SENTENCES = re.compile(r"(?<=[.!?])\s+")
_QUOTES = " \"'`\u201c\u201d"
_BEFORE = f"{_QUOTES}\u2014-:"
_SENTENCE = {"type": "object", "properties": {"sentence": {"type": "string"}}, "required": ["sentence"]}


@dataclass(frozen=True, slots=True)
class SentenceQuestion:
    """A question in the words of `skill`; `description` is the section on the tool, `about` the question as facts."""

    skill: str
    asked: str
    tool: str
    description: str
    about: QuestionFacts
    most_tokens: int
    importance: Importance = "own"


@dataclass(frozen=True, slots=True)
class SentenceAsker:
    """Asks one question at a time; `agent` returns who the SOUL is, as data beside the prompt."""

    bluesky_username: Callable[[], str]
    gateway: LLMGateway
    prompter: Prompter
    skills: Skills
    clock: Clock
    agent: Callable[[], AgentFacts] = AgentFacts

    async def ask(self, question: SentenceQuestion) -> str:
        """Return the model's sentence, or its text if it did not call the tool; "" for neither.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        skill, now = question.skill, self.clock.now()
        prompt = await self.prompter.prompt(
            skill=skill,
            variables={"bluesky_username": self.bluesky_username()},
            audience="bluesky",
            session_key=skill,
            now=now,
            least=Provenance.SELF,
            bare=True,
        )
        result = await self.gateway.chat_with_tools(
            [Message("user", question.asked)],
            system=prompt.blocks,
            tools=[ToolSpec(question.tool, self.skills.section(skill, question.description), _SENTENCE)],
            tool_choice="required",
            max_tokens=question.most_tokens,
            purpose=skill,
            importance=question.importance,
            facts=TurnFacts(question.about, self.agent(), iso(now)),
        )
        called = result.arguments(question.tool)
        if called is None:
            return result.text
        # NOTE(self): the tool takes only a sentence, so a text under another field name is the sentence, too.
        return next((text for text in (called.get("sentence"), *called.values()) if isinstance(text, str)), "")


def fitting_words(said: str, handle: str = "", *, told: str = "") -> str:
    """Return the model's words on one line of at most 200 characters; "" if fewer than three words are left.

    Sentences with a link, with a placeholder, or with six consecutive words of the instructions in `told` are removed;
    mentions of anybody but `handle` lose their "@".
    """
    instructed = _runs(told)
    words = one_line(said, MOST_CHARS)
    words = " ".join(part for part in _SENTENCES.split(words) if not _is_out_of_place(part, instructed))
    for span in reversed(detect_mentions(words)):
        if span.value.lower() != handle.lower():
            words = words[: span.start] + words[span.start :].replace("@", "", 1)
    words = " ".join(words.split()).lstrip(_BEFORE).rstrip(_QUOTES)
    if grapheme_len(words) > _MOST_GRAPHEMES:
        words = leading_sentences(words, _MOST_GRAPHEMES) or truncate_graphemes(words, _MOST_GRAPHEMES)
    return words if len(WORD.findall(words)) >= _LEAST_WORDS else ""


def _is_out_of_place(sentence: str, instructed: frozenset[tuple[str, ...]]) -> bool:
    has_link = detect_urls(sentence) or _BARE_LINK.search(sentence) or _PLACEHOLDER.search(sentence)
    return bool(has_link) or not _runs(sentence).isdisjoint(instructed)


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = plain_words(text)
    return frozenset(tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1))
