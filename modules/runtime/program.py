"""The program itself: by what a version is known, and copies of versions that lived well, which can be put back.

A version is its files, packed into one archive, and known by the hash of that; a copy is used only if it still has it.
A home names a version, never a place. Copies lie with the user: no backup of a home brings a program along.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, cast

from common.errors import ConfigError
from common.files import expanded, storage_error, write_atomic
from common.version import __version__
from modules.runtime.database.schema import MIGRATIONS

_SOURCE = Path(__file__).resolve().parents[2]
_PARTS = ("adapters", "common", "local_tools", "modules", "skills", "soul", "town", "SELF.md", "SOUL.md")
"""The packages, and the templates that stand beside them in a checkout; elsewhere these are in `soul/templates`."""
_KEPT = 4


@dataclass(frozen=True, slots=True)
class ProgramVersion:
    """A version: its number, the hash of its files, and the schema that it writes."""

    version: str
    fingerprint: str
    schema: int


def this_program() -> ProgramVersion:
    """Return the version that runs, as its files are now."""
    digest = hashlib.sha256()
    _pack(digest.update)
    return ProgramVersion(__version__, digest.hexdigest(), max(MIGRATIONS))


def keep(program: ProgramVersion, before: ProgramVersion) -> None:
    """Keep a copy of the program, unless its files are not those of `program` any more, or not this user's.

    The copy of `before` counts as new too, so that it is not the next to be deleted. Raises `SoulError`.
    """
    if program != this_program() or not os.access(_SOURCE, os.W_OK):
        return
    folder, packed = _folder(), bytearray()
    try:
        if not kept(program):
            _pack(packed.extend)
            write_atomic(folder / program.fingerprint, bytes(packed))
        for one in filter(kept, (program, before)):
            os.utime(folder / one.fingerprint)
        for old in sorted(filter(Path.is_file, folder.iterdir()), key=lambda path: path.stat().st_mtime)[:-_KEPT]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(folder, error) from error


def kept(program: ProgramVersion) -> bool:
    """Return whether the copy of a version is kept, and is what it was."""
    try:
        with (_folder() / Path(program.fingerprint).name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == program.fingerprint
    except (OSError, ValueError, ConfigError):
        return False


def become(program: ProgramVersion, folder: Path, arguments: Sequence[str]) -> None:
    """Unpack a copy that is kept into `folder`, and go on as it, with installed libraries. Raises `StorageError`."""
    try:
        packed = (_folder() / program.fingerprint).read_bytes()
        if hashlib.sha256(packed).hexdigest() != program.fingerprint:
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        zipfile.ZipFile(io.BytesIO(packed)).extractall(folder)
    except OSError as error:
        raise storage_error(folder, error) from error
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    sys.stdout.flush()
    line = [sys.executable, "-P", "-m", "soul.cli", *arguments]
    os.execve(sys.executable, line, {**os.environ, "PYTHONPATH": path})  # noqa: S606 - our own program


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state else expanded(Path("~/.local/state"))) / "soul" / "programs"


def _pack(take: Callable[[bytes], object]) -> None:
    """Hand on the files of the program in one archive, piece by piece: nothing but their names and content."""
    sink = SimpleNamespace(write=lambda piece: take(piece) or len(piece), flush=lambda: None)
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w") as archive:
        for name in _PARTS:
            for path in sorted([_SOURCE / name, *(_SOURCE / name).rglob("*")]):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.writestr(zipfile.ZipInfo(path.relative_to(_SOURCE).as_posix()), path.read_bytes())
