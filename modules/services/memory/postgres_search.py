"""Full-text search on PostgreSQL, by the same plan as in SQLite.

The planner knows which words are common: it walks back from the newest rows for these, and asks the index for the
others. So each word gets a statement of its own, planned for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from common.clock import iso, parse_iso
from modules.services.memory import ranking
from modules.services.memory.query import AskedWords, asked_folded
from modules.services.memory.ranking import Candidate, SearchPlan, Term
from modules.services.memory.types import Query

if TYPE_CHECKING:
    from modules.services.memory.postgres_link import Cursor

# NOTE(self): more than this many in all changes nothing in a plan.
_TOTAL_MAX = 10 * ranking.FEW + 1
_SAMPLE = 400
_PREFIX_MIN = 2
# NOTE(self): 0.6 for a word that stands there once, near 1 for one that stands there often.
_WEIGHT = (
    "(SELECT sum(t.worth * ts_rank('{1,1,1,1}', m.words, t.match::tsquery))"
    " FROM unnest(%(matches)s::text[], %(worths)s::float8[]) AS t (match, worth))"
)


class PostgresSearch:
    """One search for one agent, inside one transaction. `mine` is the agent's own word in the index."""

    def __init__(self, cursor: Cursor, agent: str, mine: str, query: Query, now: datetime) -> None:
        self._cursor = cursor
        self._query = query
        self._now = now
        self._total = 0
        self._values = {
            "agent": agent,
            "mine": mine,
            "kinds": list(query.kinds),
            "since": query.since and parse_iso(iso(query.since)),
        }
        self._living = "m.agent = %(agent)s AND m.superseded_by IS NULL"
        self._wanted = " AND ".join(
            [
                self._living,
                *(["m.kind = ANY(%(kinds)s)"] if query.kinds else []),
                *(["m.updated_at >= %(since)s"] if query.since else []),
                *(["NOT m.private"] if query.public_only else []),
            ]
        )

    async def best(self, limit: int) -> list[int]:
        """The ids of the best, best first; there is at least one word in the query."""
        plan = ranking.plan(await self._counted(asked_folded(self._query.text)), self._total)
        found: list[int] = []
        if plan.anchors:
            anchored = await self._candidates(" | ".join(_matches(plan.anchors)), plan, ranking.FEW)
            found = ranking.best(anchored, self._now, limit)
        if len(found) < limit and plan.common:
            others = [one for one in await self._newest_of(plan) if one.id not in found]
            found += ranking.best(others, self._now, limit - len(found))
        return found

    async def _counted(self, wanted: AskedWords) -> list[Term]:
        self._total = await self._number(
            f"SELECT count(*) AS n FROM (SELECT 1 FROM soul.memories AS m WHERE {self._living}"  # noqa: S608 - constants
            f" LIMIT {_TOTAL_MAX}) AS few"
        )
        phrases = ["(" + " <-> ".join(f"'{token}'" for token in phrase) + ")" for phrase in wanted.phrases]
        matches = await self._stems([*wanted.words, *(f"{word}:*" for word in wanted.words[-1:])])
        begun = matches.pop() if matches else ""
        counted = [Term(match, await self._count(match)) for match in (*phrases, *matches)]
        if begun and counted[-1].count <= ranking.FEW and len(wanted.words[-1]) >= _PREFIX_MIN:
            last = Term(begun, await self._count(begun))
            # NOTE(self): beside the whole word, so that a memory with the whole word comes before what it may become.
            counted += [last] if counted[-1].count < last.count <= ranking.FEW else []
        shares = await self._shares([term.match for term in counted if term.count > ranking.FEW])
        return [Term(term.match, max(term.count, int(shares.get(term.match, 0.0) * self._total))) for term in counted]

    async def _stems(self, words: list[str]) -> list[str]:
        """Each word as the index has it, once for all statements of this search."""
        if not words:
            return []
        await self._cursor.execute(
            "SELECT '(' || to_tsquery('soul.words', t.word)::text || ')' AS match"
            " FROM unnest(%(words)s::text[]) WITH ORDINALITY AS t (word, place) ORDER BY t.place",
            {"words": words},
        )
        return [row["match"] for row in await self._cursor.fetchall()]

    async def _count(self, match: str) -> int:
        return await self._number(
            f"SELECT count(*) AS n FROM (SELECT 1 FROM soul.memories AS m WHERE {self._living}"  # noqa: S608 - constants
            f" AND {_having('match')} LIMIT {ranking.FEW + 1}) AS few",
            match=match,
        )

    async def _shares(self, common: list[str]) -> dict[str, float]:
        """Which part of the newest rows has each of these words."""
        if not common:
            return {}
        await self._cursor.execute(
            f"WITH newest AS (SELECT m.words FROM soul.memories AS m WHERE {self._living}"  # noqa: S608 - constants
            f" ORDER BY m.id DESC LIMIT {_SAMPLE})"
            " SELECT t.match, avg((newest.words @@ t.match::tsquery)::int)::float8 AS share"
            " FROM newest, unnest(%(matches)s::text[]) AS t (match) GROUP BY t.match",
            {**self._values, "matches": common},
        )
        return {row["match"]: row["share"] for row in await self._cursor.fetchall()}

    async def _newest_of(self, plan: SearchPlan) -> list[Candidate]:
        found: dict[int, Candidate] = {}
        for group in ranking.together(plan.common):
            for one in await self._candidates(" & ".join(_matches(group)), plan, ranking.NEWEST):
                found[one.id] = one
        return list(found.values())

    async def _candidates(self, match: str, plan: SearchPlan, limit: int) -> list[Candidate]:
        """The newest that match, weighed by all words of the plan."""
        terms = (*plan.anchors, *plan.common)
        await self._cursor.execute(
            f"SELECT m.id, m.importance, m.updated_at, {_WEIGHT} AS weight FROM soul.memories AS m"  # noqa: S608 - constants
            f" WHERE {self._wanted} AND {_having('match')} ORDER BY m.id DESC LIMIT {limit}",
            {
                **self._values,
                "match": match,
                "matches": list(_matches(terms)),
                "worths": [ranking.rarity(term.count, self._total) for term in terms],
            },
        )
        return [
            Candidate(row["id"], row["weight"], row["importance"], iso(row["updated_at"]))
            for row in await self._cursor.fetchall()
        ]

    async def _number(self, statement: str, **values: object) -> int:
        await self._cursor.execute(statement, {**self._values, **values})
        rows = await self._cursor.fetchall()
        return int(rows[0]["n"])


def _having(name: str) -> str:
    return f"m.words @@ %({name})s::tsquery AND m.words @@ %(mine)s::tsquery"


def _matches(terms: Iterable[Term]) -> Iterator[str]:
    return (term.match for term in terms)
