"""Proves how a request is worded for its model, and that no wording is larger than what was measured.

Proves that calls are found in what small models really write, and that quotations are not taken for calls. Proves that
a call written as text is a call or a failed one, never speech, whatever its marks. Proves that a model's private
thinking is no part of its answer, whatever marks its maker uses.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.runtime.budget.policy import input_bound
from modules.runtime.llm.answers import SalvagedCall, find_calls, looks_cut, parse_arguments, read
from modules.runtime.llm.dialect import (
    GROUPS,
    ChatResult,
    Image,
    Message,
    PromptBlock,
    Text,
    ToolAnswer,
    ToolCall,
    ToolSpec,
    chars_of,
    convert_messages,
    convert_tools,
    takes_cache_key,
    takes_marks,
    without_pictures,
    worded_for,
)
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.reasoning import said_values
from modules.runtime.llm.stream import RawCall, StreamedAnswer
from modules.services.agent.prompt.fitting import SystemPrompt
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, says
from tests.modules.runtime.llm.thoughts import LEAKS, SAID, TRUE

GATEWAY, OPENAI = "https://gateway.example/v1", "https://api.openai.com/v1"
BLOCKS = (PromptBlock("static", "I am."), PromptBlock("semi-static", "I know."), PromptBlock("dynamic", "It is noon."))
MARK = {"type": "ephemeral"}
SEEN = Image("k", "image/png", "a dot")
TALK = (
    Message("user", "first"),
    Message("assistant", "yes"),
    Message("user", "earlier"),
    Message("assistant", (Text("let me look"), ToolCall("1", "look", {}))),
    Message("user", (ToolAnswer("1", "look", "seen"),)),
    Message("assistant", "so it is"),
    Message("user", (Text("asked"), SEEN)),
    Message("assistant", (ToolCall("2", "look", {}),)),
    Message("user", (ToolAnswer("2", "look", "seen again"),)),
)


def full(model: str, system: str | Sequence[PromptBlock] = BLOCKS, *messages: Message) -> dict[str, Any]:
    wire = convert_messages(messages or [Message("user", "hi")], system)
    return {"model": model, "messages": wire, "max_tokens": 5, "prompt_cache_key": "Odile"}


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "openrouter/anthropic/x", "Claude"])
def test_a_model_that_must_be_told_what_to_keep_gets_a_mark_after_the_first_two_groups(model: str) -> None:
    first = worded_for(full(model), GATEWAY)["messages"][0]
    assert first["content"] == [
        {"type": "text", "text": "I am.", "cache_control": MARK},
        {"type": "text", "text": "I know.", "cache_control": MARK},
        {"type": "text", "text": "It is noon."},
    ]


@pytest.mark.parametrize("model", ["openai/gpt-5.2", "qwen"])
def test_any_other_gets_one_text_of_the_same_bytes(model: str) -> None:
    first = worded_for(full(model), GATEWAY)["messages"][0]
    assert first == {"role": "system", "content": "I am.\n\nI know.\n\nIt is noon."}
    assert first["content"] == SystemPrompt(BLOCKS, ()).text


def test_in_a_talk_the_last_words_of_the_user_before_and_those_that_are_answered_have_a_mark() -> None:
    _, *talk = worded_for(full("claude", BLOCKS, *TALK), GATEWAY)["messages"]
    earlier = [{"type": "text", "text": "earlier", "cache_control": MARK}]
    *words, picture = talk[6]["content"]
    assert [place for place, message in enumerate(talk) if isinstance(message["content"], list)] == [2, 6]
    assert talk[2] == {"role": "user", "content": earlier}
    assert [(part["text"], part.get("cache_control")) for part in words] == [("asked", None), ("a dot", MARK)]
    assert picture.keys() == {"type", "image_url"}
    plain = convert_messages(TALK)
    assert [talk[place] for place in (0, 1, 3, 4, 5, 7, 8)] == [plain[place] for place in (0, 1, 3, 4, 5, 7, 8)]


@pytest.mark.parametrize("system", ["I am.", BLOCKS[2:]])
def test_where_nothing_before_a_talk_is_kept_it_has_no_marks_either(system: str | Sequence[PromptBlock]) -> None:
    assert full("claude", system, *TALK)["messages"][1:] == convert_messages(TALK)


def test_a_message_without_words_bears_no_mark() -> None:
    silent = [Message("user", (Image("k", "image/png"),)), Message("user", (Text(" "), Image("k", "image/png")))]
    _, *talk = full("claude", BLOCKS, *TALK[:3], *silent)["messages"]
    assert ["cache_control" in json.dumps(message) for message in talk] == [True, False, True, False, False]


def test_without_an_earlier_talk_only_the_system_prompt_has_marks() -> None:
    turn = TALK[6:]
    assert full("claude", BLOCKS, *turn)["messages"][1:] == convert_messages(turn)


@pytest.mark.parametrize("kept", range(1, 7))
def test_the_talk_adds_no_mark_beyond_the_four_that_a_request_may_have(kept: int) -> None:
    asked = full("claude", [PromptBlock("static", "I am.")] * kept, *TALK)
    assert json.dumps(asked).count('"cache_control"') == max(kept, min(4, kept + 2))


def test_any_other_gets_the_talk_as_it_is_without_marks() -> None:
    first, *talk = worded_for(full("qwen", BLOCKS, *TALK), GATEWAY)["messages"]
    assert first["content"] == "I am.\n\nI know.\n\nIt is noon."
    assert talk == convert_messages(TALK)


def test_an_empty_block_is_no_part_and_a_prompt_of_empty_blocks_no_message() -> None:
    some = (PromptBlock("static", ""), PromptBlock("semi-static", "I know."), PromptBlock("dynamic", ""))
    parts = worded_for(full("claude", some), GATEWAY)["messages"][0]["content"]
    assert parts == [{"type": "text", "text": "I know.", "cache_control": MARK}]
    assert worded_for(full("gpt-5", some), GATEWAY)["messages"][0]["content"] == "I know."
    nothing = [PromptBlock(group, "") for group in GROUPS]
    assert [message["role"] for message in full("claude", nothing)["messages"]] == ["user"]


@pytest.mark.parametrize(
    ("model", "url", "takes"),
    [
        ("gpt-5.2", GATEWAY, True),
        ("o3-mini", GATEWAY, True),
        ("ft:something", OPENAI, True),
        ("mine", "https://me.openai.azure.com/v1", True),
        ("mine", "https://notopenai.com/v1", False),
        ("qwen3", "http://127.0.0.1:8080/v1", False),
    ],
)
def test_the_key_goes_only_to_whom_it_means_something(model: str, url: str, *, takes: bool) -> None:
    assert takes_cache_key(model, url) is takes
    assert ("prompt_cache_key" in worded_for(full(model), url)) is takes


@given(
    model=st.sampled_from(["claude", "gpt-5", "qwen"]),
    texts=st.lists(st.text(max_size=30), min_size=3, max_size=3),
    said=st.text(min_size=1, max_size=20),
)
def test_no_wording_is_larger_than_the_full_one_and_none_loses_a_word(model: str, texts: list[str], said: str) -> None:
    blocks = [PromptBlock(group, text) for group, text in zip(GROUPS, texts, strict=True)]
    whole = full(model, blocks, *TALK, Message("user", (Text(said), SEEN)))
    worded = worded_for(whole, GATEWAY)
    assert input_bound(without_pictures(worded)) <= input_bound(worded) <= input_bound(whole)
    assert chars_of(worded) == chars_of(whole) + _joints(model, texts)


def _joints(model: str, texts: list[str]) -> int:
    """Return the extra characters where parts are joined by blank lines, not by single line breaks."""
    parts = len([text for text in texts if text])
    return 0 if takes_marks(model) else max(0, parts - 1)


def test_without_pictures_the_words_are_what_a_blind_model_would_have_been_told_at_once() -> None:
    seen = Message("user", (Text("look"), SEEN, Text("well?")))
    told = Message("user", (Text("look"), Text("a dot"), Text("well?")))
    assert without_pictures(full("m", "", seen)) == full("m", "", told)
    assert without_pictures(full("m", BLOCKS, seen, seen)) == full("m", BLOCKS, told, told)


def test_characters_are_those_of_prompt_words_calls_and_tools_but_not_of_pictures() -> None:
    said = [
        Message("user", (Text("look"), Image("media/key", "image/png", "a dot"))),
        Message("assistant", (ToolCall("1", "like", {"uri": "at"}),)),
    ]
    bare = full("m", "be", *said)
    call = len('{"name": "like", "arguments": "{\\"uri\\": \\"at\\"}"}')
    assert chars_of(bare) == len("be") + len("look\na dot") + call
    tools = convert_tools([ToolSpec("like", "Likes.", {"type": "object"})])
    tool = len('{"name": "like", "description": "Likes.", "parameters": {"type": "object"}}')
    assert chars_of(bare | {"tools": tools}) == chars_of(bare) + tool


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


@pytest.mark.parametrize(
    "raw", ['{"a": 1', '{"a": {}, "b": "', '{"a": "x = {};', "[1, 2]", "no json", "null", "{" * 5000]
)
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


LEAST_LEAKS = 100


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
