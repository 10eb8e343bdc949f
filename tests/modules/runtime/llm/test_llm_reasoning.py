"""Proves that a model's private thinking is no part of its answer, whatever its maker marks it with."""

import json

import pytest

from modules.runtime.llm.answers import read
from modules.runtime.llm.dialect import Message, ToolSpec
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.reasoning import said_values
from modules.runtime.llm.stream import RawCall, StreamedAnswer
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, says
from tests.modules.runtime.llm.thoughts import LEAKS, SAID, TRUE

LEAST_LEAKS = 100
LIKE = ToolSpec("like", "Likes.", {"type": "object", "properties": {"uri": {"type": "string"}}})


def _said(text: str) -> str:
    return read(StreamedAnswer(text=text, finish="stop"), (), required=False, new_id=lambda: "1").text


def test_of_an_answer_only_what_is_meant_for_others_is_said() -> None:
    assert len(set(LEAKS)) >= LEAST_LEAKS
    assert [text for text in LEAKS if _said(text) != SAID] == []


def test_what_only_looks_like_a_mark_is_said() -> None:
    assert [text for text in TRUE if _said(text) != text] == []


@pytest.mark.slow
async def test_no_thought_passes_the_gateway_streamed_or_whole(gateway: LLMGateway, model: ScriptedModel) -> None:
    for text, said in [*((text, SAID) for text in LEAKS), *((text, text) for text in TRUE)]:
        whole = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
        model.plays(says(text), Reply(raw=json.dumps(whole), headers={"content-type": "application/json"}))
        assert [await gateway.chat([Message("user", "Hello")]) for _ in range(2)] == [said, said]


@pytest.mark.parametrize(
    "text",
    [
        *("<|channel|>analysis<|message|>Hm, she", "analysisWe need to", "<|channel|>fin"),
        *("<think>\nHm.", "Hm.\n</think>", "[THINK]Hm.[THINK]", "Hm.\n[/THINK]\n"),
    ],
)
def test_where_no_answer_was_reached_nothing_is_said(text: str) -> None:
    assert _said(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "analysisReport.md",
        "# Types\n\n```java\nMap<ReasonCode, X> a; List<Thought> b;\n```\n\nEnd.",
        "I hate it when models print </think> in public.",
        "How models speak: <|channel|>analysis<|message|>Hm.<|end|>",
    ],
)
def test_an_argument_of_a_call_stays_as_it_is_unless_a_thought_leads_it(text: str) -> None:
    assert said_values({"uri": [text]}) == {"uri": [text]}


@pytest.mark.parametrize(
    "arguments", ['{"uri": "Okay.</think>at://x"}', '<think>Not {"uri": "at://y"}.</think>{"uri": "at://x"}']
)
def test_no_argument_of_a_call_holds_a_thought(arguments: str) -> None:
    answer = StreamedAnswer(calls=[RawCall("1", "like", [arguments])], finish="tool_calls")
    (call,) = read(answer, [LIKE], required=False, new_id=lambda: "1").tool_calls
    assert call.input == {"uri": "at://x"}


def test_a_call_in_a_thought_is_none_and_one_in_a_channel_is_one() -> None:
    inside = '<think><tool_call>{"name": "like", "arguments": {"uri": "at://x"}}</tool_call></think>No.'
    channel = (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.like "
        '<|constrain|>json<|message|>{"uri": "at://x"}<|call|>'
    )
    results = [
        read(StreamedAnswer(text=text, finish="stop"), [LIKE], required=False, new_id=lambda: "1")
        for text in (inside, channel)
    ]
    assert [[call.input for call in result.tool_calls] for result in results] == [[], [{"uri": "at://x"}]]
    assert [result.text for result in results] == ["No.", ""]
