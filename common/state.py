"""State files under `.memory/`: version-stamped JSON that survives crashes and upgrades.

A file that cannot be read is set aside as `<name>.corrupt-<time>` and reported, never silently overwritten.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.constants import STATE_MAX_BYTES
from common.files import read_bounded, write_atomic
from common.version import __version__

MEMORY_VERSION = __version__
VERSION_KEY = "_memoryVersion"
_SIDECAR_MAX_BYTES = 1024

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of `load_state`: the data, and a line for the owner if something was wrong."""

    data: Json
    notice: str = ""


def load_state(path: Path, default: Json, *, fits: Callable[[Json], bool] = lambda _: True) -> Loaded:
    """Read a state file of any version; its contents never cause an exception.

    Args:
        path: the file.
        default: used if the file is absent or unreadable.
        fits: returns whether the values have the expected types; a file that does not fit counts as unreadable.

    """
    try:
        data = _read(path)
        if not fits(data):
            raise _Unreadable("holds values of the wrong kind")  # noqa: TRY301 - handled like invalid JSON
    except FileNotFoundError:
        return Loaded(dict(default))
    except _Unreadable as problem:
        return Loaded(dict(default), f"{path.name} {problem}; {set_aside(path)}, starting afresh")
    return Loaded(data)


def save_state(path: Path, data: Json) -> None:
    """Write a state file atomically, with the version. Raises `StorageError`."""
    text = json.dumps({**data, VERSION_KEY: MEMORY_VERSION}, ensure_ascii=False, indent=2) + "\n"
    # NOTE(self): half a surrogate pair cannot be UTF-8; as an escape it is valid JSON and is read back unchanged.
    write_atomic(path, text.encode("utf-8", "backslashreplace"))


def stamp_jsonl_version(path: Path) -> None:
    """Write the sidecar `<file>.version` of a JSON-lines file."""
    write_atomic(_sidecar(path), MEMORY_VERSION)


def check_jsonl_version(path: Path) -> bool:
    """Return whether the sidecar names exactly this version; False without a sidecar."""
    try:
        return read_bounded(_sidecar(path), _SIDECAR_MAX_BYTES).strip() == MEMORY_VERSION.encode()
    except OSError:
        return False


class _Unreadable(Exception):
    pass


def _read(path: Path) -> Json:
    try:
        data = json.loads(read_bounded(path, STATE_MAX_BYTES).decode())
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise _Unreadable(f"could not be read ({error})") from None
    except (ValueError, RecursionError) as error:
        raise _Unreadable(f"is not valid JSON ({error})") from None
    if not isinstance(data, dict):
        raise _Unreadable("does not hold a JSON object")
    return {key: value for key, value in data.items() if key != VERSION_KEY}


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".version")


def set_aside(path: Path) -> str:
    """Rename a file that cannot be read, so that nothing overwrites it; return in words what became of it."""
    aside = path.with_name(f"{path.name}.corrupt-{time.time_ns()}")
    try:
        path.replace(aside)
    except OSError as error:
        return f"and could not be set aside ({error})"
    return f"kept as {aside.name}"
