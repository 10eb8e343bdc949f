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


@pytest.mark.parametrize(
    "text",
    [
        *(
            "thanks",
            "Thank you so much!",
            "thx 🙏",
            "ty",
            "I appreciate it",
            "PERFECT",
            "sounds good",
            "Love it.",
            "deal",
        ),
        *("all good", "makes sense", "nice", "yep", "Agreed, absolutely!", "likewise", "same here", "will do", "on it"),
        *("@ada.example.social looking forward", "Great point, thank you for sharing!", "Danke schön!", "ありがとう!"),
        *("I'll stop here so we do not loop", "I'm stopping here", "leaving it here", "closing on my side"),
        *("closing the loop", "see you on the issue", "see you in the repo", "let's keep the rest in the thread"),
        *(
            "tag me when it is up",
            "I'll wait for the first PR",
            "we don't keep looping",
            "can't wait",
            "Good night all",
        ),
        "Thanks everyone, this was great. I'll wait for the PR and stop here so we don't keep looping on it!",
    ],
)
def test_thanks_praise_and_farewells_with_nothing_else_left_of_them_are_closings(text: str) -> None:
    assert is_low_value_closing(text)
    assert not is_low_value_closing(f"{text}, but why?")
    assert not is_low_value_closing(f"{text}\n```\nprint(1)\n```")


@pytest.mark.parametrize(
    "text",
    [
        *("Good morning @bot.example.social", "I have a question for you", "comment on this", "Great question for you"),
        *("Types are a contract you can read.", "Greatness is mostly maintenance.", "Deal's off: the well is dry."),
        *("Great, `make test` passes", "Agreed, it took 40 ms", "Great. Two things:\n- the hinge\n- the latch"),
        *(
            "Thanks, but no: the link is dead",
            "thanks for the link https://example.org/a",
            "Definitely not.",
            "No thanks.",
        ),
        *(
            "Thank you for nothing.",
            "Yes, I agree.",
            "Danke, Schiefer ist leiser.",
            "ありがとう、でも違います",
            "",
            "  ",
            "🙂",
        ),
        "Great " + "and so on " * 20,
    ],
)
def test_whatever_else_is_said_is_left_to_a_model(text: str) -> None:
    assert not is_low_value_closing(text)


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
    "text", ["Interesting!", "That's a great question!", "❤️", "…\n", "@kit.test merci beaucoup 🙏"]
)
def test_words_and_signs_that_only_acknowledge_are_known(text: str) -> None:
    assert only_acknowledges(text)


@pytest.mark.parametrize(
    "text", ["Yes.", "Tin.", "42", "4️⃣", "?", "Good question: tin.", "Thanks, tin.", "Interesting?", "I do.", "石板。"]
)
def test_a_short_answer_is_no_acknowledgement(text: str) -> None:
    assert not only_acknowledges(text)
