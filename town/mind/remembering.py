"""What the scripted mind keeps of a conversation that goes into the archive. Pure: it keeps only what was said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from common.facts import MemoryFacts
from town.mind.turn import Turn
from town.model.types import Completion, Json, ToolUse

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_LIKES = re.compile(r"\b(?:i|we) (?:really )?(?:like|love|prefer|want|hate)\b", re.IGNORECASE)
_ABOUT = re.compile(r"\b(?:i am|i'm|my|we are|we're|i live|i work)\b", re.IGNORECASE)
_MOST = 3
_SUBJECT_WORDS = 5
_QUOTED_CHARS = 160


def remember(turn: Turn, about: MemoryFacts) -> Completion:
    """The call of the tool that keeps memories."""
    offer = turn.first_offer
    if offer is None:
        return turn.anything(turn.words())
    lists = (offer.parameters.get("properties") or {}).keys()
    return Completion(calls=(ToolUse(offer.name, _kept(about, lists)),))


def _kept(about: MemoryFacts, lists: Collection[str]) -> Json:
    """The call: what was said first and last in a summary, and what people told of themselves in the lists offered."""
    earlier = [line.text for line in about.said if line.who]
    own = [line.text for line in about.said if not line.who]
    quoted = [f'It began with "{_short(earlier[0])}"'] if earlier else []
    quoted += [f'the last word of the others was "{_short(earlier[-1])}"'] if earlier[1:] else []
    quoted += [f'my own was "{_short(own[-1])}"'] if own else []
    kept = {
        "preferences": [sentence for sentence in _sentences(earlier) if _LIKES.search(sentence)],
        "people": [s for s in _sentences(earlier) if _ABOUT.search(s) and not _LIKES.search(s)],
    }
    told = {name: [_entry(each) for each in found[:_MOST]] for name, found in kept.items() if name in lists and found}
    return {"summary": "; ".join(quoted) + "." if quoted else "Nothing was said.", **told}


def _sentences(texts: list[str]) -> Iterator[str]:
    for text in texts:
        yield from (part for part in _SENTENCE.split(text) if part and not part.endswith("?"))


def _entry(sentence: str) -> str:
    about = " ".join(sentence.split()[:_SUBJECT_WORDS]).rstrip(".,;:!")
    return f"{about.replace(':', '')}: {sentence}"


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED_CHARS else f"{text[:_QUOTED_CHARS].rstrip()}…"
