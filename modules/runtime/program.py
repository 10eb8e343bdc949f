"""Identifies the version of this program, and keeps copies of versions that ran well, so that they can be put back.

The files of a version are packed into one archive, whose hash identifies it; a copy is used only if it has that hash.
A home names a version, never a path. Copies lie in the user's state folder: a backup of a home contains no program.
"""

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
"""The packages, and the templates that lie beside them in a checkout; an installation has those in `soul/templates`."""
_KEPT = 4


@dataclass(frozen=True, slots=True)
class ProgramVersion:
    """A version: its number, the hash of its files, and the database schema that it writes."""

    version: str
    fingerprint: str
    schema: int


def this_program() -> ProgramVersion:
    """Return the version that runs, with the hash of its files as they are now."""
    digest = hashlib.sha256()
    _pack(digest.update)
    return ProgramVersion(__version__, digest.hexdigest(), max(MIGRATIONS))


def keep(program: ProgramVersion, before: ProgramVersion) -> None:
    """Keep a copy of the program, unless its files are no longer those of `program`, or this user may not write them.

    The copy of `before` also counts as recent, so that it is not the next to be deleted. Raises `SoulError`.
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
    """Return whether a copy of a version is kept, and is unchanged."""
    try:
        with (_folder() / Path(program.fingerprint).name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == program.fingerprint
    except (OSError, ValueError, ConfigError):
        return False


def become(program: ProgramVersion, folder: Path, arguments: Sequence[str]) -> None:
    """Unpack a kept copy into `folder` and exec it; return if the copy has changed. Raises `StorageError`."""
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
    """Pass an archive of the program's files to `take`, piece by piece: it holds only their names and content."""
    sink = SimpleNamespace(write=lambda piece: take(piece) or len(piece), flush=lambda: None)
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w") as archive:
        for name in _PARTS:
            for path in sorted([_SOURCE / name, *(_SOURCE / name).rglob("*")]):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.writestr(zipfile.ZipInfo(path.relative_to(_SOURCE).as_posix()), path.read_bytes())
