"""What the rows of work hold of a person."""

from __future__ import annotations

from modules.runtime.database.people import TiedRows

_THEIRS = "(author = :did OR ((instr(key, :part) OR instr(cause_id, :part)) AND holds_did(key, cause_id)))"

WORK_OF_PEOPLE = TiedRows(
    store="work",
    tables=frozenset({"work"}),
    tells=(f"SELECT kind || ' ' || key FROM work WHERE {_THEIRS} ORDER BY created_at",),  # noqa: S608 - a constant
    forgets=(
        f"DELETE FROM work WHERE {_THEIRS}",  # noqa: S608 - a constant
        """
        UPDATE work SET payload = redacted_json(payload), outcome = redacted(outcome)
            WHERE (instr(payload, :part) OR instr(outcome, :part)) AND holds_did(payload, outcome)
        """,
    ),
)
"""The work that a person caused; work of others that names them stays, with somebody in their place."""
