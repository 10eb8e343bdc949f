"""Proves that services that speak the protocol a little differently are understood, and their refusals learned."""

import json
from typing import Any

import pytest

from common.errors import SoulError
from modules.runtime.llm.dialect import (
    Message,
    ToolAnswer,
    ToolCall,
    ToolSpec,
    Usage,
    create_assistant_tool_use_message,
    create_tool_result_message,
)
from modules.runtime.llm.gateway import LLMGateway
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, calls, refuses, says

HELLO = [Message("user", "hello")]
LIKE = ToolSpec("like", "Likes.", {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]})
STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


def _streams(*choices: dict[str, Any], done: bool = True) -> Reply:
    events = [{"choices": [choice]} for choice in choices]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return Reply(raw=body + ("data: [DONE]\n\n" if done else ""), headers=STREAM)


def _delta(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _called(**part: Any) -> Reply:
    return _streams(_delta(tool_calls=[part]), _delta("tool_calls"))


WHOLE = {
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "Good morning!"}, "finish_reason": "stop"}],
}


@pytest.mark.parametrize(
    "reply",
    [
        _streams(
            _delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "a greeting"}]}]),
            _delta(content=[{"type": "text", "text": "Good "}]),
            _delta("stop", content="morning!"),
        ),
        _streams(_delta("stop", content={"type": "text", "text": "Good morning!"})),
        _streams(_delta(content=[{"text": "Hm.", "thought": True}, {"type": "output_text", "text": "Good morning!"}])),
        _streams(
            _delta(reasoning_content="Hm."), _delta(reasoning="Hm.", content=None), _delta(content="Good morning!")
        ),
        _streams({"message": {"content": "Good morning!"}}),
        Reply(raw=json.dumps(WHOLE), headers=JSON),
        Reply(raw=json.dumps(WHOLE, indent=2), headers={"content-type": "text/plain"}),
        Reply(raw=f": wait\r\n\r\nevent: message\r\ndata:{json.dumps(WHOLE)}\r\n\r\n", headers=JSON),
        Reply(
            raw='data: {"choices": [{"delta": {"content": "Good morning!"}, "finish_reason": "stop"}]}', headers=STREAM
        ),
    ],
)
async def test_an_answer_of_another_shape_is_read(gateway: LLMGateway, model: ScriptedModel, reply: Reply) -> None:
    model.plays(reply)
    assert await gateway.chat(HELLO) == "Good morning!"


async def test_a_line_separator_inside_a_text_ends_no_event(gateway: LLMGateway, model: ScriptedModel) -> None:
    event = json.dumps({"choices": [_delta("stop", content="one\u2028two\x85")]}, ensure_ascii=False)
    model.plays(Reply(raw=f"data: {event}\n\n", headers=STREAM))
    assert await gateway.chat(HELLO) == "one\u2028two"


@pytest.mark.parametrize(
    "reply",
    [
        _called(index=0, id="a1", function={"name": "like", "arguments": {"uri": "at://x"}}),
        _called(index=None, id=None, function={"name": "like", "arguments": [{"uri": "at://x"}]}),
        _called(index="0", name="like", arguments={"uri": "at://x"}),
        _called(index=0, function={"name": "like", "input": {"uri": "at://x"}}),
        _called(index=0, function={"name": "like", "arguments": None, "parameters": {"uri": "at://x"}}),
        _streams(_delta(tool_calls={"function": {"name": "like", "arguments": {"uri": "at://x"}}}), _delta("stop")),
        _streams(_delta(function_call={"name": "like", "arguments": '{"uri": "at://x"}'}), _delta("function_call")),
        Reply(
            raw=json.dumps(
                {
                    "choices": [
                        {"message": {"tool_calls": [{"function": {"name": "like", "arguments": {"uri": "at://x"}}}]}}
                    ]
                }
            ),
            headers=JSON,
        ),
    ],
)
async def test_a_call_of_another_shape_is_read(gateway: LLMGateway, model: ScriptedModel, reply: Reply) -> None:
    model.plays(reply)
    (call,) = (await gateway.chat_with_tools(HELLO, tools=[LIKE])).tool_calls
    assert (call.name, call.input, call.malformed) == ("like", {"uri": "at://x"}, "")


async def test_calls_without_numbers_and_ids_are_told_apart(gateway: LLMGateway, model: ScriptedModel) -> None:
    parts = [{"function": {"name": "like", "arguments": json.dumps({"uri": uri})}} for uri in "ab"]
    model.plays(_streams(_delta(tool_calls=parts), _delta("tool_calls")))
    result = await gateway.chat_with_tools(HELLO, tools=[LIKE])
    assert [call.input["uri"] for call in result.tool_calls] == ["a", "b"]


SAID = '{"uri": "at://x", "why": "it {is} so"}'
PIECES = [SAID[:9], SAID[9:20], SAID[20:]]


def _piece(arguments: str, id: str | None = None, name: str | None = None) -> dict[str, Any]:  # noqa: A002 - wire name
    return {"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("again", [{}, {"id": "a1"}, {"id": "a1", "name": "like"}, {"id": "b7", "name": "like"}])
@pytest.mark.parametrize(
    "pieces",
    [
        [*PIECES, SAID],
        ["{}", *PIECES],
        [SAID[:end] for end in (9, 20, len(SAID))],
        ["", *PIECES],
        [SAID, SAID],
    ],
)
async def test_arguments_said_twice_are_those_of_one_call(
    gateway: LLMGateway, model: ScriptedModel, pieces: list[str], again: dict[str, str]
) -> None:
    if pieces[0] == "{}" and again.get("id") == "b7":
        again = {"id": "b7"}  # with another id and a name, arguments after an empty object belong to another call
    parts = [_piece(pieces[0], id="a1", name="like"), *(_piece(piece, **again) for piece in pieces[1:])]
    model.plays(_streams(*(_delta(tool_calls=[part]) for part in parts), _delta("tool_calls")))
    (call,) = (await gateway.chat_with_tools(HELLO, tools=[LIKE])).tool_calls
    assert (call.name, call.input, call.malformed) == ("like", json.loads(SAID), "")


@pytest.mark.parametrize("name", ["functions.like", "like<|channel|>commentary", "<|tool|>like", "functions.like:0"])
async def test_a_name_with_a_namespace_or_marks_is_that_of_the_tool(
    gateway: LLMGateway, model: ScriptedModel, name: str
) -> None:
    model.plays(calls((name, '{"uri": "a"}')))
    (call,) = (await gateway.chat_with_tools(HELLO, tools=[LIKE, ToolSpec("wait", "Waits.", {})])).tool_calls
    assert (call.name, call.input) == ("like", {"uri": "a"})


@pytest.mark.parametrize(
    ("deltas", "finish", "refusal"),
    [
        (({"content": None, "refusal": ""}, {"refusal": "I can't "}, {"refusal": "help."}), "stop", "I can't help."),
        (({"content": [{"type": "refusal", "refusal": "No."}]},), "stop", "No."),
        (({"content": ""},), "content_filter", "content_filter"),
        (({"content": "Half of an"},), "content_filter", "content_filter"),
        (({"content": ""},), "SAFETY", "SAFETY"),
        (({"content": ""},), "stop", ""),
    ],
)
async def test_a_refusal_is_told_as_one_and_not_asked_about_again(
    gateway: LLMGateway, model: ScriptedModel, deltas: tuple[dict[str, Any], ...], finish: str, refusal: str
) -> None:
    model.plays(_streams(*(_delta(**delta) for delta in deltas), _delta(finish)))
    result = await gateway.chat_with_tools(HELLO, tools=[LIKE], tool_choice="required")
    assert (result.text, result.refusal, len(model.requests)) == ("", refusal, 1)


@pytest.mark.parametrize("word", ["MAX_TOKENS", "model_length"])
async def test_a_limit_is_known_under_every_name(gateway: LLMGateway, model: ScriptedModel, word: str) -> None:
    model.plays(says("Once upon a", finish=word))
    assert (await gateway.chat_with_tools(HELLO)).stop_reason == "max_tokens"


@pytest.mark.parametrize(
    "message",
    [
        "Thinking mode does not support this tool_choice",
        "The tool_choice parameter does not support being set to required or object in thinking mode",
        "Thinking may not be enabled when tool_choice forces tool use.",
        "Tool choice is required, but model did not call a tool",
        "Invalid value for 'toolChoice'",
    ],
)
async def test_where_no_tool_may_be_required_one_is_offered_then_and_later(
    gateway: LLMGateway, model: ScriptedModel, message: str
) -> None:
    model.plays(refuses(400, message), calls(("like", '{"uri": "a"}')), calls(("like", '{"uri": "b"}')))
    for _ in range(2):
        result = await gateway.chat_with_tools(HELLO, tools=[LIKE], tool_choice="required")
        assert len(result.tool_calls) == 1
    assert [request["tool_choice"] for request in model.requests] == ["required", "auto", "auto"]


async def test_where_no_choice_is_known_none_is_named(gateway: LLMGateway, model: ScriptedModel) -> None:
    model.plays(refuses(422, "unknown field tool_choice"), refuses(422, "unknown field tool_choice"), says("hm"))
    await gateway.chat_with_tools(HELLO, tools=[LIKE], tool_choice="required")
    assert [request.get("tool_choice") for request in model.requests] == ["required", "auto", None]


async def test_the_words_of_an_error_in_place_of_an_answer_reach_the_owner(
    gateway: LLMGateway, model: ScriptedModel
) -> None:
    model.plays(Reply(raw='[{"error": {"code": 400, "message": "no such model"}}]', headers=JSON))
    with pytest.raises(SoulError, match="no such model"):
        await gateway.chat(HELLO)


EXTRA = {"type": "extra_forbidden", "loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}


@pytest.mark.parametrize(
    "told",
    [
        [{"error": {"code": 400, "message": "unknown name temperature", "status": "INVALID_ARGUMENT"}}],
        {"object": "error", "message": {"detail": [EXTRA]}, "type": "invalid_request_error", "code": None},
        {"detail": [EXTRA]},
        {"error": "temperature is not supported", "error_type": "validation"},
        {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "no temperature here"}}},
        "temperature: not supported",
    ],
)
async def test_a_refusal_of_any_shape_is_learned_from_and_told(
    gateway: LLMGateway, model: ScriptedModel, told: object
) -> None:
    refused = Reply(status=400, raw=told if isinstance(told, str) else json.dumps(told), headers=JSON)
    model.plays(refused, says("yes"), refused)
    assert await gateway.chat(HELLO, temperature=0) == "yes"
    with pytest.raises(SoulError, match="temperature"):
        await gateway.chat(HELLO)


@pytest.mark.parametrize(
    "told",
    ["Unexpected role 'user' after role 'tool'", "Conversation roles must alternate user/assistant/user/assistant"],
)
async def test_where_roles_must_alternate_a_silent_answer_stands_between_two_that_do_not(
    gateway: LLMGateway, model: ScriptedModel, told: str
) -> None:
    called = Message("assistant", (ToolCall("c1", "look", {}),))
    answered = Message("user", (ToolAnswer("c1", "look", "seen"),))
    talk = [Message("user", "Look."), called, answered, Message("user", "Well?"), Message("user", "Please?")]
    model.plays(refuses(400, told), says("yes"), says("yes"))
    await gateway.chat(talk)
    await gateway.chat(talk)
    roles = [[message["role"] for message in request["messages"]] for request in model.requests]
    first = ["user", "assistant", "tool", "user", "user"]
    after = ["user", "assistant", "tool", "assistant", "user", "assistant", "user"]
    assert roles == [first, after, after]


async def test_half_a_sign_in_an_answer_spoils_no_later_request(gateway: LLMGateway, model: ScriptedModel) -> None:
    model.plays(calls(("like", '{"uri": "\\ud83d roof"}'), text="Half \ud83d"), says("yes"))
    said = await gateway.chat_with_tools(HELLO, tools=[LIKE])
    (call,) = said.tool_calls
    talk = [*HELLO, create_assistant_tool_use_message(said.text, [call]), Message("user", "Well?")]
    assert await gateway.chat(talk) == "yes"
    assert (said.text, call.input) == ("Half \ufffd", {"uri": "\ufffd roof"})


async def test_what_a_service_counts_is_read_wherever_it_stands(gateway: LLMGateway, model: ScriptedModel) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5.0, "prompt_tokens_details": {"cached_tokens": 4}}
    model.plays(Reply(raw=json.dumps({**WHOLE, "usage": usage}), headers=JSON))
    assert (await gateway.chat_with_tools(HELLO)).usage == Usage(10, 5, cached_tokens=4)


async def test_the_fields_and_words_of_a_call_are_known_in_every_spelling(
    gateway: LLMGateway, model: ScriptedModel
) -> None:
    fields = {"shouldSpeak": {"type": "boolean"}, "type": {"type": "string", "enum": ["create_issue"]}}
    tool = ToolSpec("decide", "Decides.", {"type": "object", "properties": fields})
    model.plays(calls(("decide", '{"should_speak": "true", "Type": "CREATE ISSUE"}')))
    (call,) = (await gateway.chat_with_tools(HELLO, tools=[tool])).tool_calls
    assert call.input == {"shouldSpeak": True, "type": "create_issue"}


SIGNED = {"google": {"thought_signature": "CiQBVKhc7g=="}}
ONE_CALL = [{"index": 0, "id": "a1", "function": {"name": "like", "arguments": '{"uri": "a"}'}}]


def _answered(*asked: ToolCall) -> list[Message]:
    """Return the question, followed by a round of calls and their answers."""
    answers = create_tool_result_message(ToolAnswer(call.id, call.name, "liked") for call in asked)
    return [*HELLO, create_assistant_tool_use_message("", asked), answers]


@pytest.mark.parametrize(
    ("reply", "of_message", "of_call"),
    [
        (
            _streams(
                _delta(reasoning_content="It is "),
                _delta(reasoning_content="kind."),
                _delta(tool_calls=ONE_CALL),
                _delta("tool_calls"),
            ),
            {"reasoning_content": "It is kind."},
            {},
        ),
        (
            _streams(_delta(reasoning_content=""), _delta("tool_calls", tool_calls=ONE_CALL)),
            {"reasoning_content": ""},
            {},
        ),
        (
            _streams(
                _delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "It is "}]),
                _delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "kind.", "signature": "s1"}]),
                _delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 0, "data": "x"}]),
                _delta("tool_calls", tool_calls=ONE_CALL),
            ),
            {
                "reasoning_details": [
                    {"type": "reasoning.text", "index": 0, "text": "It is kind.", "signature": "s1"},
                    {"type": "reasoning.encrypted", "index": 0, "data": "x"},
                ]
            },
            {},
        ),
        (_called(**ONE_CALL[0], extra_content=SIGNED), {}, {"extra_content": SIGNED}),
    ],
)
async def test_what_a_service_sends_beside_a_call_goes_back_to_it_with_the_call(
    gateway: LLMGateway,
    model: ScriptedModel,
    reply: Reply,
    of_message: dict[str, Any],
    of_call: dict[str, Any],
) -> None:
    model.plays(reply, says("done"))
    asked = (await gateway.chat_with_tools(HELLO, tools=[LIKE])).tool_calls
    await gateway.chat_with_tools(_answered(*asked), tools=[LIKE])
    said = model.requests[1]["messages"][1]
    (called,) = said.pop("tool_calls")
    assert said == {"role": "assistant", "content": None, **of_message}
    assert {name: called[name] for name in called if name not in {"id", "type", "function"}} == of_call


@pytest.mark.parametrize(
    ("refused", "stand_in"),
    [
        (
            refuses(400, "The `reasoning_content` in the thinking mode must be passed back to the API."),
            "reasoning_content",
        ),
        (
            Reply(
                status=400,
                error={
                    "error": {
                        "code": 400,
                        "message": "Provider returned error",
                        "metadata": {
                            "raw": '{"message": "thinking is enabled but reasoning_content is missing in assistant'
                            ' tool call message at index 2"}',
                            "provider_name": "Moonshot AI",
                        },
                    }
                },
            ),
            "reasoning_content",
        ),
        (
            Reply(
                status=400,
                raw='[{"error": {"code": 400, "message": "Function call is missing a thought_signature in functionCall'
                ' parts. This is required for tools to work correctly", "status": "INVALID_ARGUMENT"}}]',
                headers=JSON,
            ),
            "skip_thought_signature_validator",
        ),
    ],
)
async def test_a_call_whose_thought_is_not_known_gets_a_stand_in_where_a_service_wants_one(
    gateway: LLMGateway, model: ScriptedModel, refused: Reply, stand_in: str
) -> None:
    model.plays(refused, says("done"), says("done"))
    for _ in range(2):
        await gateway.chat_with_tools(_answered(ToolCall("a1", "like", {"uri": "a"})), tools=[LIKE])
    assert [stand_in in json.dumps(request["messages"][1]) for request in model.requests] == [False, True, True]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning_details", "extra_content"])
async def test_the_thought_of_another_service_is_left_out_where_it_is_not_taken(
    gateway: LLMGateway, model: ScriptedModel, name: str
) -> None:
    forbidden = {**EXTRA, "loc": ["body", "messages", 1, "assistant", name]}
    model.plays(Reply(status=422, error={"object": "error", "message": {"detail": [forbidden]}}), says("done"))
    thought = {"reasoning_content": "Hm.", "reasoning_details": [{"type": "reasoning.text"}], "extra_content": SIGNED}
    await gateway.chat_with_tools(_answered(ToolCall("a1", "like", {"uri": "a"}, service_fields=thought)), tools=[LIKE])
    assert [f'"{name}"' in json.dumps(request["messages"][1]) for request in model.requests] == [True, False]
    assert model.requests[1]["messages"][1]["tool_calls"][0]["function"]["name"] == "like"
