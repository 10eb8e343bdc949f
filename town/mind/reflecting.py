"""A look back: one line more in SELF.md, from what the owner said or from talks with two others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from common.facts import ExperienceFact, ReflectionFacts
from town.mind.turn import Turn
from town.mind.words import Words
from town.model.types import Completion, ToolUse

_TOOL = "self_update"
_SECTION, _PART = "Recent Learnings", "learnings"
_MOST_LINES, _MOST_CHARS = 8, 140
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NAMED = re.compile(r"@\S+|https?://\S+")


def reflect(turn: Turn, about: ReflectionFacts) -> Completion:
    """The change of SELF.md, then one sentence on it; where nothing can be built on, that sentence alone."""
    words = turn.words()
    if turn.last is not None or _TOOL not in turn.offers:
        return Completion(words.line("reflected", "done"))
    cited = _grounds(about.experiences)
    if not cited:
        return Completion(words.line("reflected", "nothing"))
    learnt = _learnt(words, cited)
    day = turn.facts.at[:10]
    lines = [*turn.facts.agent.self_lines.get(_PART, ()), f"{day}: {learnt}" if day else learnt][-_MOST_LINES:]
    given = {
        "section": _SECTION,
        "content": "\n".join(f"- {line}" for line in lines),
        "reason": words.line("reflected", "reason", cited[0].trust),
        "experiences": [one.name for one in cited],
    }
    return Completion(calls=(ToolUse(_TOOL, given),))


def _grounds(experiences: Sequence[ExperienceFact]) -> list[ExperienceFact]:
    """What a change can stand on: the owner's newest word, else our own newest work, else talks with two others."""
    for trust in ("owner", "self"):
        if found := [one for one in experiences if one.trust == trust and one.about]:
            return found[-1:]
    by_person = {one.did: one for one in experiences if one.did}
    return list(by_person.values())[-2:] if len(by_person) > 1 else []


def _learnt(words: Words, cited: Sequence[ExperienceFact]) -> str:
    """One sentence: what the owner said in our words, what we said ourselves, or what the talks had in common."""
    told = next((one for one in cited if one.about), None)
    if told is None:
        return words.line("reflected", "talks")
    plain = _NAMED.sub("", told.about).strip()
    sentence = _SENTENCE.split(" ".join(plain.split()))[0][:_MOST_CHARS].rstrip(" .")
    return words.line("reflected", "heard" if told.trust == "owner" else "said", about=sentence)
