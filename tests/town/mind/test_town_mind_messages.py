"""The town's mind answers a direct message, with silence for programs and where an answer was sent back."""

from __future__ import annotations

import pytest

from common.facts import MessageFacts, ToolOutcome, TurnFacts
from tests.town.mind.town_mind_prompts import MIND, WORDS, agent, offer
from town.model.types import ChatRequest

OFFERS = (offer("message_answer", ["text"]), offer("message_silence", ["reason"]))
WREN = "wren"


@pytest.mark.parametrize("text", ["Which moss would you begin with?", "Hello!", "Tin or slate?"])
def test_a_person_is_answered_with_words_that_fit(text: str) -> None:
    (call,) = MIND.answer(asked(MessageFacts("kit.test", text))).calls
    assert call.name == "message_answer"
    assert call.input["text"]


@pytest.mark.parametrize(
    ("about", "outcomes"),
    [
        (MessageFacts("robo.test", "Tin or slate?", is_bot=True), ()),
        (MessageFacts("kit.test", "Tin or slate?"), (ToolOutcome("message_answer", failed=True, text="Tin."),)),
    ],
)
def test_a_program_meets_silence_and_so_does_who_was_answered_in_vain(
    about: MessageFacts, outcomes: tuple[ToolOutcome, ...]
) -> None:
    (call,) = MIND.answer(asked(about, outcomes)).calls
    assert call.name == "message_silence"
    assert call.input["reason"]


def asked(about: MessageFacts, outcomes: tuple[ToolOutcome, ...] = ()) -> ChatRequest:
    return ChatRequest(
        "test", WORDS, OFFERS, "any", facts=TurnFacts(about, agent(WREN), "2026-01-05T12:00:00Z", outcomes)
    )
