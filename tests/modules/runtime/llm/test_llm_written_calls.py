"""Proves that a call which a model wrote as text is a call or a failed one, never speech, whatever marks it has."""

import pytest

from modules.runtime.llm.answers import read
from modules.runtime.llm.dialect import ChatResult, ToolSpec
from modules.runtime.llm.stream import StreamedAnswer

LIKE = ToolSpec("like", "Likes.", {"type": "object", "properties": {"uri": {"type": "string"}}})
POST = ToolSpec("post", "Posts.", {"type": "object", "properties": {"text": {"type": "string"}}})
CALL = '{"name": "like", "arguments": {"uri": "at://x"}}'
BAR, LOW = "\uff5c", "\u2581"
KIMI = (
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.like:0<|tool_call_argument_begin|>{"uri": "at://x"}'
    "<|tool_call_end|><|tool_calls_section_end|>"
)
DEEPSEEK = (
    f"<{BAR}tool{LOW}calls{LOW}begin{BAR}><{BAR}tool{LOW}call{LOW}begin{BAR}>function<{BAR}tool{LOW}sep{BAR}>like\n"
    f'```json\n{{"uri": "at://x"}}\n```<{BAR}tool{LOW}call{LOW}end{BAR}><{BAR}tool{LOW}calls{LOW}end{BAR}>'
)
BARE = ['{"tool": "like", "args": {"uri": "at://x"}}', f"```json\n{CALL}\n```", f"[{CALL}]"]
WRITTEN = [
    f"<tool_call>{CALL}</tool_call>",
    f"<function_call>{CALL}</function_call>",
    f"<tool_call>[{CALL}]</tool_call>",
    f"[TOOL_CALLS] [{CALL}]",
    '[TOOL_CALLS]like[ARGS]{"uri": "at://x"}',
    '<function=like>{"uri": "at://x"}</function>',
    "<tool_call>\n<function=like>\n<parameter=uri>\nat://x\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>like\n<arg_key>uri</arg_key>\n<arg_value>at://x</arg_value>\n</tool_call>",
    '<function_calls><invoke name="like"><parameter name="uri">at://x</parameter></invoke></function_calls>',
    '<minimax:tool_call>\n<invoke name="like">\n<parameter name="uri">at://x</parameter>\n</invoke>\n</minimax:tool_call>',
    '<|python_tag|>{"name": "like", "parameters": {"uri": "at://x"}}',
    '<|python_tag|>like(uri="at://x")',
    KIMI,
    DEEPSEEK,
    f"<|tool_call|>[{CALL}]<|/tool_call|>",
    '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "like", "parameters": {"uri": "at://x"}}]<|END_ACTION|>',
    '<tool_call>{"type": "function", "function": {"name": "like", "arguments": "{\\"uri\\": \\"at://x\\"}"}}</tool_call>',
]


def _read(text: str, *tools: ToolSpec, required: bool = False) -> ChatResult:
    return read(StreamedAnswer(text=text, finish="stop"), tools, required=required, new_id=lambda: "1")


@pytest.mark.parametrize("written", WRITTEN)
def test_a_call_in_any_makers_marks_is_a_call(written: str) -> None:
    for text, said in ((written, ""), (f"I like it.\n{written}\n", "I like it.")):
        if said and written.startswith("{"):
            continue
        result = _read(text, LIKE, POST)
        assert [(call.name, call.input, call.malformed) for call in result.tool_calls] == [
            ("like", {"uri": "at://x"}, "")
        ]
        assert result.text == said


@pytest.mark.parametrize("written", WRITTEN)
def test_it_is_no_speech_where_no_tool_is_offered_another_is_or_words_follow(written: str) -> None:
    assert (_read(written).text, _read(written).tool_calls) == ("", ())
    assert [call.name for call in _read(written, POST).tool_calls] == ["like"]
    claimed = _read(f"{written}\nI liked the post of @bob.test.", LIKE, POST)
    assert claimed.text == ""
    assert all(call.malformed for call in claimed.tool_calls)
    assert claimed.tool_calls


@pytest.mark.parametrize("text", ["<tool_call>hm", "<function=", "[TOOL_CALLS]", "<tool_call></tool_call>"])
def test_one_that_cannot_be_read_is_told_to_the_model(text: str) -> None:
    result = _read(text, LIKE, POST)
    assert result.text == ""
    assert [bool(call.malformed) for call in result.tool_calls] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "The mark `<tool_call>` begins a call.",
        f'"<tool_call>{CALL}</tool_call>" is what they wrote.',
        "I call it a tool call, [as you see].",
        "function calls are dear",
        "Models mark calls by <tool_call> elements. This page tells how.",
        f"# Parser\n\n```\n[TOOL_CALLS] [{CALL}]\n```\n\nIt reads such a line.",
        f"# Parser\n\n```\n<tool_call>{CALL}</tool_call>\n```\n\nIt reads such a line.",
        "Some write <function=name> instead.",
    ],
)
def test_who_only_speaks_of_calls_is_heard(text: str) -> None:
    assert (_read(text, LIKE, POST).text, _read(text, LIKE, POST).tool_calls) == (text, ())


def test_an_object_with_a_name_and_parameters_is_an_answer_where_no_tool_is_offered() -> None:
    text = '{"name": "rowan", "parameters": {"color": "tin"}}'
    assert (_read(text).text, _read(text).tool_calls) == (text, ())


def test_a_marked_call_that_is_fenced_as_the_whole_answer_or_stands_behind_a_sentence_is_one() -> None:
    marked = f"<tool_call>{CALL}</tool_call>"
    for text, said in ((f"```\n{marked}\n```", ""), (f"I like it. {marked}", "I like it.")):
        result = _read(text, LIKE, POST)
        assert ([call.input for call in result.tool_calls], result.text) == ([{"uri": "at://x"}], said)
