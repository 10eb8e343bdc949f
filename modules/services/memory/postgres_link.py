"""The way to a PostgreSQL server: one connection, opened when it is needed, and a deadline on everything.

A transaction that did not end is rolled back by the server, whatever happens here. After every fault of the server the
connection is let go of, and the next transaction opens another, which after a failover leads to the new server. Nothing
that a server does ends a life: it may be mended while the SOUL goes on without.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from common.errors import ConfigError, Transient
from modules.services.memory.postgres_schema import MIGRATIONS

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import DictRow

    Cursor = psycopg.AsyncCursor[DictRow]

STATEMENT_S = 5.0
"""So long the server works on one statement, in seconds."""

DEADLINE_S = 30.0
"""So long a transaction may take, in seconds."""

_CONNECT_S = 5
_SCHEMA_LOCK = 0x50554C
_STATEMENT_TIMEOUT = "SELECT set_config('statement_timeout', %s, false)"


class PostgresLink:
    """One connection to `url`, for one transaction at a time.

    Raises:
        ConfigError: psycopg is not installed, or `url` is no address of a server.

    """

    def __init__(self, url: str, deadline_s: float = DEADLINE_S) -> None:
        try:
            import psycopg  # noqa: PLC0415 - an extra: most SOULs live without a server
        except ImportError as error:
            raise ConfigError(
                "DATABASE_URL names a PostgreSQL server, and psycopg is not installed",
                remedy="Install it: pip install 'psycopg[binary]'",
            ) from error
        try:
            psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            # NOTE(self): what psycopg says here quotes the address, and with it the password.
            raise ConfigError(
                "DATABASE_URL is no address of a PostgreSQL server",
                remedy="Write it as postgresql://user:password@host:5432/database.",
            ) from None
        self._psycopg = psycopg
        self._url = url
        self._deadline_s = deadline_s
        self._turn = asyncio.Lock()
        self._connection: psycopg.AsyncConnection[Any] | None = None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Cursor]:
        """A cursor inside one transaction, which is committed if the block ends well.

        Raises:
            Transient: the server cannot be reached, lets nobody in, was too slow, only reads, has no room or no right
                for us, or a newer version made its tables.

        """
        async with (
            self._connected(self._deadline_s) as connection,
            connection.transaction(),
            connection.cursor() as cursor,
        ):
            yield cursor

    @asynccontextmanager
    async def outside(self, deadline_s: float) -> AsyncIterator[Cursor]:
        """A cursor outside any transaction, for what no transaction may hold; the block has `deadline_s` for all of it.

        The connection is let go of afterwards, with the settings of its session. Raises as `transaction`.
        """
        async with self._connected(deadline_s) as connection:
            try:
                async with connection.cursor() as cursor:
                    await cursor.execute(_STATEMENT_TIMEOUT, (f"{deadline_s:g}s",))
                    yield cursor
            finally:
                await self._let_go()

    @asynccontextmanager
    async def _connected(self, deadline_s: float) -> AsyncIterator[psycopg.AsyncConnection[DictRow]]:
        async with self._turn:
            try:
                async with asyncio.timeout(deadline_s):
                    yield await self._open()
            except TimeoutError as error:
                await self._let_go()
                raise Transient(
                    f"PostgreSQL did not answer within {deadline_s:g} s",
                    remedy="If this goes on, look after the server of DATABASE_URL.",
                ) from error
            except self._psycopg.Error as error:
                known = self._explain(error)
                if known is None:
                    raise
                await self._let_go()
                raise known from error

    async def aclose(self) -> None:
        """Close the connection, after the transaction that is going on."""
        async with self._turn:
            await self._let_go()

    async def _open(self) -> psycopg.AsyncConnection[DictRow]:
        if self._connection is not None:
            return self._connection
        connection = await self._psycopg.AsyncConnection.connect(
            self._url,
            autocommit=True,
            connect_timeout=_CONNECT_S,
            prepare_threshold=None,
            row_factory=self._psycopg.rows.dict_row,
        )
        try:
            await connection.execute(_STATEMENT_TIMEOUT, (f"{STATEMENT_S:g}s",))
            async with connection.transaction():
                await _migrate(connection.cursor())
        except BaseException:
            await connection.close()
            raise
        self._connection = connection
        return connection

    async def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _explain(self, error: psycopg.Error) -> Transient | None:
        """None for what is no fault of the server's."""
        kinds, said = self._psycopg.errors, str(error).strip().splitlines()[:1]
        words = f"PostgreSQL: {said[0] if said else type(error).__name__}"
        if isinstance(error, kinds.InsufficientPrivilege | kinds.InvalidSchemaName | kinds.UndefinedTable):
            return Transient(words, remedy="Ask whoever keeps the server of DATABASE_URL for what is missing there.")
        if isinstance(error, kinds.DiskFull | self._psycopg.InternalError):
            return Transient(words, remedy="If this goes on, ask whoever keeps the server of DATABASE_URL.")
        if isinstance(error, self._psycopg.OperationalError | self._psycopg.InterfaceError):
            # NOTE(self): a refused login is told in words only; a server that starts refuses everybody.
            return Transient(words, remedy="If this goes on, check DATABASE_URL and the server behind it.")
        return None


async def _migrate(cursor: Cursor) -> None:
    """Bring the schema to its last shape; several SOULs may come at the same moment."""
    await cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
    await cursor.execute("SELECT to_regclass('soul.version') IS NOT NULL AS there")
    if not _one(await cursor.fetchone())["there"]:
        await cursor.execute("CREATE SCHEMA IF NOT EXISTS soul")
        await cursor.execute("CREATE TABLE soul.version (version integer NOT NULL)")
        await cursor.execute("INSERT INTO soul.version VALUES (0)")
    await cursor.execute("SELECT version FROM soul.version")
    version = _one(await cursor.fetchone())["version"]
    if version > len(MIGRATIONS):
        raise Transient(
            f"A newer version made the tables in PostgreSQL (schema {version}; this one knows {len(MIGRATIONS)})",
            remedy="Install the newer version again.",
        )
    for script in MIGRATIONS[version:]:
        await cursor.execute(script)
    if version < len(MIGRATIONS):
        await cursor.execute("UPDATE soul.version SET version = %s", (len(MIGRATIONS),))


def _one(row: DictRow | None) -> DictRow:
    if row is None:
        raise AssertionError("the query returned no row")
    return row
