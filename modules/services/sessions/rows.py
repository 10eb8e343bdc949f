"""A message as a row and as a line of an archive: the same JSON, with or without role and time. Pure.

A message with several tool answers becomes several rows, one an answer. Whatever goes over the wire to a model is the
same before and after, but for what it thought before a call: that is given back within a turn, and not kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from common.redact import Redactor
from modules.runtime.llm.types import Block, Image, Message, Text, ToolAnswer, ToolCall
from modules.services.sessions.types import Role

Fields = dict[str, Any]

_PICTURE_TOKENS = 1600  # of the usual services the dearest, for 1024 by 1024 pixels
_MESSAGE_TOKENS = 4


def parts(message: Message) -> list[tuple[Role, Message]]:
    """`message` as rows hold it: tool answers first, one a row, then its own words."""
    if message.role == "assistant":
        return [("assistant", message)]
    if isinstance(message.content, str):
        return [("user", message)]
    answers = [block for block in message.content if isinstance(block, ToolAnswer)]
    words = tuple(block for block in message.content if not isinstance(block, ToolAnswer))
    rows: list[tuple[Role, Message]] = [("toolResult", Message("user", (answer,))) for answer in answers]
    return [*rows, ("user", Message("user", words))] if words or not answers else rows


def blocks(message: Message) -> tuple[Block, ...]:
    """Return the content of a message as blocks."""
    return (Text(message.content),) if isinstance(message.content, str) else message.content


def to_fields(role: Role, message: Message) -> Fields:
    """The JSON of one part. Raises `ValueError` for a tool answer that is not alone."""
    if role == "toolResult":
        match message.content:
            case (ToolAnswer(call_id, name, content, is_error),):
                return {"content": content, "toolCallId": call_id, "toolName": name, "isError": is_error}
        raise ValueError("a tool answer is alone in its row")
    if role == "user" and isinstance(message.content, str):
        return {"content": message.content}
    return {"content": [_to_json(block) for block in blocks(message)]}


def from_fields(role: Role, fields: Mapping[str, Any]) -> Message:
    """The inverse of `to_fields`. Raises `ValueError` for what it would never have written."""
    try:
        if role == "toolResult":
            answer = ToolAnswer(fields["toolCallId"], fields["toolName"], fields["content"], bool(fields["isError"]))
            return Message("user", (answer,))
        content = fields["content"]
        if not isinstance(content, str):
            content = _plain(tuple(map(_from_json, content)))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a message: {error}") from error
    return Message("assistant" if role == "assistant" else "user", content)


def redacted(message: Message, redactor: Redactor) -> Message:
    """`message` without secrets; ids, names and keys stay, or a call would lose its answer."""
    if isinstance(message.content, str):
        return replace(message, content=redactor.text(message.content))
    return replace(message, content=tuple(_redacted(block, redactor) for block in message.content))


def tokens_of(message: Message, estimate: Callable[[str], int]) -> int:
    """Return the estimated tokens of a message in a prompt."""
    said = blocks(message)
    pictures = sum(isinstance(block, Image) for block in said)
    return estimate("\n".join(map(words_of, said))) + pictures * _PICTURE_TOKENS + _MESSAGE_TOKENS


def words_of(block: Block) -> str:
    """What can be read in a block."""
    match block:
        case Text(text):
            return text
        case Image():
            return block.alt
        case ToolCall():
            return f"{block.name} {dump(block.input)}"
        case ToolAnswer():
            return block.content


def dump(value: object) -> str:
    """JSON on one line; half a surrogate pair, which has no UTF-8, stays an escape and comes back the same."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(content: str | tuple[Block, ...]) -> str | tuple[Block, ...]:
    match content:
        case (Text(text),):
            return text
    return content


def _to_json(block: Block) -> Fields:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(key, mime, alt):
            return {"type": "image", "r2Key": key, "mimeType": mime, "alt": alt}
        case ToolCall(call_id, name, arguments, malformed):
            fields = {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
            return {**fields, "malformed": malformed} if malformed else fields
        case ToolAnswer(call_id, name, content, is_error):
            fields = {"type": "toolResult", "toolCallId": call_id, "toolName": name}
            return {**fields, "content": content, "isError": is_error}


def _from_json(fields: Mapping[str, Any]) -> Block:
    match fields["type"]:
        case "text":
            return Text(fields["text"])
        case "image":
            return Image(fields["r2Key"], fields["mimeType"], fields["alt"])
        case "toolCall":
            return ToolCall(fields["id"], fields["name"], fields["arguments"], fields.get("malformed", ""))
        case "toolResult":
            return ToolAnswer(fields["toolCallId"], fields["toolName"], fields["content"], fields["isError"])
        case other:
            raise ValueError(f"not a block: {other!r}")


def _redacted(block: Block, redactor: Redactor) -> Block:
    match block:
        case Text(text):
            return Text(redactor.text(text))
        case Image():
            return replace(block, alt=redactor.text(block.alt))
        case ToolCall():
            return replace(block, input=redactor.value(block.input), malformed=redactor.text(block.malformed))
        case ToolAnswer():
            return replace(block, content=redactor.text(block.content))
