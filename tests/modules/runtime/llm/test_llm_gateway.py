"""Proves what the gateway to the model does when the service behind it behaves, and when it does not.

Proves that an event stream is read as the standard defines it, in whatever pieces it comes. Proves how the usage of
calls is added up, and what its log line says.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import FakeClock
from common.constants import LLM_ANSWER_TOKENS, LLM_LEAST_OUTPUT_TOKENS
from common.errors import Fatal, ModelRefused, PromptTooLong, SoulError, Transient
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.llm.connection import NoBudgetGuard
from modules.runtime.llm.dialect import ChatResult, Message, ToolSpec, Usage
from modules.runtime.llm.gateway import CUT_MARK, LLMGateway, UsageLog
from modules.runtime.llm.policy import LLM_THOUGHT_TOKENS
from modules.runtime.llm.stream import END, SaidError, chunks
from tests.loopback import held_port, to_loopback
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, calls, refuses, says, scripted_gateway
from tests.patience import while_time_passes

T = TypeVar("T")

HELLO = [Message("user", "hello")]
LIKE = ToolSpec("like", "Likes.", {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]})
QUIET = ToolSpec("stay_silent", "Says nothing.", {"type": "object", "properties": {}})


async def with_time(awaited: Awaitable[T], clock: FakeClock) -> tuple[T | BaseException, float]:
    """Return the outcome of `awaited` while the clock is moved on, and the seconds that it took."""
    start = clock.monotonic()
    (outcome,) = await asyncio.gather(while_time_passes(clock, awaited), return_exceptions=True)
    return outcome, clock.monotonic() - start


async def test_text_is_gathered_from_the_stream_with_its_usage_and_recorded_once(
    gateway: LLMGateway, model: ScriptedModel, used: list[tuple[ChatResult, str]]
) -> None:
    model.plays(says("Good morning, friend."))
    result = await gateway.chat_with_tools(HELLO, system="be kind", purpose="test")
    assert (result.text, result.stop_reason, result.usage) == ("Good morning, friend.", "end_turn", Usage(10, 5))
    assert (result.model, result.attempts) == ("scripted-1", 1)
    assert used == [(result, "test")]
    (request,) = model.requests
    assert request["messages"] == [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
    assert request["stream"] is True
    assert request["stream_options"] == {"include_usage": True}
    assert not {"tools", "tool_choice", "temperature"} & request.keys()


async def test_a_finished_empty_answer_means_nothing_to_say(gateway: LLMGateway, model: ScriptedModel) -> None:
    model.plays(says(""))
    assert await gateway.chat(HELLO) == ""
    assert len(model.requests) == 1


async def test_several_tool_calls_are_put_together_from_their_pieces(gateway: LLMGateway, model: ScriptedModel) -> None:
    model.plays(calls(("like", '{"uri": "at://one/long/uri"}'), ("stay_silent", ""), text="Well. "))
    result = await gateway.chat_with_tools(HELLO, tools=[LIKE, QUIET])
    assert [(call.id, call.name, call.input) for call in result.tool_calls] == [
        ("srv-0", "like", {"uri": "at://one/long/uri"}),
        ("srv-1", "stay_silent", {}),
    ]
    assert (result.text, result.stop_reason) == ("Well.", "tool_use")
    assert model.requests[0]["tool_choice"] == "auto"


async def test_a_service_that_numbers_every_call_zero_is_understood_by_its_ids(
    gateway: LLMGateway, model: ScriptedModel
) -> None:
    reply = calls(("like", '{"uri": "a"}'), ("like", '{"uri": "b"}'))
    for chunk in reply.chunks:
        for choice in chunk["choices"]:
            for part in choice["delta"].get("tool_calls", []):
                part["index"] = 0
    model.plays(reply)
    result = await gateway.chat_with_tools(HELLO, tools=[LIKE])
    assert [call.input["uri"] for call in result.tool_calls] == ["a", "b"]


async def test_a_required_tool_is_sent_as_required(gateway: LLMGateway, model: ScriptedModel) -> None:
    model.plays(calls(("like", '{"uri": "a"}')))
    await gateway.chat_with_tools(HELLO, tools=[LIKE], tool_choice="required")
    (request,) = model.requests
    assert request["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in request["tools"]] == ["like"]


async def test_unreadable_arguments_are_marked_malformed_and_readable_ones_repaired(
    gateway: LLMGateway, model: ScriptedModel
) -> None:
    model.plays(calls(("like", '{"uri": '), ("like", 'Here: {"uri": "a"}.')))
    result = await gateway.chat_with_tools(HELLO, tools=[LIKE])
    broken, repaired = result.tool_calls
    assert broken.malformed
    assert (repaired.malformed, repaired.input) == ("", {"uri": "a"})


async def test_a_call_written_as_text_becomes_a_call(gateway: LLMGateway, model: ScriptedModel) -> None:
    model.plays(
        says('Sure.\n<tool_call>\n{"name": "like", "arguments": {"uri": "a"}}\n</tool_call>'),
        says('{"name": "like", "arguments": {"uri": "b"}}'),
        says('So: {"name": "like", "arguments": {"uri": "c"}}'),
    )
    tagged = await gateway.chat_with_tools(HELLO, tools=[LIKE, QUIET])
    bare = await gateway.chat_with_tools(HELLO, tools=[LIKE, QUIET], tool_choice="required")
    shown = await gateway.chat_with_tools(HELLO, tools=[LIKE, QUIET])
    assert (tagged.text, tagged.stop_reason) == ("Sure.", "tool_use")
    assert [result.tool_calls[0].input["uri"] for result in (tagged, bare)] == ["a", "b"]
    assert (shown.tool_calls, shown.stop_reason) == ((), "end_turn")


async def test_a_cut_call_is_asked_again_once_with_more_room_and_both_are_counted(
    gateway: LLMGateway, model: ScriptedModel, used: list[tuple[ChatResult, str]]
) -> None:
    model.plays(says('{"name": "like", "argu', finish="length"), calls(("like", '{"uri": "a"}')))
    result = await gateway.chat_with_tools(HELLO, tools=[LIKE], tool_choice="required", max_tokens=300)
    assert (result.stop_reason, result.attempts, result.usage) == ("tool_use", 2, Usage(30, 13))
    assert [request["max_tokens"] for request in model.requests] == [300, 1200]
    assert len(used) == 1


@pytest.mark.parametrize(
    "reply",
    [says("<think>hm", finish="length"), calls(("like", '{"uri'), finish="length")],
    ids=["reasoning was shown", "half a call"],
)
async def test_an_answer_that_the_limit_leaves_empty_is_asked_again_and_then_said_to_be_cut(
    gateway: LLMGateway, model: ScriptedModel, reply: Reply
) -> None:
    model.plays(reply, reply)
    result = await gateway.chat_with_tools(HELLO, tools=[LIKE])
    assert (result.stop_reason, len(model.requests)) == ("max_tokens", 2)


async def test_a_cut_answer_stands_where_the_service_has_no_room_for_a_longer_one(
    gateway: LLMGateway, model: ScriptedModel
) -> None:
    no_room = refuses(400, "maximum context length is 2048 tokens, but 900 of input plus 4096 were asked for")
    model.plays(calls(("like", '{"uri'), finish="length"), no_room)
    result = await gateway.chat_with_tools(HELLO, tools=[LIKE])
    assert (result.stop_reason, result.attempts) == ("max_tokens", 2)
    assert [bool(call.malformed) for call in result.tool_calls] == [True]


async def test_prose_that_the_limit_cuts_is_kept_and_marked(
    gateway: LLMGateway, model: ScriptedModel, console: SilentConsole
) -> None:
    model.plays(says("Once upon a", finish="length"))
    result = await gateway.chat_with_tools(HELLO, tools=[LIKE])
    assert (result.text, result.stop_reason, len(model.requests)) == (f"Once upon a{CUT_MARK}", "max_tokens", 1)
    assert [kind for kind, *_ in console.lines] == ["warn"]


@pytest.mark.parametrize(
    ("room", "wanted", "limit"),
    [
        (190_000, None, LLM_ANSWER_TOKENS + LLM_THOUGHT_TOKENS),
        (190_000, 10, 10 + LLM_THOUGHT_TOKENS),
        (3_000, None, 3_000),
        (-5, None, LLM_LEAST_OUTPUT_TOKENS),
    ],
)
async def test_an_answer_has_the_length_it_needs_and_room_for_thoughts_as_far_as_the_context_leaves_it(
    model: ScriptedModel, clock: FakeClock, room: int, wanted: int | None, limit: int
) -> None:
    async with aclosing(scripted_gateway(model.url, clock, answer_room=lambda _: room)) as gateway:
        model.plays(says("yes"))
        await gateway.chat(HELLO, max_tokens=wanted)
    assert [request["max_tokens"] for request in model.requests] == [limit]


@pytest.mark.parametrize(
    ("refused", "limit", "is_kept"),
    [
        (
            refuses(400, "max_tokens is too large: 10000. This model supports at most 4096 completion tokens"),
            4_096,
            True,
        ),
        (refuses(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), 8_192, True),
        (refuses(400, "max_tokens exceeds what gpt-4 can output"), LLM_LEAST_OUTPUT_TOKENS, True),
        (refuses(402, "Add credit, or ask for fewer max_tokens: you asked for 10000 and can afford 3021"), 3_021, True),
        (
            refuses(400, "maximum context length is 8192 tokens, and you requested 10,010"),
            LLM_LEAST_OUTPUT_TOKENS,
            False,
        ),
    ],
)
async def test_a_service_that_allows_only_shorter_answers_is_asked_for_these(
    model: ScriptedModel, clock: FakeClock, refused: Reply, limit: int, *, is_kept: bool
) -> None:
    async with aclosing(scripted_gateway(model.url, clock, answer_room=lambda _: 190_000)) as gateway:
        model.plays(refused, says("yes"), says("yes"))
        assert [await gateway.chat(HELLO), await gateway.chat(HELLO)] == ["yes", "yes"]
    usual = LLM_ANSWER_TOKENS + LLM_THOUGHT_TOKENS
    asked = [request["max_tokens"] for request in model.requests]
    assert asked == [usual, limit, limit if is_kept else usual]


async def test_a_longer_answer_is_asked_for_within_what_the_model_can_write(
    model: ScriptedModel, clock: FakeClock
) -> None:
    async with aclosing(scripted_gateway(model.url, clock, answer_room=lambda _: 190_000)) as gateway:
        no_room = refuses(400, "max_tokens is too large: 42000. This model supports at most 16384 completion tokens")
        model.plays(says("<think>hm", finish="length"), no_room, says("whole"))
        assert await gateway.chat(HELLO) == "whole"
    assert [request["max_tokens"] for request in model.requests] == [10_000, 42_000, 16_384]


async def test_a_classifier_gets_at_least_the_floor_of_tokens(gateway: LLMGateway, model: ScriptedModel) -> None:
    model.plays(says("yes"), says("yes"))
    await gateway.chat(HELLO, max_tokens=10, temperature=0)
    await gateway.chat(HELLO)
    assert [request["max_tokens"] for request in model.requests] == [256, 1024]
    assert model.requests[0]["temperature"] == 0


async def test_a_refused_parameter_is_left_out_at_once_and_in_every_later_call(
    gateway: LLMGateway, model: ScriptedModel, clock: FakeClock
) -> None:
    model.plays(
        refuses(400, "Unsupported value: 'temperature' does not support 0 with this model."),
        refuses(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        says("yes"),
        says("no"),
    )
    before = clock.monotonic()
    assert await gateway.chat(HELLO, temperature=0) == "yes"
    assert await gateway.chat(HELLO, temperature=0) == "no"
    assert clock.monotonic() == before
    assert len(model.requests) == 4
    for request in model.requests[2:]:
        assert not {"temperature", "max_tokens"} & request.keys()
        assert request["max_completion_tokens"] == 1024


async def test_what_is_transient_is_tried_four_times_with_growing_waits(
    gateway: LLMGateway, model: ScriptedModel, clock: FakeClock, console: SilentConsole
) -> None:
    model.plays(*[refuses(503, "overloaded") for _ in range(4)])
    outcome, seconds = await with_time(gateway.chat(HELLO), clock)
    assert isinstance(outcome, Transient)
    assert "overloaded" in str(outcome)
    assert len(model.requests) == 4
    assert 35 <= seconds <= 35 * 1.3 + 2
    assert [line[0] for line in console.lines] == ["warn"] * 4
    assert "retry 1/3" in console.lines[0][1]


async def test_a_call_that_the_service_could_not_read_is_tried_four_times_and_then_given_up(
    gateway: LLMGateway, model: ScriptedModel, clock: FakeClock
) -> None:
    missed = refuses(400, "Failed to call a function.", code="tool_use_failed")
    model.plays(missed, calls(("like", '{"uri": "a"}')), *[missed] * 4)
    answered, _ = await with_time(gateway.chat_with_tools(HELLO, tools=[LIKE]), clock)
    assert isinstance(answered, ChatResult)
    outcome, _ = await with_time(gateway.chat_with_tools(HELLO, tools=[LIKE]), clock)
    assert isinstance(outcome, SoulError)
    assert not isinstance(outcome, Fatal | Transient)
    assert len(model.requests) == 6


async def test_a_service_that_recovers_is_answered_after_the_wait_it_asked_for(
    gateway: LLMGateway, model: ScriptedModel, clock: FakeClock
) -> None:
    model.plays(refuses(429, "slow down", retry_after="20"), says("back"))
    outcome, seconds = await with_time(gateway.chat_with_tools(HELLO), clock)
    assert isinstance(outcome, ChatResult)
    assert (outcome.text, outcome.attempts) == ("back", 2)
    assert 21 <= seconds <= 22
    assert outcome.seconds >= 21


@pytest.mark.parametrize(
    "broken",
    [
        Reply(chunks=says("half of").chunks[:2], done=False),
        Reply(raw='data: {"error": {"message": "try later", "code": 503}}\n\n'),
    ],
)
async def test_a_broken_stream_is_tried_again(
    gateway: LLMGateway, model: ScriptedModel, clock: FakeClock, broken: Reply
) -> None:
    model.plays(broken, says("whole"), says("whole"))
    outcome, _ = await with_time(gateway.chat(HELLO), clock)
    assert outcome == "whole"


async def test_nobody_listening_is_transient(clock: FakeClock) -> None:
    with held_port() as port:
        opened = _gateway(f"http://127.0.0.1:{port}/v1", clock, max_retries=1)
        outcome, _ = await with_time(opened.chat(HELLO), clock)
        await opened.aclose()
    assert isinstance(outcome, Transient)


@pytest.mark.parametrize(
    ("reply", "times"),
    [(refuses(402, "no money"), 2), (refuses(429, "quota", code="insufficient_quota"), 1)],
)
async def test_a_lasting_refusal_stops_at_once_and_says_how_to_mend_it(
    gateway: LLMGateway, model: ScriptedModel, reply: Reply, times: int
) -> None:
    model.plays(*[reply] * times)
    with pytest.raises(ModelRefused) as caught:
        await gateway.chat(HELLO)
    assert "billing" in caught.value.remedy
    assert "\n" not in str(caught.value)
    assert len(model.requests) == times


@pytest.mark.parametrize(
    ("refused", "remedy"),
    [
        (refuses(403, "This model requires moderation, and your input was flagged"), "moderation"),
        (refuses(402, "You requested up to 8000 tokens, but can only afford 5210."), "credit"),
        (Reply(raw='data: {"error": {"message": "the request is forbidden: it quotes a slur"}}\n\n'), "moderation"),
    ],
)
async def test_a_request_that_a_service_refuses_ends_no_life_where_it_answers_others(
    gateway: LLMGateway, model: ScriptedModel, refused: Reply, remedy: str
) -> None:
    model.plays(refused, says("ready"))
    with pytest.raises(SoulError, match="refuses this request") as caught:
        await gateway.chat([Message("user", "something that a stranger wrote")])
    assert not isinstance(caught.value, Fatal | Transient)
    assert remedy in caught.value.remedy
    assert "stranger" not in json.dumps(model.requests[1])


async def test_a_key_that_may_not_use_the_model_ends_the_life(gateway: LLMGateway, model: ScriptedModel) -> None:
    model.plays(refuses(403, "not for you"), refuses(403, "not for you"))
    with pytest.raises(ModelRefused, match="not for you") as caught:
        await gateway.chat(HELLO)
    assert "AI_GATEWAY_API_KEY" in caught.value.remedy
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    "refused",
    [
        refuses(400, "the request exceeds the available context size (4096 tokens), try increasing it"),
        Reply(
            raw='event: error\ndata: {"error": {"message": "loaded with context length of only 4096 tokens"}}\n\n',
            headers={"content-type": "text/event-stream"},
        ),
    ],
    ids=["by its status", "in the stream"],
)
async def test_a_prompt_too_long_for_the_model_is_said_plainly_and_does_not_stop_the_life(
    gateway: LLMGateway, model: ScriptedModel, refused: Reply
) -> None:
    model.plays(refused)
    with pytest.raises(PromptTooLong, match="too long for scripted") as caught:
        await gateway.chat(HELLO)
    assert "CONTEXT_TOKENS" in caught.value.remedy


async def test_a_rejected_request_is_not_repeated(
    gateway: LLMGateway, model: ScriptedModel, used: list[tuple[ChatResult, str]]
) -> None:
    model.plays(refuses(400, "no such model"))
    with pytest.raises(SoulError, match="no such model") as caught:
        await gateway.chat(HELLO)
    assert "AI_GATEWAY_MODEL" in caught.value.remedy
    assert len(model.requests) == 1
    assert used == []


@pytest.mark.parametrize(
    ("reply", "remedy"),
    [
        (refuses(404, "No endpoints found"), "AI_GATEWAY_MODEL"),
        (Reply(raw="<html>We are back soon</html>", headers={"content-type": "text/html"}), "AI_GATEWAY_BASE_URL"),
    ],
)
async def test_where_no_model_is_behind_the_address_no_request_is_at_fault(
    gateway: LLMGateway, model: ScriptedModel, reply: Reply, remedy: str
) -> None:
    model.plays(reply)
    with pytest.raises(Transient) as caught:
        await gateway.chat(HELLO)
    assert remedy in caught.value.remedy
    assert len(model.requests) == 1


async def test_a_secret_that_somebody_wrote_into_a_prompt_stays_here(model: ScriptedModel, clock: FakeClock) -> None:
    model.script.append(says("understood"))
    opened = _gateway(model.url, clock, redactor=Redactor(["hunter2-hunter2"]))
    await opened.chat([Message("user", "My password is hunter2-hunter2.")], system="It is hunter2-hunter2.")
    await opened.aclose()
    assert "hunter2" not in json.dumps(model.requests, default=str)
    assert "[redacted]" in json.dumps(model.requests, default=str)


@pytest.mark.slow
def test_importing_the_gateway_does_not_import_the_sdk() -> None:
    program = "import sys, modules.runtime.llm.gateway; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def _gateway(url: str, clock: FakeClock, *, max_retries: int = 3, redactor: Redactor | None = None) -> LLMGateway:
    return LLMGateway(
        redactor=redactor,
        transport=to_loopback,
        base_url=url,
        api_key="made-up",
        model="scripted",
        clock=clock,
        rng=Random(7),
        console=SilentConsole(),
        budget_guard=NoBudgetGuard(),
        idle_timeout_s=5,
        max_retries=max_retries,
    )


OBJECTS = st.lists(
    st.fixed_dictionaries({"text": st.text(max_size=20), "choices": st.just([{"index": 0}])}), max_size=4
)


async def _read(body: bytes, cuts: tuple[int, ...] = (), *, is_stream: bool = True) -> list[Any]:
    async def pieces() -> AsyncIterator[bytes]:
        for begin, end in pairwise((0, *sorted(cuts), len(body))):
            yield body[begin:end]

    return [one async for one in chunks(pieces(), is_stream=is_stream)]


def _event(value: object, indent: int | None, space: str) -> list[str]:
    return [f"data:{space}{line}" for line in json.dumps(value, indent=indent).split("\n")]


@given(
    objects=OBJECTS,
    line_end=st.sampled_from(["\n", "\r", "\r\n"]),
    begin=st.sampled_from(["", "\ufeff"]),
    indent=st.sampled_from([None, 0, 2]),
    data=st.data(),
)
async def test_the_same_is_read_with_every_line_end_and_in_every_piece(
    objects: list[dict[str, Any]], line_end: str, begin: str, indent: int | None, data: st.DataObject
) -> None:
    lines = [
        line
        for one in objects
        for line in (*_event(one, indent, data.draw(st.sampled_from(["", " "]))), ": a comment", "id: 1", "")
    ]
    body = (begin + line_end.join([*lines, "data: [DONE]", "", ""])).encode()
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=6))
    assert await _read(body, tuple(cuts)) == [*objects, END]


@given(objects=OBJECTS, data=st.data())
async def test_events_that_no_empty_line_parts_are_told_apart(
    objects: list[dict[str, Any]], data: st.DataObject
) -> None:
    body = "".join(f"data: {json.dumps(one)}\n" for one in objects).encode() + b"data: [DONE]\n"
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=6))
    assert await _read(body, tuple(cuts)) == [*objects, END]


@pytest.mark.parametrize(
    "body", ['event: error\ndata: {"message": "no"}\n\n', 'data: {"message": "no"}\nevent: error\n\n']
)
async def test_an_event_is_an_error_wherever_its_name_stands(body: str) -> None:
    with pytest.raises(SaidError, match="no"):
        await _read(body.encode())


async def test_a_mark_of_the_byte_order_is_no_part_of_a_json_answer() -> None:
    (found,) = await _read('\ufeff{"choices": []}'.encode(), is_stream=False)
    assert found == {"choices": []}


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (Usage(), Usage(3, 4), Usage(3, 4)),
        (Usage(1, 2, 0.5, "normal"), Usage(3, 4, 0.25, "cheaper"), Usage(4, 6, 0.75, "cheaper")),
        (Usage(1, 2, 0.5, "normal"), Usage(), Usage(1, 2, 0.5, "normal")),
        (Usage(), Usage(1, 2, 0.0), Usage(1, 2, 0.0)),
        (Usage(9, 1, cached_tokens=8), Usage(9, 1, cached_tokens=4), Usage(18, 2, cached_tokens=12)),
    ],
)
def test_tokens_and_known_dollars_are_added_and_the_later_step_stays(first: Usage, second: Usage, both: Usage) -> None:
    assert first + second == both


def test_the_model_that_was_asked_last_is_named() -> None:
    assert (Usage(model="large") + Usage(model="small") + Usage()).model == "small"


@pytest.mark.parametrize("usd", [0.0125, None])
def test_a_line_says_what_the_call_cost_if_that_is_known(tmp_path: Path, usd: float | None) -> None:
    result = ChatResult("hi", usage=Usage(10, 5, usd, cached_tokens=4), model="large", attempts=2, seconds=1.5)
    UsageLog(tmp_path / "usage.jsonl", FakeClock()).note(result, "reply")
    line = json.loads((tmp_path / "usage.jsonl").read_text())
    assert line == {
        "ts": "2026-01-05T12:00:00.000Z",
        "purpose": "reply",
        "model": "large",
        "input": 10,
        "cached": 4,
        "output": 5,
        "usd": usd,
        "attempts": 2,
        "ms": 1500,
    }
