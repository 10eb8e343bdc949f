"""How well a version did within some time, counted from the journal. Each person counts once, however much they wrote.

So nobody who writes much can make the figures of a version fall.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GoodShare:
    """Of `cases` with so many `people`, the SOUL itself among them, the share that ended well: the mean over people."""

    cases: int = 0
    people: int = 0
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class VersionFigures:
    """What is counted of a version.

    Attributes:
        faults: how often the program failed by a fault of its own, by place: a loop, and the kind of work.
        answered: posts that were to be answered, and were.
        taken: turns of the model of which nothing was sent back to it.

    """

    faults: Mapping[str, int]
    answered: GoodShare
    taken: GoodShare


_FAULTS = """
SELECT loop || coalesce('/' || json_extract(data, '$.kind'), ''), count(DISTINCT iif(dids = '', id, dids)) FROM journal
WHERE at >= ? AND at < ? AND kind = 'error'
    AND (json_extract(data, '$.code') = 'failed' OR json_extract(data, '$.trace') IS NOT NULL)
GROUP BY 1
"""
# NOTE(self): silence is a decision and no failure; neither is what came too late, as after a pause.
_ANSWERED = """
SELECT trigger_uri, json_extract(data, '$.act') <> 'dropped' AS good FROM journal WHERE id IN (
    SELECT max(id) FROM journal WHERE at >= ? AND at < ? AND kind IN ('decision', 'error')
        AND substr(trigger_uri, 1, 5) = 'at://'
        AND json_extract(data, '$.act') IN ('replied', 'answered', 'liked', 'dropped') GROUP BY trigger_uri
) AND json_extract(data, '$.code') NOT IN ('settled', 'unreadable', 'too-late')
"""
_TAKEN = """
SELECT trigger_uri, NOT EXISTS (
    SELECT 1 FROM json_each(data, '$.calls') AS call
    WHERE json_extract(call.value, '$.error') <> '' AND json_extract(call.value, '$.intent_id') IS NULL
) AS good FROM journal WHERE at >= ? AND at < ? AND kind = 'model' AND json_extract(data, '$.calls') IS NOT NULL
"""


def figures_between(connection: sqlite3.Connection, since: str, until: str) -> VersionFigures:
    """Return the figures of a time, which two moments in ISO-8601 limit."""
    values = (since, until)
    faults = {str(place): int(count) for place, count in connection.execute(_FAULTS, values)}
    return VersionFigures(faults, *(_share(connection, query, values) for query in (_ANSWERED, _TAKEN)))


def _share(connection: sqlite3.Connection, query: str, values: tuple[str, str]) -> GoodShare:
    """Return the share of a query for causes and how each ended; who wrote a post stands in its address."""
    by_person = f"""
        SELECT coalesce(sum(cases), 0), count(*), coalesce(avg(share), 1.0) FROM (
            SELECT count(*) AS cases, avg(good) AS share FROM ({query})
            GROUP BY iif(substr(trigger_uri, 1, 5) = 'at://',
                substr(trigger_uri, 6, instr(substr(trigger_uri, 6), '/')), '')
        )
    """  # noqa: S608 - one of our own queries
    cases, people, share = connection.execute(by_person, values).fetchone()
    return GoodShare(int(cases), int(people), float(share))
