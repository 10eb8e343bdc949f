"""Gathers one streamed answer. Pure: chunks in, an answer out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from modules.runtime.llm.types import Usage

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

_MARKS_PER_ANSWER = 16
_MARKS_PER_CALL = 32
_MOST_TOKENS = 10**9
_OTHER_NAMES = ("cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens")


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
    """What one request brought.

    Attributes:
        text: what the model said.
        calls: the tools that it asked for.
        finish: the service's word for why it stopped; None while it goes on.
        model: as the service names it.
        usage: None if the service does not count; of several counts the largest.
        pieces: how many pieces came.
        weight: no fewer tokens than what was streamed can have had, visible reasoning included: one for each byte,
            and some for the marks around it that a service keeps to itself.

    """

    text: str = ""
    calls: list[RawCall] = field(default_factory=list)
    finish: str | None = None
    model: str = ""
    usage: Usage | None = None
    pieces: int = 0
    weight: int = _MARKS_PER_ANSWER
    _open: dict[int, RawCall] = field(default_factory=dict)

    def add(self, chunk: ChatCompletionChunk) -> None:
        """Take the next chunk; services differ in which fields they leave out."""
        self.pieces += 1
        self.model = chunk.model or self.model
        if chunk.usage:
            self.usage = _larger(self.usage, _counted(chunk.usage))
        for choice in chunk.choices or ():
            self.finish = choice.finish_reason or self.finish
            if choice.delta is None:
                continue
            self.text += choice.delta.content or ""
            self.weight += _weight(choice.delta)
            for part in choice.delta.tool_calls or ():
                self._add_call(part)

    def _add_call(self, part: ChoiceDeltaToolCall) -> None:
        index = part.index or 0
        call = self._open.get(index)
        if call is None or (part.id and call.id and part.id != call.id):
            call = self._open[index] = RawCall()
            self.calls.append(call)
            self.weight += _MARKS_PER_CALL
        call.id = part.id or call.id
        if part.function:
            call.name = part.function.name or call.name
            call.arguments += part.function.arguments or ""


def _counted(said: CompletionUsage) -> Usage:
    """What the service counted. Some leave hidden reasoning out of the answer's tokens, but not out of the total."""
    sent, answered, total = (_count(n) for n in (said.prompt_tokens, said.completion_tokens, said.total_tokens))
    # NOTE(self): no prompt is one token; the SDK makes that of a service that says `true`.
    sent = sent if sent > 1 else 0
    kept = next(filter(None, map(_count, _said_to_be_kept(said))), 0)
    return Usage(sent, max(answered, total - sent), cached_tokens=kept if kept <= sent else 0)


def _larger(before: Usage | None, now: Usage) -> Usage:
    """The larger of two counts of one request; what was kept stands beside the input that it is part of."""
    if before is None:
        return now
    kept = (now if now.input_tokens >= before.input_tokens else before).cached_tokens
    return Usage(
        max(before.input_tokens, now.input_tokens), max(before.output_tokens, now.output_tokens), cached_tokens=kept
    )


def _said_to_be_kept(said: CompletionUsage) -> Iterator[Any]:
    """Tokens of the prompt that were known from an earlier call, wherever a service puts that number."""
    details = said.prompt_tokens_details
    extra = said.model_extra or {}
    yield details.get("cached_tokens") if isinstance(details, dict) else getattr(details, "cached_tokens", None)
    yield from (extra.get(name) for name in _OTHER_NAMES)


def _count(value: Any) -> int:  # noqa: ANN401 - the SDK checks nothing that a service streams
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 < value < _MOST_TOKENS else 0


def _weight(delta: ChoiceDelta) -> int:
    """Bytes of all that the model wrote, in fields that we read and in fields that we do not."""
    words: list[object] = [delta.content, delta.refusal, *(delta.model_extra or {}).values()]
    for part in delta.tool_calls or ():
        words += [part.function.name, part.function.arguments] if part.function else []
    return sum(len(str(word).encode(errors="replace")) for word in words if word)
