"""Where a room keeps its record, and that only one room keeps it there.

The lock belongs to the operating system: a killed program loses it at once, and the record itself is what survives.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import ConfigError
from common.files import storage_error

_LOCK = "room.lock"


def default_folder(name: str) -> Path:
    """The room's folder in the user's state folder (XDG_STATE_HOME, else ~/.local/state)."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state else Path.home() / ".local" / "state"
    return base / "soul" / "spaces" / (_plain(name) or "agent-space")


@contextmanager
def kept_alone(folder: Path) -> Iterator[Path]:
    """Make `folder` if need be and keep other rooms out of it.

    Raises:
        ConfigError: another room keeps its record there.
        SoulError: the folder cannot be made or written.

    """
    path = folder.expanduser().absolute()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(
                f"another room keeps its record in {path}",
                remedy="close that room, or give this one another folder with --data, or another --name",
            ) from error
        yield path
    finally:
        os.close(lock)


def _plain(name: str) -> str:
    """The name as a folder's."""
    return "".join(char if char.isalnum() or char in "-_" else "-" for char in name).strip("-")[:80]
