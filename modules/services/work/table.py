"""The rows of work in `soul.db`. A row waits (`pending`) until it is settled, so that kill -9 loses none."""

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from common.clock import Clock, iso
from common.json_lines import json_line, json_object
from modules.runtime.database.database import Database
from modules.runtime.database.people import PersonalRows, PersonalTable, change_owner
from modules.services.work.types import HELD, NewWork, WorkItem

KEPT = timedelta(days=90)
FAILURES = "_failures"
"""In the stored payload of a row, how often in a row a service failed it, and since when."""
_LATELY = timedelta(days=1)

_COLUMNS = (
    "id, kind, key, payload, author, importance, not_before, attempts, state, outcome, cause_id, created_at, version"
)
# NOTE(self): the owner first; then each person in turn, counting what was settled for them within a day: nobody's
# second row before somebody else's first; then by rank, then the oldest.
_DUE = f"""
WITH had AS (
    SELECT kind, author, count(*) AS turns FROM work WHERE state <> 'pending' AND created_at > :lately GROUP BY 1, 2
), waiting AS (
    SELECT *, row_number() OVER (PARTITION BY kind, author ORDER BY rank, created_at, id) AS place FROM work
    WHERE state = 'pending' AND (not_before <= :now OR created_at > :now)
        AND kind IN (SELECT value FROM json_each(:kinds)) AND id NOT IN (SELECT value FROM json_each(:besides))
)
SELECT {_COLUMNS} FROM waiting LEFT JOIN had USING (kind, author)
ORDER BY importance <> 'owner', CASE author WHEN '' THEN 1 ELSE place + coalesce(turns, 0) END, rank, created_at, id
LIMIT :most
"""  # noqa: S608 - a constant
_NEW = """
INSERT INTO work (kind, key, payload, author, importance, not_before, cause_id, created_at, rank, version, state)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_INSERT = f"""{_NEW}
ON CONFLICT (kind, key) DO UPDATE SET payload = excluded.payload, author = excluded.author,
    importance = excluded.importance, rank = excluded.rank, version = excluded.version, cause_id = excluded.cause_id,
    not_before = CASE state WHEN 'pending' THEN work.not_before ELSE excluded.not_before END,
    created_at = CASE state WHEN 'pending' THEN work.created_at ELSE excluded.created_at END,
    attempts = CASE state WHEN 'pending' THEN attempts ELSE 0 END,
    state = 'pending', outcome = ''
"""
# NOTE(self): a waiting row keeps its place and its tries when a later version comes; a settled one starts again.
_WITHDRAW = """
DELETE FROM work WHERE state = 'pending' AND kind IN (SELECT value FROM json_each(?))
    AND kind || ' ' || key NOT IN (SELECT value FROM json_each(?))
"""
_KINDS_OF_WAITING = """
SELECT key, kind FROM work WHERE state = 'pending' AND kind IN (SELECT value FROM json_each(?))
"""
_KEEP = f"""{_NEW}
ON CONFLICT (kind, key) DO UPDATE
    SET payload = excluded.payload, not_before = excluded.not_before, state = excluded.state
"""  # noqa: S608 - a constant
_ADD = f"{_INSERT} WHERE excluded.version > work.version"
_OFFER = f"{_INSERT} WHERE state <> 'pending'"


@dataclass(slots=True)
class WorkTable:
    """Adds, reads and settles rows; each call is one transaction."""

    database: Database
    clock: Clock

    async def add(self, *new: NewWork) -> int:
        """Add rows that are new by kind, key and version, settled or not; return how many are new."""
        now = iso(self.clock.now())
        return await self.database.run(lambda connection: add(connection, new, now))

    async def offer(self, new: NewWork) -> bool:
        """Let a row wait that is unknown or settled; return False if it waits already."""
        row = _row(new, iso(self.clock.now()))
        return await self.database.run(lambda connection: connection.execute(_OFFER, row).rowcount > 0)

    async def keep(self, row: NewWork) -> None:
        """Add a row, or overwrite the known one: for rows that carry their own state."""
        values = _row(row, iso(self.clock.now()))
        await self.database.run(lambda connection: connection.execute(_KEEP, values))

    async def due(self, kinds: Collection[str], *, besides: Collection[int] = (), most: int = -1) -> list[WorkItem]:
        """Return the due rows of these kinds in the order of handling: the first `most`.

        Rows added before the clock was set back are due. Those with an id in `besides` are left out.
        """
        now = self.clock.now()
        values = {
            "now": iso(now),
            "lately": iso(now - _LATELY),
            "kinds": json.dumps(sorted(kinds)),
            "besides": json.dumps(sorted(besides)),
            "most": most,
        }
        return await self.database.run(lambda connection: _items(connection, _DUE, values))

    async def queue(self, kinds: Collection[str], rows: Sequence[NewWork]) -> None:
        """Let exactly these rows of these kinds wait, and no others; settled rows stay settled.

        A key that waits under another of these kinds keeps that kind, as it may be in progress.
        """
        names, now = json.dumps(sorted(kinds)), iso(self.clock.now())

        def write(connection: sqlite3.Connection) -> None:
            waiting = dict(connection.execute(_KINDS_OF_WAITING, (names,)).fetchall())
            wanted = [replace(one, kind=waiting.get(one.key, one.kind)) for one in rows]
            connection.execute(_WITHDRAW, (names, json.dumps([f"{one.kind} {one.key}" for one in wanted])))
            add(connection, wanted, now)

        await self.database.run(write)

    async def get(self, kind: str, key: str) -> WorkItem | None:
        """Return one row, settled or not, or None."""
        return await self.database.run(lambda connection: get(connection, kind, key))

    async def newest(self, kind: str, limit: int, *, key_prefix: str = "", having: str = "") -> list[WorkItem]:
        """Return the newest rows of a kind whose key begins with `key_prefix`, settled or not.

        With `having`, only those whose payload has a text of that name.
        """
        return await self.database.run(
            lambda connection: newest(connection, kind, limit, key_prefix=key_prefix, having=having)
        )

    async def next_due(self, kinds: Collection[str]) -> datetime | None:
        """Return when the next row of these kinds that is not due yet will be due, or None."""
        query = (
            "SELECT min(not_before) FROM work WHERE state = 'pending' AND not_before > ?"
            " AND kind IN (SELECT value FROM json_each(?))"
        )
        values = (iso(self.clock.now()), json.dumps(sorted(kinds)))
        found = await self.database.run(lambda connection: connection.execute(query, values).fetchone()[0])
        return datetime.fromisoformat(found) if found else None

    async def earliest(self, kinds: Collection[str]) -> tuple[str, str] | None:
        """Return the kind of the row of these kinds that is due first, and its time: ISO-8601, "" for at once.

        Rows that wait for the owner's decision about a draft are left out.
        """
        query = (
            "SELECT kind, not_before FROM work WHERE state = 'pending' AND kind IN (SELECT value FROM json_each(?))"
            " AND outcome <> ? ORDER BY not_before LIMIT 1"
        )
        values = (json.dumps(sorted(kinds)), HELD)
        found = await self.database.run(lambda connection: connection.execute(query, values).fetchone())
        return (str(found["kind"]), str(found["not_before"])) if found else None

    async def put_off(self, item: WorkItem, seconds: float, *, counts: bool, outcome: str = "") -> None:
        """Let a row wait for at least `seconds` with a reason as its outcome; `counts` adds a failed try."""
        now = self.clock.now()
        # NOTE(self): a row with a time in the future, as after the clock was set back, counts as due.
        statement = (
            "UPDATE work SET not_before = ?, attempts = attempts + ?, outcome = ?, created_at = min(created_at, ?)"
            " WHERE id = ? AND state = 'pending'"
        )
        until = iso(now + timedelta(seconds=max(seconds, 0.0)))
        values = (until, int(counts), outcome, iso(now), item.id)
        await self.database.run(lambda connection: connection.execute(statement, values))

    async def retry(
        self, item: WorkItem, payload: Mapping[str, Any], at: datetime | None = None, *, is_later: bool = False
    ) -> None:
        """Make a waiting row due at `at`, None for now, with another payload.

        `is_later` makes it a later version, which a turn that handles it now does not settle.
        """
        statement = (
            "UPDATE work SET not_before = ?, outcome = '', payload = ?, created_at = min(created_at, ?),"
            " version = version + ? WHERE id = ? AND state = 'pending'"
        )
        now = iso(self.clock.now())
        kept = json.dumps(dict(payload), ensure_ascii=False)
        values = (iso(at) if at else "", kept, now, int(is_later), item.id)
        await self.database.run(lambda connection: connection.execute(statement, values))

    async def note(self, item: WorkItem, **values: object) -> None:
        """Change these values in the payload of a row, and no others."""
        await self.database.run(lambda connection: note(connection, item, values))

    async def note_failure(self, item: WorkItem) -> None:
        """Count one more failure of a service in a row, and keep since when it fails."""
        await self.note(item, **{FAILURES: [item.failures + 1, item.failing_since or iso(self.clock.now())]})

    async def pass_on(self, item: WorkItem, kind: str) -> None:
        """Let a row wait for the handler of another kind."""
        statement = "UPDATE work SET kind = ?, not_before = '' WHERE id = ?"
        await self.database.run(lambda connection: connection.execute(statement, (kind, item.id)))

    async def settle(
        self,
        item: WorkItem,
        state: Literal["done", "dropped"],
        outcome: str,
        also: Callable[[sqlite3.Connection], None] = lambda _: None,
    ) -> None:
        """Store the outcome of a row, unless a later version came, and delete rows settled long ago.

        `also` is carried out in the same transaction.
        """
        before = iso(self.clock.now() - KEPT)

        def write(connection: sqlite3.Connection) -> None:
            statement = "UPDATE work SET state = ?, outcome = ? WHERE id = ? AND version = ?"
            connection.execute(statement, (state, outcome, item.id, item.version))
            also(connection)
            connection.execute("DELETE FROM work WHERE state <> 'pending' AND created_at < ?", (before,))

        await self.database.run(write)

    async def waiting(self, kind: str) -> list[WorkItem]:
        """Return the waiting rows of a kind, due or not, oldest first."""
        return await self.database.run(lambda connection: waiting(connection, kind))

    async def remove(self, item: WorkItem) -> None:
        """Delete a row of which nothing is to stay."""
        await self.database.run(lambda connection: connection.execute("DELETE FROM work WHERE id = ?", (item.id,)))


def add(connection: sqlite3.Connection, new: Sequence[NewWork], now: str) -> int:
    """Add rows that are new, as a step of a caller's transaction; return how many are new."""
    before = connection.total_changes
    connection.executemany(_ADD, [_row(one, now) for one in new])
    return connection.total_changes - before


def note(connection: sqlite3.Connection, item: WorkItem, values: Mapping[str, object]) -> None:
    """Change these values in the payload of a row, and no others, as a step of a caller's transaction."""
    statement = "UPDATE work SET payload = json_patch(payload, ?) WHERE id = ?"
    connection.execute(statement, (json.dumps(values, ensure_ascii=False), item.id))


def replace_row(connection: sqlite3.Connection, row: NewWork) -> None:
    """Give a stored row another payload and author, as a step of a caller's transaction."""
    change = "UPDATE work SET payload = ?, author = ? WHERE kind = ? AND key = ?"
    connection.execute(change, (json_line(dict(row.payload)).decode().rstrip(), row.author, row.kind, row.key))


def get(connection: sqlite3.Connection, kind: str, key: str) -> WorkItem | None:
    """Return a row, or None."""
    query = f"SELECT {_COLUMNS} FROM work WHERE kind = ? AND key = ?"  # noqa: S608 - a constant
    return next(iter(_items(connection, query, (kind, key))), None)


def newest(
    connection: sqlite3.Connection, kind: str, limit: int, *, key_prefix: str, having: str = ""
) -> list[WorkItem]:
    """Return the rows that `WorkTable.newest` returns, as a step of a caller's transaction."""
    query = (
        f"SELECT {_COLUMNS} FROM work WHERE kind = ? AND substr(key, 1, ?) = ?"  # noqa: S608 - a constant
        " AND (? = '' OR payload ->> ? <> '') ORDER BY id DESC LIMIT ?"
    )
    return _items(connection, query, (kind, len(key_prefix), key_prefix, having, having, limit))


def change_owner_of_work(connection: sqlite3.Connection, kind: str, now: str, before: str) -> None:
    """Set aside the unanswered lines of the owner `before`, and restore those of `now`.

    Rows of `kind` with words are marked as told, and waiting ones dropped: their addressee is gone. The rows stay.
    """
    change_owner(connection, "work", "kind", before, now)
    statement = """UPDATE work SET payload = json_set(payload, '$.noted', json('true')),
        state = iif(state = 'pending', 'dropped', state) WHERE kind = ? AND payload ->> 'words' <> ''"""
    connection.execute(statement, (kind,))


def waiting(connection: sqlite3.Connection, kind: str) -> list[WorkItem]:
    """Return the waiting rows of a kind, due or not, oldest first, as a step of a caller's transaction."""
    query = f"SELECT {_COLUMNS} FROM work WHERE state = 'pending' AND kind = ? ORDER BY id"  # noqa: S608 - a constant
    return _items(connection, query, (kind,))


def has(connection: sqlite3.Connection, kind: str, key_prefix: str) -> bool:
    """Return whether there is a row whose key begins with `key_prefix`, settled or not, as a step of a transaction."""
    query = "SELECT 1 FROM work WHERE kind = ? AND key >= ? AND substr(key, 1, ?) = ? LIMIT 1"
    return connection.execute(query, (kind, key_prefix, len(key_prefix), key_prefix)).fetchone() is not None


def count_waiting(connection: sqlite3.Connection, kind: str, outcome: str | None = None) -> int:
    """Return how many rows of a kind wait, for the reason `outcome` if given, as a step of a caller's transaction."""
    query = "SELECT count(*) FROM work WHERE state = 'pending' AND kind = ? AND outcome = coalesce(?, outcome)"
    return int(connection.execute(query, (kind, outcome)).fetchone()[0])


def tries(connection: sqlite3.Connection, cause_id: str) -> int:
    """Return how many tries for a cause failed, as a step of a caller's transaction."""
    query = "SELECT coalesce(max(attempts), 0) FROM work WHERE cause_id = ?"
    return int(connection.execute(query, (cause_id,)).fetchone()[0])


def _row(new: NewWork, now: str) -> tuple[str | int, ...]:
    payload = json_line(dict(new.payload)).decode().rstrip()
    not_before = iso(new.not_before) if new.not_before else ""
    cause = new.cause_id or f"{new.kind}:{new.key}"
    order = (new.rank, new.version, new.state)
    return (new.kind, new.key, payload, new.author, new.importance, not_before, cause, now, *order)


def _items(
    connection: sqlite3.Connection, query: str, values: Sequence[object] | Mapping[str, object]
) -> list[WorkItem]:
    rows = connection.execute(query, values)
    found: list[WorkItem] = []
    for row in rows:
        payload = json_object(row["payload"]) or {}
        failures, since = payload.pop(FAILURES, (0, ""))
        found.append(WorkItem(**{**dict(row), "payload": payload, "failures": failures, "failing_since": since}))
    return found


_PAYLOAD = "iif(named(json_field(payload, 'note')), json_set(payload, '$.note', ''), payload)"
"""A note that names the person is removed, as it may hold their words."""
_OWNER_LINES = "kind GLOB '*owner:*line'"
"""Lines of the owner, and of former owners."""

WORK_OF_PEOPLE = PersonalRows(
    "work",
    (
        PersonalTable(
            name="work",
            theirs="(author = :did OR (instr(kind || key || cause_id, :part) AND holds_did(kind, key, cause_id)))",
            shown="kind || ' ' || key",
            at="created_at",
            order="created_at",
            redacts={"payload": f"redacted_json({_PAYLOAD})", "outcome": "redacted(outcome)"},
            only=f"NOT {_OWNER_LINES}",
            also="kind = 'improvement' AND named(payload)",
            named=f"""SELECT 'message ' || place || ' of yours' FROM (SELECT payload, row_number() OVER (ORDER BY id)
                AS place FROM work WHERE {_OWNER_LINES}) WHERE named(payload ->> 'text')""",  # noqa: S608 - a constant
        ),
    ),
)
"""The work that a person caused; work of others that names them stays, with a placeholder for them."""
