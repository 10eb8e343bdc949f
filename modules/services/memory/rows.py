"""The SOUL's memories in `soul.db`: saved, found by full-text search, and counted. A change is durable on return.

Each module-level function is one step of a caller's transaction. Triggers update the full-text index in the same
transaction. The work of a search is bounded for any query and any number of memories.
"""

import json
import sqlite3
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import regex

from common.clock import iso
from common.person import tied
from common.provenance import Trust
from common.session_keys import FORMER_PREFIX
from common.text.unspaced import index_tokens, take_apart
from modules.runtime.database.database import Database
from modules.services.memory import policy
from modules.services.memory.admission import KINDS, PRIVATE_KINDS, Kind, Memory, NewMemory, Query
from modules.services.memory.people import handles_of, with_named_accounts
from modules.services.memory.policy import Candidate, SearchPlan, Term

TERMS_MAX = 16
"""The most distinct words of a text that are searched for."""

_TEXT_MAX = 8000
_LONG_WORD, _BEGINNING, _SHARE = 4, 5, 3
# NOTE(self): as FTS5's unicode61 does it, which keeps the combining signs of this range inside a word.
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\u0300-\u0331]*")


class AskedWords(NamedTuple):
    """The search terms of a text: words, and phrases of tokens for scripts without spaces."""

    words: list[str]
    phrases: list[tuple[str, ...]]


def asked(text: str) -> AskedWords:
    """Return the search terms of a text, as it is written."""
    rest, phrases = take_apart(text[:_TEXT_MAX])
    return AskedWords(words(rest), phrases)


def is_about(subject: str, text: str) -> bool:
    """Return whether a text is about a subject: it has at least one, and a third, of the subject's longer words.

    Words are compared by their beginnings, so that most forms of a word are one.
    """
    named = _beginnings(subject)
    shared = named & _beginnings(text)
    return bool(shared) and len(shared) * _SHARE >= len(named)


def _beginnings(text: str) -> set[str]:
    rest, phrases = take_apart(text[:_TEXT_MAX])
    longer = {word[:_BEGINNING] for word in folded(rest).split() if len(word) >= _LONG_WORD}
    return longer | {pair for phrase in phrases for pair in phrase}


def words(text: str) -> list[str]:
    """Return the distinct words of a text in the order of their last mention, as the last may be incomplete.

    If there are too many, the longest are kept, as short words are the common ones.
    """
    found: dict[str, str] = {}
    for word in _WORD.findall(text[:_TEXT_MAX]):
        found.pop(word.casefold(), None)
        found[word.casefold()] = word
    *others, last = found or [""]
    kept = {*sorted(others, key=len, reverse=True)[: TERMS_MAX - 1], last}
    return [word for key, word in found.items() if key in kept]


def folded(text: str) -> str:
    """Return all words of a text in lower case and without diacritics, for an index that does not fold by itself."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(sign for sign in unicodedata.normalize("NFKD", plain) if unicodedata.category(sign) != "Mn")
    return " ".join(_WORD.findall(unicodedata.normalize("NFC", bare)))


_COLUMNS = (
    "id, kind, subject, body, tags, importance, source, trust, private, created_at, updated_at, last_recalled_at,"
    " recall_count, superseded_by, dids, about"
)

_OURS = f"substr(source, 1, {len(FORMER_PREFIX)}) <> '{FORMER_PREFIX}'"
"""The condition for all memories except what a former owner said in private."""
_LIVING = f"{_OURS} AND superseded_by IS NULL"
_TAG_END = "\n"
# NOTE(self): private-use letters are words to the tokenizer, and no text that is searched for contains them.
_PUBLIC = "\ue000"
_SHELVES: dict[Kind, str] = {kind: chr(ord(_PUBLIC) + 1 + number) for number, kind in enumerate(KINDS)}


def remember(connection: sqlite3.Connection, new: NewMemory, now: datetime) -> int:
    """Save `new` by the rules of `policy`; return the id of the row that now holds it.

    Raises:
        ValueError: it has no content.

    """
    entry = policy.entry(with_named_accounts(connection, new, new.resolved))
    memory_id = _repeat(connection, entry, now) or _insert(connection, entry, now)
    if trusts := policy.may_replace(entry):
        # NOTE(self): others' words may have chosen a subject not in the line; of the owner's, it replaces lines only.
        only_lines = entry.subject_key != policy.key(entry.subject)
        connection.execute(
            f"UPDATE memories SET superseded_by = ? WHERE {_LIVING} AND kind = ? AND subject_key = ?"  # noqa: S608 - a constant
            " AND id <> ? AND trust IN (SELECT value FROM json_each(?))"
            " AND (NOT ? OR trust <> 'owner' OR substr(subject, 1, 99) = substr(body, 1, 99))",
            (memory_id, entry.kind, entry.subject_key, memory_id, json.dumps(trusts), only_lines),
        )
    return memory_id


def fetch(connection: sqlite3.Connection, ids: Collection[int]) -> list[Memory]:
    """Return the rows with these ids, in this order; missing ones are left out."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM memories WHERE {_OURS} AND id IN (SELECT value FROM json_each(?))",  # noqa: S608 - constants
        (json.dumps(list(ids)),),
    )
    found = {memory.id: memory for memory in map(memory_of, rows)}
    return [found[memory_id] for memory_id in ids if memory_id in found]


def forget(connection: sqlite3.Connection, memory_id: int) -> None:
    """Delete a memory; what it had replaced stays replaced."""
    connection.execute("UPDATE memories SET superseded_by = id WHERE superseded_by = ?", (memory_id,))
    connection.execute("DELETE FROM memories WHERE id = ?", (memory_id,))
    # NOTE(self): the index keeps the words of deleted rows until its parts are merged.
    connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")


def history(connection: sqlite3.Connection, memory_id: int) -> list[Memory]:
    """Return all memories under the kind and subject of this one, newest first; one without a subject stands alone."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM memories WHERE {_OURS} AND (kind, subject_key) ="  # noqa: S608 - constants
        " (SELECT kind, subject_key FROM memories WHERE id = ?) AND (subject_key <> '' OR id = ?) ORDER BY id DESC",
        (memory_id, memory_id),
    )
    return [memory_of(row) for row in rows]


def newest(
    connection: sqlite3.Connection,
    *,
    kinds: Collection[Kind],
    since: datetime | None,
    until: datetime | None = None,
    public_only: bool,
    limit: int,
    by_importance: bool = False,
    trusts: Collection[Trust] = (),
) -> list[Memory]:
    """Return living entries by their last change (or `by_importance`), newest first; since `since`, before `until`.

    With `trusts`, only those of such trust.
    """
    found: list[tuple[int, str, int]] = []
    order = "importance DESC, " if by_importance else ""
    only = f" AND trust IN ({', '.join('?' * len(trusts))})" if trusts else ""
    # NOTE(self): one step through the index for each kind: a rare kind costs no more than a common one.
    for kind in kinds or KINDS:
        for private in (0,) if public_only else (0, 1):
            rows = connection.execute(
                f"SELECT importance, updated_at, id FROM memories WHERE {_LIVING} AND kind = ? AND private = ?"  # noqa: S608 - constants
                f" AND updated_at >= ? AND updated_at < ?{only} ORDER BY {order}updated_at DESC, id DESC LIMIT ?",
                (kind, private, iso(since) if since else "", iso(until) if until else "~", *trusts, limit),
            )
            found += [(row["importance"] if by_importance else 0, row["updated_at"], row["id"]) for row in rows]
    return fetch(connection, [memory_id for _, _, memory_id in sorted(found, reverse=True)[:limit]])


def of_person(connection: sqlite3.Connection, did: str, limit: int, *, public_only: bool) -> list[Memory]:
    """Return living entries that rest on the words of an account, newest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM memories WHERE {_LIVING} AND instr(' ' || dids || ' ', ' ' || ? || ' ')"  # noqa: S608 - constants
        " AND private <= ? ORDER BY updated_at DESC, id DESC LIMIT ?",
        (did, 0 if public_only else 1, limit),
    )
    return list(map(memory_of, rows))


def shelves(kinds: Iterable[Kind], *, public_only: bool) -> list[str]:
    """Return the terms that restrict a full-text query, joined by AND, to these kinds or to public entries."""
    of_kinds = " OR ".join(f'"{_SHELVES[kind]}"' for kind in dict.fromkeys(kinds))
    return [*([f"({of_kinds})"] if of_kinds else []), *([f'"{_PUBLIC}"'] if public_only else [])]


def memory_of(row: sqlite3.Row) -> Memory:
    """Return a row as a value."""
    fields: dict[str, Any] = dict(row)
    read = {"tags": tuple(filter(None, row["tags"].split(_TAG_END))), "private": bool(fields["private"])}
    read |= {name: tuple(fields[name].split()) for name in ("dids", "about")}
    return Memory(**{**fields, **read})


def _repeat(connection: sqlite3.Connection, entry: policy.MemoryEntry, now: datetime) -> int | None:
    row = connection.execute(
        f"SELECT id, subject_key, trust FROM memories WHERE {_LIVING} AND body_hash = ? AND kind = ?"  # noqa: S608 - a constant
        " AND (subject_key = ? OR trust IN (SELECT value FROM json_each(?)))"
        " ORDER BY subject_key = ? DESC, id DESC LIMIT 1",
        (
            entry.body_hash,
            entry.kind,
            entry.subject_key,
            json.dumps(policy.may_lend_its_subject(entry)),
            entry.subject_key,
        ),
    ).fetchone()
    if row is None or not policy.same(entry, row["subject_key"], row["trust"]):
        return None
    before = fetch(connection, [row["id"]])[0]
    after = with_named_accounts(connection, policy.refreshed(before, entry, now), handles_of(before))
    connection.execute(
        "UPDATE memories SET updated_at = ?, subject = ?, body = ?, tags = ?, importance = ?, source = ?, trust = ?,"
        " private = ?, shelf = ?, dids = ?, about = ? WHERE id = ?",
        (
            after.updated_at,
            after.subject,
            after.body,
            _TAG_END.join(after.tags),
            after.importance,
            after.source,
            after.trust,
            after.private,
            _shelf(after.kind, (after.subject, after.body, *after.tags), private=after.private),
            tied(after.dids),
            tied(after.about),
            after.id,
        ),
    )
    return after.id


def _insert(connection: sqlite3.Connection, entry: policy.MemoryEntry, now: datetime) -> int:
    values = {
        "created_at": iso(now),
        "updated_at": iso(now),
        "kind": entry.kind,
        "subject": entry.subject,
        "body": entry.body,
        "tags": _TAG_END.join(entry.tags),
        "source": entry.source,
        "trust": entry.trust,
        "private": entry.private,
        "importance": entry.importance,
        "subject_key": entry.subject_key,
        "body_hash": entry.body_hash,
        "shelf": _shelf(entry.kind, (entry.subject, entry.body, *entry.tags), private=entry.private),
        "dids": tied(entry.dids),
        "about": tied(entry.about),
    }
    names, marks = ", ".join(values), ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO memories ({names}) VALUES ({marks})", tuple(values.values()))  # noqa: S608 - our own names
    return int(connection.execute("SELECT last_insert_rowid()").fetchone()[0])


def _shelf(kind: Kind, texts: Iterable[str], *, private: bool) -> str:
    shelf = _SHELVES[kind] if private else f"{_SHELVES[kind]} {_PUBLIC}"
    return " ".join((shelf, *index_tokens("\n".join(texts))))


_PREFIX_MIN = 2
_SURE = 50
"""The number of newest that suffices if everything that the index finds may be shown: over twice the largest limit."""


def search(connection: sqlite3.Connection, query: Query, now: datetime, *, far: int = policy.FAR) -> list[Memory]:
    """Return living entries, best first; the newest if the query has no words."""
    limit = policy.within(query.limit)
    if query.public_only and query.kinds and PRIVATE_KINDS.issuperset(query.kinds):
        return []
    wanted = asked(query.text)
    if not any(wanted):
        return newest(connection, kinds=query.kinds, since=query.since, public_only=query.public_only, limit=limit)
    return fetch(connection, _Search(connection, query, now, far).best(wanted, limit))


class _Search:
    """One search inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, query: Query, now: datetime, far: int) -> None:
        self._rows = connection
        self._query = query
        self._now = now
        self._far = far
        self._rarities: dict[str, float] = {}
        self._enough = policy.NEWEST if query.since else _SURE
        # NOTE(self): a count would read every row; the highest id is at hand and close enough.
        self._total: int = connection.execute("SELECT coalesce(max(id), 0) FROM memories").fetchone()[0]

    def best(self, wanted: AskedWords, limit: int) -> list[int]:
        plan = policy.plan(self._counted(wanted), self._total)
        found: list[int] = []
        if plan.anchors:
            found = policy.best(self._anchored(plan), self._now, limit)
        if len(found) < limit and plan.common:
            others = (one for one in self._newest_of(plan.common) if one.id not in found)
            found += policy.best(others, self._now, limit - len(found))
        return found

    def _counted(self, wanted: AskedWords) -> Iterator[Term]:
        for phrase in wanted.phrases:
            yield self._term(f'"{" ".join(phrase)}"')
        for word in wanted.words[:-1]:
            yield self._term(f'"{word}"')
        for word in wanted.words[-1:]:
            yield from self._last(word)

    def _last(self, word: str) -> Iterator[Term]:
        """Yield the last word, and its prefix form if that adds matches: a memory with the whole word has both."""
        whole = self._term(f'"{word}"')
        yield whole
        if whole.count <= policy.FEW and len(word) >= _PREFIX_MIN:
            begun = self._term(f'"{word}"*')
            if whole.count < begun.count <= policy.FEW:
                yield begun

    def _term(self, match: str) -> Term:
        """Return a term with its count: exact if small, otherwise extrapolated from the newest rows."""
        matches, oldest = self._rows.execute(
            "SELECT count(*), min(rowid) FROM"
            " (SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rowid DESC LIMIT ?)",
            (match, policy.FEW + 1),
        ).fetchone()
        if matches > policy.FEW:
            matches = matches * self._total // (self._total - oldest + 1)
        return Term(match, matches)

    def _anchored(self, plan: SearchPlan) -> list[Candidate]:
        """Return all that have an anchor, weighed by bm25, with more weight for each common word that they have too."""
        anchors = _any(plan.anchors)
        extra: dict[int, float] = {}
        for term in plan.common:
            # NOTE(self): for a rare word it is faster to find all rows than those that also have an anchor.
            match = term.match if term.count <= policy.FEW else f"({anchors}) AND {term.match}"
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
        """Return the newest that have the common words, preferring as many of them together as possible."""
        shelf = shelves(self._query.kinds, public_only=self._query.public_only)
        # NOTE(self): a small shelf is read quickly, however old its entries are.
        small = bool(shelf) and self._term(" AND ".join(shelf)).count <= policy.FEW
        near = 0 if small else max(0, self._total - self._far)
        groups = policy.together(common)
        having = self._having((group for group in groups if len(group) == 1), shelf, near)
        if near and not having:
            having = self._having([common[:1]], shelf, 0)
        # NOTE(self): most memories stand on a large shelf: words that seldom meet are found faster without it.
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
        """Return the newest that have all words of a group, each with the words that it is known to have.

        Without `shelf_first`, if few have the words, some of these may not stand on the shelf.
        """
        having: dict[int, set[Term]] = {}
        for group in groups:
            match = [term.match for term in group]
            found = [] if shelf_first else self._newest(match, after, policy.NEWEST)
            if shelf_first or len(found) == policy.NEWEST:
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
            self._rarities[term.match] = policy.rarity(term.count, self._total)
        return self._rarities[term.match]

    def _filters(self) -> tuple[str, list[str]]:
        where, values = ["m.superseded_by IS NULL", _OURS], []
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


class MemoryStore:
    """The memories of one SOUL. Every method is one transaction; the caller opens and closes the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, new: NewMemory, now: datetime) -> int:
        """Save a memory and return its id. The same words refresh a row; others of the same subject replace it."""
        return (await self.save_all([new], now))[0]

    async def save_all(self, memories: Sequence[NewMemory], now: datetime) -> list[int]:
        """Save all of them, or none; return their ids."""
        return await self._database.run(lambda rows: [remember(rows, new, now) for new in memories])

    async def search(self, query: Query, now: datetime) -> list[Memory]:
        """Return living entries, best first; the newest if the query has no text."""
        return await self._database.run(lambda rows: search(rows, query, now))

    async def of_person(self, did: str, limit: int, *, public_only: bool) -> list[Memory]:
        """Return living entries that rest on the words of an account, newest first."""
        return await self._database.run(lambda rows: of_person(rows, did, limit, public_only=public_only))

    async def get(self, memory_id: int) -> Memory | None:
        """Return one entry, living or not."""
        return await self._database.run(lambda rows: next(iter(fetch(rows, [memory_id])), None))

    async def history(self, memory_id: int) -> list[Memory]:
        """Return all entries that ever stood under the same kind and subject, newest first."""
        return await self._database.run(lambda rows: history(rows, memory_id))

    async def recalled(self, ids: Collection[int], now: datetime) -> None:
        """Count that these memories were shown to a model."""

        def count(rows: sqlite3.Connection) -> None:
            rows.execute(
                "UPDATE memories SET last_recalled_at = ?, recall_count = recall_count + 1"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (iso(now), json.dumps(list(ids))),
            )

        await self._database.run(count)

    async def retire(self, memory_id: int, now: datetime) -> bool:
        """Hide an entry from searches by making its own id its successor; it stays in the history."""

        def retire(rows: sqlite3.Connection) -> bool:
            retired = rows.execute(
                "UPDATE memories SET superseded_by = id, updated_at = ? WHERE id = ? AND superseded_by IS NULL",
                (iso(now), memory_id),
            )
            return retired.rowcount > 0

        return await self._database.run(retire)

    async def listed(
        self,
        *,
        kinds: Collection[Kind] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        public_only: bool = False,
        limit: int = 1000,
    ) -> list[Memory]:
        """Return living entries by when they were updated, newest first."""
        return await self._database.run(
            lambda rows: newest(rows, kinds=kinds, since=since, until=until, public_only=public_only, limit=limit)
        )

    async def count(self) -> int:
        """Return the number of living entries."""
        query = f"SELECT count(*) FROM memories WHERE {_LIVING}"  # noqa: S608 - a constant
        return await self._database.run(lambda rows: int(rows.execute(query).fetchone()[0]))
