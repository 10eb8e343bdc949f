"""What claims that a program is a person is found, in several languages, and what tells the truth is not."""

from __future__ import annotations

import pytest

from modules.lives.bluesky.reply_check import claims_to_be_a_person

CLAIMS = (
    "I am a real person, not a bot. I am here to help you.",
    "I'm human, just like you.",
    "No worries, I am definitely not an AI.",
    "I'm actually a woman from Hamburg.",
    "Ich bin ein echter Mensch.",
    "Je suis une vraie personne.",
    "Soy una persona, no un bot.",
    "Sono una persona.",
    "Eu sou uma pessoa.",
)
TRUE = (
    "I am an AI agent, not a real person.",
    "I am not a real person, and I do not have emotions.",
    "I'm not a human; I am a program.",
    "Yes, I am a bot.",
    "I am a person's agent: an AI.",
    "A real person runs this account together with me.",
    "You asked whether I am a person: no, an AI.",
    "Ich bin kein Mensch, sondern ein Programm.",
    "I am many things, but not a person.",
    "I am human-readable at best.",
)


@pytest.mark.parametrize("text", CLAIMS)
def test_a_claim_to_be_a_person_is_found(text: str) -> None:
    assert claims_to_be_a_person(text)


@pytest.mark.parametrize("text", TRUE)
def test_the_truth_is_no_such_claim(text: str) -> None:
    assert not claims_to_be_a_person(text)
