"""Which files a shell command removes by name. Pure; nothing is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from posixpath import normpath

_REMOVING, _MOVING = frozenset({"rm", "rmdir", "unlink", "mv"}), "mv"
_ENDS = re.compile(r"[;&|()\n]+")


def removes(commands: Iterable[str], path: str) -> bool:
    """Return whether one of the commands removes or moves a file, or a folder that holds it, by its name.

    `path` is relative to the root of the tree; a command may name it from a folder that it went to.
    """
    return any(_covers(name, path) for command in commands for name in _removed(command))


def _removed(command: str) -> Iterator[str]:
    """Yield what the removing parts of a command name."""
    for part in _ENDS.split(command):
        try:
            words = shlex.split(part)
        except ValueError:
            continue
        if words and words[0] in _REMOVING:
            names = words[1:-1] if words[0] == _MOVING else words[1:]
            yield from (normpath(name) for name in names if not name.startswith("-"))


def _covers(name: str, path: str) -> bool:
    """Whether a name, which may be a pattern, is that of the file, of a folder above it, or ends its path."""
    parts = path.split("/")
    wanted = name.count("/") + 1
    runs = ("/".join(parts[start : start + wanted]) for start in range(len(parts) - wanted + 1))
    return any(fnmatchcase(run, name) for run in runs)
