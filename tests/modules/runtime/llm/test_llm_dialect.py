"""Proves how a request is worded for its model, and that no wording is larger than what was measured."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.runtime.budget.policy import input_bound
from modules.runtime.llm.dialect import (
    GROUPS,
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
from modules.services.agent.prompt.fitting import SystemPrompt

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
    """Blank lines stand where parts were, instead of one line break."""
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
