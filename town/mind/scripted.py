"""The mind that the town ships with: small, scripted, no language model, and the same answer to the same request.

It reads the facts of a request and its tools, never a message: one row of `TABLE` for each kind of turn, which
is all that a new kind of turn needs. It knows nothing but them and the phrase files beside it, and remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from common.facts import (
    ExpressionFacts,
    IssueFacts,
    MemoryFacts,
    MessageFacts,
    OwnerFacts,
    PostFacts,
    QuestionFacts,
    ReflectionFacts,
    RoomFacts,
)
from town.mind.answering import answer_issue, answer_message, answer_owner, answer_post
from town.mind.bank import load_bank
from town.mind.posts import express
from town.mind.questions import answer_question
from town.mind.reflecting import reflect
from town.mind.remembering import remember
from town.mind.room import take_part
from town.mind.turn import Turn
from town.model.types import ChatRequest, Completion

MODEL = "town/small-scripted-mind"
TABLE: Mapping[type[object], Callable[[Turn, Any], Completion]] = {
    PostFacts: answer_post,
    MessageFacts: answer_message,
    IssueFacts: answer_issue,
    ExpressionFacts: express,
    OwnerFacts: answer_owner,
    RoomFacts: take_part,
    MemoryFacts: remember,
    QuestionFacts: answer_question,
    ReflectionFacts: reflect,
}
"""What answers each kind of turn: from the turn and what it is about."""


class ScriptedMind:
    """A `Mind`. `seed` gives another town with other choices."""

    models = (MODEL,)
    about = "They think with a small scripted mind, not a language model."

    def __init__(self, *, seed: int = 0) -> None:
        self._bank = load_bank()
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
        return TABLE[type(facts.about)](Turn(facts, offers, request.force, self._bank, self._seed), facts.about)
