"""The program itself: by what a version is known, and copies of versions that lived well, which can be put back.

A version is known by the hash of its files. A home names a version, never a place, and a copy is used only if it still
has the hash by which it is named, holds nothing else, and nobody but this user could write into it. Copies lie with the
user, not in a home: no backup of a home brings a program along.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from common.errors import StorageError
from common.files import expanded, storage_error
from common.version import __version__
from modules.runtime.database.schema import MIGRATIONS

_SOURCE = Path(__file__).resolve().parents[2]
_PARTS = ("adapters", "common", "local_tools", "modules", "skills", "soul", "town", "SELF.md", "SOUL.md")
"""The packages, and the templates that stand beside them in a checkout; elsewhere these are in `soul/templates`."""
_KEPT, _UNFINISHED = 4, ".unfinished"


@dataclass(frozen=True, slots=True)
class ProgramVersion:
    """A version: its number, the hash of its files, "" if that is not known, and the schema that it writes."""

    version: str = ""
    fingerprint: str = ""
    schema: int = 0


def this_program() -> ProgramVersion:
    """Return the version that runs, as its files are now."""
    return ProgramVersion(__version__, _fingerprint(_SOURCE), max(MIGRATIONS))


def is_ours() -> bool:
    """Whether this user can change the program; that of a container image only who chooses the image can."""
    return os.access(_SOURCE, os.W_OK)


def keep(program: ProgramVersion, *needed: ProgramVersion) -> None:
    """Keep a copy of the program, unless its files are not those of `program` any more.

    Copies of `needed` count as new too, so that they are not the next to be deleted. Raises `StorageError`.
    """
    folder = _folder()
    target, unfinished = folder / program.fingerprint, folder / _UNFINISHED
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(folder):
            raise StorageError(
                f"No copy in {folder} is used: it is no folder of this user alone",
                remedy="Move it away; it is made anew.",
            )
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            shutil.rmtree(unfinished, ignore_errors=True)
            if target.exists() and kept(program) is None:
                shutil.rmtree(target)
            unfinished.mkdir(mode=0o700)
            for path in () if target.exists() else _files(_SOURCE):
                copied = unfinished / path.relative_to(_SOURCE)
                copied.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copyfile(path, copied)
            if _fingerprint(unfinished) == program.fingerprint:
                unfinished.rename(target)
            shutil.rmtree(unfinished, ignore_errors=True)
            for copy in filter(None, map(kept, (program, *needed))):
                os.utime(copy)
            copies = [path for path in folder.iterdir() if path.is_dir()]
            for old in sorted(copies, key=lambda path: path.stat().st_mtime)[:-_KEPT]:
                shutil.rmtree(old)
    except OSError as error:
        raise storage_error(folder, error) from error


def kept(program: ProgramVersion) -> Path | None:
    """Return where a version is kept; None where it is not, or is not whole, or not this user's alone."""
    if not program.fingerprint.isalnum():
        return None
    folder = _folder() / program.fingerprint
    try:
        is_safe = _is_private(folder.parent) and _is_private(folder) and _holds_nothing_else(folder)
        return folder if is_safe and _fingerprint(folder) == program.fingerprint else None
    except OSError:
        return None


def become(folder: Path, arguments: Sequence[str]) -> NoReturn:
    """Go on as the program in `folder`, in this process, with the libraries that are installed."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    sys.stdout.flush()
    command = [sys.executable, "-B", "-P", "-m", "soul.cli", *arguments]  # compiled code would be a foreign file
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    os.execve(sys.executable, command, environment)  # noqa: S606 - our own program


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state else expanded(Path("~/.local/state"))) / "soul" / "programs"


def _is_private(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _holds_nothing_else(copy: Path) -> bool:
    """Whether a copy holds only files of a program: no link, no compiled code, nothing that Python would read first."""
    ours = {entry for path in _files(copy) for entry in (path, *path.parents)}
    return all(path in ours and not path.is_symlink() for path in copy.rglob("*"))


def _files(root: Path) -> Iterator[Path]:
    for name in _PARTS:
        for path in sorted([root / name, *(root / name).rglob("*")]):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def _fingerprint(root: Path) -> str:
    digest = hashlib.sha256()
    for path in _files(root):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
