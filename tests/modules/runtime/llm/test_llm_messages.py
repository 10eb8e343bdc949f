"""Proves what our messages look like on the wire."""

from modules.runtime.llm.messages import (
    convert_messages,
    convert_tools,
    create_assistant_tool_use_message,
    create_tool_result_message,
)
from modules.runtime.llm.types import Message, Text, ToolAnswer, ToolCall, ToolSpec


def test_the_system_prompt_comes_first_and_an_empty_one_not_at_all() -> None:
    assert convert_messages([Message("user", "hi")], "be kind") == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
    ]
    assert convert_messages([Message("user", "hi")]) == [{"role": "user", "content": "hi"}]


def test_tool_answers_go_ahead_of_the_words_of_their_message_and_those_without_id_are_dropped() -> None:
    message = Message(
        "user", (Text("one"), ToolAnswer("a", "look", "seen"), Text("two"), ToolAnswer("", "lost", "gone"))
    )
    assert convert_messages([message]) == [
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
        {"role": "user", "content": "one\ntwo"},
    ]


def test_the_model_can_see_that_a_call_failed() -> None:
    answers = [ToolAnswer("a", "t", "no such post", is_error=True), ToolAnswer("b", "t", "Blocked: no", is_error=True)]
    wire = convert_messages([create_tool_result_message(answers)])
    assert [item["content"] for item in wire] == ["Error: no such post", "Blocked: no"]


def test_an_assistant_turn_carries_words_and_calls_together_and_an_empty_one_is_dropped() -> None:
    spoken = create_assistant_tool_use_message("Let me see.", [ToolCall("a", "look", {"who": "Zoë"})])
    silent = create_assistant_tool_use_message("", [ToolCall("b", "look")])
    wire = convert_messages([spoken, silent, Message("assistant", ""), Message("assistant", ())])
    assert [(item["content"], item["tool_calls"][0]["function"]["arguments"]) for item in wire] == [
        ("Let me see.", '{"who": "Zoë"}'),
        (None, "{}"),
    ]


def test_each_answer_is_cut_to_size_on_its_own() -> None:
    message = create_tool_result_message([ToolAnswer("a", "t", "x" * 40_000), ToolAnswer("b", "t", "short")])
    long, short = [block for block in message.content if isinstance(block, ToolAnswer)]
    assert "[TRUNCATED:" in long.content
    assert short.content == "short"


def test_a_tool_becomes_a_function_with_its_schema() -> None:
    schema = {"type": "object", "properties": {}}
    assert convert_tools([ToolSpec("look", "Looks.", schema)]) == [
        {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": schema}}
    ]
