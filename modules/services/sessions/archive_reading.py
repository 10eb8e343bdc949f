"""Reads archives back: which there are, and what was said in them. Needs the database and the store, and no model."""

from __future__ import annotations

import asyncio

from adapters.storage.store import Storage
from common.result import ApiResult, Err, Ok
from modules.runtime.database.database import Database
from modules.services.sessions import archives
from modules.services.sessions.archive_file import ArchivedLine, unpack
from modules.services.sessions.archived import Archive


class Archives:
    """The archives of one SOUL."""

    def __init__(self, database: Database, storage: Storage) -> None:
        self._database = database
        self._storage = storage

    async def listed(self, session_key: str | None = None, limit: int = 100) -> list[Archive]:
        """Return the archives that lie in the store, newest first."""
        return await self._database.run(lambda connection: archives.done(connection, session_key, limit))

    async def read(self, archive: Archive) -> ApiResult[list[ArchivedLine]]:
        """The lines of an archive; `invalid` if its bytes are damaged."""
        found = await self._storage.get(archive.key)
        if isinstance(found, Err):
            return found
        try:
            return Ok(await asyncio.to_thread(unpack, found.data.data))
        except ValueError as error:
            return Err(f"{archive.key}: {error}", "invalid")
