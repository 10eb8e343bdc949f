"""Measures how well a version did, from the journal in the order of its entries, without any clock.

Nothing counts that a stranger can bring about: only faults in work that nobody else starts, turns that nobody else's
words shaped, and posts of people whom the SOUL had answered on two days before, each person with the same weight.
"""

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple


class GoodShare(NamedTuple):
    """The share of `cases` that ended well, as the mean over `people`; each of the SOUL's own turns counts alone."""

    cases: int = 0
    people: int = 0
    share: float = 1.0


class VersionFigures(NamedTuple):
    """Faults of the program by place, posts that were `answered` as they should be, turns with nothing sent back."""

    faults: Mapping[str, int]
    answered: GoodShare
    taken: GoodShare


_FAULTS = """
SELECT loop || coalesce('/' || json_extract(data, '$.kind'), '') AS place, count(*) FROM journal
WHERE (id > :since) = :is_now AND kind = 'error' AND EXISTS (SELECT 1 FROM journal WHERE id <= :since)
    AND (json_extract(data, '$.trace') IS NOT NULL OR json_extract(data, '$.code') = 'failed')
    AND place IN ('heartbeat', 'expression-check', 'session-refresh', 'home-lease', 'identity-watch', 'control',
        'work/schedule', 'work/heartbeat-turn', 'work/ritual', 'work/reflection') GROUP BY place
"""
# NOTE(self): silence is a decision, not a failure; nor is a post that came too late, as after a pause, or was deleted.
_ANSWERED = """
WITH decided AS (
    SELECT id, substr(at, 1, 10) AS day, json_extract(data, '$.act') <> 'dropped' AS good,
        substr(trigger_uri, 6, instr(substr(trigger_uri, 6), '/') - 1) AS person
    FROM journal WHERE id IN (
        SELECT max(id) FROM journal WHERE substr(trigger_uri, 1, 5) = 'at://'
            AND json_extract(data, '$.act') IN ('replied', 'answered', 'liked', 'dropped')
        GROUP BY id > :since, trigger_uri
    ) AND json_extract(data, '$.code') NOT IN ('settled', 'unreadable', 'too-late', 'gone')
)
SELECT coalesce(sum(cases), 0), count(*), coalesce(avg(share), 1.0) FROM (
    SELECT count(*) AS cases, avg(good) AS share FROM decided WHERE (id > :since) = :is_now AND person IN (
        SELECT person FROM decided WHERE id <= :since AND good GROUP BY person HAVING count(DISTINCT day) > 1
    ) GROUP BY person
)
"""
_TAKEN = """
SELECT count(*), count(*), coalesce(avg(NOT EXISTS (SELECT 1 FROM json_each(data, '$.calls') AS call
    WHERE json_extract(call.value, '$.error') <> '' AND json_extract(call.value, '$.intent_id') IS NULL)), 1.0)
FROM journal WHERE (id > :since) = :is_now AND kind = 'model'
    AND coalesce(json_extract(data, '$.sank_to'), json_extract(data, '$.provenance')) IN ('self', 'owner')
"""


def figures_around(connection: sqlite3.Connection, since: int) -> tuple[VersionFigures, VersionFigures]:
    """Return the figures of the journal up to its entry `since`, and those of what came after it."""
    return _figures(connection, since, is_now=False), _figures(connection, since, is_now=True)


def newest_entry(connection: sqlite3.Connection) -> int:
    """Return the number of the newest entry of the journal; 0 if there is none."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM journal").fetchone()[0])


def _figures(connection: sqlite3.Connection, since: int, *, is_now: bool) -> VersionFigures:
    span = {"since": since, "is_now": is_now}
    faults = {str(place): int(count) for place, count in connection.execute(_FAULTS, span)}
    shares = (connection.execute(query, span).fetchone() for query in (_ANSWERED, _TAKEN))
    return VersionFigures(faults, *(GoodShare(*row) for row in shares))
