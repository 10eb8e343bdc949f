"""Keys of `.env` that no setting has: a misspelt one would otherwise be ignored, and its default would hold.

The file may be shared with other programs, so a key counts as meant for us only if it begins as ours do, or is nearly
the same as one of ours that the file does not set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from pathlib import Path

from common.env_file import given
from common.errors import ConfigError
from common.settings import Settings, explained_by

KNOWN = tuple(name.upper() for name in Settings.model_fields)

_OURS = (
    "AGENT_BLUESKY_",
    "AGENT_GITHUB_",
    "AI_GATEWAY_",
    "ATPROTO_",
    "BOOT_CONTEXT_",
    "BUDGET_",
    "OWNER_BLUESKY_",
    "OWNER_GITHUB_",
    "SOUL_",
    "SPACE_",
    "WORKSPACE_",
)
_NEARLY_THE_SAME = 0.85
_SIMILAR = 0.6


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that no setting has, and the setting that is most like it, "" if none is."""

    name: str
    meant: str

    def __str__(self) -> str:
        question = f"; did you mean {self.meant}?" if self.meant else ""
        return f"{self.name} is no setting{question}"


def unknown_in_file(home: Path, content: bytes | None = None) -> tuple[UnknownKey, ...]:
    """Those of `<home>/.env`, or of `content` as if it stood there, that are meant for us, in the file's order."""
    return unknown_among(given(home, content).names, prefixes=_OURS)


def unknown_in_environment() -> tuple[UnknownKey, ...]:
    """Those of the environment that are nearly the same as a setting that it does not hold."""
    return unknown_among(os.environ, prefixes=())


def unknown_among(names: Iterable[str], *, prefixes: tuple[str, ...]) -> tuple[UnknownKey, ...]:
    """The unknown ones among `names`: all that begin with one of `prefixes`, and those that look misspelt."""
    given = list(names)
    there = {name.upper() for name in given}
    found = []
    for name in given:
        upper = name.upper()
        if upper in KNOWN:
            continue
        similar = _similar(upper)
        unset = next((known for known in similar if known not in there), "")
        misspelt = bool(unset) and SequenceMatcher(None, upper, unset).ratio() >= _NEARLY_THE_SAME
        if upper.startswith(prefixes) or misspelt:
            found.append(UnknownKey(name, similar[0] if similar else ""))
    return tuple(found)


def unknown_keys(home: Path, *, of: str = "", content: bytes | None = None) -> list[ConfigError]:
    """Return an error for each key of `<home>/.env`, or of `content` in its place, that no setting has.

    Of the file only keys that are meant for us count, of the environment only what looks misspelt. With `of`, only
    those that begin so, or resemble a setting that does.
    """
    return [
        ConfigError(str(one), remedy=explained_by(home, one.name), setting=one.name)
        for one in (*unknown_in_file(home, content), *unknown_in_environment())
        if one.name.startswith(of) or one.meant.startswith(of)
    ]


@lru_cache(maxsize=1024)
def _similar(name: str) -> tuple[str, ...]:
    """Return the settings that are like `name`, the most similar first."""
    return tuple(get_close_matches(name, KNOWN, n=len(KNOWN), cutoff=_SIMILAR))
