"""The files that owner and SOUL share: one interface to the folder `workspace/` of a home and to a place in the store.

Each file is written whole or not at all. SOUL.md and SELF.md can be read here but never written: SOUL.md is the
owner's, and only `modules/services/identity` writes SELF.md. Links that lead outside are not followed.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from adapters.storage.local import Storage
from adapters.storage.objects import agent_prefix, part, workspace_key
from common.errors import PolicyBlocked, Transient
from common.files import read_bounded, storage_error, write_atomic
from common.result import Err, Ok
from modules.runtime.home import Home

_MAX_TRIES = 20
_CONTENT_TYPE = "text/markdown; charset=utf-8"


class StoredOwnerFiles:
    """Files of one SOUL in a store. `warn` is called once for each file that cannot be read."""

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
        """Copy, then delete; a crash between the two leaves both."""
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
    """Return the error for a failing store: it costs a turn its files, but ends neither a life nor the next start."""
    remedy = "Check STORAGE_URL and its credentials, and the room that is left there."
    return Transient(err.error, remedy=remedy, retry_after=err.retry_after)


_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class LocalOwnerFiles:
    """Files in the folder `workspace/` of a home. `warn` is called once for each file that cannot be read."""

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


Warn = Callable[[str], None]
Change = Callable[[str | None], str]


class OwnerFiles(Protocol):
    """Texts by name, such as `GOALS.md`, `memory/2026-11-22.md` or `skills/tea/SKILL.md`.

    Raises:
        PolicyBlocked: the name is invalid, may not be written, or holds something that is not text.
        StorageError: the disk of this machine is full or refuses.
        Transient: the store cannot be reached now, or refuses.

    """

    async def read(self, name: str) -> str | None:
        """Return a text, or None if it is missing or empty; for a file that is not UTF-8, warn and return None."""
        ...

    async def write(self, name: str, text: str) -> None:
        """Write this text, whatever was there."""
        ...

    async def update(self, name: str, change: Change) -> None:
        """Write what `change` returns for the current text (None if there is none). `change` may be called again."""
        ...

    async def rename(self, name: str, new: str) -> None:
        """Rename a file; a file with the new name is replaced."""
        ...

    async def names(self, folder: str = "") -> tuple[str, ...]:
        """Return the names of all readable files, in order; with a `folder`, such as `skills/`, only those in it."""
        ...


MAX_TEXT_BYTES = 1024 * 1024
IDENTITY = ("SELF.md", "SOUL.md")
_BEGIN, _END = "<!-- begin: written by the program -->", "<!-- end: written by the program -->"

_ENDING = ".md"
_MAX_FOLDERS = 2


@dataclass(frozen=True, slots=True)
class FoundFile:
    """The content under a name: nothing, a text, or a problem. `etag` is the store's."""

    text: str | None = None
    problem: str = ""
    etag: str | None = None

    @property
    def said(self) -> str | None:
        return self.text if self.text and self.text.strip() else None


class Once:
    """Warns of each problem when it begins, and not again while it lasts."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._troubles: dict[str, str] = {}

    def about(self, name: str, found: FoundFile) -> str | None:
        """Return the readable text, after a warning about a problem."""
        if found.problem and self._troubles.get(name) != found.problem:
            self._warn(f"{name} {found.problem}; it is left out")
        self._troubles[name] = found.problem
        return found.said


def is_name(name: str) -> bool:
    """Return whether a file of a workspace can have this name."""
    pieces = name.split("/")
    return name.endswith(_ENDING) and len(pieces) <= _MAX_FOLDERS + 1 and all(part(piece) == piece for piece in pieces)


def checked_name(name: str) -> str:
    """Return the name of a file. Raises `PolicyBlocked` if it is not one."""
    if not is_name(name):
        raise PolicyBlocked(f"{name!r} is no name of a file in the workspace", remedy="Names look like GOALS.md.")
    return name


def writable(name: str) -> str:
    """Return the name. Raises `PolicyBlocked` if it is invalid or only written elsewhere."""
    if checked_name(name).casefold() in {file.casefold() for file in IDENTITY}:
        raise PolicyBlocked(f"{name} is not written like other files of the workspace")
    return name


def too_large(etag: str | None = None) -> FoundFile:
    """Return the result for a file beyond the limit."""
    return FoundFile(problem=f"is larger than {MAX_TEXT_BYTES // 1024} KiB", etag=etag)


def decoded(data: bytes, etag: str | None = None) -> FoundFile:
    """Return the text of a file's bytes, or the problem with them."""
    if len(data) > MAX_TEXT_BYTES:
        return too_large(etag)
    try:
        return FoundFile(data.decode().removeprefix("\ufeff"), etag=etag)
    except UnicodeDecodeError:
        return FoundFile(problem="is not UTF-8 text", etag=etag)


def changed(name: str, found: FoundFile, change: Change) -> str | None:
    """Return the new text, or None if nothing changes. Raises `PolicyBlocked` if it must not be written."""
    if found.problem:
        raise PolicyBlocked(
            f"{name} {found.problem}: it is not overwritten", remedy="Save it as UTF-8 text, or move it away."
        )
    text = change(found.said).encode(errors="replace").decode()
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise PolicyBlocked(f"{name} would be larger than {MAX_TEXT_BYTES // 1024} KiB")
    return None if text == found.text else text


def no_such(name: str) -> PolicyBlocked:
    """Return the error for a missing file."""
    return PolicyBlocked(f"There is no {name} in the workspace")


def with_state(text: str, state: str) -> str:
    """Return the text of CONTEXT.md with `state` in place of the program's earlier text; the rest stays."""
    before, _, rest = text.partition(_BEGIN)
    written, end, after = rest.partition(_END)
    own = f"{before.rstrip()}\n\n{(after if end else written).lstrip()}".strip()
    return "\n\n".join(filter(None, (own, f"{_BEGIN}\n\n{state}\n\n{_END}" if state else "")))
