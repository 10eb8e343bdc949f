"""The posts that reached us, as rows of `soul.db`. Each function is one step of a transaction that its caller opened.

A row survives a crash: taking in is idempotent by uri, and a post waits (`pending`) until what became of it is written.
Times are ISO-8601 UTC: `indexed_at` as the network told it, `received_at` by our own clock.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from common.clock import iso
from common.json_lines import json_object
from modules.runtime.database.people import PersonalRows, PersonalTable

_MOST_TEXTS = 5_000


def _field(path: str) -> str:
    """SQL for one field of the payload; NULL where the payload is no JSON."""
    return f"CASE WHEN json_valid(payload) THEN json_extract(payload, '$.{path}') END"


_HANDLE = _field("author.handle")
_NOTICE = f"""SELECT uri, root_uri, author_did,
    coalesce({_field("reason")}, '') AS reason, coalesce({_field("text")}, '') AS text,
    coalesce({_field("reply.parent.uri")}, '') AS parent_uri,
    coalesce({_field("author.is_bot")}, 0) AS is_bot, received_at, indexed_at
    FROM pending_notifications"""  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class ReceivedPost:
    """Words that reached us, as stored: `reason` is mention, reply or quote; `parent_uri` is "" at the top."""

    uri: str
    root_uri: str
    author_did: str
    reason: str
    text: str
    parent_uri: str
    is_bot: bool
    received_at: str
    indexed_at: str = ""


@dataclass(frozen=True, slots=True)
class NewNotificationRow:
    """A post to be taken in; `payload` is the stored form of the notification."""

    uri: str
    root_uri: str
    author_did: str
    payload: dict[str, Any]
    indexed_at: str


@dataclass(frozen=True, slots=True)
class ReceivedRow:
    """A post that was taken in, and what became of it; `handle` is its author's as it was then."""

    uri: str
    root_uri: str
    author_did: str
    payload: dict[str, Any]
    indexed_at: str
    received_at: str
    state: Literal["pending", "handled", "dropped"]
    outcome: str


def known(connection: sqlite3.Connection, uris: Collection[str]) -> set[str]:
    """Which of these were ever taken in, whatever became of them."""
    query = "SELECT uri FROM pending_notifications WHERE uri IN (SELECT value FROM json_each(?))"
    return {str(row[0]) for row in connection.execute(query, (json.dumps(list(uris)),))}


def insert(
    connection: sqlite3.Connection,
    rows: Iterable[NewNotificationRow],
    now: datetime,
    state: Literal["pending", "dropped"],
) -> int:
    """Take in those that are new; returns how many were."""
    before = connection.total_changes
    connection.executemany(
        "INSERT OR IGNORE INTO pending_notifications"
        " (uri, root_uri, author_did, payload, indexed_at, received_at, state) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (row.uri, row.root_uri, row.author_did, json.dumps(row.payload), row.indexed_at, iso(now), state)
            for row in rows
        ],
    )
    return connection.total_changes - before


def get(connection: sqlite3.Connection, uri: str) -> ReceivedRow | None:
    """One post, if it reached us."""
    return next(iter(_rows(connection, "uri = ?", uri)), None)


def among(connection: sqlite3.Connection, uris: Sequence[str]) -> list[ReceivedRow]:
    """Those of these posts that reached us, oldest first."""
    return _rows(connection, "uri IN (SELECT value FROM json_each(?))", json.dumps(list(uris)))


def waiting(connection: sqlite3.Connection) -> list[ReceivedRow]:
    """All that still wait, oldest first."""
    return _rows(connection, "state = 'pending'")


def taken_in_since(connection: sqlite3.Connection, moment: str) -> list[ReceivedRow]:
    """All that were taken in at `moment` (ISO-8601 UTC) or later, whatever became of them; oldest first."""
    return _rows(connection, "received_at >= ?", moment)


def count_waiting(connection: sqlite3.Connection) -> int:
    """How many wait."""
    query = "SELECT count(*) FROM pending_notifications WHERE state = 'pending'"
    return int(connection.execute(query).fetchone()[0])


def settle(
    connection: sqlite3.Connection, uris: Sequence[str], state: Literal["handled", "dropped"], outcome: str
) -> None:
    """These are met, or given up; `outcome` says how."""
    connection.executemany(
        "UPDATE pending_notifications SET state = ?, outcome = ? WHERE uri = ? AND state = 'pending'",
        [(state, outcome, uri) for uri in uris],
    )


def forget_before(connection: sqlite3.Connection, moment: datetime) -> int:
    """Delete what was met before `moment`; returns how many rows went."""
    query = "DELETE FROM pending_notifications WHERE state != 'pending' AND received_at < ?"
    return connection.execute(query, (iso(moment),)).rowcount


def notice(connection: sqlite3.Connection, uri: str) -> ReceivedPost | None:
    """How a post reached us, if it did."""
    return next(iter(_notices(connection, "uri = ?", uri)), None)


def notices_of(connection: sqlite3.Connection, did: str, uris: Collection[str]) -> list[ReceivedPost]:
    """Those of these posts that one account wrote."""
    where = "author_did = ? AND uri IN (SELECT value FROM json_each(?))"
    return _notices(connection, where, did, json.dumps(list(uris)))


def in_thread(connection: sqlite3.Connection, root_uri: str) -> list[ReceivedPost]:
    """What reached us of a thread."""
    return _notices(connection, "root_uri = ?", root_uri)


def from_account(connection: sqlite3.Connection, did: str, since: datetime) -> list[ReceivedPost]:
    """What one account wrote to us since then."""
    return _notices(connection, "author_did = ? AND received_at > ?", did, iso(since))


def texts_since(connection: sqlite3.Connection, since: datetime, did: str) -> list[ReceivedPost]:
    """Return the newest posts that reached us since then, newest first; with a `did` only those of that account."""
    where = "received_at > ? AND (? = '' OR author_did = ?) ORDER BY received_at DESC LIMIT ?"
    return _notices(connection, where, iso(since), did, did, _MOST_TEXTS)


def has_reached_us(connection: sqlite3.Connection, who: str, since: datetime) -> bool:
    """Whether `who` (a did, or a handle in lower case) reached us since then."""
    mine = "author_did = ?" if who.startswith("did:") else f"lower({_HANDLE}) = ?"
    query = f"SELECT 1 FROM pending_notifications WHERE {mine} AND received_at > ? LIMIT 1"  # noqa: S608 - constants
    return connection.execute(query, (who, iso(since))).fetchone() is not None


def later_by_same_author(connection: sqlite3.Connection, uri: str) -> list[str]:
    """What the author of a post wrote after it in the same thread, oldest first."""
    query = """
        SELECT later.uri FROM pending_notifications AS later JOIN pending_notifications AS this ON this.uri = ?
        WHERE later.root_uri = this.root_uri AND later.author_did = this.author_did
            AND later.indexed_at >= this.indexed_at AND later.uri <> this.uri
        ORDER BY later.indexed_at
    """
    return [str(row[0]) for row in connection.execute(query, (uri,))]


def with_key(connection: sqlite3.Connection, tail: str) -> list[tuple[str, str]]:
    """The uris that end in `tail`, each with its author's handle ("" if that is not known)."""
    query = f"""
        SELECT uri, coalesce({_HANDLE}, '') FROM pending_notifications WHERE substr(uri, -length(:tail)) = :tail
    """  # noqa: S608 - constants
    return [(str(row[0]), str(row[1])) for row in connection.execute(query, {"tail": tail})]


def latest_handle(connection: sqlite3.Connection, did: str) -> str:
    """The newest handle of an account that wrote to us; "" if none is known."""
    query = """
        SELECT json_extract(payload, '$.author.handle') FROM pending_notifications
        WHERE author_did = ? AND json_valid(payload) ORDER BY indexed_at DESC LIMIT 1
    """
    return _text(connection.execute(query, (did,)).fetchone())


def authors(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return DID, handle in lower case and display name of each account that wrote to us, as often as they changed."""
    query = f"SELECT DISTINCT author_did, {_HANDLE}, {_field('author.display_name')} FROM pending_notifications"  # noqa: S608 - constants
    return [(str(row[0]), str(row[1] or "").lower(), str(row[2] or "")) for row in connection.execute(query)]


def last_did_of(connection: sqlite3.Connection, *, did: str, handle: str) -> tuple[str, str] | None:
    """The newest did and handle of whoever wrote to us under this did or this handle."""
    query = f"""
        SELECT author_did, {_HANDLE} AS handle FROM pending_notifications
        WHERE author_did = :did OR handle = :handle ORDER BY indexed_at DESC LIMIT 1
    """  # noqa: S608 - constants
    row = connection.execute(query, {"did": did, "handle": handle}).fetchone()
    return (str(row[0]), str(row[1] or "")) if row else None


def handles_in_thread(connection: sqlite3.Connection, root_uri: str, most: int) -> list[str]:
    """The handles of the first `most` accounts that wrote to us in a thread."""
    query = """
        SELECT json_extract(payload, '$.author.handle') AS handle FROM pending_notifications
        WHERE root_uri = ? AND json_valid(payload) AND handle IS NOT NULL
        GROUP BY handle ORDER BY min(indexed_at) LIMIT ?
    """
    return [str(row[0]) for row in connection.execute(query, (root_uri, most))]


def written_by(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the uris of what one account wrote to us."""
    query = "SELECT uri FROM pending_notifications WHERE author_did = ?"
    return [str(row[0]) for row in connection.execute(query, (did,))]


def words_of(connection: sqlite3.Connection, uri: str) -> tuple[str, str] | None:
    """The author's handle and the text of a post that reached us, each "" where it cannot be read."""
    query = """
        SELECT json_extract(payload, '$.author.handle'), json_extract(payload, '$.text') FROM pending_notifications
        WHERE uri = ? AND json_valid(payload)
    """
    row = connection.execute(query, (uri,)).fetchone()
    return (str(row[0] or ""), str(row[1] or "")) if row else None


def _rows(connection: sqlite3.Connection, where: str, *values: object) -> list[ReceivedRow]:
    query = f"SELECT * FROM pending_notifications WHERE {where} ORDER BY indexed_at"  # noqa: S608 - constants
    return [
        ReceivedRow(**{**dict(row), "payload": json_object(row["payload"]) or {}, "outcome": row["outcome"] or ""})
        for row in connection.execute(query, values)
    ]


def _notices(connection: sqlite3.Connection, where: str, *values: object) -> list[ReceivedPost]:
    rows = connection.execute(f"{_NOTICE} WHERE {where}", values)
    return [ReceivedPost(**{**dict(row), "is_bot": bool(row["is_bot"])}) for row in rows]


def _text(row: Sequence[object] | None) -> str:
    return str(row[0]) if row and row[0] else ""


INBOX_OF_PEOPLE = PersonalRows(
    "received posts",
    (
        PersonalTable(
            name="pending_notifications",
            theirs="author_did = :did",
            shown="json_field(payload, 'text')",
            at="indexed_at",
            order="indexed_at",
            redacts={
                "payload": "redacted_json(payload)",
                "outcome": "redacted(outcome)",
                "state": """CASE WHEN state = 'pending' AND holds_did(root_uri, json_field(payload, 'reply'))
                    THEN 'dropped' ELSE state END""",
                "root_uri": "iif(holds_did(root_uri), uri, root_uri)",
            },
        ),
        PersonalTable(name="direct_messages", theirs="author_did = :did", shown="text", at="sent_at", order="rev"),
        PersonalTable(name="direct_conversations", theirs="did = :did"),
    ),
)
"""The posts and direct messages that a person wrote.

A post of somebody else that answers or names them stays, with somebody in their place. One that waits for an answer in
their thread cannot be answered there any more.
"""
