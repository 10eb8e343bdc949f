"""What the memories in soul.db hold of a person: those that rest on their words or name them, but for MEMORY.md's."""

from __future__ import annotations

import sqlite3

from common.person import Person
from modules.runtime.database.functions import know_person
from modules.runtime.database.people import PersonalRows, PersonalTable

_TIED = "(instr(dids, :did) AND is_in(dids))"
_THEIRS = f"({_TIED} OR (kind <> 'curated' AND named(subject, body, tags)))"

MEMORIES_OF_PEOPLE = PersonalRows(
    "memories",
    (
        PersonalTable(
            name="memories",
            theirs=_THEIRS,
            shown="subject || ': ' || body",
            at="updated_at",
            order="id",
            redacts={"source": "without_did(source)"},
            named="""SELECT 'memory ' || id FROM memories WHERE kind = 'curated' AND named(subject, body, tags)
                ORDER BY id""",
        ),
        PersonalTable(
            name="profiles",
            named="""SELECT 'profile of ' || subject || ': ' || field FROM profiles WHERE named(value)
                ORDER BY subject, field""",
        ),
    ),
    # NOTE(self): a memory whose place one of theirs had taken stays replaced.
    before=(
        f"UPDATE memories SET superseded_by = id WHERE superseded_by IN (SELECT id FROM memories WHERE {_THEIRS})",  # noqa: S608 - a constant
    ),
    # NOTE(self): the index keeps the words of deleted rows until its parts are merged.
    after=("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')",),
)


def owner_notes(connection: sqlite3.Connection, person: Person) -> int:
    """Return how many memories of a person come from talks with the owner, and rest on none of the person's words."""
    know_person(connection, person)
    query = f"SELECT count(*) FROM memories WHERE {_THEIRS} AND NOT {_TIED} AND source LIKE 'owner:%'"  # noqa: S608 - constants
    return int(connection.execute(query, {"did": person.did}).fetchone()[0])


def copies_of(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the memories that are an account's: subject and body, with the end of a line between.

    The connection must know the person (`modules/runtime/database/functions.py`).
    """
    query = f"SELECT subject || char(10) || body AS body FROM memories WHERE {_THEIRS}"  # noqa: S608 - a constant
    return [str(row["body"]) for row in connection.execute(query, {"did": did})]
