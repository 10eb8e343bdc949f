"""Memory as lines of JSON, to look at and to carry to another home.

An export holds everything, including replaced memories, with ids, times and counters. A restore writes it unchanged, in
one transaction, and can be repeated: what exists already stays as it is, and of two memories under one subject the
newer one holds.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modules.runtime.database import marks
from modules.services.memory import policy
from modules.services.memory.export_lines import MARKS, VERSION, Line, MarkLine, MemoryLine, ProfileLine, of
from modules.services.memory.rows import COLUMNS, OURS, insert_exported, tags_of

_PAGE = 200
_FIELDS = "SELECT subject, field, value, updated_at, updated_by FROM profiles ORDER BY rowid"


@dataclass(frozen=True, slots=True)
class Restored:
    """The numbers of memories and profile fields that were restored, and of those that existed already."""

    memories: int = 0
    fields: int = 0
    known: int = 0


def snapshot_lines(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the lines of JSON, without line ends, oldest first."""
    yield _json({"record": "export", "version": VERSION})
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories WHERE {OURS} ORDER BY created_at, id")  # noqa: S608 - our own names
    while page := rows.fetchmany(_PAGE):
        for row in page:
            memory = dict(row)
            memory |= {"tags": tags_of(row), "private": bool(row["private"])}
            memory |= {name: row[name].split() for name in ("dids", "about")}
            yield _json({"record": "memory"} | memory)
    yield from (_json({"record": "profile", **dict(row)}) for row in connection.execute(_FIELDS))
    known = marks.get_all(connection, MARKS).items()
    yield from (_json({"record": "mark", "name": name, "value": value}) for name, value in known)


def _json(line: Mapping[str, object]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def restore(connection: sqlite3.Connection, lines: Sequence[Line]) -> Restored:
    """Restore the lines that `parse_lines` read, inside a transaction of the caller.

    Memories are written row by row as they were, without the rules of saving. They keep their ids unless one is taken;
    then all of them get new ids, in order of time.
    """
    connection.execute("PRAGMA defer_foreign_keys = ON")
    memories = sorted(of(lines, MemoryLine), key=lambda line: (line.created_at, line.id))
    ids, newcomers = _assign_ids(connection, memories)
    for line in newcomers:
        successor = None if line.superseded_by is None else ids[line.superseded_by]
        insert_exported(connection, line.entry, line, ids[line.id], successor)
    if len(newcomers) < _count(connection):
        _settle_conflicts(connection, {ids[line.id]: line for line in newcomers if line.superseded_by is None})
    profiles = of(lines, ProfileLine)
    fields = sum(_set_field(connection, line) for line in profiles)
    for mark in of(lines, MarkLine):
        marks.put_if_absent(connection, mark.name, mark.value)
    return Restored(len(newcomers), fields, len(memories) - len(newcomers) + len(profiles) - fields)


def _assign_ids(
    connection: sqlite3.Connection, memories: Sequence[MemoryLine]
) -> tuple[dict[int, int], list[MemoryLine]]:
    """Return the id that each line has here, and the lines that are not here yet.

    Memories are the same if kind, subject, body and time of creation are equal; of several such, the first line is the
    first row, and so on.
    """
    known: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
    taken: set[int] = set()
    for row in connection.execute("SELECT id, kind, subject_key, body_hash, created_at FROM memories ORDER BY id"):
        known[row["kind"], row["subject_key"], row["body_hash"], row["created_at"]].append(row["id"])
        taken.add(row["id"])
    ids: dict[int, int] = {}
    newcomers: list[MemoryLine] = []
    for line in memories:
        entry = line.entry
        same = known.get((entry.kind, entry.subject_key, entry.body_hash, line.created_at))
        if same:
            ids[line.id] = same.popleft()
        else:
            newcomers.append(line)
    if any(line.id in taken or line.id < 1 for line in newcomers):
        ids |= {line.id: number for number, line in enumerate(newcomers, max(taken, default=0) + 1)}
    else:
        ids |= {line.id: line.id for line in newcomers}
    return ids, newcomers


def _settle_conflicts(connection: sqlite3.Connection, living: Mapping[int, MemoryLine]) -> None:
    """Decide between new living memories, by id, and rivals under their subject; all stay in the history.

    Of the same words, those of greater trust stay; of other words the newer, unless they are trusted less.
    """
    for number, line in living.items():
        for row in _rivals(connection, line.entry):
            if row["id"] in living:
                continue
            older, newer = sorted(
                ((line.updated_at, line.trust, number), (row["updated_at"], row["trust"], row["id"])),
                key=lambda one: (one[0], one[2]),
            )
            trusted = policy.TRUSTS.index(newer[1]) >= policy.TRUSTS.index(older[1])
            if not trusted and row["body_hash"] != line.entry.body_hash:
                continue
            winner, loser = (newer[2], older[2]) if trusted else (older[2], newer[2])
            connection.execute("UPDATE memories SET superseded_by = ? WHERE id = ?", (winner, loser))
            if loser == number:
                break


def _rivals(connection: sqlite3.Connection, entry: policy.MemoryEntry) -> list[sqlite3.Row]:
    """Return the living rows of the same subject, or of the same words if nothing is replaced: only one can stay."""
    same_words = "" if policy.may_replace(entry) else "body_hash = :body_hash AND "
    return connection.execute(
        f"SELECT id, body_hash, trust, updated_at FROM memories WHERE {same_words}kind = :kind"  # noqa: S608 - constants
        " AND subject_key = :subject_key AND superseded_by IS NULL",
        {"body_hash": entry.body_hash, "kind": entry.kind, "subject_key": entry.subject_key},
    ).fetchall()


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM memories").fetchone()[0])


def _set_field(connection: sqlite3.Connection, line: ProfileLine) -> bool:
    """Set a profile field; return whether it was missing or older."""
    changed = connection.execute(
        "INSERT INTO profiles (subject, field, value, updated_at, updated_by) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (subject, field) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at,"
        " updated_by = excluded.updated_by WHERE excluded.updated_at > profiles.updated_at",
        (line.subject, line.field, line.value, line.updated_at, line.updated_by),
    )
    return changed.rowcount > 0
