"""What the rules count, read from the tables that stand; nothing is kept twice.

Every function is one step of a transaction that its caller opened. Times are moments of our own clock: when an act set
out (`sent_at`, its latest try), and when words were taken in (`received_at`), which nobody else can date back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta

from common.clock import iso, parse_iso
from modules.services.outbox.rules import rules
from modules.services.outbox.rules.types import Notice
from modules.services.outbox.types import NON_BLUESKY_KINDS

_WAITS = "state IN ('pending', 'sending')"
# NOTE(self): the plus keeps SQLite from looking by state, which most rows share.
_MAY_LEAVE = "+state IN ('held', 'pending', 'sending', 'done')"
_NON_BLUESKY_KINDS = ", ".join(repr(kind) for kind in sorted(NON_BLUESKY_KINDS))
_COST = (
    f"CASE WHEN kind IN ({_NON_BLUESKY_KINDS}) THEN 0"
    f" WHEN kind = 'delete' THEN {rules.COST_DELETE.limit} ELSE {rules.COST_CREATE.limit} END"
)
# NOTE(self): all tries of an act count as if made with its last: rather too many within the window than too few.
_DEPARTURES = f"""
    SELECT sent_at AS moment, (1 + attempts + deferrals) * {_COST} AS points FROM intents
    WHERE sent_at >= :since AND sent_at < :until
    UNION ALL SELECT at, points FROM other_writes WHERE at >= :since AND at < :until
"""  # noqa: S608 - constants
# NOTE(self): an act that has not left yet will stand after all that was said until now.
_LATER = "9999"
_NOTICE = """SELECT uri, root_uri, author_did, coalesce(json_extract(payload, '$.author.handle'), '') AS author_handle,
    coalesce(json_extract(payload, '$.reason'), '') AS reason, coalesce(json_extract(payload, '$.text'), '') AS text,
    coalesce(json_extract(payload, '$.reply.parent.uri'), '') AS parent_uri,
    coalesce(json_extract(payload, '$.author.is_bot'), 0) AS is_bot, received_at
    FROM pending_notifications"""


def notice(connection: sqlite3.Connection, uri: str) -> Notice | None:
    """How a post reached us, if it did."""
    row = connection.execute(f"{_NOTICE} WHERE uri = ?", (uri,)).fetchone()
    return _notice(row) if row else None


def has_reached_us(connection: sqlite3.Connection, who: str, since: datetime) -> bool:
    """Whether `who` (a did, or a handle in lower case) reached us since then."""
    mine = "author_did = ?" if who.startswith("did:") else "lower(json_extract(payload, '$.author.handle')) = ?"
    query = f"SELECT 1 FROM pending_notifications WHERE {mine} AND received_at > ? LIMIT 1"  # noqa: S608 - constants
    return connection.execute(query, (who, iso(since))).fetchone() is not None


def points_spent(connection: sqlite3.Connection, now: datetime, window: timedelta) -> float:
    """What left within the window, in points."""
    query = f"SELECT coalesce(sum(points), 0) FROM ({_DEPARTURES})"  # noqa: S608 - constants
    return float(connection.execute(query, _window(now, window)).fetchone()[0])


def departures(connection: sqlite3.Connection, now: datetime, window: timedelta) -> list[tuple[datetime, float]]:
    """When something left within the window, and how many points it counts, oldest first."""
    rows = connection.execute(f"{_DEPARTURES} ORDER BY 1", _window(now, window))
    return [(parse_iso(row[0]), float(row[1])) for row in rows]


def points_waiting(connection: sqlite3.Connection) -> float:
    """What waits to leave, in points, one try each."""
    query = f"SELECT coalesce(sum({_COST}), 0) FROM intents WHERE state = 'pending'"  # noqa: S608 - constants
    return float(connection.execute(query).fetchone()[0])


def replied_to(connection: sqlite3.Connection, now: datetime, window: timedelta) -> list[tuple[datetime, str]]:
    """Targets of the replies that left within the window, with the moment, oldest first."""
    rows = connection.execute(
        "SELECT sent_at, target FROM intents WHERE sent_at >= :since AND sent_at < :until AND kind = 'reply'"
        " ORDER BY sent_at",
        _window(now, window),
    )
    return [(parse_iso(row[0]), row[1]) for row in rows]


def waiting_replies(connection: sqlite3.Connection) -> list[str]:
    """Targets of the replies that wait to leave."""
    rows = connection.execute(f"SELECT target FROM intents WHERE kind = 'reply' AND {_WAITS}")  # noqa: S608 - constants
    return [row[0] for row in rows]


def reply_texts(connection: sqlite3.Connection, now: datetime, window: timedelta) -> list[str]:
    """The texts of the replies that left within the window, or may still leave."""
    rows = connection.execute(
        "SELECT json_extract(body, '$.text') FROM intents WHERE kind = 'reply' AND sent_at >= ?"  # noqa: S608 - constants
        f" AND {_MAY_LEAVE} UNION ALL SELECT json_extract(body, '$.text') FROM intents WHERE kind = 'reply'"
        " AND state IN ('held', 'pending') AND +sent_at IS NULL",
        (iso(now - window),),
    )
    return [str(row[0] or "") for row in rows]


def thread_turns(connection: sqlite3.Connection, root_uri: str) -> Iterator[tuple[str, bool]]:
    """The turns in a thread that reached us, and our replies to them, oldest first: who ("" for us), labelled a bot."""
    yield from _turns(
        connection,
        "target IN (SELECT uri FROM pending_notifications WHERE root_uri = :root)",
        "root_uri = :root",
        {"root": root_uri},
    )


def pair_turns(connection: sqlite3.Connection, did: str, since: datetime) -> Iterator[tuple[str, bool]]:
    """The turns between us and one other account since then, oldest first: who ("" for us), labelled as a bot."""
    yield from _turns(
        connection,
        "target > :first AND target < :last AND coalesce(first_sent_at, :later) > :since",
        "author_did = :did AND received_at > :since",
        # NOTE(self): "0" follows "/": the records of this account and of no other.
        {"did": did, "first": f"at://{did}/", "last": f"at://{did}0", "later": _LATER, "since": iso(since)},
    )


def answered_notices(connection: sqlite3.Connection, did: str, since: datetime) -> list[Notice]:
    """The words of one account to which we replied since then, or are about to."""
    rows = connection.execute(
        f"{_NOTICE} WHERE author_did = ? AND uri IN (SELECT target FROM intents WHERE kind = 'reply'"  # noqa: S608 - constants
        f" AND target > ? AND target < ? AND {_MAY_LEAVE} AND coalesce(first_sent_at, '{_LATER}') > ?)",
        (did, f"at://{did}/", f"at://{did}0", iso(since)),
    )
    return [_notice(row) for row in rows]


def _turns(
    connection: sqlite3.Connection, ours: str, theirs: str, values: dict[str, str]
) -> Iterator[tuple[str, bool]]:
    query = f"""
        SELECT coalesce(first_sent_at, '{_LATER}') AS moment, '' AS said, '' AS who, 1 AS is_bot FROM intents
        WHERE kind = 'reply' AND {_MAY_LEAVE} AND {ours}
        UNION ALL
        SELECT received_at, indexed_at, author_did, coalesce(json_extract(payload, '$.author.is_bot'), 0)
        FROM pending_notifications WHERE {theirs}
        ORDER BY moment, said
    """  # noqa: S608 - constants
    for row in connection.execute(query, values):
        yield row[2], bool(row[3])


def _window(now: datetime, window: timedelta) -> dict[str, str]:
    """The window behind us; and as far ahead, in case that the clock was set back.

    Rows know whole milliseconds only: what may lie within the window counts.
    """
    return {"since": iso(now - window), "until": iso(now + window)}


def _notice(row: sqlite3.Row) -> Notice:
    fields = dict(row)
    return Notice(**{**fields, "author_handle": fields["author_handle"].lower(), "is_bot": bool(fields["is_bot"])})
