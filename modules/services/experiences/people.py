"""What experiences hold of a person."""

from __future__ import annotations

from modules.runtime.database.people import TiedRows

_THEIRS = "(did = :did OR ((instr(key, :part) OR instr(uri, :part)) AND holds_did(key, uri)))"

EXPERIENCES_OF_PEOPLE = TiedRows(
    store="experiences",
    tables=frozenset({"experiences"}),
    tells=(f"SELECT type || ': ' || about FROM experiences WHERE {_THEIRS} ORDER BY id",),  # noqa: S608 - a constant
    forgets=(
        f"DELETE FROM experiences WHERE {_THEIRS}",  # noqa: S608 - a constant
        """
        UPDATE experiences SET about = redacted(about), person = redacted(person)
            WHERE (instr(about, :part) OR instr(person, :part)) AND holds_did(about, person)
        """,
    ),
)
"""The experiences with a person, and in their threads; others that name them stay, with somebody in their place."""
