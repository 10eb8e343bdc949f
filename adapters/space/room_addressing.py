"""Whom the host means: names behind an `@`, then names that stand in the text as whole words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MENTION = re.compile(r"(?<!\w)@([\w.-]+)")
_JOINT = re.compile(r"[.-]")


def parse_addressed(content: str, names: Sequence[str]) -> list[str]:
    """The names of `names` (in the order of joining) that `content` addresses, each once, in any case of letters.

    A name that is only part of a longer one which was meant (`marvin` in `sh-marvin`) is not meant itself.
    """
    by_fold: dict[str, str] = {}
    for name in names:
        by_fold.setdefault(name.casefold(), name)
    meant: list[str] = []

    def mentioned(found: re.Match[str]) -> str:
        run = found[1]
        for end in (len(run), *(joint.start() for joint in reversed(list(_JOINT.finditer(run))))):
            name = by_fold.get(run[:end].casefold())
            if name is not None:
                meant.append(name)
                return f"\0{run[end:]}"
        return found[0]

    rest = _MENTION.sub(mentioned, content)
    spoken = set()
    folded = content.casefold()
    possible = (name for name in names if name.casefold() in folded)
    for name in sorted(possible, key=len, reverse=True):
        rest, count = re.subn(rf"(?<!\w){re.escape(name)}(?!\w)", "\0", rest, flags=re.IGNORECASE)
        if count:
            spoken.add(name)
    return list(dict.fromkeys([*meant, *(name for name in names if name in spoken)]))
