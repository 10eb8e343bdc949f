"""Where a room keeps its record, and that only one room keeps it there.

The lock belongs to the operating system: a killed program loses it at once, and the record itself is what survives.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adapters.space.advertise import DEFAULT_NAME
from common.errors import ConfigError
from common.files import storage_error, write_atomic
from soul.terminal.text import one_line

_LOCK = "room.lock"
_NAME = "room.name"
_MOST_CHARS, _MOST_BYTES = 80, 240
_MARK_CHARS = 8


def default_folder(name: str) -> Path:
    """The room's folder in the user's state folder (XDG_STATE_HOME, else ~/.local/state); each name has its own."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state else Path.home() / ".local" / "state"
    return base / "soul" / "spaces" / _folder_name(name)


@contextmanager
def exclusive_folder(folder: Path, name: str) -> Iterator[Path]:
    """Make `folder` if need be and keep other rooms out of it, also those that are closed.

    Raises:
        ConfigError: another room keeps its record there, or the record of a room of another name lies there.
        SoulError: the folder cannot be made or written.

    """
    path = at = folder.expanduser().absolute()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        at = path / _LOCK
        lock = os.open(at, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise storage_error(at, error) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(
                f"another room keeps its record in {path}",
                remedy="close that room, or give this one another folder with --data, or another --name",
            ) from error
        _check_name(path, name)
        yield path
    finally:
        os.close(lock)


def _check_name(folder: Path, name: str) -> None:
    """Whoever joins is told the record, so it belongs to one room; a folder without a name takes this one."""
    at, name = folder / _NAME, one_line(name.encode(errors="replace").decode())
    try:
        kept = at.read_text(encoding="utf-8", errors="replace").strip() if at.exists() else ""
        if not kept:
            write_atomic(at, f"{name}\n")
    except OSError as error:
        raise storage_error(at, error) from error
    if kept and kept != name:
        raise ConfigError(
            f"{folder} keeps the record of another room, « {one_line(kept)[:_MOST_CHARS]} »",
            remedy="open it with that --name, or give this room another folder with --data",
        )


def _folder_name(name: str) -> str:
    """The name, if a folder can have it; else what is left of it, with a mark that no other name has."""
    left = "".join(char if char.isalnum() or char in "-_" else "-" for char in name).strip("-")
    plain = left[:_MOST_CHARS].encode()[:_MOST_BYTES].decode(errors="ignore") or DEFAULT_NAME
    if plain == name:
        return plain
    mark = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{plain}-{mark[:_MARK_CHARS]}"
