"""Words that only close a talk are told from words that say something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text.closings import (
    content_words,
    ends_talk,
    is_emoji_only,
    is_low_value_closing,
    only_acknowledges,
    without_handles,
)
from tests.cpu_time import cpu_s

STARTERS = [
    "thanks",
    "thank you",
    "thx",
    "ty",
    "appreciate",
    "perfect",
    "sounds good",
    "sounds great",
    "great",
    "awesome",
    "wonderful",
    "excellent",
    "amazing",
    "totally",
    "deal",
    "love it",
    "all good",
    "makes sense",
    "aligned",
    "nice",
    "yep",
    "agreed",
    "absolutely",
    "definitely",
    "exactly",
    "for sure",
    "likewise",
    "same here",
    "will do",
    "on it",
    "right on",
    "looking forward",
    "excited to",
    "excited about",
]
INTENTS = [
    "I'll stop here for tonight",
    "I'm stopping here",
    "leaving it here",
    "closing on my side",
    "closing the loop",
    "closing this now",
    "see you on the issue",
    "see you in the repo",
    "let's keep the rest in the thread",
    "lets keep the rest in GitHub",
    "let’s keep the rest in the issue",  # noqa: RUF001 - as phones write it
    "tag me when it is up",
    "tag @ada.example.social on the issue",
    "just tag us in the first draft",
    "I'll wait for the first PR",
    "don't loop",
    "don't keep loop",
    "we don't keep looping",
    "really looking forward",
    "can't wait",
    "cant wait",
]


@pytest.mark.parametrize("starter", STARTERS)
@pytest.mark.parametrize("form", ["{}", "{}!", "{}.", "{}, friend", "{} 🙏", "  {}", "@ada.example.social {}", "🙏 {}"])
def test_a_polite_opening_with_nothing_behind_it_is_a_closing(starter: str, form: str) -> None:
    assert is_low_value_closing(form.format(starter))
    assert is_low_value_closing(form.format(starter).upper())


@pytest.mark.parametrize("intent", INTENTS)
def test_taking_leave_is_a_closing(intent: str) -> None:
    assert is_low_value_closing(intent)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks so much everyone, this was great. I'll wait for the PR and stop here so we don't keep looping on it!",
        "Perfect, sounds good to me. Looking forward to it, see you on the issue when it's ready. Closing on my end.",
        "Thank you both, appreciate the patience. Leaving it here for tonight, closing the loop, see you in the repo",
    ],
)
def test_a_long_goodbye_is_still_a_goodbye(text: str) -> None:
    assert 80 <= len(text) <= 150
    assert is_low_value_closing(text)


@pytest.mark.parametrize("starter", [*STARTERS, *INTENTS])
def test_a_question_or_code_is_never_a_closing(starter: str) -> None:
    assert not is_low_value_closing(f"{starter}, but why?")
    assert not is_low_value_closing(f"{starter}\n```\nprint(1)\n```")


@pytest.mark.parametrize(
    "text",
    [
        "Types are a contract you can read.",
        "Dealing with rust is half of restoring a bicycle.",
        "Nicely put, though the tide tables disagree.",
        "Greatness is mostly maintenance.",
        "Tying knots with one hand takes a winter.",
        "Great-circle routes look bent on a flat map.",
        "Deal's off: the well is dry.",
        "The price tag was still on the chair.",
        "",
        "   ",
        "Rivers remember their old beds.",
        "🙂",
    ],
)
def test_a_word_that_only_begins_like_thanks_is_no_closing(text: str) -> None:
    assert not is_low_value_closing(text)


@pytest.mark.parametrize(
    "text",
    [
        # words that carry something
        "Great towns grew where rivers silted, traders stored grain, guilds taxed salt, pilots read tides, kings left",
        # a list
        "Great. Two things:\n- the hinge\n- the latch",
        "Nice. First:\n1. the hinge",
        # code
        "Great, `make test` passes",
        # a figure with its unit
        "Nice, the kiln held 1180 °C",
        "Agreed, it took 40 ms",
        "Great, 12% less",
        "Perfect, 3.5 km",
        # long, and no farewell in it
        "Great " + "and so on " * 20,
        # a farewell somewhere in a long thought condemns nothing
        "Looking forward: pumps, valves, roofs, pipes, lids, jars, doors, lamps, wires, ovens, mugs, taps, fans, rugs",
    ],
)
def test_a_polite_opening_with_substance_behind_it_is_no_closing(text: str) -> None:
    assert not is_low_value_closing(text)


def test_a_hundred_percent_is_applause_and_not_a_figure() -> None:
    assert is_low_value_closing("Agreed 100%!")
    assert is_low_value_closing("Totally, 100 %")


@pytest.mark.parametrize("text", ["👍", "👍👍", " ❤️ ", "❤", "🇩🇪", "1️⃣", "👨‍👩‍👧‍👦 👍🏽", "💯", "🙏\n🙏"])
def test_emoji_and_space_are_a_reaction(text: str) -> None:
    assert is_emoji_only(text)


@pytest.mark.parametrize("text", ["", "  ", "42", "1", "#", "*", "ok 👍", "!", "🙂?", "🇩", "…"])
def test_digits_letters_and_signs_are_no_reaction(text: str) -> None:
    assert not is_emoji_only(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("Thanks, that was really great!", []),
        ("The harbour freezes in January.", ["harbour", "freezes", "january"]),
        ("@ada.example.social see https://example.com/harbour or example.com/a/b", []),
        ("don't can't won't I'll it's", []),
        ("The town’s bell", ["town", "bell"]),  # noqa: RUF001 - as phones write it
        ("a b c 7 42", ["42"]),
        ("Straße über den Fluß", ["straße", "über", "den", "fluß"]),
        ("東京の春", ["東京", "の春"]),
        ("bell bell", ["bell", "bell"]),
    ],
)
def test_words_that_carry_something_are_found_in_order(text: str, words: list[str]) -> None:
    assert content_words(text) == words


def test_handles_can_be_taken_out() -> None:
    assert without_handles(" @ada.example.social  hello @bob.example.social ") == "hello"


@given(st.text())
@pytest.mark.slow
def test_any_text_is_judged_and_a_question_never_condemned(text: str) -> None:
    assert is_low_value_closing(text + "?") is False
    assert is_low_value_closing(text) in {True, False}


@pytest.mark.perf
@pytest.mark.parametrize("hostile", ["@a.-" * 800, "tag the " * 400, "wait for the " * 250, "- " * 1500, "1" * 3000])
def test_hostile_text_is_judged_quickly(hostile: str) -> None:
    assert cpu_s(lambda: (is_low_value_closing(hostile), content_words(hostile))) < 0.5


@pytest.mark.parametrize(
    "text",
    [
        "thanks, that is enough for today",
        "Thank you all, that\u2019s all.",
        "That's enough, thanks",
        "good night everyone",
        "let's call it a day",
        "see you tomorrow!",
        "ok, stop here",
        "bye",
        "That's all for today, thanks everybody",
    ],
)
def test_words_that_end_a_talk(text: str) -> None:
    assert ends_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "is that enough for today?",
        "That's enough sugar for the cake",
        "That is all well and good, but the pump leaks since Tuesday",
        "That's all for today, please open an issue about the clock",
        "enough for now, but tell me about the weir",
        "I have had enough of these tin roofs for now and then",
        "What a good night sleep does for an owl is told by the vicar",
        "thanks",
        "",
    ],
)
def test_words_that_leave_a_talk_open(text: str) -> None:
    assert not ends_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "I agree.",
        "Interesting!",
        "Noted.",
        "That's a great question!",
        "❤️",
        "Danke!",
        "So true!",
        "Well said.",
        "Good question!",
        "🙏",
        "Merci beaucoup !\n    ",
        "I appreciate your message.",
        "ありがとう!",
        "@kit.test thank you 🙏",
        "What a thoughtful question!",
        "Vielen Dank!",
        "Gute Frage!",
        "…\n    ",
        "¡Muchas gracias!",
        "I love this.",
        "Thanks for asking!",
        "Danke schön!",
        "That\u2019s so true.",
        "C'est très intéressant !",
    ],
)
def test_what_only_acknowledges_is_known_in_several_languages(text: str) -> None:
    assert only_acknowledges(text)


@pytest.mark.parametrize(
    "text",
    [
        "Yes.",
        "Tin.",
        "No, never.",
        "42",
        "Slate, by far.",
        "Danke, Schiefer ist leiser.",
        "Yes, I agree.",
        "Good question: tin.",
        "Not so good.\n    ",
        "Thanks, tin.",
        "4️⃣",
        "I do.",
        "Interesting?",
        "Ja, danke.",
        "The first one, thanks",
        "Oui, merci",
        "石板。",
        "It is so true of rain.",
    ],
)
def test_a_short_answer_is_no_acknowledgement(text: str) -> None:
    assert not only_acknowledges(text)
