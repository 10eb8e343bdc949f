"""The rows of the journal, read for those who tell of them; each function is one step of a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from modules.runtime.database import marks

JournalRow = dict[str, Any]
"""A row by column; `data` is what its JSON holds."""


@dataclass(frozen=True, slots=True)
class DecisionCount:
    """Decisions of one outcome and kind of reason: how many, and the id of the `newest`, whose reason it is.

    `authors` are the handles of whom they were about, each once, the newest first. `is_chosen` says that the model
    chose it, and gave the reason.
    """

    act: str
    reason: str
    count: int
    newest: int
    authors: tuple[str, ...]
    is_chosen: bool


_LAST_END = "SELECT * FROM journal WHERE kind = 'life' AND loop = 'stop' ORDER BY id DESC LIMIT 1"


def first_at(connection: sqlite3.Connection) -> str:
    """The time of the oldest entry, ISO-8601; "" if there is none."""
    return str(connection.execute("SELECT min(at) FROM journal").fetchone()[0] or "")


def newest_at(connection: sqlite3.Connection) -> str:
    """The time of the newest entry, ISO-8601; "" if there is none."""
    return str(connection.execute("SELECT max(at) FROM journal").fetchone()[0] or "")


def kept_since(connection: sqlite3.Connection) -> str:
    """The time of the oldest entry that the journal still has, if older ones are gone; else ""."""
    row = connection.execute("SELECT id, at FROM journal ORDER BY id LIMIT 1").fetchone()
    return str(row["at"]) if row and row["id"] > 1 else ""


def last_start(connection: sqlite3.Connection, until: str) -> str:
    """When the SOUL last woke at `until` (ISO-8601) or before; "" if it is not known."""
    query = "SELECT max(at) FROM journal WHERE kind = 'life' AND loop = 'start' AND at <= ?"
    return str(connection.execute(query, (until,)).fetchone()[0] or "")


def last_end(connection: sqlite3.Connection) -> JournalRow | None:
    """Return the entry that tells why the last run ended; None where there was none, or it ended unexpectedly."""
    if marks.get(connection, marks.RUNNING):
        return None
    return next(iter(_read(connection.execute(_LAST_END))), None)


def about(connection: sqlite3.Connection, posts: Collection[str], intents: Collection[str]) -> list[JournalRow]:
    """All that was recorded of these posts and of these intents, in no order."""
    query = """
        SELECT * FROM journal WHERE trigger_uri IN (SELECT value FROM json_each(:posts))
            OR intent_id IN (SELECT value FROM json_each(:intents))
    """
    values = {"posts": json.dumps(list(posts)), "intents": json.dumps(list(intents))}
    return _read(connection.execute(query, values))


def turn_of(connection: sqlite3.Connection, intent_id: str, loop: str) -> list[JournalRow]:
    """The entries of the turn from which an act came: one mind has one turn at a time, and journals it at its end."""
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
    """Whether something was decided about a post; with `finished`, tries that came to nothing do not count."""
    query = "SELECT 1 FROM journal WHERE trigger_uri = ? AND kind = 'decision'"
    if finished:
        query += " AND coalesce(json_extract(data, '$.act'), '') NOT IN ('undecided', 'later')"
    return connection.execute(query, (uri,)).fetchone() is not None


def holding(connection: sqlite3.Connection) -> list[JournalRow]:
    """The newest entries by which budget or owner keep the SOUL from acting, as far as they still hold."""
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
    """Return how what was met ended, as far as it ended in one of these outcomes; the most frequent first.

    Each address that decisions are about counts once, with its last one that settled it. Those that the model chose to
    one outcome are counted together, and so are those of rules with one code, or without one with the same reason; the
    reason is that of the newest. `about` are beginnings of addresses.
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
    """Return `(author, address, wish)` of each post that asks for work of the owner's, once, the newest first."""
    query = """
        SELECT coalesce(author, '') AS author, coalesce(trigger_uri, '') AS uri,
            json_extract(data, '$.wish') AS wish, max(id) FROM journal
        WHERE at >= ? AND at < ? AND kind = 'decision' AND json_extract(data, '$.wish') IS NOT NULL
        GROUP BY author, uri ORDER BY max(id) DESC
    """
    return [(row["author"], row["uri"], row["wish"]) for row in connection.execute(query, (since, until))]


def room_lines(connection: sqlite3.Connection, since: str, most: int) -> list[tuple[str, str, str]]:
    """Return `(at, name, line)` of what was said in rooms since then, of `most` decisions about it; newest first.

    The name is "" for our own lines. A line of others that several decisions were about is returned once.
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
            found[name, words] = row["at"]  # the first decision about it was made when it was said
    told = [(at, name, words) for (name, words), at in found.items()]
    return sorted(told, key=lambda one: one[0], reverse=True)


def count_between(connection: sqlite3.Connection, since: str, until: str, act: str) -> int:
    """Return how many decisions had this outcome."""
    query = (
        "SELECT count(*) FROM journal WHERE at >= ? AND at < ? AND kind = 'decision'"
        " AND json_extract(data, '$.act') = ?"
    )
    return int(connection.execute(query, (since, until, act)).fetchone()[0])


def refused_between(connection: sqlite3.Connection, since: str, until: str) -> list[tuple[str, str, int]]:
    """Return `(kind, reason, count)` of the acts that were refused, failed or expired, the most frequent first."""
    query = """
        SELECT json_extract(data, '$.kind') AS act, reason, count(*) AS count FROM journal
        WHERE at >= ? AND at < ? AND kind = 'act' AND json_extract(data, '$.state') IN ('blocked', 'failed', 'expired')
        GROUP BY act, reason ORDER BY count DESC, max(id) DESC
    """
    return [tuple(row) for row in connection.execute(query, (since, until))]


def dropped_between(
    connection: sqlite3.Connection, since: str, until: str, without: Collection[str]
) -> list[tuple[str, str, int]]:
    """Return `(summary, reason, count)` of what was dropped, but for what begins with one of `without`."""
    query = """
        SELECT summary, reason, count(*) AS count FROM journal
        WHERE at >= ? AND at < ? AND kind = 'decision' AND json_extract(data, '$.act') = 'dropped'
        AND NOT EXISTS (SELECT 1 FROM json_each(?) WHERE substr(coalesce(trigger_uri, ''), 1, length(value)) = value)
        GROUP BY summary, reason ORDER BY count DESC, max(id) DESC
    """
    return [tuple(row) for row in connection.execute(query, (since, until, json.dumps(list(without))))]


def sent_back_between(connection: sqlite3.Connection, since: str, until: str) -> list[tuple[str, str, int]]:
    """Return `(tool, answer, count)` of the calls that the model was told to change, the most frequent first.

    A message that was not said in a room counts among them, with "" for its tool.
    """
    query = """
        WITH answers (id, tool, answer) AS (
            SELECT journal.id, json_extract(call.value, '$.tool'), json_extract(call.value, '$.error')
                FROM journal, json_each(journal.data, '$.calls') AS call
                WHERE at >= :since AND at < :until AND kind = 'model'
            UNION ALL SELECT id, '', reason FROM journal
                WHERE at >= :since AND at < :until AND kind = 'decision' AND json_extract(data, '$.act') = 'rejected'
        )
        SELECT tool, answer, count(*) AS count FROM answers WHERE answer != ''
        GROUP BY tool, answer ORDER BY count DESC, max(id) DESC
    """
    return [tuple(row) for row in connection.execute(query, {"since": since, "until": until})]


def counts_since(connection: sqlite3.Connection, since: str) -> list[tuple[str, str, str, int]]:
    """Return how many errors, decisions and lines of life there were since then, by kind, loop and `act`."""
    query = (
        "SELECT kind, loop, coalesce(json_extract(data, '$.act'), '') AS act, count(*) FROM journal"
        " WHERE at >= ? AND kind IN ('error', 'decision', 'life') GROUP BY kind, loop, act"
    )
    return [tuple(row) for row in connection.execute(query, (since,))]


def newest_errors(connection: sqlite3.Connection, most: int) -> list[JournalRow]:
    """Return what went wrong last, the oldest first."""
    query = "SELECT * FROM (SELECT * FROM journal WHERE kind = 'error' ORDER BY id DESC LIMIT ?) ORDER BY id"
    return _read(connection.execute(query, (most,)))


def entries(connection: sqlite3.Connection, numbers: Collection[int]) -> list[JournalRow]:
    """Return the entries with these numbers, the oldest first."""
    query = "SELECT * FROM journal WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
    return _read(connection.execute(query, (json.dumps(list(numbers)),)))


def troubles_between(connection: sqlite3.Connection, since: str, until: str, most: int) -> list[tuple[str, str, int]]:
    """Return `(summary, reason, count)` of what went wrong most often; of one summary the newest reason."""
    query = """
        SELECT summary, reason, count(*) AS count, max(id) AS newest FROM journal
        WHERE at >= ? AND at < ? AND kind = 'error' GROUP BY summary ORDER BY count DESC, newest DESC LIMIT ?
    """
    return [(row["summary"], row["reason"], row["count"]) for row in connection.execute(query, (since, until, most))]


def of_loop_between(connection: sqlite3.Connection, loop: str, since: str, until: str) -> list[JournalRow]:
    """Return the decisions of one loop, the oldest first."""
    query = "SELECT * FROM journal WHERE at >= ? AND at < ? AND kind = 'decision' AND loop = ? ORDER BY id"
    return _read(connection.execute(query, (since, until, loop)))


def newest_reason(connection: sqlite3.Connection, uri: str) -> str:
    """Return the reason of the newest decision about a cause; "" if there is none."""
    query = "SELECT reason FROM journal WHERE trigger_uri = ? AND kind = 'decision' ORDER BY id DESC LIMIT 1"
    found = connection.execute(query, (uri,)).fetchone()
    return str(found[0]) if found else ""


def names(connection: sqlite3.Connection, uri: str) -> bool:
    """Whether an entry is about this post."""
    return connection.execute("SELECT 1 FROM journal WHERE trigger_uri = ? LIMIT 1", (uri,)).fetchone() is not None


def names_about(connection: sqlite3.Connection, prefixes: Collection[str]) -> list[str]:
    """The names of what entries are about that begin with one of these, in any case, each once, the newest first."""
    query = """
        SELECT trigger_uri FROM journal, json_each(?) AS begun
            WHERE lower(substr(trigger_uri, 1, length(begun.value))) = lower(begun.value)
            GROUP BY trigger_uri ORDER BY max(journal.id) DESC
    """
    return [str(row[0]) for row in connection.execute(query, (json.dumps(list(prefixes)),))]


def with_key(connection: sqlite3.Connection, tail: str) -> list[tuple[str, str]]:
    """The uris of posts that end in `tail`, each with its author's handle ("" if that is not known)."""
    query = (
        "SELECT DISTINCT trigger_uri, coalesce(author, '') FROM journal"
        " WHERE trigger_uri IS NOT NULL AND substr(trigger_uri, -13) = substr(:tail, -13)"
        " AND substr(trigger_uri, -length(:tail)) = :tail"
    )
    return [(str(row[0]), str(row[1])) for row in connection.execute(query, {"tail": tail})]


def _read(rows: Iterable[sqlite3.Row]) -> list[JournalRow]:
    return [{**dict(row), "data": json.loads(row["data"])} for row in rows]
