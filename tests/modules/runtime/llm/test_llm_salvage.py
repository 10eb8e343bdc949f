"""Proves that calls are found in what small models really write, and that quotations are not taken for calls."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.runtime.llm.answers import SalvagedCall, find_calls, looks_cut, parse_arguments
from modules.runtime.llm.dialect import ToolSpec

LIKE = ToolSpec("like", "Likes.", {"type": "object", "properties": {"uri": {"type": "string"}}})
POST = ToolSpec("post", "Posts.", {"type": "object", "properties": {"text": {"type": "string"}}})
CALL = '{"name": "like", "arguments": {"uri": "at://x"}}'
FOUND = (SalvagedCall("like", {"uri": "at://x"}),)


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ('Sure, here it is: {"a": {"b": "}"}} - enjoy!', {"a": {"b": "}"}}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"text": "two\nlines"}', {"text": "two\nlines"}),
        ('{oops} {"a": 1}', {"a": 1}),
        ('{"q": "say \\"}\\" now"}', {"q": 'say "}" now'}),
    ],
)
def test_arguments_are_read_out_of_prose_fences_and_double_encoding(raw: str, arguments: dict[str, Any]) -> None:
    assert parse_arguments(raw) == (arguments, "")


@pytest.mark.parametrize("raw", ['{"a": 1', "[1, 2]", "no json", "null", "{" * 5000])
def test_what_is_no_object_is_said_to_be_malformed(raw: str) -> None:
    arguments, why = parse_arguments(raw)
    assert arguments == {}
    assert why


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()), st.text(alphabet="abc .!?\n"))
def test_any_object_survives_prose_around_it(value: dict[str, Any], prose: str) -> None:
    assert parse_arguments(f"{prose}{json.dumps(value)}{prose}") == (value, "")


@pytest.mark.parametrize(
    ("text", "required", "rest"),
    [
        (f"<tool_call>{CALL}</tool_call>", False, ""),
        (f"<tool_call>\n{CALL}", False, ""),
        (f"```json\n{CALL}\n```", False, ""),
        (CALL, True, ""),
        ("{" + CALL + "}", False, ""),
        (CALL.replace("arguments", "parameters"), True, ""),
        ('{"name": "like", "arguments": "{\\"uri\\": \\"at://x\\"}"}', True, ""),
    ],
)
def test_a_call_written_as_text_is_found(text: str, rest: str, *, required: bool) -> None:
    assert find_calls(text, [LIKE, POST], required=required) == (rest, FOUND)


@pytest.mark.parametrize(
    ("text", "required"),
    [
        (f"This is JSON: {CALL}", False),
        (f"They wrote ```json\n{CALL}\n``` and I disagree.", False),
        (f'"<tool_call>{CALL}</tool_call>" is what they wrote.', False),
        ('{"uri": "at://x"}', True),
        ("nothing here", True),
    ],
)
def test_a_quotation_an_unknown_tool_or_plain_json_is_no_call(text: str, *, required: bool) -> None:
    assert find_calls(text, [LIKE, POST], required=required) == (text, ())


def test_two_calls_in_one_text_are_both_found_in_order() -> None:
    other = '{"name": "post", "arguments": {"text": "hi"}}'
    text = f"<tool_call>{CALL}</tool_call>\n<tool_call>{other}</tool_call>"
    assert find_calls(text, [LIKE, POST], required=False) == ("", (*FOUND, SalvagedCall("post", {"text": "hi"})))


def test_a_marked_call_among_words_is_not_run_and_the_one_that_ends_the_answer_is() -> None:
    text = f"<tool_call>{CALL}</tool_call> is what they wrote. <tool_call>{CALL}</tool_call>"
    spoken, (among_words, last) = find_calls(text, [LIKE], required=False)
    assert (spoken, bool(among_words.malformed), last) == ("", True, *FOUND)


def test_the_bare_arguments_of_the_only_required_tool_are_its_call() -> None:
    text = 'My answer:\n```json\n{"uri": "at://x"}\n```'
    assert find_calls(text, [LIKE], required=True) == ("My answer:", FOUND)
    assert find_calls('{"mood": "fine"}', [LIKE], required=True)[1] == ()


@pytest.mark.parametrize(
    "text", ['{"name": "like", "argu', '```json\n{"name"', "Sure!\n<tool_call>\n{", ' {"uri": "at:/']
)
def test_half_a_call_looks_cut(text: str) -> None:
    assert looks_cut(text)


@pytest.mark.parametrize("text", ["", "A plain sentence that", CALL, f"```json\n{CALL}\n```"])
def test_prose_and_whole_calls_do_not_look_cut(text: str) -> None:
    assert not looks_cut(text)
