"""JSON on the wire of a room: compact, non-ASCII characters as they are, numbers as in JavaScript.

The input is untrusted, so its size, number of values and depth are checked before it is parsed. The check takes a few
passes over the text, about a millisecond for 1 MiB. Pure.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import NoReturn

from common.clock import Clock, iso
from common.lenient_json import cut_nesting

SPACE_MAX_PAYLOAD_BYTES = 1_048_576

MAX_DEPTH = 32
MAX_VALUES = 400_000
"""Commas and opening brackets; ten times as many as the longest record has."""
MEMBER_DEPTH = 16
MEMBER_VALUES = 5_000
_EXACT = 2**53
_BRACKET = re.compile(r"[\[\]{}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class BadJson(ValueError):
    """The bytes are no acceptable JSON; the message says why."""


def iso_now(clock: Clock) -> str:
    """Returns the wall time as ISO-8601 UTC with milliseconds and `Z`."""
    return iso(clock.now())


def encode_value(value: object) -> str:
    """Returns any JSON value as compact text, lone surrogates as U+FFFD.

    Raises:
        ValueError: a number is not finite.

    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return _SURROGATE.sub("\ufffd", _PAIR.sub(_paired, text))


def _paired(found: re.Match[str]) -> str:
    return found[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


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
        text = raw.decode() if isinstance(raw, bytes) else raw
        if _is_too_deep(text, max_values, max_depth):
            text = _without_depths(text, max_depth, cut=cut)
        value = _loads(text)
        return _loads(encode_value(value)) if _may_hold_surrogates(text) else value
    except BadJson:
        raise
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error)) from error


def _loads(text: str) -> object:
    return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_no_constant)


def _may_hold_surrogates(text: str) -> bool:
    if "\\ud" in text or "\\uD" in text:
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _is_too_deep(text: str, max_values: int, max_depth: int) -> bool:
    """Whether it is nested too deeply. Characters inside strings do not count.

    Raises:
        BadJson: it has too many values.

    """
    signs, opening = _count(text, ",[{"), _count(text, "[{")
    if signs <= max_values and opening <= max_depth:
        return False
    outside = _outside_strings(text, max_values)
    if _count(outside, ",[{") > max_values or _count(outside, "]}") > max_values:
        raise BadJson(f"more than {max_values} values")
    depths = itertools.accumulate(1 if found[0] in "[{" else -1 for found in _BRACKET.finditer(outside))
    return any(depth > max_depth for depth in depths)


def _without_depths(text: str, max_depth: int, *, cut: bool) -> str:
    if not cut:
        raise BadJson(f"nested deeper than {max_depth}")
    return cut_nesting(text.encode(errors="replace"), max_depth).decode()


def _outside_strings(text: str, max_values: int) -> str:
    """Returns the parts of a JSON text outside of strings; checks that there are not too many strings."""
    bare = text.replace("\\\\", "").replace('\\"', "")
    if bare.count('"') > 4 * (max_values + 1):
        raise BadJson(f"more than {max_values} values")
    return "".join(bare.split('"')[::2])


def _count(text: str, signs: str) -> int:
    return sum(map(text.count, signs))


def _number(text: str) -> float | None:
    value = float(text)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _no_constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is no JSON")
