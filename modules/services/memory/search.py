"""Full-text search in soul.db, whose work is bounded whatever is asked and however much is known.

FTS5 weighs a word by walking through all that have it, and ranks by weighing every match. Here each word is first
counted, from the newest row backwards and no further than needed; see `ranking` for what follows from the counts. So
"the newest that have it" costs as much as it finds.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime

from common.clock import iso
from modules.services.memory import ranking
from modules.services.memory.query import AskedWords, asked
from modules.services.memory.ranking import Candidate, SearchPlan, Term
from modules.services.memory.rows import fetch, newest, shelves
from modules.services.memory.types import PRIVATE_KINDS, Memory, Query

_PREFIX_MIN = 2
_SURE = 50
"""So many of the newest are enough where whatever the index finds may be shown: more than twice what is asked for."""


def search(connection: sqlite3.Connection, query: Query, now: datetime, *, far: int = ranking.FAR) -> list[Memory]:
    """Living entries, best first; without a word in the query, the newest."""
    limit = ranking.within(query.limit)
    if query.public_only and query.kinds and PRIVATE_KINDS.issuperset(query.kinds):
        return []
    wanted = asked(query.text)
    if not any(wanted):
        return newest(connection, kinds=query.kinds, since=query.since, public_only=query.public_only, limit=limit)
    return fetch(connection, _Search(connection, query, now, far).best(wanted, limit))


class _Search:
    """One search, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, query: Query, now: datetime, far: int) -> None:
        self._rows = connection
        self._query = query
        self._now = now
        self._far = far
        self._rarities: dict[str, float] = {}
        self._enough = ranking.NEWEST if query.since else _SURE
        # NOTE(self): how many there are is counted row by row; the highest number is at hand, and near enough.
        self._total: int = connection.execute("SELECT coalesce(max(id), 0) FROM memories").fetchone()[0]

    def best(self, wanted: AskedWords, limit: int) -> list[int]:
        plan = ranking.plan(self._counted(wanted), self._total)
        found: list[int] = []
        if plan.anchors:
            found = ranking.best(self._anchored(plan), self._now, limit)
        if len(found) < limit and plan.common:
            others = (one for one in self._newest_of(plan.common) if one.id not in found)
            found += ranking.best(others, self._now, limit - len(found))
        return found

    def _counted(self, wanted: AskedWords) -> Iterator[Term]:
        for phrase in wanted.phrases:
            yield self._term(f'"{" ".join(phrase)}"')
        for word in wanted.words[:-1]:
            yield self._term(f'"{word}"')
        for word in wanted.words[-1:]:
            yield from self._last(word)

    def _last(self, word: str) -> Iterator[Term]:
        """The last word, and what it may become: a memory with the whole word has both."""
        whole = self._term(f'"{word}"')
        yield whole
        if whole.count <= ranking.FEW and len(word) >= _PREFIX_MIN:
            begun = self._term(f'"{word}"*')
            if whole.count < begun.count <= ranking.FEW:
                yield begun

    def _term(self, match: str) -> Term:
        """How many have it: exactly if they are few, else as if all rows had it as often as the newest."""
        matches, oldest = self._rows.execute(
            "SELECT count(*), min(rowid) FROM"
            " (SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rowid DESC LIMIT ?)",
            (match, ranking.FEW + 1),
        ).fetchone()
        if matches > ranking.FEW:
            matches = matches * self._total // (self._total - oldest + 1)
        return Term(match, matches)

    def _anchored(self, plan: SearchPlan) -> list[Candidate]:
        """All that have one of the anchors, by bm25, and more for each common word that they have too."""
        anchors = _any(plan.anchors)
        extra: dict[int, float] = {}
        for term in plan.common:
            # NOTE(self): where few have a word, all of them are found sooner than those that have an anchor too.
            match = term.match if term.count <= ranking.FEW else f"({anchors}) AND {term.match}"
            for row in self._rows.execute("SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?", (match,)):
                extra[row[0]] = extra.get(row[0], 0.0) + self._rarity(term)
        where, values = self._filters()
        rows = self._rows.execute(
            "SELECT m.id, f.weight, m.importance, m.updated_at FROM"  # noqa: S608 - constants
            " (SELECT rowid AS id, -bm25(memories_fts) AS weight FROM memories_fts WHERE memories_fts MATCH ?) AS f"
            f" JOIN memories AS m ON m.id = f.id WHERE {where}",
            (anchors, *values),
        )
        return [Candidate(row[0], row[1] + extra.get(row[0], 0.0), row[2], row[3]) for row in rows]

    def _newest_of(self, common: tuple[Term, ...]) -> list[Candidate]:
        """The newest that have the common words: as many of them together as can be found."""
        shelf = shelves(self._query.kinds, public_only=self._query.public_only)
        # NOTE(self): what stands on a small shelf is walked through in no time, however old it is.
        small = bool(shelf) and self._term(" AND ".join(shelf)).count <= ranking.FEW
        near = 0 if small else max(0, self._total - self._far)
        groups = ranking.together(common)
        having = self._having((group for group in groups if len(group) == 1), shelf, near)
        if near and not having:
            having = self._having([common[:1]], shelf, 0)
        # NOTE(self): most memories stand on a large shelf: words that seldom meet are sought faster without it.
        several = self._having(
            (group for group in groups if len(group) > 1), shelf, near, shelf_first=small or not shelf
        )
        for number, terms in several.items():
            having.setdefault(number, set()).update(terms)
        where, values = self._filters()
        rows = self._rows.execute(
            "SELECT m.id, m.importance, m.updated_at FROM memories AS m"  # noqa: S608 - constants
            f" WHERE m.id IN (SELECT value FROM json_each(?)) AND {where}",
            (json.dumps(list(having)), *values),
        )
        return [Candidate(row[0], self._worth(having[row[0]]), row[1], row[2]) for row in rows]

    def _having(
        self, groups: Iterable[tuple[Term, ...]], shelf: list[str], after: int, *, shelf_first: bool = True
    ) -> dict[int, set[Term]]:
        """The newest that have all words of a group, each with the words that it is known to have.

        Without `shelf_first`, where all that have the words are only a few, some may not stand on the shelf.
        """
        having: dict[int, set[Term]] = {}
        for group in groups:
            match = [term.match for term in group]
            found = [] if shelf_first else self._newest(match, after, ranking.NEWEST)
            if shelf_first or len(found) == ranking.NEWEST:
                found = self._newest([*match, *shelf], after, self._enough)
            for number in found:
                having.setdefault(number, set()).update(group)
        return having

    def _newest(self, match: Iterable[str], after: int, limit: int) -> list[int]:
        rows = self._rows.execute(
            "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? AND rowid > ? ORDER BY rowid DESC LIMIT ?",
            (" AND ".join(match), after, limit),
        )
        return [row[0] for row in rows]

    def _worth(self, terms: Iterable[Term]) -> float:
        return sum(self._rarity(term) for term in terms)

    def _rarity(self, term: Term) -> float:
        if term.match not in self._rarities:
            self._rarities[term.match] = ranking.rarity(term.count, self._total)
        return self._rarities[term.match]

    def _filters(self) -> tuple[str, list[str]]:
        where, values = ["m.superseded_by IS NULL"], []
        if self._query.kinds:
            where.append("m.kind IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(list(self._query.kinds)))
        if self._query.since:
            where.append("m.updated_at >= ?")
            values.append(iso(self._query.since))
        if self._query.public_only:
            where.append("m.private = 0")
        return " AND ".join(where), values


def _any(terms: Iterable[Term]) -> str:
    return " OR ".join(term.match for term in terms)
