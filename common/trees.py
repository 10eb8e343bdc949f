"""Walks and deletes folders that programs of others wrote into, whatever is in them.

Folders may be nested deeper than Python recurses or a path can name, closed to their owner (mode 000), or carry names
that are not UTF-8; links may lead nowhere, in a circle, or out of the tree. No link is followed. No program may be
running in the tree.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from common.files import raise_machine_trouble

_OWN_BITS, _FILE_BITS = stat.S_IRWXU, stat.S_IRUSR | stat.S_IWUSR
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def walk(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder of a tree, from the top: its path from `root` ("" for `root`), its folders, and all else in it.

    What the caller removes from the list of folders is not entered. Closed folders are opened to their owner. A folder
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
    """Return the text of a file, or None for a link, for what is no file or is larger, and for what cannot be read.

    Raises `MachineTrouble`.
    """
    try:
        is_read = not path.is_symlink() and path.is_file() and path.stat().st_size <= most_bytes
        return path.read_text("utf-8", "replace") if is_read else None
    except OSError as error:
        raise_machine_trouble(path, error)
        return None


def readable_name(path: str) -> str:
    """Return a path as valid Unicode: bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def delete_tree(path: Path) -> bool:
    """Delete a folder and all that is in it, or a file or link; return whether nothing is there any more."""
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
    """Delete what is in a folder. Raises `OSError` where something stays.

    Folders of folders are moved up before they are entered, so no path is ever longer than two names.
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
    """Open a folder, to its owner if it is closed. Raises `OSError`."""
    mode = os.stat(path, dir_fd=at, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode) and mode & _OWN_BITS != _OWN_BITS:
        with suppress(PermissionError):  # a folder of somebody else may still be readable
            os.chmod(path, stat.S_IMODE(mode) | _OWN_BITS, dir_fd=at)
    return os.open(path, _FLAGS, dir_fd=at)


def _listed(handle: int) -> tuple[list[str], list[str]]:
    """Return the names of the folders in an open folder, and of all else."""
    folders, others = list[str](), list[str]()
    with os.scandir(handle) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    return folders, others
