"""Proves that whatever was kept is a conversation that a chat service accepts, and that what is cut off is whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.provenance import Provenance
from modules.runtime.llm.dialect import Message, Text, ToolAnswer, ToolCall, convert_messages
from modules.services.sessions.conversation import conversation, fitting, outgrown, units
from modules.services.sessions.types import blocks, said_lines, transcript
from tests.exploration import examples
from tests.modules.services.sessions.session_values import MESSAGES, answers, asks, rows_of
from town.model.service import read_request

CONVERSATIONS = st.lists(MESSAGES, max_size=12)


@settings(max_examples=examples(80))
@given(CONVERSATIONS)
def test_whatever_is_kept_a_chat_service_accepts_it(said: list[Message]) -> None:
    shown = [*conversation(rows_of(said)), Message("assistant", "so be it")]
    read_request({"model": "m", "messages": convert_messages(shown)}, models=["m"])
    roles = [message.role for message in shown[:-1]]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]


@settings(max_examples=examples(80))
@given(CONVERSATIONS, st.integers(0, 80), st.integers(0, 12))
def test_what_is_fitting_is_the_newest_within_the_budget_and_splits_nothing(
    said: list[Message], budget: int, tokens: int
) -> None:
    rows = rows_of(said, tokens=tokens or None)
    kept = fitting(rows, budget)
    assert sum(row.tokens for row in kept) <= budget
    assert kept == tuple(rows[len(rows) - len(kept) :])
    assert not kept or kept[0].role != "toolResult"
    older = rows[: len(rows) - len(kept)]
    assert units(older) + units(kept) == units(rows)
    if older and units(older)[-1][0].role != "toolResult":
        assert sum(row.tokens for row in (*units(older)[-1], *kept)) > budget


@settings(max_examples=examples(50))
@given(CONVERSATIONS, st.integers(0, 60))
def test_what_is_condensed_is_the_oldest_and_what_was_said_last_stays(said: list[Message], budget: int) -> None:
    rows = rows_of(said)
    old = outgrown(rows, budget)
    assert old == tuple(rows[: len(old)])
    if old:
        assert sum(row.tokens for row in rows) > budget
        assert len(old) < len(rows)
        assert units(rows[len(old) :])[-1] == units(rows)[-1]
        assert units(old) + units(rows[len(old) :]) == units(rows)


def test_a_summary_alone_is_not_condensed_again() -> None:
    summary, question = rows_of([Message("user", "in brief"), Message("user", "a very long question")], tokens=900)
    assert outgrown([summary, question], 1000) == ()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ([answers("look"), Message("user", "well?")], [Message("user", "well?")]),
        ([Message("user", "q"), asks("look"), Message("user", "well?")], [Message("user", "q\n\nwell?")]),
        ([Message("user", "q"), asks("look"), answers("look")], [Message("user", "q"), asks("look"), answers("look")]),
        (
            [Message("user", "q"), asks("look", "post"), answers("post")],
            [Message("user", "q"), asks("post"), answers("post")],
        ),
        ([Message("assistant", "hi"), Message("user", "q")], [Message("user", "q")]),
        ([Message("user", "q"), Message("assistant", " "), Message("user", "r")], [Message("user", "q\n\nr")]),
    ],
)
def test_what_a_chat_service_would_refuse_is_left_out(said: list[Message], shown: list[Message]) -> None:
    assert conversation(rows_of(said)) == shown


def test_a_call_that_was_made_or_answered_twice_stands_there_once() -> None:
    twice = Message("assistant", (ToolCall("a", "look"), ToolCall("a", "look")))
    both = Message("user", (ToolAnswer("a", "look", "first"), ToolAnswer("a", "look", "second")))
    assert conversation(rows_of([Message("user", "q"), twice, both])) == [
        Message("user", "q"),
        Message("assistant", (ToolCall("a", "look"),)),
        Message("user", (ToolAnswer("a", "look", "first"),)),
    ]


def test_words_and_tool_answers_of_one_turn_are_one_message() -> None:
    rows = rows_of([Message("user", "q"), asks("look"), answers("look"), Message("user", "and now?")])
    assert blocks(conversation(rows)[-1]) == (*blocks(answers("look")), Text("and now?"))


def test_a_transcript_says_who_spoke_and_cuts_what_tools_printed() -> None:
    said = [Message("user", "what is\nnew?"), asks("look"), answers("look"), Message("assistant", "a gull")]
    printed = Message("user", (ToolAnswer("b", "post", "x" * 1000),))
    assert transcript(rows_of([*said, printed]), len, 10_000).splitlines() == [
        "OWNER: what is new?",
        'YOU used look {"of":"look"}',
        "TOOL look: what look printed",
        "YOU: a gull",
        f"TOOL post: {'x' * 300}…",
    ]
    assert transcript(rows_of([Message("user", "hi")], provenance=Provenance.PEER), len, 100) == "THEM: hi"
    assert transcript([], len, 100) == ""


def test_words_of_the_program_are_nobody_s_in_a_transcript() -> None:
    note, line = rows_of([Message("user", "(The owner opened the terminal.)"), Message("user", "hello")])
    rows = [replace(note, is_note=True), line]
    assert transcript(rows, len, 100).splitlines() == ["NOTE: (The owner opened the terminal.)", "OWNER: hello"]
    assert [one.text for one in said_lines(rows)] == ["hello"]


def test_a_transcript_that_is_too_long_keeps_its_first_line_and_the_newest() -> None:
    rows = rows_of([Message("user", f"line {number}") for number in range(10)])
    assert transcript(rows, len, 45).splitlines() == ["OWNER: line 0", "[…]", "OWNER: line 8", "OWNER: line 9"]
