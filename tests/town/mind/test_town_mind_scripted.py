"""The scripted mind reads the facts of a turn, posts in character and repeats itself little."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.facts import About, ExpressionFacts, MemoryFacts, QuestionFacts, RoomFacts, ToolOutcome
from common.text.graphemes import grapheme_len
from tests.exploration import examples
from tests.town.mind.town_mind_prompts import (
    ANSWERS,
    MIND,
    POST,
    REPLY,
    WORDS,
    answering,
    expressing,
    facts,
    offer,
    only_call,
    owner_says,
)
from town.model.types import ChatRequest, Completion, ModelMessage, Offer
from town.residents import RESIDENTS

NAMES = [resident.name for resident in RESIDENTS]
REFUSED = ToolOutcome("bluesky_post", failed=True, act="silent")


def after(first: ChatRequest, outcome: ToolOutcome) -> ChatRequest:
    """The request that follows a call and what came of it."""
    return dataclasses.replace(first, facts=dataclasses.replace(first.facts, outcomes=(outcome,)))


# Posts


@pytest.mark.parametrize("who", NAMES)
async def test_a_day_of_posts_never_repeats_a_text_soon_always_fits_and_ends_in_many_ways(who: str) -> None:
    posts: list[str] = []
    for number in range(24):
        call = await only_call(expressing(who, recent=posts[::-1][:5], minute=480 + number * 7))
        text = str(call.input["text"])
        assert grapheme_len(text) <= 300
        assert text not in posts[-5:]
        posts.append(text)
    assert len(set(posts)) >= 18
    asking = [text for text in posts if text.endswith("?")]
    assert 4 <= len(asking) <= 16
    endings = Counter(re.split(r"(?<=[.?!])\s+", re.sub(r"@\S+", "", text))[-1] for text in posts)
    assert max(endings.values()) <= 4


async def test_a_draft_sent_back_is_kept_as_it_is_or_gains_a_way_in() -> None:
    draft = "The tide table is a year of moon."
    texts = []
    for minute in range(600, 630):
        first = expressing("maren", minute=minute)
        outcome = ToolOutcome("bluesky_post", failed=True, draft=draft, text=draft)
        again = after(first, outcome)
        texts.append(str((await only_call(again)).input["text"]))
    assert all(text.startswith(draft) and grapheme_len(text) <= 300 for text in texts)
    assert draft in texts
    assert any("?" in text for text in texts)


async def test_a_post_refused_as_a_duplicate_is_followed_by_another() -> None:
    first = expressing("maren")
    text = str((await only_call(first)).input["text"])
    second = after(first, dataclasses.replace(REFUSED, text=text))
    assert str((await only_call(second)).input["text"])[:60] != text[:60]


# Other turns


async def test_the_owner_wants_a_post_for_tomorrow_and_it_is_scheduled() -> None:
    offers = (offer("bluesky_post", ["text", "at"]),)
    for line, words in (
        ("post about tides tomorrow morning at 9", ""),
        ("post tomorrow at 9: Tin sings.", "Tin sings."),
    ):
        call = await only_call(owner_says("maren", line, offers=offers))
        assert (call.name, call.input["at"]) == ("bluesky_post", "2026-01-06T09:00")
        assert "tomorrow" not in str(call.input["text"])
        assert words in str(call.input["text"])


@pytest.mark.parametrize("who", ["maren", "tobias", "odile"])
async def test_each_says_who_it_is_and_tells_of_a_neighbour_in_a_sentence(who: str) -> None:
    tool = offer("tell", ["sentence"])
    for question, expected in (("introduction", " "), ("peer-announcement", "@kit.test")):
        about = QuestionFacts(question, {"handle": ("kit.test",)})
        request = ChatRequest("m", WORDS, offers=(tool,), force="tell", facts=facts(who, about))
        assert expected in (await only_call(request)).input["sentence"]


async def test_work_with_a_telling_title_is_worth_a_post_that_holds_its_link() -> None:
    async def said(question: str, title: str) -> str:
        about = QuestionFacts(question, {"title": (title,), "url": ("https://github.com/acme/site/issues/1",)})
        return (await MIND.complete(ChatRequest("m", WORDS, facts=facts("maren", about)))).text

    assert await said("announcement-decision", "The clock stops at midnight") == "yes"
    assert await said("announcement-decision", "Update") == "no"
    post = await said("announcement-post", "The clock stops at midnight")
    assert "clock" in post
    assert post.endswith("https://github.com/acme/site/issues/1")


@pytest.mark.parametrize(
    ("post", "kind"),
    [
        ("One more thing before I go, @maren.test: what do you know about me?", "know"),
        ("please forget me", "forget"),
        ("you may answer me again", "reply_again"),
        ("Why does slate hum?", "none"),
    ],
)
async def test_it_reads_what_somebody_asks_about_their_own_data(post: str, kind: str) -> None:
    about = QuestionFacts("rights-request", {"post": (post,)})
    thought = await MIND.complete(ChatRequest("m", WORDS, facts=facts("maren", about)))
    assert json.loads(thought.text) == {"kind": kind, "language": "en"}


@pytest.mark.parametrize("kind", ["know", "forget"])
async def test_it_answers_what_somebody_asked_about_their_own_data(kind: str) -> None:
    about = QuestionFacts(f"rights-answer: {kind}", {"facts": ("posts of yours: 3",)})
    tool = offer("answer_request", ["sentence"])
    request = ChatRequest("m", WORDS, offers=(tool,), force="answer_request", facts=facts("maren", about))
    said = (await only_call(request)).input["sentence"]
    assert "posts of yours: 3" in said


async def test_a_forced_tool_never_seen_before_is_filled_by_its_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "shouldSpeak": {"type": "boolean"},
            "message": {"type": "string"},
            "mood": {"enum": ["calm", "loud"]},
            "score": {"type": "integer", "minimum": 3},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
            "where": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "extra": {"type": "string"},
        },
        "required": ["shouldSpeak", "message", "mood", "score", "tags", "where", "maybe"],
    }
    request = ChatRequest(
        "m", (ModelMessage("user", "Decide."),), (Offer("space_decision", "", schema),), "space_decision"
    )
    given = (await only_call(request)).input
    assert given["shouldSpeak"] is True
    assert given["mood"] == "calm"
    assert given["score"] == 3
    assert len(given["tags"]) == 2
    assert given["where"] == {"x": 1}
    assert given["message"]
    assert given["maybe"]
    assert "extra" not in given


@settings(max_examples=examples(150), deadline=None)
@given(
    text=st.text(max_size=400) | st.from_regex(r"@[a-z]{3}\.test .{0,80}(or .{0,20})?\?", fullmatch=True),
    before=st.lists(st.text(max_size=60), max_size=4),
    who=st.sampled_from([*NAMES, "nemo"]),
)
@pytest.mark.slow
async def test_whatever_is_posted_one_allowed_tool_is_called_and_fits(text: str, before: list[str], who: str) -> None:
    said = [f"{speaker}: {line}" for speaker, line in zip(itertools.cycle(["YOU", "@kit.test"]), before, strict=False)]
    call = await only_call(answering(who, "kit.test", text, said=said))
    assert call.name in {tool.name for tool in ANSWERS}
    if call.name == REPLY.name:
        assert 0 < grapheme_len(str(call.input["text"])) <= 300


@settings(max_examples=examples(100), deadline=None)
@given(prompt=st.text(max_size=300), rules=st.text(max_size=300), forced=st.booleans())
async def test_a_prompt_that_makes_no_sense_gets_an_answer_all_the_same(
    prompt: str, rules: str, *, forced: bool
) -> None:
    messages = (ModelMessage("system", rules), ModelMessage("user", prompt))
    thought: Completion = await MIND.complete(
        ChatRequest("m", messages, (POST,) if forced else (), "any" if forced else None)
    )
    assert thought.calls if forced else thought.text


@pytest.mark.parametrize(
    "about", [RoomFacts("maren"), MemoryFacts(), QuestionFacts("never heard of"), ExpressionFacts()]
)
async def test_facts_without_a_tool_to_answer_by_get_words(about: About) -> None:
    assert (await MIND.complete(ChatRequest("m", WORDS, facts=facts("maren", about)))).text
