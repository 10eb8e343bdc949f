"""The workspace as a place in a store.

Two may write the same file there; who comes second reads again what the first has made of it.
"""

from __future__ import annotations

from adapters.storage.keys import agent_prefix, workspace_key
from adapters.storage.store import Storage
from common.errors import Transient
from common.result import Err, Ok
from modules.services.owner_files.rules import (
    FoundFile,
    Once,
    changed,
    checked_name,
    decoded,
    is_name,
    no_such,
    writable,
)
from modules.services.owner_files.types import Change, Warn

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
