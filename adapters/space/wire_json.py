"""JSON on the wire of a room: compact, non-ASCII characters as they are, numbers as in JavaScript.

The input is untrusted, so its size, number of values and depth are checked before it is parsed. The check takes a few
passes over the text, about a millisecond for 1 MiB. Pure.
"""

from __future__ import annotations

import json
import math
from typing import NoReturn

from common.lenient_json import cut_nesting, deepest, with_whole_pairs

SPACE_MAX_PAYLOAD_BYTES = 1_048_576

MAX_DEPTH = 32
MAX_VALUES = 400_000
"""Commas and opening brackets; ten times as many as the longest record has."""
MEMBER_DEPTH = 16
MEMBER_VALUES = 5_000
_EXACT = 2**53


class BadJson(ValueError):
    """The bytes are no acceptable JSON; the message says why."""


def encode_value(value: object) -> str:
    """Returns any JSON value as compact text, lone surrogates as U+FFFD.

    Raises:
        ValueError: a number is not finite.

    """
    return json.dumps(with_whole_pairs(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def parse_json(
    raw: str | bytes,
    *,
    max_bytes: int = SPACE_MAX_PAYLOAD_BYTES,
    max_values: int = MAX_VALUES,
    max_depth: int = MAX_DEPTH,
    cut: bool = False,
) -> object:
    """Returns the value of a frame, without lone surrogates. Infinite numbers become None, whole ones `int`.

    With `cut`, values nested too deeply become null, and the rest is read.

    Raises:
        BadJson: it is too large, has too many values, is nested too deeply, not UTF-8, or no JSON.

    """
    if len(raw) > max_bytes:
        raise BadJson("more than 1 MiB")
    try:
        text = _bounded(raw.decode() if isinstance(raw, bytes) else raw, max_values, max_depth, cut=cut)
        value: object = json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error)) from error
    return with_whole_pairs(value) if "\\u" in text else value


def _bounded(text: str, max_values: int, max_depth: int, *, cut: bool) -> str:
    """Returns the text of a JSON value, with `cut` without what is nested too deeply. Raises `BadJson` for too much."""
    if _count(text, ",[{") <= max_values and _count(text, "[{") <= max_depth:
        return text
    bare = text.replace("\\\\", "").replace('\\"', "")
    if bare.count('"') > 4 * (max_values + 1) or _count(outside := "".join(bare.split('"')[::2]), ",[{") > max_values:
        raise BadJson(f"more than {max_values} values")
    if deepest(outside.encode(errors="replace")) <= max_depth:
        return text
    if not cut:
        raise BadJson(f"nested deeper than {max_depth}")
    return cut_nesting(text.encode(errors="replace"), max_depth).decode()


def _count(text: str, signs: str) -> int:
    return sum(map(text.count, signs))


def _number(text: str) -> float | None:
    value = float(text)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _no_constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is no JSON")
