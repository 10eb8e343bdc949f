"""What the memories in soul.db hold of a person: those that rest on their words or hold their DID, but for MEMORY.md's.

A handle decides nothing, for it can be taken by anybody: the owner is told of memories that name one.
"""

from __future__ import annotations

import sqlite3

from modules.runtime.database.people import PersonalRows, PersonalTable

_TIED = "(instr(dids, :did) AND is_in(dids))"
_THEIRS = f"({_TIED} OR (kind <> 'curated' AND holds_did(subject, body, tags)))"

_STAYS = "(dids = '' OR kind = 'curated') AND named(subject, body, tags)"

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
            named=f"SELECT 'memory ' || id FROM memories WHERE {_STAYS} ORDER BY id",  # noqa: S608 - a constant
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


def copies_of(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the memories that are an account's: subject and body, with the end of a line between.

    The connection must know the person (`modules/runtime/database/functions.py`).
    """
    query = f"SELECT subject || char(10) || body AS body FROM memories WHERE {_THEIRS}"  # noqa: S608 - a constant
    return [str(row["body"]) for row in connection.execute(query, {"did": did})]
