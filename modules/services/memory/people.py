"""The memories in soul.db that belong to a person: they rest on their words or name them; MEMORY.md's are exempt.

A memory is tied to the accounts that it names when it is saved. Later a handle decides nothing, as it may have been
taken over: the owner is told of memories that name one and stay, and of notes about a person under a display name.
"""

import sqlite3
from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from common.text.handles import named_handles
from modules.runtime.database.people import PersonalRows, PersonalTable
from modules.services.inbox import received
from modules.services.memory.admission import Memory, NewMemory

_Memory = TypeVar("_Memory", Memory, NewMemory)

_NAMING = """
SELECT 'memory ' || id FROM memories WHERE named(subject, body, tags)
UNION ALL SELECT 'notes that may be about them, by a display name that anybody can choose: memories '
    || group_concat(id, ', ') || iif(min(others) > 0, ' and ' || min(others) || ' more', '')
FROM (SELECT id, count(*) OVER () - 5 AS others FROM memories
    WHERE kind = 'person' AND called(subject) AND NOT named(subject, body, tags) ORDER BY id LIMIT 5)
HAVING count(*) > 0
"""
_RESTS = "(instr(dids, :did) AND is_in(dids))"
_NAMES = "((instr(about, :did) AND is_in(about)) OR holds_did(subject, body, tags))"
_TIED = f"({_RESTS} OR (kind <> 'curated' AND {_NAMES}))"
# NOTE(self): a note in which no name of theirs can be replaced is deleted as a whole.
_IS_ABOUT_THEM = "((kind = 'person' AND named(subject)) OR NOT named(subject, body, tags))"
_THEIRS = f"({_RESTS} OR (kind <> 'curated' AND {_NAMES} AND {_IS_ABOUT_THEM}))"

MEMORIES_OF_PEOPLE = PersonalRows(
    "memories",
    (
        PersonalTable(
            name="memories",
            theirs=_THEIRS,
            shown="subject || ': ' || body",
            at="updated_at",
            order="id",
            redacts={
                "about": "trim(replace(' ' || about || ' ', ' ' || :did || ' ', ' '))",
                "source": "without_did(source)",
                **{name: f"redacted({name})" for name in ("subject", "body", "tags", "subject_key")},
            },
            only="kind <> 'curated'",
            shown_of_others="subject || ': ' || body",
            named=_NAMING,
        ),
        PersonalTable(
            name="profiles",
            named="""SELECT 'profile of ' || subject || ': ' || field FROM profiles WHERE named(value)
                ORDER BY subject, field""",
        ),
    ),
    # NOTE(self): a memory that one of theirs had replaced stays replaced.
    before=(
        f"UPDATE memories SET superseded_by = id WHERE superseded_by IN (SELECT id FROM memories WHERE {_THEIRS})",  # noqa: S608 - a constant
    ),
    # NOTE(self): the index keeps the words of deleted rows until its parts are merged.
    after=("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')",),
)


def copies_of(connection: sqlite3.Connection, did: str) -> dict[str, bool]:
    """Return the memories that are tied to an account, and whether each is deleted with it or loses its names.

    A memory is its subject and body, separated by a newline. The connection must know the person
    (`modules/runtime/database/people.py`).
    """
    query = f"SELECT subject || char(10) || body AS body, {_THEIRS} AS goes FROM memories WHERE {_TIED} ORDER BY goes"  # noqa: S608 - constants
    return {str(row["body"]): bool(row["goes"]) for row in connection.execute(query, {"did": did})}


def handles_of(memory: _Memory) -> frozenset[str]:
    """Return the handles that a memory names; the subject of a note about a person may be the handle alone."""
    at = "@" if memory.kind == "person" else ""
    return frozenset(named_handles("\n".join((f"{at}{memory.subject.removeprefix(at)}", memory.body, *memory.tags))))


def with_named_accounts(connection: sqlite3.Connection, memory: _Memory, known: Collection[str] = ()) -> _Memory:
    """Return a memory tied to each account that it names by a handle under which only that account wrote to us.

    Handles that are `known` already are left out. Display names tie nobody, as anybody can choose any.
    """
    handles: frozenset[str] = handles_of(memory).difference(known)
    if memory.kind == "curated" or not handles:
        return memory
    return replace(memory, about=tuple({*memory.about, *received.holders(connection, handles).values()}))
