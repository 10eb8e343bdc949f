"""Reads the body of an answer: an event stream, one JSON where a stream was asked for, or neither. Pure.

Services that speak nearly the protocol differ here first. What is no answer at all is said to be none, with its first
words, so that the owner can see whom the address leads to.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any

from common.lenient_json import parse

Chunk = dict[str, Any]

END: Chunk = {"object": "done"}
"""Stands for `[DONE]`."""

_MOST_BYTES = 32 * 2**20
_WORDS_SHOWN = 200
_FIELDS = (b"event", b"id", b"retry")


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
    whole, event, streamed, ended = bytearray(), b"", is_stream, False
    async for line in _lines(body):
        name, _, data = line.partition(b":")
        data = data.strip()
        if name == b"data":
            streamed = True
            if data.startswith(b"[DONE]") and not ended:
                ended = True
                yield END
            elif data and not ended:
                yield _object(parse(data), is_error=event == b"error")
        elif name == b"event" and not whole:
            event = data
        elif not line:
            event = b""
        elif not streamed and name and name not in _FIELDS:
            whole += line + b"\n"
    if not streamed:
        yield _whole(bytes(whole))


async def _lines(body: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    rest, size = b"", 0
    async for piece in body:
        size += len(piece)
        if size > _MOST_BYTES:
            raise BrokenStream("the answer does not end")
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
    if rest:
        yield rest.rstrip(b"\r")


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
        raise SaidError(str(told.get("message") or told), str(told.get("code") or ""))
    return value


def _quoted(body: bytes) -> str:
    words = body.decode(errors="replace").strip()[:_WORDS_SHOWN]
    return f"what came is no answer of a chat-completions service: {words or 'nothing'}"
