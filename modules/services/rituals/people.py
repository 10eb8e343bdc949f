"""What the runs of rituals hold of a person."""

from __future__ import annotations

from modules.runtime.database.people import TiedRows

_OPENED = "opener = :did AND role = 'participant'"

RITUALS_OF_PEOPLE = TiedRows(
    store="rituals",
    tables=frozenset({"ritual_runs"}),
    tells=(
        f"SELECT 'opened ' || name || ' on ' || day FROM ritual_runs WHERE {_OPENED} ORDER BY day",  # noqa: S608 - a constant
        """
        SELECT 'took part in ' || ritual_runs.key || ' on ' || day FROM ritual_runs, json_each(took_part)
            WHERE value = :did
        """,
    ),
    forgets=(
        f"DELETE FROM ritual_runs WHERE {_OPENED}",  # noqa: S608 - a constant
        """
        UPDATE ritual_runs
            SET took_part = (SELECT json_group_array(value) FROM json_each(took_part) WHERE value <> :did)
            WHERE EXISTS (SELECT 1 FROM json_each(took_part) WHERE value = :did)
        """,
    ),
)
"""The runs that a person opened; of others, that they took part."""
