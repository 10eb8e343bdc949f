"""State files under `.memory/`: version-stamped JSON that survives crashes and upgrades.

A file that cannot be read is set aside as `<name>.corrupt-<time>` and reported, never overwritten in silence.
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
    """What `load_state` found: the data, and a line for the owner if something was not as expected."""

    data: Json
    notice: str = ""


def stamp_version(state: Json) -> Json:
    """A copy of `state` with the version stamp; the input is untouched."""
    return {**state, VERSION_KEY: MEMORY_VERSION}


def check_version(data: Json) -> bool:
    """Whether `data` was written by exactly this version."""
    return data.get(VERSION_KEY) == MEMORY_VERSION


def load_state(
    path: Path,
    default: Json,
    migrate: Callable[[Json], Json | None] | None = None,
    *,
    fits: Callable[[Json], bool] = lambda _: True,
) -> Loaded:
    """Read a state file, without ever raising for what is in it.

    Args:
        path: the file.
        default: what to use when the file is absent, unreadable or given up.
        migrate: called with the data of another version; returns the data to keep, or None to start afresh.
            Without it, data of another version is given up.
        fits: whether the values are of the kinds that the caller expects; a file that does not fit is unreadable.

    """
    try:
        data = _read(path)
        if not fits(_without_stamp(data)):
            raise _Unreadable("holds values of the wrong kind")  # noqa: TRY301 - the same path as for what is no JSON
    except FileNotFoundError:
        return Loaded(dict(default))
    except _Unreadable as problem:
        return Loaded(dict(default), f"{path.name} {problem}; {set_aside(path)}, starting afresh")
    if check_version(data):
        return Loaded(_without_stamp(data))
    kept = migrate(_without_stamp(data)) if migrate else None
    if kept is None:
        return Loaded(dict(default), f"{path.name} was written by another version; starting it afresh")
    save_state(path, kept)
    return Loaded(kept)


def save_state(path: Path, data: Json) -> None:
    """Write a state file atomically, stamped. Raises `StorageError`."""
    text = json.dumps(stamp_version(data), ensure_ascii=False, indent=2) + "\n"
    # NOTE(self): half a surrogate pair has no UTF-8; as an escape it is valid JSON and comes back the same.
    write_atomic(path, text.encode("utf-8", "backslashreplace"))


def keep(data: Json) -> Json:
    """A migration that keeps everything as it is."""
    return data


def stamp_jsonl_version(path: Path) -> None:
    """Write the sidecar `<file>.version` of a JSON-lines file."""
    write_atomic(_sidecar(path), MEMORY_VERSION)


def check_jsonl_version(path: Path) -> bool:
    """Whether the sidecar names exactly this version; no sidecar is no."""
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
    return data


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".version")


def _without_stamp(data: Json) -> Json:
    return {key: value for key, value in data.items() if key != VERSION_KEY}


def set_aside(path: Path) -> str:
    """Rename a file that cannot be read, so that nothing overwrites it; in words, what became of it."""
    aside = path.with_name(f"{path.name}.corrupt-{time.time_ns()}")
    try:
        path.replace(aside)
    except OSError as error:
        return f"and could not be set aside ({error})"
    return f"kept as {aside.name}"
