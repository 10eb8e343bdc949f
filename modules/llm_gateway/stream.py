"""Gathers one streamed answer. Pure: chunks in, an answer out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from modules.llm_gateway.types import Usage

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall


class BrokenStream(ConnectionError):
    """The stream ended before the service said that the answer was finished."""


@dataclass(slots=True)
class RawCall:
    """A tool call as it was streamed; `arguments` is whatever text the model wrote."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Answer:
    """What one request brought. `finish` is the service's word for why it stopped; None while it goes on."""

    text: str = ""
    calls: list[RawCall] = field(default_factory=list)
    finish: str | None = None
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    _open: dict[int, RawCall] = field(default_factory=dict)

    def add(self, chunk: ChatCompletionChunk) -> None:
        """Take the next chunk; services differ in which fields they leave out."""
        self.model = chunk.model or self.model
        if chunk.usage:
            self.usage = Usage(chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0)
        for choice in chunk.choices or ():
            self.finish = choice.finish_reason or self.finish
            if choice.delta is None:
                continue
            self.text += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                self._add_call(part)

    def _add_call(self, part: ChoiceDeltaToolCall) -> None:
        index = part.index or 0
        call = self._open.get(index)
        if call is None or (part.id and call.id and part.id != call.id):
            call = self._open[index] = RawCall()
            self.calls.append(call)
        call.id = part.id or call.id
        if part.function:
            call.name = part.function.name or call.name
            call.arguments += part.function.arguments or ""
