"""Finds which members a message addresses: names after an `@`, then names that occur as whole words. Pure."""

import re
from collections.abc import Sequence

_MENTION = re.compile(r"(?<!\w)@([\w.-]+)")
_JOINT = re.compile(r"[.-]")


def parse_addressed(content: str, names: Sequence[str]) -> list[str]:
    """Return the names that `content` addresses, each once, ignoring case: mentions first, then by order of joining.

    A name inside a longer one that matched (`marvin` in `sh-marvin`) does not match itself. Of names that differ only
    in case, the one with exactly this spelling matches, or all of them if there is none.
    """
    by_fold: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        by_fold.setdefault(name.casefold(), []).append(name)
    meant: list[str] = []

    def spelled(word: str) -> list[str]:
        alike = by_fold.get(word.casefold(), [])
        return [word] if word in alike else alike

    def mentioned(found: re.Match[str]) -> str:
        run = found[1]
        for end in (len(run), *(joint.start() for joint in reversed(list(_JOINT.finditer(run))))):
            if called := spelled(run[:end]):
                meant.extend(called)
                return f"\0{run[end:]}"
        return found[0]

    rest = _MENTION.sub(mentioned, content)
    matched: set[str] = set()

    def named(found: re.Match[str]) -> str:
        matched.update(spelled(found[0]))
        return "\0"

    folded = content.casefold()
    possible = (alike[0] for fold, alike in by_fold.items() if fold in folded)
    for name in sorted(possible, key=len, reverse=True):
        rest = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", named, rest, flags=re.IGNORECASE)
    return list(dict.fromkeys([*meant, *(name for name in names if name in matched)]))
