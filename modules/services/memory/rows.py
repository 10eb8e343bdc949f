"""The rows of `memories` in soul.db. Each function is one step of a transaction that its caller opened.

The full-text index is kept by triggers in the same transaction: there is no moment at which one of them knows more
than the other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from common.clock import iso
from common.person import tied
from common.text.unspaced import index_tokens, touching_words
from modules.services.memory import policy
from modules.services.memory.export_lines import MemoryLine
from modules.services.memory.types import KINDS, Kind, Memory, NewMemory

COLUMNS = (
    "id, kind, subject, body, tags, importance, source, trust, private, created_at, updated_at, last_recalled_at,"
    " recall_count, superseded_by, dids"
)

_TAG_END = "\n"
# NOTE(self): private-use letters are words to the tokenizer, and no text that is searched for contains them.
_PUBLIC = "\ue000"
_SHELVES: dict[Kind, str] = {kind: chr(ord(_PUBLIC) + 1 + number) for number, kind in enumerate(KINDS)}


def remember(connection: sqlite3.Connection, new: NewMemory, now: datetime) -> int:
    """Keep `new` by the rules of `policy`; the id of the row that now holds it.

    Raises:
        ValueError: there is nothing to remember in it.

    """
    entry = policy.entry(new)
    memory_id = _repeat(connection, entry, now) or _insert(connection, entry, now)
    if trusts := policy.may_replace(entry):
        connection.execute(
            "UPDATE memories SET superseded_by = ? WHERE kind = ? AND subject_key = ? AND superseded_by IS NULL"
            " AND id <> ? AND trust IN (SELECT value FROM json_each(?))",
            (memory_id, entry.kind, entry.subject_key, memory_id, json.dumps(trusts)),
        )
    return memory_id


def fetch(connection: sqlite3.Connection, ids: Collection[int]) -> list[Memory]:
    """The rows with these ids, in this order; what is not there is left out."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM memories WHERE id IN (SELECT value FROM json_each(?))",  # noqa: S608 - constants
        (json.dumps(list(ids)),),
    )
    found = {memory.id: memory for memory in map(memory_of, rows)}
    return [found[memory_id] for memory_id in ids if memory_id in found]


def history(connection: sqlite3.Connection, memory_id: int) -> list[Memory]:
    """All under the kind and subject of this one, newest first; what has no subject stands alone."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM memories WHERE (kind, subject_key) ="  # noqa: S608 - constants
        " (SELECT kind, subject_key FROM memories WHERE id = ?) AND (subject_key <> '' OR id = ?) ORDER BY id DESC",
        (memory_id, memory_id),
    )
    return [memory_of(row) for row in rows]


def newest(
    connection: sqlite3.Connection,
    *,
    kinds: Collection[Kind],
    since: datetime | None,
    until: datetime | None = None,
    public_only: bool,
    limit: int,
) -> list[Memory]:
    """Living entries by their last change, newest first; from `since` on, and before `until`."""
    found: list[tuple[str, int]] = []
    # NOTE(self): one step through the index for each kind: a rare kind costs no more than a common one.
    for kind in kinds or KINDS:
        for private in (0,) if public_only else (0, 1):
            rows = connection.execute(
                "SELECT updated_at, id FROM memories WHERE superseded_by IS NULL AND kind = ? AND private = ?"
                " AND updated_at >= ? AND updated_at < ? ORDER BY updated_at DESC, id DESC LIMIT ?",
                (kind, private, iso(since) if since else "", iso(until) if until else "~", limit),
            )
            found += [(row["updated_at"], row["id"]) for row in rows]
    return fetch(connection, [memory_id for _, memory_id in sorted(found, reverse=True)[:limit]])


def of_person(connection: sqlite3.Connection, did: str, limit: int, *, public_only: bool) -> list[Memory]:
    """Living entries that rest on the words of an account, newest first."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM memories WHERE superseded_by IS NULL AND instr(' ' || dids || ' ', ' ' || ? || ' ')"  # noqa: S608 - constants
        " AND private <= ? ORDER BY updated_at DESC, id DESC LIMIT ?",
        (did, 0 if public_only else 1, limit),
    )
    return list(map(memory_of, rows))


def shelves(kinds: Iterable[Kind], *, public_only: bool) -> list[str]:
    """What a full-text query is joined to by AND so that it finds only these kinds, or only what is public."""
    of_kinds = " OR ".join(f'"{_SHELVES[kind]}"' for kind in dict.fromkeys(kinds))
    return [*([f"({of_kinds})"] if of_kinds else []), *([f'"{_PUBLIC}"'] if public_only else [])]


def memory_of(row: sqlite3.Row) -> Memory:
    """A row as a value."""
    fields: dict[str, Any] = dict(row)
    read = {"tags": tags_of(row), "private": bool(fields["private"]), "dids": tuple(fields["dids"].split())}
    return Memory(**{**fields, **read})


def tags_of(row: sqlite3.Row) -> tuple[str, ...]:
    """The tags in a row."""
    return tuple(filter(None, row["tags"].split(_TAG_END)))


def _repeat(connection: sqlite3.Connection, entry: policy.MemoryEntry, now: datetime) -> int | None:
    row = connection.execute(
        "SELECT id, subject_key, trust FROM memories WHERE body_hash = ? AND kind = ? AND superseded_by IS NULL"
        " AND (subject_key = ? OR trust IN (SELECT value FROM json_each(?)))"
        " ORDER BY subject_key = ? DESC, id DESC LIMIT 1",
        (
            entry.body_hash,
            entry.kind,
            entry.subject_key,
            json.dumps(policy.may_lend_its_subject(entry)),
            entry.subject_key,
        ),
    ).fetchone()
    if row is None or not policy.same(entry, row["subject_key"], row["trust"]):
        return None
    after = policy.refreshed(fetch(connection, [row["id"]])[0], entry, now)
    connection.execute(
        "UPDATE memories SET updated_at = ?, subject = ?, body = ?, tags = ?, importance = ?, source = ?, trust = ?,"
        " private = ?, shelf = ?, dids = ? WHERE id = ?",
        (
            after.updated_at,
            after.subject,
            after.body,
            _TAG_END.join(after.tags),
            after.importance,
            after.source,
            after.trust,
            after.private,
            _shelf(after.kind, (after.subject, after.body, *after.tags), private=after.private),
            tied(after.dids),
            after.id,
        ),
    )
    return after.id


def insert_exported(
    connection: sqlite3.Connection, entry: policy.MemoryEntry, line: MemoryLine, memory_id: int, successor: int | None
) -> None:
    """Write one memory of an export under this id, with its times, counts and what took its place."""
    values = _values(entry, created_at=line.created_at, updated_at=line.updated_at) | {
        "id": memory_id,
        "last_recalled_at": line.last_recalled_at,
        "recall_count": line.recall_count,
        "superseded_by": successor,
    }
    _insert_row(connection, values)


def _insert(connection: sqlite3.Connection, entry: policy.MemoryEntry, now: datetime) -> int:
    _insert_row(connection, _values(entry, created_at=iso(now), updated_at=iso(now)))
    return int(connection.execute("SELECT last_insert_rowid()").fetchone()[0])


def _values(entry: policy.MemoryEntry, *, created_at: str, updated_at: str) -> dict[str, Any]:
    return {
        "created_at": created_at,
        "updated_at": updated_at,
        "kind": entry.kind,
        "subject": entry.subject,
        "body": entry.body,
        "tags": _TAG_END.join(entry.tags),
        "source": entry.source,
        "trust": entry.trust,
        "private": entry.private,
        "importance": entry.importance,
        "subject_key": entry.subject_key,
        "body_hash": entry.body_hash,
        "shelf": _shelf(entry.kind, (entry.subject, entry.body, *entry.tags), private=entry.private),
        "dids": tied(entry.dids),
    }


def _insert_row(connection: sqlite3.Connection, values: dict[str, Any]) -> None:
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO memories ({names}) VALUES ({marks})", tuple(values.values()))  # noqa: S608 - our own names


def _shelf(kind: Kind, texts: Iterable[str], *, private: bool) -> str:
    shelf = _SHELVES[kind] if private else f"{_SHELVES[kind]} {_PUBLIC}"
    text = "\n".join(texts)
    tokens = index_tokens(text)
    return " ".join((shelf, *tokens, *touching_words(text))) if tokens else shelf
