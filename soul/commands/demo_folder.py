"""The temporary folder of a demo; what killed demos of the same user left behind is removed first.

The lock in the folder belongs to the system: a killed process loses it at once. It is taken under another name first,
and then renamed, so that whoever finds it under its own name finds it locked while its demo lives.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from modules.runtime.home import Home, lock_holder
from soul.terminal.output import write_error

PREFIX = "soul-demo-"
LOCK = ".lock"


@contextmanager
def demo_folder(within: Path) -> Iterator[Path]:
    """A new folder in this one, gone in the end; those of earlier demos that nobody lives in are removed first."""
    clear_left(within)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=within) as temporary:
        folder = Path(temporary)
        handle = _locked(folder)
        try:
            yield folder
        finally:
            os.close(handle)


def clear_left(within: Path) -> None:
    """Remove what demos of this user left that were killed; a folder without its lock is nobody's business here."""
    for folder in sorted(within.glob(f"{PREFIX}*")):
        try:
            _clear(folder)
        except OSError as error:
            write_error(f"{folder}, left by an earlier demo, cannot be removed: {error}", "Remove it by hand.")


def _clear(folder: Path) -> None:
    try:
        found = folder.lstat()
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW) if _ours(folder, found) else None
    except FileNotFoundError:
        return
    if handle is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if any(lock_holder(Home.at(home)) is not None for home in folder.iterdir() if home.is_dir()):
            return
        shutil.rmtree(folder)
    except BlockingIOError:
        return
    finally:
        os.close(handle)


def _ours(folder: Path, found: os.stat_result) -> bool:
    return found.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink()


def _locked(folder: Path) -> int:
    taken = folder / f"{LOCK}.new"
    handle = os.open(taken, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    taken.rename(folder / LOCK)
    return handle
