"""The workspace as a folder of the home. Each file is written whole or not at all; a link leads nowhere outside."""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import suppress
from pathlib import Path

from common.errors import PolicyBlocked
from common.files import read_bounded, storage_error, write_atomic
from modules.runtime.home import Home
from modules.services.owner_files.rules import (
    IDENTITY,
    MAX_TEXT_BYTES,
    FoundFile,
    Once,
    changed,
    checked_name,
    decoded,
    is_name,
    no_such,
    too_large,
    writable,
)
from modules.services.owner_files.types import Change, Warn

_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class LocalOwnerFiles:
    """The folder `workspace/` of a home. `warn` is called once for each file that cannot be read."""

    def __init__(self, home: Home, warn: Warn) -> None:
        self._home = home
        self._warned = Once(warn)
        self._writing = asyncio.Lock()

    async def read(self, name: str) -> str | None:
        found = await asyncio.to_thread(self._look, checked_name(name))
        return self._warned.about(name, found)

    async def write(self, name: str, text: str) -> None:
        await self.update(name, lambda _: text)

    async def update(self, name: str, change: Change) -> None:
        writable(name)
        async with self._writing:
            found = await asyncio.to_thread(self._look, name)
            if (text := changed(name, found, change)) is not None:
                await asyncio.to_thread(write_atomic, self._path(name), text)

    async def rename(self, name: str, new: str) -> None:
        source, target = self._path(writable(name)), self._path(writable(new))
        async with self._writing:
            for place in (name, new):
                if problem := self._leads_out(self._path(place)):
                    raise PolicyBlocked(f"{place} {problem}")
            await asyncio.to_thread(_move, source, target)

    async def names(self, folder: str = "") -> tuple[str, ...]:
        names = await asyncio.to_thread(self._names)
        return tuple(name for name in names if name.startswith(folder))

    def _path(self, name: str) -> Path:
        return (self._home.root if name in IDENTITY else self._home.workspace) / name

    def _leads_out(self, path: Path) -> str:
        inside = os.path.realpath(self._home.workspace)
        return (
            "" if Path(os.path.realpath(path)).is_relative_to(inside) else "is a link that leads out of the workspace"
        )

    def _look(self, name: str) -> FoundFile:
        path = self._path(name)
        if name not in IDENTITY and (problem := self._leads_out(path)):
            return FoundFile(problem=problem)
        try:
            return decoded(read_bounded(path, MAX_TEXT_BYTES))
        except _ABSENT:
            return FoundFile()
        except OSError as error:
            return too_large() if error.errno == errno.EFBIG else FoundFile(problem=f"cannot be read: {error.strerror}")

    def _names(self) -> tuple[str, ...]:
        names = {name for name in IDENTITY if (self._home.root / name).is_file()}
        for place, _, files in os.walk(self._home.workspace):
            for path in (Path(place, file) for file in files):
                name = path.relative_to(self._home.workspace).as_posix()
                if is_name(name) and name not in IDENTITY and not self._leads_out(path):
                    names.add(name)
        return tuple(sorted(names))


def _move(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
        for folder in {source.parent, target.parent}:
            handle = os.open(folder, os.O_RDONLY)
            with suppress(OSError):  # the names are set; only a power cut could still undo it
                os.fsync(handle)
            os.close(handle)
    except FileNotFoundError:
        raise no_such(source.name) from None
    except OSError as error:
        raise storage_error(target, error) from error
