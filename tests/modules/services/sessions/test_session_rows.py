"""Proves that a message survives its row and its line in an archive, whatever it holds."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.redact import MASK, Redactor
from modules.runtime.llm.dialect import Image, Message, Text, ToolAnswer, ToolCall, convert_messages
from modules.services.sessions.types import (
    ArchivedLine,
    Role,
    dump,
    from_fields,
    pack,
    parts,
    redacted,
    to_fields,
    unpack,
)
from tests.exploration import examples
from tests.modules.services.sessions.session_values import MESSAGES, answers, asks, joined, normal, rows_of

SECRET = "correct-horse-battery"


@settings(max_examples=examples(80))
@given(MESSAGES)
def test_a_message_comes_back_from_its_rows_in_normal_form(message: Message) -> None:
    back = joined((role, from_fields(role, json.loads(dump(to_fields(role, part))))) for role, part in parts(message))
    assert back == normal(message)
    assert [again for each in back for again in normal(each)] == back


@settings(max_examples=examples(80))
@given(MESSAGES)
def test_a_model_is_told_the_same_before_and_after(message: Message) -> None:
    assert convert_messages(normal(message)) == convert_messages([message])


@settings(max_examples=examples(60))
@given(st.lists(MESSAGES, max_size=6))
def test_an_archive_holds_every_message_and_is_the_same_bytes_each_time(said: list[Message]) -> None:
    rows = rows_of(said)
    lines = unpack(pack(rows))
    assert pack(rows) == pack(rows)
    assert len(lines) == len(rows)
    assert convert_messages(_messages(lines)) == convert_messages(said)


def test_a_line_of_an_archive_has_role_content_and_time_and_a_tool_result_its_call() -> None:
    said = [Message("user", "hello"), asks("look"), answers("look"), Message("assistant", "done")]
    lines = [json.loads(line) for line in _text(pack(rows_of(said))).splitlines()]
    assert lines == [
        {"role": "user", "content": "hello", "timestamp": 1767614460250},
        {
            "role": "assistant",
            "content": [{"type": "toolCall", "id": "look", "name": "look", "arguments": {"of": "look"}}],
            "timestamp": 1767614520250,
        },
        {
            "role": "toolResult",
            "content": "what look printed",
            "toolCallId": "look",
            "toolName": "look",
            "isError": False,
            "timestamp": 1767614580250,
        },
        {"role": "assistant", "content": [{"type": "text", "text": "done"}], "timestamp": 1767614640250},
    ]


def test_a_picture_is_kept_as_a_reference_to_its_bytes() -> None:
    fields = to_fields("user", Message("user", (Text("look"), Image("media/k/1.png", "image/png", "a gull"))))
    assert fields["content"][1] == {"type": "image", "r2Key": "media/k/1.png", "mimeType": "image/png", "alt": "a gull"}


def test_half_a_surrogate_pair_and_a_zero_byte_survive() -> None:
    said = [Message("user", "half \ud83d of a pair, \x00, and a line\u2028break")]
    assert _messages(unpack(pack(rows_of(said)))) == said


@pytest.mark.parametrize(
    ("role", "fields"),
    [
        ("assistant", {"content": [{"type": "song"}]}),
        ("assistant", {"content": [{"type": "text"}]}),
        ("toolResult", {"content": "x"}),
    ],
)
def test_what_is_no_message_is_refused(role: Role, fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a"):
        from_fields(role, fields)


def test_secrets_are_taken_out_of_every_block_and_ids_stay() -> None:
    said = Message(
        "assistant",
        (
            Text(f"it is {SECRET}"),
            Image("media/k/1.png", "image/png", SECRET),
            ToolCall("call_a", "look", {"key": [SECRET]}, SECRET),
            ToolAnswer("call_a", "look", SECRET),
        ),
    )
    clean = redacted(said, Redactor([SECRET]))
    assert clean == Message(
        "assistant",
        (
            Text(f"it is {MASK}"),
            Image("media/k/1.png", "image/png", MASK),
            ToolCall("call_a", "look", {"key": [MASK]}, MASK),
            ToolAnswer("call_a", "look", MASK),
        ),
    )
    assert redacted(Message("user", SECRET), Redactor([SECRET])) == Message("user", MASK)


def _text(data: bytes) -> str:
    return gzip.decompress(data).decode()


def _messages(lines: list[ArchivedLine]) -> list[Message]:
    return joined((line.role, line.message) for line in lines)
