"""What the owner's messages ask for, and how texts become messages: pure rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.convert_messages import MESSAGE_MAX_BYTES
from adapters.atproto.messages import MESSAGE_MAX_GRAPHEMES
from common.text.graphemes import grapheme_len
from modules.lives.messages.policy import MOST_PARTS, is_command, read_draft_answer, split_text
from modules.lives.messages.types import DraftAnswer, ToldDrafts

ONE = ToldDrafts(("a1",), is_latest=True)
TWO = ToldDrafts(("a1", "b2"), is_latest=True)
LATER = ToldDrafts(("a1", "b2"), is_latest=False)
BOTH = {"a1": 1, "b2": 2, "c3": 3}


@pytest.mark.parametrize(
    ("text", "told", "meant"),
    [
        ("yes", ONE, DraftAnswer(is_yes=True, ids=("a1",))),
        ("Yes!", ONE, DraftAnswer(is_yes=True, ids=("a1",))),
        ("no", ONE, DraftAnswer(is_yes=False, ids=("a1",))),
        ("yes 2", TWO, DraftAnswer(is_yes=True, ids=("b2",))),
        ("no 1 too loud", TWO, DraftAnswer(is_yes=False, ids=("a1",), reason="too loud")),
        ("NO 2: not today", TWO, DraftAnswer(is_yes=False, ids=("b2",), reason="not today")),
        ("yes all", TWO, DraftAnswer(is_yes=True, ids=("a1", "b2"))),
        ("yes", TWO, DraftAnswer(is_yes=True, ids=())),
        ("yes 7", TWO, DraftAnswer(is_yes=True, ids=())),
        ("yes 1", LATER, DraftAnswer(is_yes=True, ids=("a1",))),
        ("yes", LATER, None),
        ("yes", ToldDrafts(), None),
        ("no, I meant the other weir", ONE, None),
        ("yes please post about tin", ONE, None),
        ("yesterday", ONE, None),
    ],
)
def test_only_a_bare_yes_or_no_counts_as_an_answer_to_drafts(
    text: str, told: ToldDrafts, meant: DraftAnswer | None
) -> None:
    assert read_draft_answer(text, told, BOTH) == meant


def test_what_does_not_wait_any_more_cannot_be_meant() -> None:
    assert read_draft_answer("yes", TWO, {"b2": 2}) == DraftAnswer(is_yes=True, ids=("b2",))
    assert read_draft_answer("yes 1", TWO, {"b2": 2}) == DraftAnswer(is_yes=True, ids=())
    assert read_draft_answer("yes", ONE, {}) is None


def test_a_line_with_a_slash_is_a_command() -> None:
    assert is_command(" /status")
    assert not is_command("either/or")


@given(st.text(max_size=200), st.integers(1, 60))
def test_every_part_can_be_sent_and_nothing_is_lost_but_white_space(text: str, times: int) -> None:
    parts = split_text(" ".join([text] * times))
    assert len(parts) <= MOST_PARTS
    for part in parts:
        assert part.strip()
        assert grapheme_len(part) <= MESSAGE_MAX_GRAPHEMES
        assert len(part.encode()) <= MESSAGE_MAX_BYTES
    if len(parts) < MOST_PARTS:
        assert "".join("".join(parts).split()) == "".join((text * times).split())


def test_lines_stay_whole() -> None:
    first, second = split_text("\n".join(["tin " * 100] * 3))
    assert (len(first.splitlines()), len(second.splitlines())) == (2, 1)
