"""JSON as it travels in a room: compact, non-ASCII as it is, numbers as JavaScript reads and writes them.

Whoever may connect decides what is parsed here, so size and depth are bounded before the parser sees a byte. Pure.
"""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn

from adapters.space.types import Frame
from common.clock import Clock, iso
from common.constants import SPACE_MAX_PAYLOAD_BYTES

MAX_DEPTH = 32
MAX_VALUES = 400_000
"""Commas and opening brackets: the longest record has a tenth of it."""
_EXACT = 2**53
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAYBE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


class BadJson(ValueError):
    """The bytes are no JSON that a room takes; the message says why."""


def iso_now(clock: Clock) -> str:
    """The wall time as a room writes it: ISO-8601 UTC with three digits of a second and `Z`."""
    return iso(clock.now())


def encode_message(message: Frame) -> str:
    """One frame as JSON text: keys in their order, those without a value (None) left out, lone surrogates as U+FFFD.

    Raises:
        ValueError: a number is not finite.

    """
    return encode_value({key: value for key, value in message.items() if value is not None})


def encode_value(value: object) -> str:
    """Any JSON value, compactly; as `encode_message`, but null is kept."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parse_json(raw: str | bytes, *, max_bytes: int = SPACE_MAX_PAYLOAD_BYTES) -> object:
    """The value of a frame, without lone surrogates. A number too large for JavaScript is None; whole ones are `int`.

    Raises:
        BadJson: it is too large, nested too deeply, not UTF-8, or no JSON.

    """
    if len(raw) > max_bytes:
        raise BadJson("more than 1 MiB")
    try:
        text = raw.decode() if isinstance(raw, bytes) else raw
        _check_number(text)
        _check_depth(text)
        value = _loads(text)
        return value if _MAYBE_SURROGATE.search(text) is None else _loads(encode_value(value))
    except BadJson:
        raise
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error)) from error


def _loads(text: str) -> object:
    return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_no_constant)


def _check_number(text: str) -> None:
    """Many small values cost far more than their bytes; signs within words cost nothing."""
    if len(text) > MAX_VALUES and _values(text) > MAX_VALUES and _values(_STRING.sub("", text)) > MAX_VALUES:
        raise BadJson(f"more than {MAX_VALUES} values")


def _values(text: str) -> int:
    return sum(text.count(sign) for sign in ",[{")


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for token in _TOKENS.finditer(text):
        first = token[0][0]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise BadJson(f"nested deeper than {MAX_DEPTH}")
        elif first in "]}":
            depth -= 1


def _number(text: str) -> float | None:
    value = float(text)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _no_constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is no JSON")
