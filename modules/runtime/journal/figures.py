"""How well a version did within some time, counted from the journal. Each person counts once, however much they wrote.

So nobody who writes much can make the figures of a version fall.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple


class GoodShare(NamedTuple):
    """Of `cases` with so many `people`, the SOUL itself among them, the share that ended well: the mean over people."""

    cases: int = 0
    people: int = 0
    share: float = 1.0


class VersionFigures(NamedTuple):
    """Faults of the program by place, posts that were `answered` as they were to be, turns with nothing sent back."""

    faults: Mapping[str, int]
    answered: GoodShare
    taken: GoodShare


_FAULTS = """
SELECT loop || coalesce('/' || json_extract(data, '$.kind'), ''), count(DISTINCT iif(dids = '', id, dids)) FROM journal
WHERE at >= ? AND at < ? AND kind = 'error'
    AND (json_extract(data, '$.code') = 'failed' OR json_extract(data, '$.trace') IS NOT NULL) GROUP BY 1
"""
# NOTE(self): silence is a decision and no failure; neither is what came too late, as after a pause, or was deleted.
_ANSWERED = """
SELECT trigger_uri, json_extract(data, '$.act') <> 'dropped' AS good FROM journal WHERE id IN (
    SELECT max(id) FROM journal WHERE at >= ? AND at < ? AND substr(trigger_uri, 1, 5) = 'at://'
        AND json_extract(data, '$.act') IN ('replied', 'answered', 'liked', 'dropped') GROUP BY trigger_uri
) AND json_extract(data, '$.code') NOT IN ('settled', 'unreadable', 'too-late', 'gone')
"""
_TAKEN = """
SELECT trigger_uri, NOT EXISTS (SELECT 1 FROM json_each(data, '$.calls') AS call
    WHERE json_extract(call.value, '$.error') <> '' AND json_extract(call.value, '$.intent_id') IS NULL) AS good
FROM journal WHERE at >= ? AND at < ? AND kind = 'model'
"""
_BY_PERSON = """
SELECT coalesce(sum(cases), 0), count(*), coalesce(avg(share), 1.0) FROM (
    SELECT count(*) AS cases, avg(good) AS share FROM ({})
    GROUP BY iif(trigger_uri LIKE 'at://%', substr(trigger_uri, 1, 5 + instr(substr(trigger_uri, 6), '/')), '')
)
"""


def figures_between(connection: sqlite3.Connection, since: str, until: str) -> VersionFigures:
    """Return the figures of a time, which two moments in ISO-8601 limit."""
    span = (since, until)
    faults = {str(place): int(count) for place, count in connection.execute(_FAULTS, span)}
    shares = (connection.execute(_BY_PERSON.format(query), span).fetchone() for query in (_ANSWERED, _TAKEN))
    return VersionFigures(faults, *(GoodShare(*row) for row in shares))
