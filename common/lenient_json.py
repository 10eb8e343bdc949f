"""Parses JSON from strangers: cuts what is nested too deep, and reads the rest even if one value is malformed.

Strict parsers refuse a whole document for one value in it: nesting beyond their limit, half a surrogate pair, bytes
that are not UTF-8, a number of ten thousand digits. Here only that value is lost. Pure, in linear time.
"""

import json
import re
from itertools import accumulate
from typing import Any

from pydantic_core import from_json

MOST_NESTING = 64

# NOTE(self): possessive, with an optional end: an unterminated string is not tried again from each quote in it.
_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_STRINGS = re.compile(_STRING, re.DOTALL)
_TOKENS = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_MOST_DIGITS = 40
_MOST_BLANKS = 16


def parse(content: bytes, *, most_nesting: int = MOST_NESTING) -> object:
    """Parse JSON. Containers nested deeper than `most_nesting` become null, and so do numbers that are too long.

    Raises:
        ValueError: it is not JSON even then.

    """
    cut = cut_nesting(content, most_nesting)
    try:
        return from_json(cut)
    except ValueError:
        text = cut.decode(errors="replace")
        return with_whole_pairs(json.loads(text, strict=False, parse_int=_int, parse_constant=lambda _: None))


def cut_nesting(content: bytes, most: int = MOST_NESTING) -> bytes:
    """Return JSON in which containers deeper than `most` are null; invalid JSON stays invalid."""
    if deepest(content) <= most:
        return content
    kept: list[bytes] = []
    depth = kept_to = 0
    for token in _TOKENS.finditer(content):
        sign = content[token.start()]
        if sign in b"[{":
            depth += 1
            if depth == most + 1:
                kept.append(content[kept_to : token.start()])
        elif sign in b"]}":
            if depth == most + 1:
                kept.append(b"null")
                kept_to = token.end()
            depth -= 1
    return b"".join((*kept, content[kept_to:] if depth <= most else b""))


def deepest(content: bytes) -> int:
    """Return how deep the containers of a JSON text are nested; 0 for a bare value."""
    steps = _STRINGS.sub(b"", content).translate(_STEPS, _NOT_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0)


def top_level_text(content: bytes, key: str) -> str:
    """Return a plain string field of an object that cannot be parsed as a whole; "" if it has none."""
    depth, name = 0, b'"%s"' % key.encode()
    tokens = _TOKENS.finditer(content)
    for token in tokens:
        sign = content[token.start()]
        depth += (sign in b"[{") - (sign in b"]}")
        if depth == 1 and token[0] == name and content[token.end() : token.end() + _MOST_BLANKS].lstrip()[:1] == b":":
            value = next(tokens, None)
            return value[0][1:-1].decode(errors="replace") if value and b"\\" not in value[0] else ""
    return ""


def _int(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MOST_DIGITS else None


def with_whole_pairs(value: Any) -> Any:  # noqa: ANN401 - any JSON value, and one of the same kind
    """Return a JSON value without lone surrogates: they cannot be UTF-8, so they can be neither stored nor sent."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [with_whole_pairs(item) for item in value]
    if isinstance(value, dict):
        return {str(with_whole_pairs(name)): with_whole_pairs(item) for name, item in value.items()}
    return value
