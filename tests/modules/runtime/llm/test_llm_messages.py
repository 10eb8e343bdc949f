"""Proves what our messages look like on the wire."""

import re

from modules.runtime.llm.dialect import (
    Message,
    Text,
    ToolAnswer,
    ToolCall,
    ToolSpec,
    convert_messages,
    convert_tools,
    create_assistant_tool_use_message,
    create_tool_result_message,
)


def test_the_system_prompt_comes_first_and_an_empty_one_not_at_all() -> None:
    assert convert_messages([Message("user", "hi")], "be kind") == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
    ]
    assert convert_messages([Message("user", "hi")]) == [{"role": "user", "content": "hi"}]


def test_tool_answers_go_ahead_of_the_words_of_their_message_and_those_without_id_are_dropped() -> None:
    message = Message(
        "user", (Text("one"), ToolAnswer("abcdef012", "look", "seen"), Text("two"), ToolAnswer("", "lost", "gone"))
    )
    assert convert_messages([message]) == [
        {"role": "tool", "tool_call_id": "abcdef012", "content": "seen"},
        {"role": "user", "content": "one\ntwo"},
    ]


def test_calls_go_out_under_ids_that_every_service_takes_each_once_and_its_answer_under_the_same() -> None:
    ids = ["call_Zk31bQ0xP7vT5nWm2LrY8hJd", "functions.look:0", "abcdef012", "", "x" * 60]
    rounds = [ids, [ids[0], ids[0]], ids[:3]]
    said = [
        message
        for given in rounds
        for message in (
            create_assistant_tool_use_message("", [ToolCall(one, "look") for one in given]),
            create_tool_result_message([ToolAnswer(one, "look", "seen") for one in given if one]),
        )
    ]
    wire = convert_messages(said)
    called = [[call["id"] for call in item["tool_calls"]] for item in wire if item["role"] == "assistant"]
    every = [one for names in called for one in names]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", one) for one in every)
    assert len(set(every)) == len(every)
    answered = [item["tool_call_id"] for item in wire if item["role"] == "tool"]
    assert answered == [
        one for names, given in zip(called, rounds, strict=True) for one, id_ in zip(names, given, strict=False) if id_
    ]
    assert convert_messages(said[:2]) == wire[: len(convert_messages(said[:2]))]


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
