"""Proves that words that only close a talk are told apart from words that say something."""

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
        ("The bell ☺️️ 1️⃣", ["bell"]),
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


# NOTE(self): a variation selector, a joiner, a skin tone, a keycap, a flag, a tag sequence, and a lone selector.
@pytest.mark.parametrize("sign", ["❤️", "☺️", "❤️‍🔥", "🙏🏽", "👩🏽‍💻", "1️⃣", "🇩🇪", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "😂👍🏿", "️"])
def test_no_part_of_an_emoji_is_a_word(sign: str) -> None:
    for said in ("Love it", "Thanks", "thank you so much", "merci"):
        assert is_low_value_closing(f"{said} {sign}")
        assert is_low_value_closing(f"{sign}{said}{sign}!")
    assert ends_talk(f"good night {sign}")
    assert not is_low_value_closing(f"Thanks {sign}?")
    assert not is_low_value_closing(f"Thanks {sign} for the tin")


def test_an_emoji_that_asks_is_a_question() -> None:
    assert not is_low_value_closing("Thanks ❓")
