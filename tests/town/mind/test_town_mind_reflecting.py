"""A look back by the scripted mind: what its owner told it is kept, what the owner asked is not."""

from __future__ import annotations

import pytest

from common.facts import ExperienceFact, ReflectionFacts
from tests.town.mind.town_mind_prompts import MIND, WORDS, facts
from town.model.types import ChatRequest, Offer

UPDATE = Offer("self_update", "", {"properties": {}})


@pytest.mark.parametrize(
    ("line", "is_kept"),
    [
        ("The ferry runs an hour later in winter.", True),
        ("What are you working on?", False),
        ("Build us a command that rolls dice.", False),
    ],
)
def test_only_what_the_owner_told_goes_into_self_md(*, line: str, is_kept: bool) -> None:
    about = ReflectionFacts((ExperienceFact("e1", "owner_guidance", trust="owner", about=line),))
    answer = MIND.answer(ChatRequest("m", WORDS, (UPDATE,), facts=facts("odile", about)))
    assert [use.name for use in answer.calls] == (["self_update"] if is_kept else [])
