"""The scripted mind notices the pictures of a post."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.facts import PostFacts
from tests.town.mind.town_mind_prompts import MIND, OWNER, answering


@pytest.mark.parametrize(("count", "word"), [(1, "picture"), (2, "pictures")])
async def test_the_scripted_mind_says_that_it_sees_them(count: int, word: str) -> None:
    plain = answering("maren", OWNER, "What does this look like to you?")
    assert isinstance(plain.facts.about, PostFacts)
    shown = replace(plain, facts=replace(plain.facts, about=replace(plain.facts.about, pictures=count)))
    texts = [str((await MIND.complete(request)).calls[0].input["text"]) for request in (plain, shown)]
    assert word not in texts[0].lower()
    assert word in texts[1].lower()
