"""The scripted mind notices the pictures of a post."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.facts import ExpressionFacts, PostFacts, ToolOutcome
from common.text.graphemes import grapheme_len
from modules.lives.bluesky.expression_policy import check_invitation
from tests.town.mind.town_mind_prompts import MIND, OWNER, WORDS, answering, facts, offer
from town.model.types import ChatRequest


@pytest.mark.parametrize(("count", "word"), [(1, "picture"), (2, "pictures")])
async def test_the_scripted_mind_says_that_it_sees_them(count: int, word: str) -> None:
    plain = answering("maren", OWNER, "What does this look like to you?")
    assert isinstance(plain.facts.about, PostFacts)
    shown = replace(plain, facts=replace(plain.facts, about=replace(plain.facts.about, pictures=count)))
    texts = [str((await MIND.complete(request)).calls[0].input["text"]) for request in (plain, shown)]
    assert word not in texts[0].lower()
    assert word in texts[1].lower()


@pytest.mark.parametrize("who", ["maren", "tobias", "odile"])
async def test_a_post_that_shows_a_picture_names_it_and_invites_an_answer(who: str) -> None:
    about = ExpressionFacts("designInspiration-arena", picture="Wet slates")
    offers = (offer("bluesky_post_picture", ["text"]),)
    request = ChatRequest("m", WORDS, offers, "any", facts=facts(who, about))
    (use,) = (await MIND.complete(request)).calls
    assert use.name == "bluesky_post_picture"
    text = str(use.input["text"])
    assert "“Wet slates”" in text
    assert check_invitation(text).has_invitation
    assert grapheme_len(text) <= 200
    refused = ToolOutcome("bluesky_post_picture", failed=True, text=text)
    (again,) = (await MIND.complete(replace(request, facts=replace(request.facts, outcomes=(refused,))))).calls
    assert again.input["text"] != text


async def test_a_reply_shows_the_picture_that_is_offered() -> None:
    plain = answering("tobias", OWNER, "Which letters on a sign do you like best?")
    assert isinstance(plain.facts.about, PostFacts)
    offered = replace(plain.facts, about=replace(plain.facts.about, offered="Painted signs"))
    request = replace(plain, facts=offered, offers=(offer("bluesky_reply_picture", ["text"]), *plain.offers))
    (use,) = (await MIND.complete(request)).calls
    assert use.name == "bluesky_reply_picture"
    assert "“Painted signs”" in str(use.input["text"])
    assert grapheme_len(str(use.input["text"])) <= 200
