"""Reads the body of an answer: an event stream, one JSON where a stream was asked for, or neither. Pure.

Services that speak nearly the protocol differ here first. What is no answer at all is said to be none, with its first
words, so that the owner can see whom the address leads to.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.lenient_json import parse

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
    """The service tells an error in place of an answer, or in the midst of one; `code` is its own word for it."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class NotAnAnswer(Exception):
    """What came is nothing that a chat-completions service says."""


async def chunks(body: AsyncIterable[bytes], *, is_stream: bool) -> AsyncIterator[Chunk]:
    """Yield the JSON objects of an answer as they come; the last one is `END` where the service says that it is done.

    Args:
        body: its bytes.
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
    """An event of a stream as far as it came: its name, and its lines of data."""

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

        In one JSON text nothing opens right after an object that ends.
        """
        return self.has_data and self.data[-1].rstrip().endswith(b"}") and line.lstrip().startswith((b"{", _DONE))

    def read(self) -> Chunk:
        return _object(parse(b"\n".join(self.data)), is_error=self.name.strip() == b"error")


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
    found = _object(value[0] if isinstance(value, list) and value else value)
    if not isinstance(found.get("choices"), list):
        raise NotAnAnswer(_quoted(body))
    return found


def _object(value: object, *, is_error: bool = False) -> Chunk:
    """The object. Raises `SaidError` where it tells of one."""
    if not isinstance(value, dict):
        raise NotAnAnswer(_quoted(str(value).encode(errors="replace")))
    error = value.get("error") or (value if is_error or value.get("object") == "error" else None)
    if error:
        told: Mapping[str, Any] = error if isinstance(error, dict) else {"message": error}
        raise SaidError(said_of(told), str(told.get("code") or ""))
    return value


def said_of(error: object) -> str:
    """What an error says, in whatever shape a service tells it; "" where it says nothing.

    Of one that a gateway passes on (OpenRouter: "Provider returned error") the service's own words stand behind. What
    has no words by itself (FastAPI: a list of what is wrong, by place) is told whole, for it names what it is about.
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
