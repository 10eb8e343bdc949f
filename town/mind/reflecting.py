"""A look back: one line more in SELF.md, from what the owner said or from talks with two others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from common.facts import ExperienceFact, ReflectionFacts
from common.text.host_intent import requests
from town.mind.turn import MindTurn
from town.mind.words import BankWords
from town.model.types import Completion, ToolUse

_TOOL = "self_update"
_SECTION, _PART = "Recent Learnings", "learnings"
_MOST_CHARS = 160
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NAMED = re.compile(r"@\S+|https?://\S+")


def reflect(turn: MindTurn, about: ReflectionFacts) -> Completion:
    """The change of SELF.md, then one sentence on it; where nothing can be built on, that sentence alone."""
    words = replace(turn, facts=replace(turn.facts, outcomes=())).words()
    cited = _grounds(about.experiences)
    if not cited:
        return Completion(words.line("reflected", "nothing"))
    day = turn.facts.at[:10]
    learned = _learned(words, cited)
    if turn.last is not None or _TOOL not in turn.offers:
        return Completion(learned)
    text = about.sections.get(_PART, "").strip()
    if learned in text:
        return Completion(words.line("reflected", "nothing"))
    given = {
        "section": _SECTION,
        "content": f"{text}\n- {day}: {learned}".strip() if day else f"{text}\n- {learned}".strip(),
        "reason": words.line("reflected", "reason", cited[0].trust),
        "experiences": [one.name for one in cited],
    }
    return Completion(calls=(ToolUse(_TOOL, given),))


def _grounds(experiences: Sequence[ExperienceFact]) -> list[ExperienceFact]:
    """What a change can stand on: the owner's newest word, else our own newest work, else talks with two others."""
    for trust in ("owner", "self"):
        if found := [one for one in experiences if one.trust == trust and _tells(one.about)]:
            return found[-1:]
    by_person = {one.did: one for one in experiences if one.did}
    return list(by_person.values())[-2:] if len(by_person) > 1 else []


def _tells(about: str) -> bool:
    """Whether words tell something that can be kept: they neither ask nor want something done."""
    return bool(about) and "?" not in about and not requests(about)


def _learned(words: BankWords, cited: Sequence[ExperienceFact]) -> str:
    """One sentence: what the owner said, what work of our own showed, or the idea that the talks came near."""
    said = " ".join(one.about for one in cited)
    if cited[0].trust == "owner":
        return words.line("reflected", "heard", about=_short(said))
    if cited[0].trust == "self":
        return words.line("reflected", "work")
    if not said:
        return words.line("reflected", "talks")
    idea = words.match(said, words.own_fields) or words.next_idea()
    return words.line("reflected", "said", about=_short(idea.say))


def _short(text: str) -> str:
    """The longest sentence of a text that fits, without names and addresses."""
    plain = " ".join(_NAMED.sub("", text).split())
    sentences = [one for one in _SENTENCE.split(plain) if len(one) <= _MOST_CHARS] or [plain[:_MOST_CHARS]]
    return max(sentences, key=len).rstrip(" .?!")
