"""Which work on GitHub is mere upkeep, as its title and labels show, so that nobody needs to be asked about it. Pure.

English only: what is titled in another language, or in unusual words, is left to who understands it.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_TYPE = re.compile(r"(?:chore|ci|build|style|tests?|refactor|deps|release)(?:\([^()]{0,40}\))?!?:", re.IGNORECASE)
"""The type of a conventional commit for which no user would look."""
_WORD = re.compile(r"[^\W\d_]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LABELS = _words(
    "chore chores ci build dependencies dependency deps maintenance housekeeping cleanup refactor refactoring typo test"
    " tests tests-only internal release memo meeting minutes"
)
_UPKEEP = _words("bump rename reformat lint rebase revert unpin pin tidy reschedule relabel retitle refactor backport")
"""A title that begins with one of these is upkeep."""
_PERHAPS = _words(
    "update upgrade fix clean cleanup remove delete move merge close archive replace sort correct add raise"
)
"""A title that begins with one of these is upkeep where it is about one of the objects below."""
_OBJECTS = _words(
    "dependency dependencies version versions typo typos linter lint formatter lockfile branch branches label labels"
    " milestone changelog copyright license footer header indentation whitespace meeting agenda minutes config"
    " configuration workflow ci pipeline imports comments todo todos readme"
)
_MEETINGS = (
    _words("sync notes"),
    _words("meeting notes"),
    _words("meeting agenda"),
    _words("meeting minutes"),
    _words("stand up notes"),
    _words("standup notes"),
    _words("weekly agenda"),
)
"""A title that holds all the words of one of these is about a meeting."""


def is_upkeep(title: str, labels: Collection[str] = ()) -> bool:
    """Return whether work with this title and these labels is noticed by nobody but those who work on it."""
    if _LABELS.intersection(label.lower() for label in labels) or _TYPE.match(title.strip()):
        return True
    words = [word.lower() for word in _WORD.findall(title)]
    known = frozenset(words)
    first = words[0] if words else ""
    if first in _UPKEEP or any(meeting <= known for meeting in _MEETINGS):
        return True
    return first in _PERHAPS and bool(known & _OBJECTS)
