"""The program itself: by what a version is known, and copies of versions that lived well, which can be put back.

A version is known by the hash of its files. A home names a version, never a place, and a copy is used only if it still
has the hash by which it is named. Copies lie with the user, not in a home: no backup of a home brings a program along.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

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


def keep(program: ProgramVersion) -> None:
    """Keep a copy of the program, unless its files are not those of `program` any more. Raises `StorageError`."""
    folder = _folder()
    target, unfinished = folder / program.fingerprint, folder / _UNFINISHED
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            shutil.rmtree(unfinished, ignore_errors=True)
            for path in () if target.exists() else _files(_SOURCE):
                copied = unfinished / path.relative_to(_SOURCE)
                copied.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copyfile(path, copied)
            if unfinished.exists() and _fingerprint(unfinished) == program.fingerprint:
                unfinished.rename(target)
            if target.exists():
                os.utime(target)
            copies = [path for path in folder.iterdir() if path.is_dir()]
            for old in sorted(copies, key=lambda path: path.stat().st_mtime)[:-_KEPT]:
                shutil.rmtree(old)
    except OSError as error:
        raise storage_error(folder, error) from error


def kept(program: ProgramVersion) -> Path | None:
    """Return where a version is kept; None where it is not, or is not whole."""
    if not program.fingerprint.isalnum():
        return None
    folder = _folder() / program.fingerprint
    return folder if folder.is_dir() and _fingerprint(folder) == program.fingerprint else None


def become(folder: Path, arguments: Sequence[str]) -> NoReturn:
    """Go on as the program in `folder`, in this process, with the libraries that are installed."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    sys.stdout.flush()
    command = [sys.executable, "-P", "-m", "soul.cli", *arguments]
    os.execve(sys.executable, command, {**os.environ, "PYTHONPATH": path})  # noqa: S606 - our own program


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state else expanded(Path("~/.local/state"))) / "soul" / "programs"


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
