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
from modules.lives.bluesky.expression_policy import check_invitation
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
from town.mind.scripted import ScriptedMind
from town.model.types import ChatRequest, Completion, Message, Offer
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


async def test_the_same_request_gets_the_same_post_and_another_time_another() -> None:
    first, again, later = [await MIND.complete(expressing("maren", minute=minute)) for minute in (600, 600, 601)]
    assert first == again
    assert first != later
    assert await ScriptedMind(seed=1).complete(expressing("maren", minute=600)) != first


@pytest.mark.slow
async def test_what_was_said_before_is_followed_by_something_else_however_long_the_day() -> None:
    texts = []
    for minute in range(300):
        asked = expressing("tobias", minute=minute, recent=["Over to @maren.test: tin or slate?"])
        call = await only_call(after(asked, dataclasses.replace(REFUSED, text="One loose screw.")))
        texts.append(str(call.input["text"]))
    assert max(map(grapheme_len, texts)) <= 300
    assert len(set(texts)) > 240


async def test_neighbours_do_not_say_the_same_things() -> None:
    said = {
        who: {
            str((await only_call(expressing(who, minute=minute))).input["text"])[:40] for minute in range(400, 440, 2)
        }
        for who in NAMES
    }
    assert all(not said[one] & said[two] for one, two in itertools.combinations(NAMES, 2))


async def test_a_first_post_speaks_to_a_neighbour_of_self_md_and_the_next_to_nobody() -> None:
    first = str((await only_call(expressing("tobias"))).input["text"])
    assert "@maren.test" in first or "@odile.test" in first
    assert "@tobias.test" not in first
    second = str((await only_call(expressing("tobias", recent=[first], minute=760))).input["text"])
    assert "@" not in second


async def test_a_neighbour_named_in_the_prompt_is_the_one_spoken_to() -> None:
    for minute in range(600, 610):
        request = expressing("odile", source="relationships", of=["@maren.test sees the weather."], minute=minute)
        assert "@maren.test" in str((await only_call(request)).input["text"])


async def test_a_line_of_self_md_can_become_the_post() -> None:
    line = "Leave the note where the next person will stand."
    recent = ["Something @maren.test"]
    texts = [
        str((await only_call(expressing("odile", source="values", of=[line], recent=recent, minute=m))).input["text"])
        for m in range(600, 720)
    ]
    led = [text for text in texts if text.startswith(line)]
    assert 0 < len(led) < len(texts)
    assert any(check_invitation(text).has_invitation for text in led)


@pytest.mark.parametrize(
    ("source", "named", "starts"),
    [
        ("questions", ["Is a forecast that changed nobody's plans still a forecast?"], "Is a forecast that changed"),
        (
            "currentFocus",
            ["Collecting the words people use for rain that is barely rain."],
            (
                "On the list this week: collecting",
                "Still under way: collecting",
                "A slow one, not nearly done: collecting",
            ),
        ),
        (
            "values+patterns",
            [
                "Old instruments deserve to be read before they are replaced.",
                "Every harbour believes that its own fog is the thickest.",
            ],
            "Old instruments deserve to be read before they are replaced. Every harbour",
        ),
    ],
)
async def test_each_kind_of_line_gets_a_form_of_its_own(
    source: str, named: list[str], starts: str | tuple[str, ...]
) -> None:
    requests = [expressing("maren", source=source, of=named, recent=["To @odile.test"], minute=m) for m in range(30)]
    texts = [str((await only_call(request)).input["text"]) for request in requests]
    led = [text for text in texts if text.startswith(starts)]
    assert led


async def test_a_soul_that_says_little_of_itself_still_posts_sensibly() -> None:
    texts = [str((await only_call(expressing("nemo", minute=minute))).input["text"]) for minute in range(600, 610)]
    assert any("?" in text for text in texts)
    text = texts[0]
    assert "@" not in text


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


async def test_the_owner_asks_how_things_stand_and_is_told() -> None:
    thought = await MIND.complete(owner_says("maren", "how are things?"))
    assert "3 posts, 2 replies" in thought.text


async def test_the_owner_wants_something_posted_and_it_is_word_for_word() -> None:
    call = await only_call(owner_says("maren", 'post this: "The fair is on Sunday."'))
    assert call.input == {"text": "The fair is on Sunday."}
    done = await MIND.complete(after(owner_says("maren", "post x"), ToolOutcome("bluesky_post")))
    assert done.text
    assert not done.calls
    failed = await MIND.complete(after(owner_says("maren", "post x"), REFUSED))
    assert failed.text
    assert failed.text != done.text


async def test_the_owner_wants_a_post_for_tomorrow_and_it_is_scheduled() -> None:
    offers = (POST, offer("bluesky_schedule_post", ["text", "at"]))
    for line, words in (
        ("post about tides tomorrow morning at 9", ""),
        ("post tomorrow at 9: Tin sings.", "Tin sings."),
    ):
        call = await only_call(owner_says("maren", line, offers=offers))
        assert (call.name, call.input["at"]) == ("bluesky_schedule_post", "2026-01-06T09:00")
        assert "tomorrow" not in str(call.input["text"])
        assert words in str(call.input["text"])


async def test_the_owner_wants_any_post_and_gets_a_thought() -> None:
    assert "?" in str((await only_call(owner_says("odile", "post something"))).input["text"])


@pytest.mark.parametrize("line", ["are you an AI?", "what do you make of soup?", "hm", "who are you?"])
async def test_the_owner_gets_an_answer_in_words(line: str) -> None:
    thought = await MIND.complete(owner_says("odile", line))
    assert thought.text
    assert not thought.calls


async def test_grounding_says_who_one_is() -> None:
    request = ChatRequest("m", WORDS, facts=facts("tobias", QuestionFacts("grounding")))
    assert "Tobias" in (await MIND.complete(request)).text


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
        ("don't reply to me any more", "no_reply"),
        ("you may answer me again", "reply_again"),
        ("why did you answer me?", "why"),
        ("Why does slate hum?", "none"),
    ],
)
async def test_it_reads_what_somebody_asks_about_their_own_data(post: str, kind: str) -> None:
    about = QuestionFacts("rights-request", {"post": (post,)})
    thought = await MIND.complete(ChatRequest("m", WORDS, facts=facts("maren", about)))
    assert json.loads(thought.text) == {"kind": kind, "language": "en"}


@pytest.mark.parametrize("kind", ["know", "forget", "no_reply", "reply_again", "why"])
async def test_it_answers_what_somebody_asked_about_their_own_data(kind: str) -> None:
    about = QuestionFacts(f"rights-answer: {kind}", {"facts": ("posts of yours: 3",)})
    tool = offer("answer_request", ["sentence"])
    request = ChatRequest("m", WORDS, offers=(tool,), force="answer_request", facts=facts("maren", about))
    said = (await only_call(request)).input["sentence"]
    assert ("posts of yours: 3" in said) == (kind in {"know", "why"})


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
    request = ChatRequest("m", (Message("user", "Decide."),), (Offer("space_decision", "", schema),), "space_decision")
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
    messages = (Message("system", rules), Message("user", prompt))
    thought: Completion = await MIND.complete(
        ChatRequest("m", messages, (POST,) if forced else (), "any" if forced else None)
    )
    assert thought.calls if forced else thought.text


@pytest.mark.parametrize(
    "about", [RoomFacts("maren"), MemoryFacts(), QuestionFacts("never heard of"), ExpressionFacts()]
)
async def test_facts_without_a_tool_to_answer_by_get_words(about: About) -> None:
    assert (await MIND.complete(ChatRequest("m", WORDS, facts=facts("maren", about)))).text
