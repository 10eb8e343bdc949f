"""Which lines of a Markdown page are code, where no `#` begins a heading. Nothing in a text makes it fail."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def opens(line: str) -> str | None:
    """The fence with which a line opens a code block, if it does."""
    match = _FENCE.fullmatch(line)
    return match[1] if match and not (match[1].startswith("`") and "`" in match[2]) else None


def fenced(lines: Sequence[str]) -> list[bool]:
    """For each line whether it belongs to a code block, its fences included. A fence that nothing closes is none.

    The lines come without their ends.
    """
    inside = [False] * len(lines)
    open_ended: set[str] = set()
    place = 0
    while place < len(lines):
        fence = opens(lines[place])
        if fence and not any(fence.startswith(known) for known in open_ended):
            end = next((n for n in range(place + 1, len(lines)) if _closes(lines[n], fence)), None)
            if end is not None:
                inside[place : end + 1] = [True] * (end + 1 - place)
                place = end
            else:
                open_ended.add(fence)
        place += 1
    return inside


def _closes(line: str, fence: str) -> bool:
    match = _FENCE.fullmatch(line)
    return match is not None and match[1].startswith(fence) and not match[2].strip()
