"""The journal: every decision and every action is one row, so that the owner can ask why.

Each module-level function is one step of a caller's transaction.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from common.clock import Clock, iso, parse_iso_or_none
from common.constants import LOG_MAX_DAYS
from common.errors import MachineTrouble, Transient
from common.person import tied
from common.provenance import Provenance
from common.redact import Redactor
from common.text.handles import with_handles
from modules.runtime.console import Console
from modules.runtime.database import marks
from modules.runtime.database.people import person_hash
from modules.runtime.journal.types import Entry, EntryKind, StoredEntry

if TYPE_CHECKING:
    from modules.runtime.database.database import Database  # takes time to load

JournalRow = dict[str, Any]
"""A row by column; `data` is parsed JSON."""


@dataclass(frozen=True, slots=True)
class DecisionCount:
    """Decisions of one outcome and one kind of reason: how many, and the id of the `newest`, whose reason it is.

    `authors` are the handles of the people that they were about, each once, the newest first. `is_chosen` says that the
    model chose the outcome, and gave the reason.
    """

    act: str
    reason: str
    count: int
    newest: int
    authors: tuple[str, ...]
    is_chosen: bool


_IS_OTHERS = "coalesce(journal.data ->> 'rests_on', '') NOT IN ('self', 'owner')"
_LAST_END = "SELECT * FROM journal WHERE kind = 'life' AND loop = 'stop' ORDER BY id DESC LIMIT 1"


def is_own(row: Mapping[str, Any]) -> bool:
    """Return whether only words of the SOUL and its owner were behind an entry."""
    return row["data"].get("rests_on") in {"self", "owner"}


def first_at(connection: sqlite3.Connection) -> str:
    """Return the time of the oldest entry, ISO-8601; "" if there is none."""
    return str(connection.execute("SELECT min(at) FROM journal").fetchone()[0] or "")


def newest_at(connection: sqlite3.Connection) -> str:
    """Return the time of the newest entry, ISO-8601; "" if there is none."""
    return str(connection.execute("SELECT max(at) FROM journal").fetchone()[0] or "")


def kept_since(connection: sqlite3.Connection) -> str:
    """Return the time of the oldest entry if older ones were deleted; else ""."""
    row = connection.execute("SELECT id, at FROM journal ORDER BY id LIMIT 1").fetchone()
    return str(row["at"]) if row and row["id"] > 1 else ""


def last_start(connection: sqlite3.Connection, until: str) -> str:
    """Return when the SOUL last woke at `until` (ISO-8601) or before; "" if it is not known."""
    query = "SELECT max(at) FROM journal WHERE kind = 'life' AND loop = 'start' AND at <= ?"
    return str(connection.execute(query, (until,)).fetchone()[0] or "")


def last_end(connection: sqlite3.Connection) -> JournalRow | None:
    """Return the entry that says why the last run ended; None if there is none, or that run ended unexpectedly."""
    if marks.get(connection, marks.RUNNING):
        return None
    return next(iter(_read(connection.execute(_LAST_END))), None)


def about(connection: sqlite3.Connection, posts: Collection[str], intents: Collection[str]) -> list[JournalRow]:
    """Return all entries about these posts or these intents, in no order."""
    query = """
        SELECT * FROM journal WHERE trigger_uri IN (SELECT value FROM json_each(:posts))
            OR intent_id IN (SELECT value FROM json_each(:intents))
    """
    values = {"posts": json.dumps(list(posts)), "intents": json.dumps(list(intents))}
    return _read(connection.execute(query, values))


def turn_of(connection: sqlite3.Connection, intent_id: str, loop: str) -> list[JournalRow]:
    """Return the entries of the turn that an intent came from: turns never overlap, and are journalled at their end."""
    first = connection.execute("SELECT min(id) FROM journal WHERE intent_id = ?", (intent_id,)).fetchone()[0]
    if first is None:
        return []
    before = "SELECT max(id) FROM journal WHERE id < ? AND loop = ? AND kind IN ('model', 'decision')"
    begin = connection.execute(before, (first, loop)).fetchone()[0] or 0
    found: list[JournalRow] = []
    thought = False
    for row in connection.execute("SELECT * FROM journal WHERE id > ? AND loop = ? ORDER BY id", (begin, loop)):
        if thought and row["kind"] != "decision":
            break
        found += _read([row])
        if thought:
            break
        thought = row["kind"] == "model" and row["id"] > first
    return found


def was_decided(connection: sqlite3.Connection, uri: str, *, finished: bool = False) -> bool:
    """Return whether something was decided about a post; with `finished`, attempts without a result do not count."""
    query = "SELECT 1 FROM journal WHERE trigger_uri = ? AND kind = 'decision'"
    if finished:
        query += " AND coalesce(json_extract(data, '$.act'), '') NOT IN ('undecided', 'later')"
    return connection.execute(query, (uri,)).fetchone() is not None


def holding(connection: sqlite3.Connection) -> list[JournalRow]:
    """Return the newest entries by which budget or owner keep the SOUL from acting, if they still hold."""
    query = """
        SELECT * FROM journal WHERE id IN (SELECT max(id) FROM journal WHERE kind = 'life'
            AND loop IN ('budget', 'control') GROUP BY loop)
            AND json_extract(data, '$.act') IS NOT 'resumed' AND json_extract(data, '$.step') IS NOT 'normal'
        ORDER BY id
    """
    return _read(connection.execute(query))


def decided_between(
    connection: sqlite3.Connection, since: str, until: str, acts: Collection[str], about: Collection[str]
) -> list[DecisionCount]:
    """Return the decisions by outcome and reason, as far as they had one of these outcomes; the most frequent first.

    Each address counts once, with the last decision that settled it. Decisions of the model with one outcome are
    counted together, and so are those of rules with one code, or without a code and with the same reason; the reason is
    that of the newest. `about` are prefixes of addresses.
    """
    query = """
        WITH last (id) AS (
            SELECT max(id) FROM journal WHERE at >= ? AND at < ? AND kind = 'decision'
            AND coalesce(json_extract(data, '$.act'), '') NOT IN ('', 'later', 'undecided', 'noted')
            AND EXISTS (SELECT 1 FROM json_each(?) WHERE substr(trigger_uri, 1, length(value)) = value)
            GROUP BY trigger_uri
        )
        SELECT json_extract(data, '$.act') AS act, reason, id, coalesce(author, '') AS author,
            coalesce(json_extract(data, '$.chosen'), 0) AS is_chosen, json_extract(data, '$.code') AS code
        FROM journal JOIN last USING (id) WHERE act IN (SELECT value FROM json_each(?)) ORDER BY id DESC
    """
    groups: dict[tuple[str, bool, str], list[sqlite3.Row]] = {}
    for row in connection.execute(query, (since, until, json.dumps(list(about)), json.dumps(list(acts)))):
        is_chosen = bool(row["is_chosen"])
        alike = "" if is_chosen else row["code"] or row["reason"]
        groups.setdefault((row["act"], is_chosen, alike), []).append(row)
    found = [
        DecisionCount(
            *(act, same[0]["reason"], len(same), same[0]["id"]),
            authors=tuple(dict.fromkeys(row["author"] for row in same if row["author"])),
            is_chosen=is_chosen,
        )
        for (act, is_chosen, _), same in groups.items()
    ]
    return sorted(found, key=lambda one: (-one.count, -one.newest))


def wishes_between(connection: sqlite3.Connection, since: str, until: str) -> list[tuple[str, str, str]]:
    """Return `(author, address, wish)` of posts that ask for work only the owner can order; each once, newest first."""
    query = """
        SELECT coalesce(author, '') AS author, coalesce(trigger_uri, '') AS uri,
            json_extract(data, '$.wish') AS wish, max(id) FROM journal
        WHERE at >= ? AND at < ? AND kind = 'decision' AND json_extract(data, '$.wish') IS NOT NULL
        GROUP BY author, uri ORDER BY max(id) DESC
    """
    return [(row["author"], row["uri"], row["wish"]) for row in connection.execute(query, (since, until))]


def room_lines(connection: sqlite3.Connection, since: str, most: int) -> list[tuple[str, str, str]]:
    """Return `(at, name, line)` of what was said in rooms since then, by the newest `most` decisions; newest first.

    The name is "" for our own lines. A line of others is returned once, even if several decisions were about it.
    """
    query = """
        SELECT at, json_extract(data, '$.act') AS act, json_extract(data, '$.message') AS message,
            coalesce(json_extract(data, '$.received'), '[]') AS received FROM journal
        WHERE at >= ? AND kind = 'decision' AND substr(coalesce(trigger_uri, ''), 1, 8) = 'space://'
        ORDER BY id DESC LIMIT ?
    """
    found: dict[tuple[str, str], str] = {}
    for row in connection.execute(query, (since, most)):
        if row["act"] == "spoke" and row["message"]:
            found.setdefault(("", row["message"]), row["at"])
        for line in json.loads(row["received"]):
            name, _, words = str(line).partition(": ")
            found[name, words] = row["at"]  # the oldest decision about it comes last, and was made when it was said
    told = [(at, name, words) for (name, words), at in found.items()]
    return sorted(told, key=lambda one: one[0], reverse=True)


def count_between(connection: sqlite3.Connection, since: str, until: str, act: str) -> int:
    """Return how many decisions had the outcome `act`."""
    query = (
        "SELECT count(*) FROM journal WHERE at >= ? AND at < ? AND kind = 'decision'"
        " AND json_extract(data, '$.act') = ?"
    )
    return int(connection.execute(query, (since, until, act)).fetchone()[0])


def refused_between(
    connection: sqlite3.Connection, since: str, until: str, without: Collection[str], others: Collection[str]
) -> list[tuple[str, str, int, bool]]:
    """Return `(kind, reason, count, is_others)` of intents that were refused, failed or expired, but for `without`.

    The most frequent is first. `is_others`: the reason may hold others' words, as it was tried or is of kind `others`.
    """
    query = """
        SELECT json_extract(data, '$.kind') AS act, reason, count(*) AS count, max(
            json_extract(data, '$.state') = 'failed' OR json_extract(data, '$.attempts') > 0
            OR json_extract(data, '$.deferrals') > 0 OR json_extract(data, '$.kind') IN (SELECT value FROM json_each(?))
        ) FROM journal
        WHERE at >= ? AND at < ? AND kind = 'act' AND json_extract(data, '$.state') IN ('blocked', 'failed', 'expired')
        AND coalesce(intent_id, '') NOT IN (SELECT value FROM json_each(?))
        GROUP BY act, reason ORDER BY count DESC, max(id) DESC
    """
    values = json.dumps(list(others)), since, until, json.dumps(list(without))
    return [tuple(row) for row in connection.execute(query, values)]


def dropped_between(
    connection: sqlite3.Connection, since: str, until: str, without: Collection[str]
) -> list[tuple[str, str, int, bool]]:
    """Return `(summary, reason, count, is_others)` of what was dropped, but for addresses that begin with `without`."""
    query = f"""
        SELECT summary, reason, count(*) AS count, max({_IS_OTHERS}) FROM journal
        WHERE at >= ? AND at < ? AND kind = 'decision' AND json_extract(data, '$.act') = 'dropped'
        AND NOT EXISTS (SELECT 1 FROM json_each(?) WHERE substr(coalesce(trigger_uri, ''), 1, length(value)) = value)
        GROUP BY summary, reason ORDER BY count DESC, max(id) DESC
    """  # noqa: S608 - a constant
    return [tuple(row) for row in connection.execute(query, (since, until, json.dumps(list(without))))]


MALFORMED = "the model called it with other fields than it takes"
"""Tells the owner why a call was sent back; the answer itself tells the model which fields there are."""


def sent_back_between(connection: sqlite3.Connection, since: str, until: str) -> list[tuple[str, str, int, bool]]:
    """Return `(tool, answer, count, is_others)` of the calls that the model was told to change, most frequent first.

    A message that was not said in a room counts among them, with "" for its tool. For a call with wrong fields the
    answer is `MALFORMED`; that of a tool that ran and failed may hold the words of a service. Calls whose intent was
    refused are left out: `refused_between` returns them.
    """
    query = f"""
        WITH answers (id, tool, answer, is_others) AS (
            SELECT journal.id, json_extract(call.value, '$.tool'),
                iif(json_extract(call.value, '$.malformed'), :malformed, json_extract(call.value, '$.error')),
                {_IS_OTHERS} OR coalesce(json_extract(call.value, '$.went_wrong'), 0)
                FROM journal, json_each(journal.data, '$.calls') AS call
                WHERE at >= :since AND at < :until AND kind = 'model'
                AND json_extract(call.value, '$.intent_id') IS NULL
            UNION ALL SELECT id, '', reason, {_IS_OTHERS} FROM journal
                WHERE at >= :since AND at < :until AND kind = 'decision' AND json_extract(data, '$.act') = 'rejected'
        )
        SELECT tool, answer, count(*) AS count, answer != :malformed AND max(is_others) FROM answers
        WHERE answer != '' GROUP BY tool, answer ORDER BY count DESC, max(id) DESC
    """  # noqa: S608 - a constant
    values = {"since": since, "until": until, "malformed": MALFORMED}
    return [tuple(row) for row in connection.execute(query, values)]


def counts_since(connection: sqlite3.Connection, since: str) -> list[tuple[str, str, str, int]]:
    """Return how many errors, decisions and life entries there were since then, by kind, loop and `act`."""
    query = (
        "SELECT kind, loop, coalesce(json_extract(data, '$.act'), '') AS act, count(*) FROM journal"
        " WHERE at >= ? AND kind IN ('error', 'decision', 'life') GROUP BY kind, loop, act"
    )
    return [tuple(row) for row in connection.execute(query, (since,))]


def after(connection: sqlite3.Connection, number: int, most: int) -> list[JournalRow]:
    """Return up to `most` entries after the one with this number, the oldest first."""
    return _read(connection.execute("SELECT * FROM journal WHERE id > ? ORDER BY id LIMIT ?", (number, most)))


def newest_errors(connection: sqlite3.Connection, most: int) -> list[JournalRow]:
    """Return the newest `most` errors, the oldest first."""
    query = "SELECT * FROM (SELECT * FROM journal WHERE kind = 'error' ORDER BY id DESC LIMIT ?) ORDER BY id"
    return _read(connection.execute(query, (most,)))


def entries(connection: sqlite3.Connection, numbers: Collection[int]) -> list[JournalRow]:
    """Return the entries with these numbers, the oldest first."""
    query = "SELECT * FROM journal WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
    return _read(connection.execute(query, (json.dumps(list(numbers)),)))


def troubles_between(connection: sqlite3.Connection, since: str, until: str, most: int) -> list[tuple[str, str, int]]:
    """Return `(summary, reason, count)` of the most frequent errors; the reason is the newest of that summary."""
    query = """
        SELECT summary, reason, count(*) AS count, max(id) AS newest FROM journal
        WHERE at >= ? AND at < ? AND kind = 'error' GROUP BY summary ORDER BY count DESC, newest DESC LIMIT ?
    """
    return [(row["summary"], row["reason"], row["count"]) for row in connection.execute(query, (since, until, most))]


def of_loop_between(
    connection: sqlite3.Connection, loop: str, since: str, until: str, kind: EntryKind = "decision"
) -> list[JournalRow]:
    """Return the decisions of one loop, or its entries of another `kind`, the oldest first."""
    query = "SELECT * FROM journal WHERE at >= ? AND at < ? AND kind = ? AND loop = ? ORDER BY id"
    return _read(connection.execute(query, (since, until, kind, loop)))


def newest_reason(connection: sqlite3.Connection, uri: str) -> str:
    """Return the reason of the newest decision about a cause; "" if there is none."""
    query = "SELECT reason FROM journal WHERE trigger_uri = ? AND kind = 'decision' ORDER BY id DESC LIMIT 1"
    found = connection.execute(query, (uri,)).fetchone()
    return str(found[0]) if found else ""


def names(connection: sqlite3.Connection, uri: str) -> bool:
    """Return whether an entry is about this post."""
    return connection.execute("SELECT 1 FROM journal WHERE trigger_uri = ? LIMIT 1", (uri,)).fetchone() is not None


def names_about(connection: sqlite3.Connection, prefixes: Collection[str]) -> list[str]:
    """Return the addresses that entries are about, if a prefix matches in any case; each once, the newest first."""
    query = """
        SELECT trigger_uri FROM journal, json_each(?) AS begun
            WHERE lower(substr(trigger_uri, 1, length(begun.value))) = lower(begun.value)
            GROUP BY trigger_uri ORDER BY max(journal.id) DESC
    """
    return [str(row[0]) for row in connection.execute(query, (json.dumps(list(prefixes)),))]


def with_key(connection: sqlite3.Connection, tail: str) -> list[tuple[str, str]]:
    """Return the URIs of posts that end in `tail`, each with its author's handle ("" if that is not known)."""
    query = (
        "SELECT DISTINCT trigger_uri, coalesce(author, '') FROM journal"
        " WHERE trigger_uri IS NOT NULL AND substr(trigger_uri, -13) = substr(:tail, -13)"
        " AND substr(trigger_uri, -length(:tail)) = :tail"
    )
    return [(str(row[0]), str(row[1])) for row in connection.execute(query, {"tail": tail})]


def _read(rows: Iterable[sqlite3.Row]) -> list[JournalRow]:
    return [{**dict(row), "data": json.loads(row["data"])} for row in rows]


T = TypeVar("T")
Handles = Callable[[sqlite3.Connection, str], Mapping[str, str]]
"""Returns the known handles, by DID, of the accounts that a text names by their DID."""

MAX_ENTRIES = 200_000
MAX_BYTES = 64 * 1024 * 1024

_COLUMNS = "id, at, kind, loop, summary, line, reason, trigger_uri, author, intent_id, data, dids"

# NOTE(self): an act is explained from its trigger on: what was recorded about the post that caused it belongs to it.
_SIZE = "length(summary) + length(reason) + length(data)"
_OVERSIZE = f"""
SELECT max(id) FROM (SELECT id, sum({_SIZE}) OVER (ORDER BY id DESC) AS together FROM journal) WHERE together > ?
"""  # noqa: S608 - the same


def _unknown(_: sqlite3.Connection, __: str) -> Mapping[str, str]:
    return {}


class Journal:
    """Writes entries, shows their lines, and finds them again.

    Rows keep DIDs. A line shows the handle of each account for which `handles` returns one.
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
        """Write `entry`, then show its line; return its number. Raises `StorageError` or `Transient`."""
        clean = self._clean(entry)

        def work(connection: sqlite3.Connection) -> tuple[int, Entry]:
            return self._insert(connection, clean), self._shown(connection, clean)

        number, shown = await self._database.run(work)
        self._show_line(shown)
        return number

    def show(self, entry: Entry) -> None:
        """Show the line of `entry` without writing it: for what the owner must see while nothing can be written."""
        self._show_line(self._clean(entry))

    async def record_or_show(self, entry: Entry) -> None:
        """Write `entry` and show its line; only show it if there is no room, or another program holds the file."""
        try:
            await self.record(entry)
        except (MachineTrouble, Transient):
            self.show(entry)

    async def record_with(self, fn: Callable[[sqlite3.Connection], tuple[T, Entry]]) -> T:
        """Run `fn` and write the entry that it returns in one transaction, then show the line and return the result."""

        def work(connection: sqlite3.Connection) -> tuple[T, list[Entry]]:
            result, entry = fn(connection)
            return result, [entry]

        return await self.record_all_with(work)

    async def record_all_with(self, fn: Callable[[sqlite3.Connection], tuple[T, Sequence[Entry]]]) -> T:
        """Do as `record_with` with several entries."""

        def work(connection: sqlite3.Connection) -> tuple[T, list[Entry]]:
            result, entries = fn(connection)
            clean = [self._clean(one) for one in entries]
            for one in clean:
                self._insert(connection, one)
            return result, [self._shown(connection, one) for one in clean]

        result, shown = await self._database.run(work)
        for one in shown:
            self._show_line(one)
        return result

    async def recent(self, limit: int, kinds: Collection[EntryKind] | None = None) -> list[StoredEntry]:
        """Return the last `limit` entries, newest first; only those of `kinds` if given."""
        wanted = json.dumps(sorted(kinds)) if kinds is not None else None

        def select(connection: sqlite3.Connection) -> list[StoredEntry]:
            query = (
                f"SELECT {_COLUMNS} FROM journal"  # noqa: S608 - only our own column names are put in
                " WHERE :kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)) ORDER BY id DESC LIMIT :limit"
            )
            return [_stored(row) for row in connection.execute(query, {"kinds": wanted, "limit": limit})]

        return await self._database.run(select)

    async def messages(self, loop: str, act: str, since: datetime) -> list[str]:
        """Return the `message` of each entry of a loop with that `act` in its data, since then, oldest first."""
        query = (
            "SELECT json_extract(data, '$.message') AS message FROM journal WHERE at >= ? AND loop = ?"
            " AND json_extract(data, '$.act') = ? AND message IS NOT NULL ORDER BY id"
        )
        return await self._database.run(
            lambda connection: [str(row["message"]) for row in connection.execute(query, (iso(since), loop, act))]
        )

    async def with_act(self, loop: str, act: str, since: datetime, until: datetime) -> list[StoredEntry]:
        """Return the entries of a loop with that `act` in their data, from `since` to `until`, oldest first."""
        query = (
            f"SELECT {_COLUMNS} FROM journal WHERE at BETWEEN ? AND ? AND loop = ?"  # noqa: S608 - the same
            " AND json_extract(data, '$.act') = ? ORDER BY at, id"
        )
        values = (iso(since), iso(until), loop, act)
        return await self._database.run(lambda connection: [_stored(row) for row in connection.execute(query, values)])

    async def person_hash(self, did: str) -> str:
        """Return the hash by which entries about a person who was forgotten still count."""
        return await self._database.run(lambda connection: person_hash(connection, did))

    async def began(self) -> datetime | None:
        """Return when this life began: the time of the first entry there ever was; None if there was none."""
        return parse_iso_or_none(await self._database.run(lambda rows: marks.get(rows, marks.BORN) or first_at(rows)))

    async def prune(
        self, *, max_days: float = LOG_MAX_DAYS, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES
    ) -> int:
        """Delete entries older than `max_days`, and the oldest above `max_entries` or `max_bytes` of payload.

        Return how many were deleted. A character counts as a byte: apart from summaries and reasons all is ASCII.
        """
        oldest = iso(self._clock.now() - timedelta(days=max_days))

        def delete(connection: sqlite3.Connection) -> int:
            if first := first_at(connection):
                marks.put_if_absent(connection, marks.BORN, first)
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
            json.dumps(clean.data | _rests_on(connection, clean), default=str),
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
            # NOTE(self): these tell the log which accounts a line is about, so that it goes when they are forgotten.
            import structlog  # noqa: PLC0415 - takes time to load, and whoever only reads the journal shows no line

            about = {"trigger": shown.trigger_uri, "intent": shown.intent_id, "dids": list(shown.dids)}
            with structlog.contextvars.bound_contextvars(**{name: value for name, value in about.items() if value}):
                self._console.line(shown.line, shown.summary, shown.reason)

    def _clean(self, entry: Entry) -> Entry:
        fields = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
        clean: dict[str, Any] = {name: _encodable(self._redactor.value(value)) for name, value in fields.items()}
        return Entry(**clean)


def _rests_on(connection: sqlite3.Connection, entry: Entry) -> dict[str, str]:
    query = "SELECT data ->> 'rests_on' FROM journal WHERE intent_id = ? AND kind = 'act' ORDER BY id LIMIT 1"
    first = connection.execute(query, (entry.intent_id,)).fetchone() if entry.kind == "act" else None
    whose = first[0] if first else entry.provenance.name.lower() if entry.provenance else None
    return {"rests_on": whose} if whose else {}


def _encodable(value: object) -> object:
    """Replace half of a surrogate pair, which a model may well send: it cannot be stored as UTF-8."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _stored(row: sqlite3.Row) -> StoredEntry:
    fields = dict(row)
    number, at = fields.pop("id"), fields.pop("at")
    data = json.loads(fields["data"])
    provenance = Provenance[data.pop("rests_on", "stranger").upper()]
    values = {"data": data, "dids": tuple(fields["dids"].split()), "provenance": provenance}
    return StoredEntry(number, at, Entry(**{**fields, **values}))
