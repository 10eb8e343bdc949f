"""The workspace of the owner and the SOUL, as a folder of the home or as a place in a store.

Each file is written whole or not at all; a link leads nowhere outside.
"""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import suppress
from pathlib import Path

from adapters.storage.keys import agent_prefix, workspace_key
from adapters.storage.local import Storage
from common.errors import PolicyBlocked, Transient
from common.files import read_bounded, storage_error, write_atomic
from common.result import Err, Ok
from modules.runtime.home import Home
from modules.services.owner_files.rules import (
    IDENTITY,
    MAX_TEXT_BYTES,
    Change,
    FoundFile,
    Once,
    Warn,
    changed,
    checked_name,
    decoded,
    is_name,
    no_such,
    too_large,
    writable,
)

_MAX_TRIES = 20
_CONTENT_TYPE = "text/markdown; charset=utf-8"


class StoredOwnerFiles:
    """The place of one SOUL in a store. `warn` is called once for each file that cannot be read."""

    def __init__(self, storage: Storage, agent_id: str, warn: Warn) -> None:
        self._storage = storage
        self._agent_id = agent_id
        self._warned = Once(warn)

    async def read(self, name: str) -> str | None:
        return self._warned.about(name, await self._look(checked_name(name)))

    async def write(self, name: str, text: str) -> None:
        await self.update(name, lambda _: text)

    async def update(self, name: str, change: Change) -> None:
        writable(name)
        tried: str | None = None
        for _ in range(_MAX_TRIES):
            found = await self._look(name)
            if tried is not None and found.text == tried:
                return
            tried = changed(name, found, change)
            if tried is None:
                return
            put = await self._storage.put(
                self._key(name),
                tried.encode(),
                content_type=_CONTENT_TYPE,
                if_match=found.etag,
                if_absent=found.etag is None,
            )
            if isinstance(put, Ok):
                return
            if put.kind == "unknown_outcome" and (await self._look(name)).text == tried:
                return
            if put.kind != "conflict":
                raise _error(put)
        raise Transient(f"{name} could not be written: others write it all the time")

    async def rename(self, name: str, new: str) -> None:
        """Copies, then deletes: a crash between the two leaves both."""
        found = await self._storage.get(self._key(writable(name)))
        writable(new)
        if isinstance(found, Err):
            raise no_such(name) if found.kind == "not_found" else _error(found)
        put = await self._storage.put(self._key(new), found.data.data, content_type=_CONTENT_TYPE)
        done = await self._storage.delete(self._key(name)) if put.success else put
        if isinstance(done, Err):
            raise _error(done)

    async def names(self, folder: str = "") -> tuple[str, ...]:
        prefix = agent_prefix(self._agent_id)
        listed = await self._storage.list(prefix + folder)
        if isinstance(listed, Err):
            raise _error(listed)
        names = (info.key.removeprefix(prefix) for info in listed.data)
        return tuple(sorted(name for name in names if is_name(name)))

    def _key(self, name: str) -> str:
        return workspace_key(self._agent_id, name)

    async def _look(self, name: str) -> FoundFile:
        found = await self._storage.get(self._key(name))
        if isinstance(found, Ok):
            return decoded(found.data.data, found.data.etag)
        if found.kind == "not_found":
            return FoundFile()
        raise _error(found)


def _error(err: Err) -> Transient:
    """What a service far away refuses today costs a turn its part of it; it never ends a life, nor the next start."""
    remedy = "Check STORAGE_URL and its credentials, and the room that is left there."
    return Transient(err.error, remedy=remedy, retry_after=err.retry_after)


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
