"""Proves that a model's private thinking is no part of its answer, whatever its maker marks it with."""

import pytest

from modules.runtime.llm.answers import read
from modules.runtime.llm.reasoning import said_values
from modules.runtime.llm.stream import RawCall, StreamedAnswer
from modules.runtime.llm.types import ToolSpec

SAID = "Good morning!"
LIKE = ToolSpec("like", "Likes.", {"type": "object", "properties": {"uri": {"type": "string"}}})


def _said(text: str) -> str:
    return read(StreamedAnswer(text=text, finish="stop"), (), required=False, new_id=lambda: "1").text


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<Reasoning>", "</Reasoning>"),
        ("<antThinking>", "</antThinking>"),
        ('<think signature="a1">', "</think>"),
        ("&lt;think&gt;", "&lt;/think&gt;"),
        ("[THINK]", "[/THINK]"),
        ("<inner_monologue>", "</inner_monologue>"),
        ("<|thinking_start|>", "<|thinking_end|>"),
        ("◁think▷", "◁/think▷"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|channel>thought\n", "<channel|>"),
        ("<|inner_prefix|>", "<|inner_suffix|>"),
        ("<\uff5cbegin▁of▁thought\uff5c>", "<\uff5cend▁of▁thought\uff5c>"),
        ("[THOUGHTS]", "[/THOUGHTS]"),
    ],
)
def test_what_stands_between_or_before_marks_is_not_said(opening: str, closing: str) -> None:
    thought = "\nShe sounds impatient.\n"
    assert _said(f"{opening}{thought}{closing}\n\n{SAID}") == SAID
    assert _said(f"{thought}{closing}\n\n{SAID}") == SAID
    assert _said(f"{SAID}\n{opening}{thought}") == SAID
    assert _said(f"{opening}{thought}") == ""
    assert _said(f"{opening}{opening}{thought}{closing}{thought}{closing}{SAID}") == SAID
    assert _said(f"{opening}{closing}{SAID}") == SAID


@pytest.mark.parametrize(
    "text",
    [
        f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{SAID}<|return|>",
        f"analysisWe need to greet.assistantfinal{SAID}",
        f'<details type="reasoning" done="true">\n<summary>Thought</summary>\n> Hm.\n</details>\n{SAID}',
        f"<think>Hm.</think><answer>\n{SAID}\n</answer>",
        f"<think>\n</think>\n<response>{SAID}</response>",
        f"<|begin_of_thought|>Hm.<|end_of_thought|><|begin_of_solution|>{SAID}<|end_of_solution|>",
        f"{SAID}<\uff5cend▁of▁sentence\uff5c>",
        f"I close it by `</think>`.\n</think>\n{SAID}",
        f"<think>```py\nfirst\n</think>\n{SAID}",
        f"Hm. </think> {SAID}",
        f"[think]Hm.[/think]{SAID}",
        f"\u200b<think>Hm.</think>{SAID}",
        f"<think/>\n{SAID}",
    ],
)
def test_of_channels_wrappings_and_templates_only_the_answer_is_said(text: str) -> None:
    assert _said(text) == SAID


@pytest.mark.parametrize("text", ["<|channel|>analysis<|message|>Hm, she", "analysisWe need to", "<|channel|>fin"])
def test_where_no_answer_was_reached_nothing_is_said(text: str) -> None:
    assert _said(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "I think, and [thinking] aloud I wonder.",
        "The parser drops `<think>` and `</think>`.",
        "Thoughts > words.",
        "The token <|im_end|> ends a message. Then the next one begins.",
        "The token <|channel|> begins a channel.",
        "Models begin by <think> and end by </think>, as a rule.",
        "The pair <think>x</think> marks it.",
        "<ReasonCode>7</ReasonCode>\n<AnalysisResult>ok</AnalysisResult>",
        "analysisReport.md holds it.",
        "So it looks:\n\n```xml\n<analysis>\n  <row/>\n</analysis>\n```\n\nThat is all.",
        "~~~\n<|im_start|>user\nHello<|im_end|>\n~~~\n\nThat is all.",
    ],
)
def test_who_only_speaks_of_thinking_is_heard(text: str) -> None:
    assert _said(text) == text


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
    answer = StreamedAnswer(calls=[RawCall("1", "like", arguments)], finish="tool_calls")
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
