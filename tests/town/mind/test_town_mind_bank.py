"""The phrase files hold what the code expects of them, and every phrase can be said."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from common.text.graphemes import grapheme_len
from tests.town.mind.town_mind_prompts import facts
from town.mind.words import FIELDS, GENERAL, BankWords, fit, load_bank
from town.residents import RESIDENTS

BANK = load_bank()
TEXT = "It rained on the bread, and we laughed."
WORDS = BankWords(BANK, facts("odile", None), random.Random(1), text=TEXT, situation="3 posts")
MORE = dict.fromkeys(
    (
        *("handle", "about", "Ask", "other", "theirs", "line", "pick", "problem", "draft", "title", "facts"),
        *("username", "words", "url", "files", "file", "command", "failing", "weakened", "who", "purpose"),
    ),
    "x",
)


def phrases(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list | tuple) else ():
        yield from phrases(child)


@pytest.mark.parametrize("name", FIELDS)
def test_each_idea_makes_a_post_with_room_for_a_neighbour_and_has_an_answer_for_each_other_field(name: str) -> None:
    for idea in BANK.fields[name].ideas:
        assert grapheme_len(f"{idea.say} {idea.ask}") <= 262, idea.say
        assert idea.ask.endswith("?")
        assert set(idea.answers) >= set(FIELDS) - {name, GENERAL}
        for words in [*idea.answers.values(), idea.more]:
            assert grapheme_len(words) <= 200
            assert words[0].isupper() or words[0] in "'\""


def test_no_idea_is_there_twice() -> None:
    said = [idea.say for idea in BANK.ideas()] + [idea.ask for idea in BANK.ideas()]
    assert len(said) == len(set(said))


def test_every_phrase_can_be_filled_and_fits() -> None:
    said = [line for intent in BANK.intents for line in phrases(intent.say)]
    rest = [line for key, node in BANK.lines.items() if key != "reasons" for line in phrases(node)]
    for phrase in [*said, *rest, *(line for name in FIELDS for line in BANK.fields[name].general)]:
        text = WORDS.fill(phrase, **MORE)
        assert not re.search(r"[{}]|  ", text), phrase
        assert grapheme_len(fit(text)) <= 300


@pytest.mark.parametrize("resident", RESIDENTS, ids=lambda resident: resident.name)
def test_each_resident_is_at_home_in_another_field(resident: Any) -> None:
    field = BANK.field_of(resident.soul + resident.self_md)
    assert field
    assert field.name == {"maren": "sea", "tobias": "mend", "odile": "table"}[resident.name]
