"""What `soul.db` tells of the lives before: what was done, which talks are over, what changed it. Reads only."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from common.provenance import Provenance
from modules.services.agent.sessions.archived import Distilled

_TALKS = 100
_STARTED = "SELECT max(at) FROM journal WHERE kind = 'life' AND loop = 'start' AND at <= ?"
_NEWEST = """
SELECT max(at) FROM (
    SELECT max(sent_at) AS at FROM intents WHERE state = 'done'
    UNION ALL SELECT max(prepared_at) FROM archives WHERE state = 'done'
    UNION ALL SELECT ?
)
"""
_DONE = "SELECT kind, count(*) FROM intents WHERE state = 'done' AND sent_at >= ? GROUP BY kind ORDER BY kind"
_OVER = """
SELECT prepared_at, session_key, message_count, distilled FROM archives
WHERE state = 'done' ORDER BY prepared_at DESC, key LIMIT ?
"""
_COMMISSIONED = "SELECT value FROM marks WHERE name = 'commissioned_at'"
_FIRST_POST = "SELECT min(sent_at) FROM intents WHERE state = 'done' AND kind IN ('post', 'reply')"
_ROLE = "SELECT value FROM profiles WHERE subject = 'agent' AND field = 'role'"


@dataclass(frozen=True, slots=True)
class Over:
    """A stretch of conversation that was archived: when, with whom, how long, and what it came to.

    `summary` is "" where it rests on the words of others.
    """

    at: str
    key: str
    messages: int
    summary: str


@dataclass(frozen=True, slots=True)
class Past:
    """Times are ISO-8601 UTC, "" where there is none.

    `began` is the start of the newest life in which something came of it; `acts` what that life did in public.
    """

    role: str
    began: str
    acts: tuple[str, ...]
    over: tuple[Over, ...]
    milestones: tuple[tuple[str, str], ...]


def past(connection: sqlite3.Connection, learned_at: str = "") -> Past:
    """All of it, in one transaction; memories may lie elsewhere: `learned_at` is when the newest was learned."""
    newest = _one(connection, _NEWEST, learned_at)
    began = _one(connection, _STARTED, newest) or newest
    done = connection.execute(_DONE, (began,)).fetchall() if began else []
    talks = connection.execute(_OVER, (_TALKS,)).fetchall()
    milestones = (
        ("First words in public", _one(connection, _FIRST_POST)),
        ("Commissioned", _one(connection, _COMMISSIONED)),
    )
    return Past(
        role=_one(connection, _ROLE),
        began=began,
        acts=tuple(f"{kind}: {count} sent" for kind, count in done),
        over=tuple(Over(at, key, count, _summary(told)) for at, key, count, told in talks),
        milestones=tuple(sorted((one for one in milestones if one[1]), key=lambda one: one[1], reverse=True)),
    )


def _one(connection: sqlite3.Connection, query: str, *values: str) -> str:
    row = connection.execute(query, values).fetchone()
    return str(row[0]) if row and row[0] else ""


def _summary(distilled: str) -> str:
    kept = Distilled.from_json(json.loads(distilled))
    return kept.summary if kept.provenance >= Provenance.SELF else ""
