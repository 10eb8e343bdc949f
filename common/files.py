"""Bounded reads, and writes that survive a crash (fsync, rename, fsync of the folder).

State files under `.memory/` are version-stamped JSON that survives upgrades too. One that cannot be read is set aside
as `<name>.corrupt-<time>` and reported, never silently overwritten.

Folders that untrusted programs wrote into are walked and deleted here too, whatever is in them.
"""

import errno
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from common.constants import LOG_MAX_BYTES, STATE_MAX_BYTES
from common.errors import ConfigError, DiskFull, MachineTrouble, StorageError, UsageError
from common.version import __version__

_FULL = {errno.ENOSPC, errno.EDQUOT}
_MACHINE = {errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM, errno.EAGAIN}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_FILE_IN_THE_WAY = {errno.EEXIST, errno.ENOTDIR}


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return the whole content of a regular file.

    Raises:
        OSError: it is missing or cannot be read; with `errno.EFBIG` if it is larger than `max_bytes`.
        MachineTrouble: the machine fails for now.

    """
    try:
        content = _read(path, max_bytes + 1)
    except OSError as error:
        raise_machine_trouble(path, error)
        raise
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes // 1024} KiB", str(path))
    return content


def _read(path: Path, most_bytes: int) -> bytes:
    with open(path, "rb", opener=_open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read(most_bytes)


def _open_at_once(path: str, flags: int) -> int:
    # NOTE(self): without O_NONBLOCK, opening a pipe that nobody writes to would block for ever.
    return os.open(path, flags | os.O_NONBLOCK)


def append_bounded(path: Path, content: bytes, *, rotations: int = 1) -> None:
    """Append to a log. At `LOG_MAX_BYTES` the file becomes `.1` and older ones `.2` …, up to `rotations` files.

    Raises:
        StorageError: the disk is full or refuses.

    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size >= LOG_MAX_BYTES:
            names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, rotations + 1))]
            for newer, older in reversed([*pairwise(names)]):
                if newer.exists():
                    newer.replace(older)
        with path.open("ab") as file:
            file.write(content)
    except OSError as error:
        raise storage_error(path, error) from error


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o600) -> None:
    """Replace `path` with `content` in one step, and create its parents. By default only this user can read it.

    Raises:
        StorageError: the disk is full or refuses; the old file is then untouched.

    """
    data = content.encode() if isinstance(content, str) else content
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        temporary = None
        sync(path.parent)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def must_be_new(path: Path) -> None:
    """Raise `UsageError` if something is at `path`, or if its folder does not exist."""
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already", remedy="Name another file, or move that one away.")
    if not path.parent.is_dir():
        raise UsageError(f"The folder {path.parent} does not exist", remedy="Make it, or name a file elsewhere.")


def expanded(path: Path) -> Path:
    """Return `path` with the user's home folder in place of a leading `~`.

    Raises:
        ConfigError: this user has none, as in a container whose user has no name.

    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{path}: the folder of that user is not known", remedy="Write the whole path.") from error


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def disk_full(path: Path) -> DiskFull:
    """Return the error for a write that found no room."""
    return DiskFull(f"Disk full: cannot write {path}", remedy="Free some space; what was accepted is kept.")


def is_machine_trouble(error: OSError) -> bool:
    """Return whether the error is about the machine and not about the file."""
    return error.errno in _MACHINE


def raise_machine_trouble(path: Path, error: OSError) -> None:
    """Raise `MachineTrouble` if the error is not about the file at `path`."""
    if is_machine_trouble(error):
        raise machine_trouble(path, error.strerror or str(error)) from error


def machine_trouble(path: Path, why: str) -> MachineTrouble:
    """Return the error for a file that cannot be used now, with the reason."""
    return MachineTrouble(
        f"This machine cannot use {path} now: {why}", remedy="Check the disk, the memory, and the limit of open files."
    )


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return the error for a write that failed."""
    if error.errno in _FULL:
        return disk_full(path)
    if is_machine_trouble(error):
        return machine_trouble(path, error.strerror or str(error))
    if error.errno in _REFUSED:
        return StorageError(f"No permission to write {path}", remedy=f"Give this user write access to {path.parent}.")
    if error.errno in _FILE_IN_THE_WAY:
        return StorageError(
            f"Cannot write {path}: there is a file where a folder should be",
            remedy="Move that file away, or name another folder.",
        )
    if error.errno == errno.EISDIR:
        return StorageError(
            f"Cannot write {path}: there is a folder where a file should be", remedy="Move that folder away."
        )
    return StorageError(
        f"Cannot write {path}: {error.strerror or error}", remedy=f"Check the disk under {path.parent}."
    )


_OWN_BITS, _FILE_BITS = stat.S_IRWXU, stat.S_IRUSR | stat.S_IWUSR
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def walk(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder of a tree, from the top: its path from `root` ("" for `root`), its folders, its other entries.

    A folder that the caller removes from the list is not entered. Closed folders are opened to their owner. A folder
    that cannot be opened, or is too deep for its path from `root` to name it, counts as empty. Raises `MachineTrouble`.
    """
    try:
        top = _open_folder(str(root), None)
    except OSError as error:
        raise_machine_trouble(root, error)
        return
    try:
        left = [""]
        while left:
            place = left.pop()
            try:
                handle = _open_folder(place or ".", top)
            except OSError as error:
                raise_machine_trouble(root / place, error)
                continue
            try:
                folders, others = _listed(handle)
            finally:
                os.close(handle)
            yield place, folders, others
            left += [f"{place}/{name}" if place else name for name in reversed(folders)]
    finally:
        os.close(top)


def open_to_owner(root: Path) -> None:
    """Make every file and folder of a tree readable and writable for its owner, as far as that is possible."""
    for place, _, others in walk(root):
        for name in others:
            path = root / place / name
            with suppress(OSError):
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode) and mode & _FILE_BITS != _FILE_BITS:
                    path.chmod(stat.S_IMODE(mode) | _FILE_BITS)


def small_text(path: Path, most_bytes: int) -> str | None:
    """Return the text of a file; None for a link, for what is not a file, is too large or cannot be read.

    Raises `MachineTrouble`.
    """
    try:
        is_read = not path.is_symlink() and path.is_file() and path.stat().st_size <= most_bytes
        return path.read_text("utf-8-sig", "replace") if is_read else None
    except OSError as error:
        raise_machine_trouble(path, error)
        return None


def readable_name(path: str) -> str:
    """Return a path as valid Unicode: bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def delete_tree(path: Path) -> bool:
    """Delete a folder and its contents, or a file or link; return whether nothing is there any more."""
    try:
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return True
        _empty(path)
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _empty(path: Path) -> None:
    """Delete the contents of a folder. Raises `OSError` if something remains.

    Nested folders are moved up before they are entered, so no path is ever longer than two names.
    """
    top = _open_folder(str(path), None)
    try:
        names = count()
        while (listed := _listed(top))[0] or listed[1]:
            folders, others = listed
            for name in others:
                os.unlink(name, dir_fd=top)
            for name in folders:
                _dissolve(name, top, names)
    finally:
        os.close(top)


def _dissolve(name: str, top: int, names: Iterator[int]) -> None:
    """Delete the folder `name` of the folder `top`; the folders in it become folders of `top`."""
    handle = _open_folder(name, top)
    try:
        folders, others = _listed(handle)
        for other in others:
            os.unlink(other, dir_fd=handle)
        for folder in folders:
            os.chmod(folder, _OWN_BITS, dir_fd=handle)
            os.rename(folder, _free_name(top, names), src_dir_fd=handle, dst_dir_fd=top)
    finally:
        os.close(handle)
    os.rmdir(name, dir_fd=top)


def _free_name(top: int, names: Iterator[int]) -> str:
    for number in names:
        name = f"moved-{number}"
        try:
            os.stat(name, dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return name
    raise AssertionError("numbers do not end")


def _open_folder(path: str, at: int | None) -> int:
    """Open a folder; first make it accessible to its owner, if needed. Raises `OSError`."""
    mode = os.stat(path, dir_fd=at, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode) and mode & _OWN_BITS != _OWN_BITS:
        with suppress(PermissionError):  # a folder of somebody else may still be readable
            os.chmod(path, stat.S_IMODE(mode) | _OWN_BITS, dir_fd=at)
    return os.open(path, _FLAGS, dir_fd=at)


def _listed(handle: int) -> tuple[list[str], list[str]]:
    """Return the names of the folders in an open folder, and of its other entries."""
    folders, others = list[str](), list[str]()
    with os.scandir(handle) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    return folders, others


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
        data = _read_state(path)
        if not fits(data):
            raise _Unreadable("holds values of the wrong kind")  # noqa: TRY301 - handled like invalid JSON
    except FileNotFoundError:
        return Loaded(dict(default))
    except _Unreadable as problem:
        return Loaded(dict(default), f"{path.name} {problem}; {set_aside(path)}, starting afresh")
    return Loaded(data)


def save_state(path: Path, data: Json) -> None:
    """Write a state file atomically, with the version.

    Raises `StorageError`, also for what `load_state` would refuse as too large; the file then stays as it is.
    """
    text = json.dumps({**data, VERSION_KEY: MEMORY_VERSION}, ensure_ascii=False, indent=2) + "\n"
    # NOTE(self): half a surrogate pair cannot be UTF-8; as an escape it is valid JSON and is read back unchanged.
    content = text.encode("utf-8", "backslashreplace")
    if len(content) > STATE_MAX_BYTES:
        raise StorageError(
            f"{path.name} would grow beyond {STATE_MAX_BYTES // 1024**2} MiB and stays as it was",
            remedy="Remove entries from it that are no longer needed, while the SOUL is stopped.",
        )
    write_atomic(path, content)


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


def _read_state(path: Path) -> Json:
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
