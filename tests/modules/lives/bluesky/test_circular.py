"""Two sides that only thank each other are noticed; two sides that talk are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.lives.bluesky.thread import CircularAnalysis, detect_circular_conversation
from tests.modules.lives.bluesky.bluesky_values import chain, post

PLAIN = "Herons nest early this year."
THANKS = "Thanks, that helps."
HOLD = "Will do, I'll wait for it."
BOTH = "Great, I'll hold then."
LONG = "Great " + " ".join(f"word{index}" for index in range(25))


def pair(*texts: str) -> CircularAnalysis:
    """Two people in turn."""
    return detect_circular_conversation(chain(*((("ada", "bob")[i % 2], text) for i, text in enumerate(texts))))


@pytest.mark.parametrize(
    ("texts", "confidence", "pattern"),
    [
        ((BOTH, BOTH, BOTH, BOTH), "high", "mutual-acknowledgment-loop"),
        ((BOTH, BOTH, THANKS, PLAIN), "high", "mutual-acknowledgment-loop"),
        ((PLAIN, PLAIN, BOTH, BOTH, BOTH, PLAIN), "high", "mutual-acknowledgment-loop"),
        ((THANKS, THANKS, THANKS, THANKS), "medium", "potential-acknowledgment-loop"),
        ((BOTH, BOTH, PLAIN, PLAIN), "medium", "potential-acknowledgment-loop"),
        ((THANKS, PLAIN, PLAIN, PLAIN), "low", "none"),
        ((HOLD, HOLD, PLAIN, PLAIN), "low", "none"),
        ((PLAIN, PLAIN, PLAIN, PLAIN), "low", "none"),
        ((), "low", "none"),
        ((THANKS, THANKS, "Thanks. Where is it?", THANKS), "low", "none"),
        ((BOTH, BOTH, BOTH, LONG), "low", "repetitive-acknowledgments"),
        ((BOTH, BOTH, BOTH, "Great: https://example.com/draft"), "low", "repetitive-acknowledgments"),
        (("Typed pages", "Coolant leaks", "Nicely cut", "Greatness"), "low", "none"),
    ],
)
def test_the_last_four_posts_of_a_pair_are_judged(texts: tuple[str, ...], confidence: str, pattern: str) -> None:
    analysis = pair(*texts)
    assert (analysis.confidence, analysis.pattern) == (confidence, pattern)
    assert analysis.is_circular is (pattern != "none")
    assert analysis.suggestion_to_exit is (confidence != "low")


@pytest.mark.parametrize(
    "text",
    [
        "I'll wait.",
        "I’ll stand by.",  # noqa: RUF001 - as phones write it
        "once it's live",
        "when the tide turns",
        "looking forward",
    ],
)
def test_saying_again_what_will_be_done_makes_thanks_a_loop(text: str) -> None:
    assert pair("Great, " + text, "Nice, " + text, THANKS, PLAIN).confidence == "high"


def test_a_third_voice_breaks_the_circle() -> None:
    talk = chain(("ada", THANKS), ("bob", THANKS), ("cleo", THANKS), ("ada", THANKS))
    assert not detect_circular_conversation(talk).is_circular


def test_somebody_who_speaks_twice_is_only_repetitive() -> None:
    talk = chain(("ada", BOTH), ("ada", BOTH), ("bob", BOTH), ("ada", BOTH))
    analysis = detect_circular_conversation(talk)
    assert (analysis.confidence, analysis.is_circular, analysis.suggestion_to_exit) == ("low", True, False)


def test_a_handle_before_the_thanks_does_not_hide_them() -> None:
    assert pair("@bob.example.social thanks!", "🙏 Thank you", THANKS, THANKS).is_circular


def test_a_link_card_counts_as_substance() -> None:
    talk = [*chain(("ada", THANKS), ("bob", THANKS), ("ada", THANKS)), post("bob", "Great", links=("https://e.com/a",))]
    assert not detect_circular_conversation(talk).suggestion_to_exit


@given(st.lists(st.tuples(st.sampled_from(["ada", "bob"]), st.text(max_size=30)), max_size=8))
def test_a_question_always_keeps_the_door_open(lines: list[tuple[str, str]]) -> None:
    talk = chain(*lines, ("ada", "And what about the weir?"))
    assert not detect_circular_conversation(talk).is_circular
