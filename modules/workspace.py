"""The files that owner and SOUL share: one face for the folder `workspace/` of a home and for a place in the store.

Each file is written whole or not at all. SOUL.md and SELF.md can be read here and never written: the one is the
owner's, the other has a door of its own. In the store two may write the same file; who comes second reads again what
the first has made of it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from adapters.storage.keys import agent_prefix, part, workspace_key
from adapters.storage.store import Storage
from common.errors import PolicyBlocked, SoulError, StorageError, Transient
from common.files import storage_error, write_atomic
from common.result import Err, Ok
from modules.home import Home

Warn = Callable[[str], None]
Change = Callable[[str | None], str]

MAX_TEXT_BYTES = 1024 * 1024

_IDENTITY = ("SELF.md", "SOUL.md")
_ENDING = ".md"
_MAX_FOLDERS = 2
_MAX_TRIES = 20
_CONTENT_TYPE = "text/markdown; charset=utf-8"
_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class Workspace(Protocol):
    """Texts by name, such as `GOALS.md`, `memory/2026-11-22.md` or `skills/tea/SKILL.md`.

    Raises:
        PolicyBlocked: what is asked for is no such name, may not be written, or would overwrite what is no text.
        StorageError: the disk or the store refuses for good.
        Transient: the store cannot be reached now.

    """

    async def read(self, name: str) -> str | None:
        """A text; None if there is none, or nothing in it. What is no UTF-8 text is None too, with a warning."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Put this text there, whatever was there."""
        ...

    async def update(self, name: str, change: Change) -> None:
        """Put there what `change` makes of the text that is there, None if there is none. It may be asked again."""
        ...

    async def rename(self, name: str, new: str) -> None:
        """Give a file a new name; what had that name is replaced."""
        ...

    async def names(self) -> tuple[str, ...]:
        """All that can be read, in order."""
        ...


@dataclass(frozen=True, slots=True)
class _Found:
    """What lies under a name: nothing, a text, or what is none and why. `etag` is the store's."""

    text: str | None = None
    problem: str = ""
    etag: str | None = None

    @property
    def said(self) -> str | None:
        return self.text if self.text and self.text.strip() else None


class LocalWorkspace:
    """The folder `workspace/` of a home. `warn` hears once of each file that cannot be read."""

    def __init__(self, home: Home, warn: Warn) -> None:
        self._home = home
        self._heard = _Once(warn)
        self._writing = asyncio.Lock()

    async def read(self, name: str) -> str | None:
        found = await asyncio.to_thread(self._look, _name(name))
        return self._heard.about(name, found)

    async def write(self, name: str, text: str) -> None:
        await self.update(name, lambda _: text)

    async def update(self, name: str, change: Change) -> None:
        _writable(name)
        async with self._writing:
            found = await asyncio.to_thread(self._look, name)
            if (text := _changed(name, found, change)) is not None:
                await asyncio.to_thread(write_atomic, self._path(name), text, mode=0o600)

    async def rename(self, name: str, new: str) -> None:
        source, target = self._path(_writable(name)), self._path(_writable(new))
        async with self._writing:
            for place in (name, new):
                if problem := self._leads_out(self._path(place)):
                    raise PolicyBlocked(f"{place} {problem}")
            await asyncio.to_thread(_move, source, target)

    async def names(self) -> tuple[str, ...]:
        return await asyncio.to_thread(self._names)

    def _path(self, name: str) -> Path:
        return (self._home.root if name in _IDENTITY else self._home.workspace) / name

    def _leads_out(self, path: Path) -> str:
        inside = os.path.realpath(self._home.workspace)
        return (
            "" if Path(os.path.realpath(path)).is_relative_to(inside) else "is a link that leads out of the workspace"
        )

    def _look(self, name: str) -> _Found:
        path = self._path(name)
        if name not in _IDENTITY and (problem := self._leads_out(path)):
            return _Found(problem=problem)
        try:
            with path.open("rb") as file:
                return _read(file.read(MAX_TEXT_BYTES + 1))
        except _ABSENT:
            return _Found()
        except OSError as error:
            return _Found(problem=f"cannot be read: {error.strerror}")

    def _names(self) -> tuple[str, ...]:
        names = {name for name in _IDENTITY if (self._home.root / name).is_file()}
        for place, _, files in os.walk(self._home.workspace):
            for path in (Path(place, file) for file in files):
                name = path.relative_to(self._home.workspace).as_posix()
                if _is_name(name) and name not in _IDENTITY and not self._leads_out(path):
                    names.add(name)
        return tuple(sorted(names))


class StoredWorkspace:
    """The place of one SOUL in a store. `warn` hears once of each file that cannot be read."""

    def __init__(self, storage: Storage, agent_id: str, warn: Warn) -> None:
        self._storage = storage
        self._agent_id = agent_id
        self._heard = _Once(warn)

    async def read(self, name: str) -> str | None:
        return self._heard.about(name, await self._look(_name(name)))

    async def write(self, name: str, text: str) -> None:
        await self.update(name, lambda _: text)

    async def update(self, name: str, change: Change) -> None:
        _writable(name)
        tried: str | None = None
        for _ in range(_MAX_TRIES):
            found = await self._look(name)
            if tried is not None and found.text == tried:
                return
            tried = _changed(name, found, change)
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
        found = await self._storage.get(self._key(_writable(name)))
        _writable(new)
        if isinstance(found, Err):
            raise _no_such(name) if found.kind == "not_found" else _error(found)
        put = await self._storage.put(self._key(new), found.data.data, content_type=_CONTENT_TYPE)
        for result in (put, await self._storage.delete(self._key(name)) if put.success else put):
            if isinstance(result, Err):
                raise _error(result)

    async def names(self) -> tuple[str, ...]:
        prefix = agent_prefix(self._agent_id)
        listed = await self._storage.list(prefix)
        if isinstance(listed, Err):
            raise _error(listed)
        names = (info.key.removeprefix(prefix) for info in listed.data)
        return tuple(sorted(name for name in names if _is_name(name)))

    def _key(self, name: str) -> str:
        return workspace_key(self._agent_id, name)

    async def _look(self, name: str) -> _Found:
        found = await self._storage.get(self._key(name))
        if isinstance(found, Ok):
            return _read(found.data.data, found.data.etag)
        if found.kind == "not_found":
            return _Found()
        raise _error(found)


class _Once:
    """Warns of each trouble when it begins, and not again while it lasts."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._troubles: dict[str, str] = {}

    def about(self, name: str, found: _Found) -> str | None:
        """What was found to read, after warning of what cannot be."""
        if found.problem and self._troubles.get(name) != found.problem:
            self._warn(f"{name} {found.problem}; it is left out")
        self._troubles[name] = found.problem
        return found.said


def _is_name(name: str) -> bool:
    pieces = name.split("/")
    return name.endswith(_ENDING) and len(pieces) <= _MAX_FOLDERS + 1 and all(part(piece) == piece for piece in pieces)


def _name(name: str) -> str:
    if not _is_name(name):
        raise PolicyBlocked(f"{name!r} is no name of a file in the workspace", remedy="Names look like GOALS.md.")
    return name


def _writable(name: str) -> str:
    if _name(name).casefold() in {file.casefold() for file in _IDENTITY}:
        raise PolicyBlocked(f"{name} is not written like other files of the workspace")
    return name


def _read(data: bytes, etag: str | None = None) -> _Found:
    if len(data) > MAX_TEXT_BYTES:
        return _Found(problem=f"is larger than {MAX_TEXT_BYTES // 1024} KiB", etag=etag)
    try:
        return _Found(data.decode().removeprefix("\ufeff"), etag=etag)
    except UnicodeDecodeError:
        return _Found(problem="is not UTF-8 text", etag=etag)


def _changed(name: str, found: _Found, change: Change) -> str | None:
    """The new text; None if it is what is there already."""
    if found.problem:
        raise PolicyBlocked(
            f"{name} {found.problem}: it is not overwritten", remedy="Save it as UTF-8 text, or move it away."
        )
    text = change(found.said).encode(errors="replace").decode()
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise PolicyBlocked(f"{name} would be larger than {MAX_TEXT_BYTES // 1024} KiB")
    return None if text == found.text else text


def _move(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
        for folder in {source.parent, target.parent}:
            handle = os.open(folder, os.O_RDONLY)
            with suppress(OSError):  # the names are as wished; only a power cut could still undo it
                os.fsync(handle)
            os.close(handle)
    except FileNotFoundError:
        raise _no_such(source.name) from None
    except OSError as error:
        raise storage_error(target, error) from error


def _no_such(name: str) -> PolicyBlocked:
    return PolicyBlocked(f"There is no {name} in the workspace")


def _error(err: Err) -> SoulError:
    if err.kind in {"transient", "unknown_outcome", "conflict"}:
        return Transient(err.error, retry_after=err.retry_after)
    return StorageError(err.error, remedy="Check STORAGE_URL and its credentials, and the room that is left there.")
