"""Between our messages and the wire dialect that every OpenAI-compatible service speaks. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from modules.runtime.llm.dialect import CALL_FIELD, MESSAGE_FIELDS, system_message, with_talk_marked
from modules.runtime.llm.policy import truncate_tool_result
from modules.runtime.llm.types import Block, Image, Message, PromptBlock, Text, ToolAnswer, ToolCall, ToolSpec

Wire = dict[str, Any]

FAILURE_WORDS = ("Error:", "Blocked:", "BLOCKED:", "SKIPPED:", "CONVERTED TO LIKE:")
_DETAIL = "low"
_ID_LENGTH = 9
_ID = re.compile(rf"[A-Za-z0-9]{{{_ID_LENGTH}}}")


def convert_messages(messages: Iterable[Message], system: str | Sequence[PromptBlock] = "") -> list[Wire]:
    """The whole conversation for the wire: `system` first, tool answers ahead of the words of the same message.

    A picture has its key in place of a URL: its bytes are put there once the words were searched for secrets. Calls get
    ids that every service takes, whichever service or program named them.
    """
    first = system_message(system)
    wire: list[Wire] = [first] if first else []
    ids = _CallIds()
    for message in messages:
        blocks: Sequence[Block] = (Text(message.content),) if isinstance(message.content, str) else message.content
        wire.extend(_user(blocks, ids) if message.role == "user" else _assistant(blocks, ids))
    return with_talk_marked(wire)


def convert_tools(tools: Iterable[ToolSpec]) -> list[Wire]:
    """Tools as functions with JSON Schema parameters."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        }
        for tool in tools
    ]


def create_tool_result_message(answers: Iterable[ToolAnswer]) -> Message:
    """The user turn that carries the answers to a round of tool calls, each cut to size."""
    return Message(
        "user",
        tuple(
            ToolAnswer(answer.tool_use_id, answer.name, truncate_tool_result(answer.content), answer.is_error)
            for answer in answers
        ),
    )


def with_shorter_answers(messages: Iterable[Message], limit: int) -> list[Message]:
    """The same messages, with at most `limit` characters of each tool answer."""
    return [
        message
        if isinstance(message.content, str)
        else replace(message, content=tuple(_within(block, limit) for block in message.content))
        for message in messages
    ]


def longest_answer(messages: Iterable[Message]) -> int:
    """How many characters the longest tool answer in these messages has; 0 without any."""
    said = (message.content for message in messages if not isinstance(message.content, str))
    return max((len(block.content) for blocks in said for block in blocks if isinstance(block, ToolAnswer)), default=0)


def create_assistant_tool_use_message(text: str, tool_calls: Iterable[ToolCall]) -> Message:
    """The assistant turn that asked for tools, as the model must see it again."""
    return Message("assistant", (*((Text(text),) if text else ()), *tool_calls))


def _within(block: Block, limit: int) -> Block:
    if not isinstance(block, ToolAnswer):
        return block
    return replace(block, content=truncate_tool_result(block.content, limit))


class _CallIds:
    """Names calls as all services accept it: nine letters or digits, each name once in a conversation.

    The name depends on the id and on how often that came before, so that a conversation begins with the same bytes in
    each request.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._open: defaultdict[str, deque[str]] = defaultdict(deque)

    def of_calls(self, calls: Sequence[ToolCall]) -> list[str]:
        """Name the calls of one message; the answers that follow are to these."""
        self._open.clear()
        names = []
        for call in calls:
            names.append(self._named(call.id))
            self._open[call.id].append(names[-1])
            self._seen[call.id] += 1
        return names

    def of_answer(self, call_id: str) -> str:
        """Return the name of the call that is answered."""
        named = self._open[call_id]
        if not named:
            return self._named(call_id)
        return named.popleft() if len(named) > 1 else named[0]

    def _named(self, call_id: str) -> str:
        before = self._seen[call_id]
        if not before and _ID.fullmatch(call_id):
            return call_id
        return hashlib.sha256(f"{call_id} {before}".encode(errors="replace")).hexdigest()[:_ID_LENGTH]


def _user(blocks: Sequence[Block], ids: _CallIds) -> list[Wire]:
    answers = [block for block in blocks if isinstance(block, ToolAnswer) and block.tool_use_id]
    wire: list[Wire] = [
        {"role": "tool", "tool_call_id": ids.of_answer(answer.tool_use_id), "content": _visible(answer)}
        for answer in answers
    ]
    if any(isinstance(block, Image) for block in blocks):
        return [*wire, {"role": "user", "content": [part for block in blocks for part in _parts(block)]}]
    text = _joined(blocks)
    return [*wire, {"role": "user", "content": text}] if text else wire


def _parts(block: Block) -> list[Wire]:
    """Words as a part; a picture as its description and itself."""
    words = block.text if isinstance(block, Text) else block.alt if isinstance(block, Image) else ""
    parts: list[Wire] = [{"type": "text", "text": words}] if words else []
    if isinstance(block, Image):
        parts.append({"type": "image_url", "image_url": {"url": block.key, "detail": _DETAIL}})
    return parts


def _assistant(blocks: Sequence[Block], ids: _CallIds) -> list[Wire]:
    text = _joined(blocks)
    asked = [block for block in blocks if isinstance(block, ToolCall)]
    calls = [
        {
            **{name: value for name, value in call.service_fields.items() if name == CALL_FIELD},
            "id": call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.input, ensure_ascii=False)},
        }
        for call, call_id in zip(asked, ids.of_calls(asked), strict=True)
    ]
    if not text and not calls:
        return []
    thought = {name: value for call in asked for name, value in call.service_fields.items() if name in MESSAGE_FIELDS}
    return [{"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {}), **thought}]


def _joined(blocks: Iterable[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)


def _visible(answer: ToolAnswer) -> str:
    if answer.is_error and not answer.content.startswith(FAILURE_WORDS):
        return f"Error: {answer.content}"
    return answer.content
