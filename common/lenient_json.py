"""JSON that strangers can shape: cut where it is nested too deep, and read even where one value in it is odd.

Strict parsers refuse a whole document for one value in it: nesting beyond their limit, half a surrogate pair, bytes
that are no UTF-8, a number of ten thousand digits. Here only that value is lost. Pure, in time linear to the size.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

from pydantic_core import from_json

MOST_NESTING = 64

# NOTE(self): possessive, with an optional end: a string without one is not tried again from each quote in it.
_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_STRINGS = re.compile(_STRING, re.DOTALL)
_TOKENS = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_MOST_DIGITS = 40
_MOST_BLANKS = 16


def parse(content: bytes, *, most_nesting: int = MOST_NESTING) -> object:
    """Read JSON. Containers nested deeper than `most_nesting` become null, and so do numbers that are too long.

    Raises:
        ValueError: it is no JSON even so.

    """
    cut = cut_nesting(content, most_nesting)
    try:
        return from_json(cut)
    except ValueError:
        text = cut.decode(errors="replace")
        return with_whole_pairs(json.loads(text, strict=False, parse_int=_int, parse_constant=lambda _: None))


def cut_nesting(content: bytes, most: int = MOST_NESTING) -> bytes:
    """JSON whose containers at a depth of more than `most` are null; what is no JSON stays none."""
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
    """How deep the containers of a JSON text are nested; 0 for a bare value."""
    steps = _STRINGS.sub(b"", content).translate(_STEPS, _NOT_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0)


def top_level_text(content: bytes, key: str) -> str:
    """A plain string field of an object that cannot be read as a whole; "" without it."""
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
    """Return a JSON value without halves of surrogate pairs: they have no UTF-8, and can neither be stored nor sent."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [with_whole_pairs(item) for item in value]
    if isinstance(value, dict):
        return {str(with_whole_pairs(name)): with_whole_pairs(item) for name, item in value.items()}
    return value
