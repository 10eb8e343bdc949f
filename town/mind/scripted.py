"""The mind that the town ships with: small, scripted, no language model, and the same answer to the same request.

It reads the facts of a request and its tools, never a message: one row of `TABLE` for each kind of turn, which
is all that a new kind of turn needs. It knows nothing but them and the phrase files beside it, and remembers nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from common.facts import (
    CodingFacts,
    ExpressionFacts,
    IssueFacts,
    MemoryFacts,
    MessageFacts,
    OwnerFacts,
    PostFacts,
    QuestionFacts,
    ReflectionFacts,
    ReviewFacts,
    RoomFacts,
)
from town.mind.answering import answer_issue, answer_message, answer_owner, answer_post
from town.mind.bank import load_bank
from town.mind.building import buildable
from town.mind.coding import write_code
from town.mind.posts import express
from town.mind.questions import answer_question
from town.mind.reflecting import reflect
from town.mind.reviewing import review
from town.mind.room import take_part
from town.mind.turn import MindTurn
from town.model.types import ChatRequest, Completion, Json, ToolUse

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_LIKES = re.compile(r"\b(?:i|we) (?:really )?(?:like|love|prefer|want|hate)\b", re.IGNORECASE)
_ABOUT = re.compile(r"\b(?:i am|i'm|my|we are|we're|i live|i work)\b", re.IGNORECASE)
_MOST = 3
_SUBJECT_WORDS = 5
_QUOTED_CHARS = 160


def remember(turn: MindTurn, about: MemoryFacts) -> Completion:
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


MODEL = "town/small-scripted-mind"
TABLE: Mapping[type[object], Callable[[MindTurn, Any], Completion]] = {
    PostFacts: answer_post,
    MessageFacts: answer_message,
    IssueFacts: answer_issue,
    ExpressionFacts: express,
    OwnerFacts: answer_owner,
    RoomFacts: take_part,
    MemoryFacts: remember,
    QuestionFacts: answer_question,
    ReflectionFacts: reflect,
    CodingFacts: write_code,
    ReviewFacts: review,
}
"""What answers each kind of turn: from the turn and what it is about."""


class ScriptedMind:
    """A `Mind`. `seed` gives another town with other choices."""

    models = (MODEL,)
    about = "They think with a small scripted mind, not a language model."

    def __init__(self, *, seed: int = 0) -> None:
        self._bank = load_bank()
        self.builds = (
            f"This demo's mind can build {buildable(self._bank)}. `soul demo --mind gateway` builds what you ask."
        )
        self._seed = seed

    async def complete(self, request: ChatRequest) -> Completion:
        return self.answer(request)

    def answer(self, request: ChatRequest) -> Completion:
        """Its answer. A request without facts comes from another client: its last line is taken for an owner's."""
        facts = request.facts
        if facts.about is None:
            line = next((one.text for one in reversed(request.messages) if one.role == "user"), "")
            facts = replace(facts, about=OwnerFacts(line))
        offers = {offer.name: offer for offer in request.offers}
        return TABLE[type(facts.about)](MindTurn(facts, offers, request.force, self._bank, self._seed), facts.about)
