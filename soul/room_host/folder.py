"""The folder of a room's record, and the lock that gives it to one room at a time.

The operating system releases the lock of a killed program at once; the record survives.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.constants import SPACE_DEFAULT_NAME
from common.errors import ConfigError
from common.files import expanded, storage_error, write_atomic
from soul.terminal.text import one_line

_LOCK = "room.lock"
_NAME = "room.name"
_MOST_CHARS, _MOST_BYTES = 80, 240
_MARK_CHARS = 8


def default_folder(name: str) -> Path:
    """Returns the folder of the room of this name, below XDG_STATE_HOME or ~/.local/state; no two names share one."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state else expanded(Path("~/.local/state"))
    return base / "soul" / "spaces" / _folder_name(name)


@contextmanager
def exclusive_folder(folder: Path, name: str) -> Iterator[Path]:
    """Create `folder` if it is missing and lock it; yields its absolute path.

    Raises:
        ConfigError: another room has it open, or it holds the record of a room of another name.
        SoulError: it cannot be created or written.

    """
    path = at = expanded(folder).absolute()
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
    """Refuse the record of another room, since members are sent it; a folder without a name gets this one."""
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
    """Returns the name if it is a valid folder name; else its valid characters and a hash of the name."""
    left = "".join(char if char.isalnum() or char in "-_" else "-" for char in name).strip("-")
    plain = left[:_MOST_CHARS].encode()[:_MOST_BYTES].decode(errors="ignore") or SPACE_DEFAULT_NAME
    if plain == name:
        return plain
    mark = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{plain}-{mark[:_MARK_CHARS]}"
