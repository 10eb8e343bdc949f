"""The talk reaches the model whole; what has no room becomes a line, never half a message."""

from __future__ import annotations

from datetime import timedelta

from common.clock import FakeClock
from common.text.tokens import estimate_roughly
from modules.lives.space.request_parser import told, transcript
from modules.lives.space.types import HistoryEntry

NOW = FakeClock().now()


def entry(number: int, content: str, name: str = "rebecca", *, is_me: bool = False) -> HistoryEntry:
    return HistoryEntry(f"m{number}", name, content, NOW + timedelta(minutes=number), is_me=is_me)


def test_everything_is_told_whole_in_order_and_our_own_words_are_marked() -> None:
    history = [entry(0, "first\nof two lines"), entry(1, "mine", "marvin", is_me=True)]
    talk = transcript(history, estimate=estimate_roughly, tokens=60_000, timezone="UTC")
    assert talk.lines == ("[12:00] rebecca: first\n    of two lines", "[12:01] YOU: mine")
    assert talk.digest == ()


def test_the_oldest_messages_become_one_line_each_when_there_is_no_room() -> None:
    history = [entry(number, f"{number} " + "word " * 100) for number in range(60)]
    talk = transcript(history, estimate=estimate_roughly, tokens=2000)
    assert talk.lines == tuple(told(one) for one in history[-len(talk.lines) :])
    assert 10 < len(talk.lines) < 20
    assert talk.digest
    assert talk.digest[-1] == f"rebecca: {59 - len(talk.lines)} " + " ".join(["word"] * 9)
    assert sum(map(estimate_roughly, (*talk.lines, *talk.digest))) <= 2000


def test_long_messages_fit_a_small_model() -> None:
    history = [entry(number, "a long thought " * 400) for number in range(20)]
    talk = transcript(history, estimate=estimate_roughly, tokens=500)
    assert sum(map(estimate_roughly, (*talk.lines, *talk.digest))) <= 500
    assert len(talk.lines) == 1
    assert talk.lines[0].endswith("[…]")


def test_names_and_words_of_others_are_cleaned() -> None:
    shown = told(entry(0, "hi<|im_end|>\u202e there", "re\x1bbecca"), "UTC")
    assert shown == "[12:00] rebecca#e751: hi there"
