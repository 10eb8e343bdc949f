"""Tells a list from prose: talk in a room is prose. Pure; linear in the length of the text."""

from __future__ import annotations

import regex

from common.text.fences import fenced

_ITEM = regex.compile(r"[ \t]*(?:[-•*]|(?![0-9]{4}[.)])[0-9]++[.)])\s")
_STEP = regex.compile(r"(?<!\S)\(?([0-9]{1,2})\)(?=\s)|[()]")


def has_list(message: str) -> bool:
    """Whether a line outside code begins as an item does, or steps are numbered `(1) … (2)` within the text.

    A year begins no item, nor do words in bold.
    """
    lines = message.splitlines()
    prose = [line for line, code in zip(lines, fenced(lines), strict=True) if not code]
    return any(_ITEM.match(line) for line in prose) or _counts_up("\n".join(prose))


def _counts_up(text: str) -> bool:
    """Whether a number in brackets is followed by the next one. `(see page 3)` is a remark, no step."""
    depth, last = 0, None
    for found in _STEP.finditer(text):
        sign = found[0]
        if sign == "(":
            depth += 1
        elif sign == ")" or (depth and not sign.startswith("(")):
            depth = max(depth - 1, 0)
        elif last is not None and int(found[1]) == last + 1:
            return True
        else:
            last = int(found[1])
    return False
