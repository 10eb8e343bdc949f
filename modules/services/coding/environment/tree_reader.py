"""Reads the files of a tree that say what it needs; follows no link, and reads none that is too large."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from common.trees import small_text, walk
from modules.services.coding.environment.types import PYTHON_LOCKS
from modules.services.coding.suite_files import NOT_SOURCE, PYTEST_FILE

PAGE, LOCK = "package.json", "package-lock.json"
OTHER_LOCKS = ("yarn.lock", "pnpm-lock.yaml")

_SMALL_BYTES, _LOCK_BYTES = 200_000, 4_000_000
_LOCK_NAMES = frozenset({*PYTHON_LOCKS, LOCK, *OTHER_LOCKS})
_DEPTH = 3
_MOST_FILES = 200


def read_files(tree: Path) -> dict[str, str]:
    """Return the files of Python and npm, by path."""
    return dict(_files(tree))


def _files(tree: Path) -> Iterator[tuple[str, str]]:
    count = 0
    for folder, folders, names in walk(tree):
        here = Path(folder)
        deep = len(here.parts)
        folders[:] = sorted(name for name in folders if name not in NOT_SOURCE) if deep < _DEPTH else []
        for name in sorted(names):
            is_requirements = deep == 1 and "requirements" in here.name and name.endswith(".txt")
            is_read = deep == 0 or name == PAGE or is_requirements
            most = _LOCK_BYTES if name in _LOCK_NAMES and deep == 0 else _SMALL_BYTES
            if not is_read or (text := small_text(tree / here / name, most)) is None:
                continue
            yield (here / name).as_posix(), text
            if (count := count + 1) >= _MOST_FILES:
                return


def has_tests(tree: Path) -> bool:
    """Return whether files of tests are there that pytest runs."""
    for _, folders, names in walk(tree):
        folders[:] = [name for name in folders if name not in NOT_SOURCE]
        if any(PYTEST_FILE.fullmatch(name) for name in names):
            return True
    return False
