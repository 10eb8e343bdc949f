"""Reads the body of an answer, as an event stream or as one JSON, and collects it into one answer.

Nothing of its shape is relied on: a field of another type than the protocol's is read if its meaning is plain, and
otherwise counts as left out.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.json_lines import json_object
from common.lenient_json import parse
from modules.runtime.llm.dialect import CALL_FIELD, REASONING, REASONING_PARTS, Usage

Chunk = dict[str, Any]

END: Chunk = {"object": "done"}
"""Stands for `[DONE]`."""

_MOST_BYTES = 32 * 2**20
_WORDS_SHOWN = 200
_DONE = b"[DONE]"
_FIELDS = (b"id", b"retry")
_LINE_END = re.compile(rb"\r\n|\n|\r")


class BrokenStream(ConnectionError):
    """The stream ended before the service said that the answer was finished."""


class SaidError(Exception):
    """The service sent an error in place of an answer, or in the middle of one; `code` is its own code for it."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class NotAnAnswer(Exception):
    """The body is nothing that a chat-completions service sends."""


async def chunks(body: AsyncIterable[bytes], *, is_stream: bool) -> AsyncIterator[Chunk]:
    """Yield the JSON objects of an answer as they come; the last one is `END` if the service says that it is done.

    Args:
        body: the bytes of the answer.
        is_stream: whether the service calls it an event stream.

    Raises:
        BrokenStream: it is longer than any answer.
        SaidError: it holds an error.
        NotAnAnswer: it holds no JSON object.
        ValueError: an event holds no JSON.

    """
    whole, streamed, ended = bytearray(), is_stream, False
    async for found in _events(body):
        if ended:
            continue
        if isinstance(found, bytes):
            whole += b"" if streamed else found + b"\n"
            continue
        streamed = True
        if found.is_end:
            ended = True
            yield END
        elif found.has_data:
            yield found.read()
    if not streamed:
        yield _whole(bytes(whole))


@dataclass(slots=True)
class _Event:
    """An event of a stream, as far as it has come: its name, and its lines of data."""

    name: bytes = b""
    data: list[bytes] = field(default_factory=list)

    @property
    def has_data(self) -> bool:
        return any(line.strip() for line in self.data)

    @property
    def is_end(self) -> bool:
        return bool(self.data) and self.data[-1].lstrip().startswith(_DONE)

    def is_whole_before(self, line: bytes) -> bool:
        """Return whether `line` begins another event: some services leave out the empty line between two.

        Within one JSON text nothing begins right after an object that ends.
        """
        return self.has_data and self.data[-1].rstrip().endswith(b"}") and line.lstrip().startswith((b"{", _DONE))

    def read(self) -> Chunk:
        return _answer_object(parse(b"\n".join(self.data)), is_error=self.name.strip() == b"error")


async def _events(body: AsyncIterable[bytes]) -> AsyncIterator[_Event | bytes]:
    """Yield the events that hold data, and each line that is no part of an event stream."""
    event = _Event()
    async for line in _lines(body):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            if event.is_whole_before(value):
                yield event
                event = _Event()
            event.data.append(value)
        elif name == b"event":
            event.name = value
        elif line and name and name not in _FIELDS:
            yield line
        if event.data and (not line or event.is_end):
            yield event
        if not line or event.is_end:
            event = _Event()
    if event.data:
        yield event


async def _lines(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines, which end with CR, LF or both; a byte order mark before the first one is left out."""
    line, size, is_first, after_return = bytearray(), 0, True, False
    async for piece in body:
        size += len(piece)
        if size > _MOST_BYTES:
            raise BrokenStream("the answer does not end")
        if not piece:
            continue
        first, *more = _LINE_END.split(piece[1:] if after_return and piece.startswith(b"\n") else piece)
        after_return = piece.endswith(b"\r")
        line += first
        for begun in more:
            yield bytes(line.removeprefix(BOM_UTF8) if is_first else line)
            line, is_first = bytearray(begun), False
    if line:
        yield bytes(line.removeprefix(BOM_UTF8) if is_first else line)


def _whole(body: bytes) -> Chunk:
    try:
        value = parse(body)
    except ValueError as error:
        raise NotAnAnswer(_quoted(body)) from error
    found = _answer_object(value[0] if isinstance(value, list) and value else value)
    if not isinstance(found.get("choices"), list):
        raise NotAnAnswer(_quoted(body))
    return found


def _answer_object(value: object, *, is_error: bool = False) -> Chunk:
    """Return the object. Raises `SaidError` if it is an error, `NotAnAnswer` if it is no object."""
    if not isinstance(value, dict):
        raise NotAnAnswer(_quoted(str(value).encode(errors="replace")))
    error = value.get("error") or (value if is_error or value.get("object") == "error" else None)
    if error:
        told: Mapping[str, Any] = error if isinstance(error, dict) else {"message": error}
        raise SaidError(said_of(told), str(told.get("code") or ""))
    return value


def said_of(error: object) -> str:
    """Return what an error says, in whatever shape a service sends it; "" if it says nothing.

    If a gateway passes an error on (OpenRouter: "Provider returned error"), the service's own words follow. An error
    without words (FastAPI: a list of what is wrong, by place) is returned whole, because it names what it is about.
    """
    if isinstance(error, list):
        return said_of(error[0]) if error else ""
    if isinstance(error, str):
        return "" if error.lstrip().startswith("<") else error
    if not isinstance(error, dict):
        return ""
    if isinstance(error.get("error"), dict | str):
        return said_of(error["error"])
    passed_on = error.get("metadata")
    words = [error.get("message"), passed_on.get("raw") if isinstance(passed_on, dict) else None]
    plain = ": ".join(word for word in words if isinstance(word, str) and word)
    return plain or (json.dumps(error, ensure_ascii=False) if error else "")


def _quoted(body: bytes) -> str:
    words = body.decode(errors="replace").strip()[:_WORDS_SHOWN]
    return f"what came is no answer of a chat-completions service: {words or 'nothing'}"


_MARKS_PER_ANSWER = 16
_MARKS_PER_CALL = 32
_MOST_TOKENS = 10**9
_OTHER_NAMES = ("cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens")
_WORDS = frozenset({"", "text", "output_text"})
_ARGUMENTS = ("arguments", "input", "parameters")
_CUT = frozenset({"length", "max_tokens", "model_length"})
_FILTERED = "content_filter"
_ENDS = frozenset(
    {"", "complete", "completed", "end_turn", "eos", "eos_token", "function_call", "stop", "stop_sequence"}
    | {"tool_calls", "tool_use"}
)
"""Words for an answer that is whole. An empty answer that ended with another word was refused."""
_GROWING = ("text", "summary")


@dataclass(slots=True)
class RawCall:
    """A tool call as it was streamed, with its arguments in the pieces in which they came."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    service_fields: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> str:
        """The text of the arguments as the model wrote it.

        Some services repeat in each piece all so far, or repeat all at the end, or begin with an empty object.
        """
        whole = "".join(self.pieces)
        if not self.pieces or json_object(whole) is not None:
            return whole
        if json_object(self.pieces[-1]) is not None:
            return self.pieces[-1]
        return next((text for text in reversed(_objects_in_row(whole)) if json_object(text)), whole)

    def is_repeated_by(self, name: str, written: str, *, is_same: bool) -> bool:
        """Return whether `written` for `name` repeats these arguments, or replaces an empty object of the same call."""
        known, said = json_object(self.arguments), json_object(written)
        return name == self.name and (known == said or (is_same and known == {}))


@dataclass(slots=True)
class StreamedAnswer:
    """The answer to one request, as far as it has come.

    Attributes:
        text: what the model said.
        calls: the tools that it asked for.
        refused: what the service said in place of an answer.
        finish: the service's word for why it stopped; "" while it goes on.
        model: as the service names it.
        usage: None if the service does not count; the largest of several counts.
        is_stream: whether the service calls it a stream; True until it has said what it is.
        pieces: how many pieces came.
        weight: an upper bound of the tokens that were streamed, visible reasoning included: one for each byte, and
            some for the marks around it that a service keeps to itself.
        service_fields: what a service wants back with the calls of this answer: its thoughts before them.

    """

    text: str = ""
    calls: list[RawCall] = field(default_factory=list)
    refused: str = ""
    finish: str = ""
    model: str = ""
    usage: Usage | None = None
    is_stream: bool = True
    pieces: int = 0
    weight: int = _MARKS_PER_ANSWER
    service_fields: dict[str, Any] = field(default_factory=dict)
    _open: dict[int, RawCall] = field(default_factory=dict)
    _is_done: bool = False
    _has_choices: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether the token limit ended it."""
        return self.finish.casefold() in _CUT

    @property
    def refusal(self) -> str:
        """Why there is no answer, in the service's words or by its name for the reason; "" if there is one."""
        if self.calls or (self.text.strip() and self.finish.casefold() != _FILTERED):
            return ""
        return self.refused.strip() or ("" if self.finish.casefold() in _CUT | _ENDS else self.finish)

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Add the next object; services differ in which fields they leave out."""
        self.pieces += 1
        if chunk is END:
            self._is_done = True
            return
        self.model = _word(chunk.get("model")) or self.model
        counted, choices = _object(chunk.get("usage")), _objects(chunk.get("choices"))
        if counted:
            self.usage = _larger(self.usage, _counted(counted))
            self._is_done = self._is_done or not choices
        for choice in choices:
            self._has_choices = True
            self._add_choice(choice)

    def close(self) -> None:
        """Check that the answer is whole. Raises `BrokenStream` if it is not, `NotAnAnswer` if it never began."""
        if not self.finish and self._is_done and (self.text or self.calls or self.refused):
            self.finish = "stop"
        if self.finish == "error" or (not self.finish and (self._has_choices or not self.pieces)):
            raise BrokenStream("the stream ended in the middle of the answer")
        if not self.finish:
            raise NotAnAnswer("what came is no answer of a chat-completions service: a stream without choices")

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        delta = _object(choice.get("delta"))
        message = _object(choice.get("message"))
        if message and not delta and not self.text and not self.calls:
            delta, self._is_done = message, True
        self.finish = _word(choice.get("finish_reason")) or self.finish
        self.text += _said(delta.get("content"))
        self.refused += _word(delta.get("refusal")) + "".join(
            _word(part.get("refusal")) for part in _objects(delta.get("content"))
        )
        self.weight += _weight(delta)
        self._add_thought(delta)
        for part in _objects(delta.get("tool_calls")):
            self._add_call(part)
        if called := _object(delta.get("function_call")):
            self._add_call({"function": called})

    def _add_thought(self, delta: Mapping[str, Any]) -> None:
        """Add what was thought before the calls. To a service, no thought and an empty thought are different."""
        if isinstance(thought := delta.get(REASONING), str):
            self.service_fields[REASONING] = self.service_fields.get(REASONING, "") + thought
        for part in _objects(delta.get(REASONING_PARTS)):
            known = self.service_fields.setdefault(REASONING_PARTS, [])
            if known and _goes_on(known[-1], part):
                grown = {name: known[-1].get(name, "") + part[name] for name in _GROWING if name in part}
                known[-1] |= {name: value for name, value in part.items() if value is not None} | grown
            else:
                known.append(dict(part))

    def _add_call(self, part: Mapping[str, Any]) -> None:
        number, new_id = part.get("index"), _word(part.get("id"))
        index = number if isinstance(number, int) else 0
        function = _object(part.get("function")) or part
        name = _word(function.get("name"))
        arguments = next((function[key] for key in _ARGUMENTS if function.get(key) is not None), None)
        written = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        known = next((call for call in self.calls if new_id and call.id == new_id and number is None), None)
        call = known or self._open.get(index)
        if call is None or _begins_another(call, new_id, name, written):
            call = RawCall()
            self.calls.append(call)
            self.weight += _MARKS_PER_CALL
        self._open[index] = call
        call.id = call.id or new_id
        call.name = name or call.name
        call.pieces += [written] if written else []
        if sealed := _object(part.get(CALL_FIELD)):
            call.service_fields[CALL_FIELD] = sealed


def _begins_another(call: RawCall, new_id: str, name: str, written: str) -> bool:
    """Return whether a piece with this id, name and text begins another call than the one at its index."""
    if not name or not call.name:
        return False
    is_other_id = bool(new_id and call.id and new_id != call.id)
    if not call.pieces:
        return is_other_id and name != call.name
    if not call.pieces[-1].rstrip().endswith("}") or json_object(call.arguments) is None:
        return is_other_id and name != call.name
    return not call.is_repeated_by(name, written, is_same=not is_other_id) and (is_other_id or bool(written))


def _objects_in_row(text: str) -> list[str]:
    """Return the JSON objects that `text` consists of, one after the other; none if it holds anything else."""
    found, position, decoder = [], 0, json.JSONDecoder(strict=False)
    while position < len(text):
        try:
            _, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        found.append(text[position:end])
        position = end + len(text[end:]) - len(text[end:].lstrip())
    return found


def _goes_on(before: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Return whether a part of a thought continues the one before: words in the same place."""
    words = [name for name in _GROWING if isinstance(part.get(name), str)]
    same = all(before.get(name) == part.get(name) for name in ("type", "index"))
    return same and bool(words) and all(isinstance(before.get(name, ""), str) for name in words)


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list; an object that stands alone counts as a list of one."""
    listed = value if isinstance(value, list) else [value]
    return [item for item in listed if isinstance(item, dict)]


def _said(content: object) -> str:
    """Return what is said to others: the text, or those parts that are text, without thoughts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict) and (content.get("thought") is True or _word(content.get("type")) not in _WORDS):
        return ""
    if isinstance(content, dict):
        return _said(content.get("text")) or _word(content.get("value"))
    return "".join(map(_said, content)) if isinstance(content, list) else ""


def _counted(said: Mapping[str, Any]) -> Usage:
    """Return what the service counted. Some omit hidden reasoning from the answer's tokens, but not from the total."""
    sent, answered, total = (_count(said.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    kept = next(filter(None, map(_count, _said_to_be_kept(said))), 0)
    return Usage(sent, max(answered, total - sent), cached_tokens=kept if kept <= sent else 0)


def _larger(before: Usage | None, now: Usage) -> Usage:
    """Return the larger of two counts of one request; the cached tokens are those of the larger input."""
    if before is None:
        return now
    kept = (now if now.input_tokens >= before.input_tokens else before).cached_tokens
    return Usage(
        max(before.input_tokens, now.input_tokens), max(before.output_tokens, now.output_tokens), cached_tokens=kept
    )


def _said_to_be_kept(said: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the number of cached prompt tokens from each place where a service may put it."""
    yield _object(said.get("prompt_tokens_details")).get("cached_tokens")
    yield from (said.get(name) for name in _OTHER_NAMES)


def _count(value: Any) -> int:  # noqa: ANN401 - services count in all kinds of values
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 < value < _MOST_TOKENS else 0


def _weight(delta: Mapping[str, Any]) -> int:
    """Return the bytes of all that the model wrote, in fields that we read and in fields that we do not."""
    words = [value for name, value in delta.items() if name not in {"role", "tool_calls"}]
    for part in _objects(delta.get("tool_calls")):
        function = _object(part.get("function")) or part
        words += [function.get("name"), function.get("arguments")]
    return sum(len(str(word).encode(errors="replace")) for word in words if word)
