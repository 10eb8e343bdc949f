"""The journal: every decision and every movement, one row each, so that the owner can ask why.

Rows survive a crash once `record` returned. Secrets are taken out before a row is written or a line is shown.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import structlog

from common.clock import Clock, iso, parse_iso_or_none
from common.constants import LOG_MAX_DAYS
from common.errors import MachineTrouble, Transient
from common.person import tied
from common.redact import Redactor
from common.text.handles import with_handles
from modules.runtime.console import Console
from modules.runtime.database.database import Database
from modules.runtime.database.person_hash import person_hash
from modules.runtime.journal.rows import counts_since, first_at
from modules.runtime.journal.types import Entry, EntryKind, StoredEntry

T = TypeVar("T")
Handles = Callable[[sqlite3.Connection, str], Mapping[str, str]]
"""Returns the handle by DID of the accounts that a text names by their DID, as far as they are known."""

MAX_ENTRIES = 200_000
MAX_BYTES = 64 * 1024 * 1024

_COLUMNS = "id, at, kind, loop, summary, line, reason, trigger_uri, author, intent_id, data, dids"

# NOTE(self): an act is told from its trigger on: what was recorded about the post that caused it belongs to it.
_SIZE = "length(summary) + length(reason) + length(data)"
_OVERSIZE = f"""
SELECT max(id) FROM (SELECT id, sum({_SIZE}) OVER (ORDER BY id DESC) AS together FROM journal) WHERE together > ?
"""  # noqa: S608 - the same


def _unknown(_: sqlite3.Connection, __: str) -> Mapping[str, str]:
    return {}


class Journal:
    """Writes entries, shows their lines, and finds them again.

    Rows keep DIDs. A line shows the handle of each account that `handles` finds.
    """

    def __init__(
        self, database: Database, console: Console, clock: Clock, redactor: Redactor, *, handles: Handles = _unknown
    ) -> None:
        self._database = database
        self._console = console
        self._clock = clock
        self._redactor = redactor
        self._handles = handles

    async def record(self, entry: Entry) -> int:
        """Write `entry`, then show its line. Returns its number. Raises `StorageError`, or `Transient`."""
        clean = self._clean(entry)

        def work(connection: sqlite3.Connection) -> tuple[int, Entry]:
            return self._insert(connection, clean), self._shown(connection, clean)

        number, shown = await self._database.run(work)
        self._show_line(shown)
        return number

    def show(self, entry: Entry) -> None:
        """Show the line of `entry` without writing it: for what must be told while nothing can be written."""
        self._show_line(self._clean(entry))

    async def record_or_show(self, entry: Entry) -> None:
        """Write `entry` and show its line; only show it where there is no room, or another program holds the file."""
        try:
            await self.record(entry)
        except (MachineTrouble, Transient):
            self.show(entry)

    async def record_with(self, fn: Callable[[sqlite3.Connection], tuple[T, Entry]]) -> T:
        """Run `fn` and write the entry that it returns beside its result in one transaction, then show the line."""

        def work(connection: sqlite3.Connection) -> tuple[T, Entry]:
            result, entry = fn(connection)
            clean = self._clean(entry)
            self._insert(connection, clean)
            return result, self._shown(connection, clean)

        result, shown = await self._database.run(work)
        self._show_line(shown)
        return result

    async def recent(self, limit: int, kinds: Collection[EntryKind] | None = None) -> list[StoredEntry]:
        """The last `limit` entries, newest first; only of these `kinds` if given."""
        wanted = json.dumps(sorted(kinds)) if kinds is not None else None

        def select(connection: sqlite3.Connection) -> list[StoredEntry]:
            query = (
                f"SELECT {_COLUMNS} FROM journal"  # noqa: S608 - only our own column names are put in
                " WHERE :kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)) ORDER BY id DESC LIMIT :limit"
            )
            return [_stored(row) for row in connection.execute(query, {"kinds": wanted, "limit": limit})]

        return await self._database.run(select)

    async def messages(self, loop: str, act: str, since: datetime) -> list[str]:
        """The `message` of each entry of a loop with that `act` in its data, since then, oldest first."""
        query = (
            "SELECT json_extract(data, '$.message') AS message FROM journal WHERE at >= ? AND loop = ?"
            " AND json_extract(data, '$.act') = ? AND message IS NOT NULL ORDER BY id"
        )
        return await self._database.run(
            lambda connection: [str(row["message"]) for row in connection.execute(query, (iso(since), loop, act))]
        )

    async def with_act(self, loop: str, act: str, since: datetime, until: datetime) -> list[StoredEntry]:
        """The entries of a loop with that `act` in their data, from `since` to `until`, oldest first."""
        query = (
            f"SELECT {_COLUMNS} FROM journal WHERE at BETWEEN ? AND ? AND loop = ?"  # noqa: S608 - the same
            " AND json_extract(data, '$.act') = ? ORDER BY at, id"
        )
        values = (iso(since), iso(until), loop, act)
        return await self._database.run(lambda connection: [_stored(row) for row in connection.execute(query, values)])

    async def person_hash(self, did: str) -> str:
        """Return the hash by which entries about somebody who is forgotten still count."""
        return await self._database.run(lambda connection: person_hash(connection, did))

    async def began(self) -> datetime | None:
        """Return the time of the oldest entry; None if there is none."""
        return parse_iso_or_none(await self._database.run(first_at))

    async def counts(self, since: datetime) -> list[tuple[str, str, str, int]]:
        """Return how many entries there were since then, by kind, loop and the `act` of their data ("" for none)."""
        return await self._database.run(lambda connection: counts_since(connection, iso(since)))

    async def prune(
        self, *, max_days: float = LOG_MAX_DAYS, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
    ) -> int:
        """Delete what is older than `max_days`, and the oldest above `max_entries` or `max_bytes` of payload.

        Returns how many went. A character of the payload counts as a byte: it is JSON in ASCII, words apart.
        """
        oldest = iso(self._clock.now() - timedelta(days=max_days))

        def delete(connection: sqlite3.Connection) -> int:
            newest = "SELECT id FROM journal ORDER BY id DESC LIMIT 1 OFFSET ?"
            too_many = connection.execute(newest, (max_entries,)).fetchone()
            gone = connection.execute(
                "DELETE FROM journal WHERE at < ? OR id <= ?", (oldest, too_many["id"] if too_many else 0)
            ).rowcount
            size = connection.execute(f"SELECT sum({_SIZE}) FROM journal").fetchone()[0] or 0  # noqa: S608 - a constant
            if size > max_bytes:
                too_much = connection.execute(_OVERSIZE, (max_bytes,)).fetchone()[0]
                gone += connection.execute("DELETE FROM journal WHERE id <= ?", (too_much,)).rowcount
            return gone

        return await self._database.run(delete)

    def _insert(self, connection: sqlite3.Connection, clean: Entry) -> int:
        values = (
            iso(self._clock.now()),
            clean.kind,
            clean.loop,
            clean.summary,
            clean.line,
            clean.reason,
            clean.trigger_uri,
            clean.author,
            clean.intent_id,
            json.dumps(clean.data, default=str),
            tied(clean.dids),
        )
        marks = ", ".join("?" * len(values))
        cursor = connection.execute(f"INSERT INTO journal VALUES (NULL, {marks})", values)  # noqa: S608 - only marks
        return int(cursor.lastrowid or 0)

    def _shown(self, connection: sqlite3.Connection, clean: Entry) -> Entry:
        """Return the entry as its line shows it: with handles for DIDs, and tied to those accounts too."""
        if clean.line is None or not (handles := self._handles(connection, f"{clean.summary} {clean.reason}")):
            return clean
        summary, reason = with_handles(clean.summary, handles), with_handles(clean.reason, handles)
        dids = tuple(dict.fromkeys((*clean.dids, *handles)))
        return dataclasses.replace(clean, summary=summary, reason=reason, dids=dids)

    def _show_line(self, shown: Entry) -> None:
        if shown.line is not None:
            # NOTE(self): the log says by these whom a line tells of, so that it goes when they are forgotten.
            about = {"trigger": shown.trigger_uri, "intent": shown.intent_id, "dids": list(shown.dids)}
            with structlog.contextvars.bound_contextvars(**{name: value for name, value in about.items() if value}):
                self._console.line(shown.line, shown.summary, shown.reason)

    def _clean(self, entry: Entry) -> Entry:
        fields = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
        clean: dict[str, Any] = {name: _encodable(self._redactor.value(value)) for name, value in fields.items()}
        return Entry(**clean)


def _encodable(value: object) -> object:
    """Half of a surrogate pair, which a model may well send, cannot be stored as UTF-8."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _stored(row: sqlite3.Row) -> StoredEntry:
    fields = dict(row)
    number, at = fields.pop("id"), fields.pop("at")
    values = {"data": json.loads(fields["data"]), "dids": tuple(fields["dids"].split())}
    return StoredEntry(number, at, Entry(**{**fields, **values}))
