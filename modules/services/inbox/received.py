"""Received posts, as rows of `soul.db`. Each function is one step of a transaction that its caller opened.

A row survives a crash: insertion is idempotent by uri, and a post waits (`pending`) until its outcome is stored. Times
are ISO-8601 UTC: `indexed_at` from the network, `received_at` by our own clock.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from common.clock import iso
from common.json_lines import json_object
from common.person import INVALID_HANDLE
from modules.runtime.database.people import PersonalRows, PersonalTable

_MOST_TEXTS = 5_000


def _field(path: str) -> str:
    """Return SQL for one field of the payload; NULL if the payload is not JSON."""
    return f"CASE WHEN json_valid(payload) THEN json_extract(payload, '$.{path}') END"


_HANDLE = _field("author.handle")
_NAME = f"lower({_HANDLE})"


@dataclass(frozen=True, slots=True)
class ReceivedPost:
    """A received post and its outcome.

    Its properties read the stored notification; missing fields are "" or False.
    """

    uri: str
    root_uri: str
    author_did: str
    payload: dict[str, Any]
    indexed_at: str
    received_at: str
    state: Literal["pending", "handled", "dropped"]
    outcome: str = ""

    @property
    def at(self) -> str:
        return self.indexed_at

    @property
    def handle(self) -> str:
        """The handle of its author at that time."""
        return str(_field_of(self.payload, "author", "handle") or "")

    @property
    def is_bot(self) -> bool:
        """Whether its author was labelled as a bot."""
        return bool(_field_of(self.payload, "author", "is_bot"))

    @property
    def reason(self) -> str:
        """How it reached us: mention, reply or quote."""
        return str(_field_of(self.payload, "reason") or "")

    @property
    def text(self) -> str:
        return str(_field_of(self.payload, "text") or "")

    @property
    def parent_uri(self) -> str:
        """The post that it answers; "" at the top of a thread."""
        return str(_field_of(self.payload, "reply", "parent", "uri") or "")


def insert(connection: sqlite3.Connection, posts: Iterable[ReceivedPost]) -> int:
    """Store new posts; return how many are new."""
    before = connection.total_changes
    connection.executemany(
        "INSERT OR IGNORE INTO pending_notifications"
        " (uri, root_uri, author_did, payload, indexed_at, received_at, state) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (one.uri, one.root_uri, one.author_did, json.dumps(one.payload), one.indexed_at, one.received_at, one.state)
            for one in posts
        ],
    )
    return connection.total_changes - before


def get(connection: sqlite3.Connection, uri: str) -> ReceivedPost | None:
    """Return one post, or None."""
    return next(iter(_rows(connection, "uri = ?", uri)), None)


def among(connection: sqlite3.Connection, uris: Sequence[str]) -> list[ReceivedPost]:
    """Return those of these posts that we received, oldest first."""
    return _rows(connection, "uri IN (SELECT value FROM json_each(?))", json.dumps(list(uris)))


def waiting(connection: sqlite3.Connection) -> list[ReceivedPost]:
    """Return all waiting posts, oldest first."""
    return _rows(connection, "state = 'pending'")


def taken_in_since(connection: sqlite3.Connection, moment: str) -> list[ReceivedPost]:
    """Return all posts received at `moment` (ISO-8601 UTC) or later, with any outcome, oldest first."""
    return _rows(connection, "received_at >= ?", moment)


def count_waiting(connection: sqlite3.Connection) -> int:
    """Return how many posts wait."""
    query = "SELECT count(*) FROM pending_notifications WHERE state = 'pending'"
    return int(connection.execute(query).fetchone()[0])


def settle(
    connection: sqlite3.Connection, uris: Sequence[str], state: Literal["handled", "dropped"], outcome: str
) -> None:
    """Store that these posts were handled or dropped, with their outcome."""
    connection.executemany(
        "UPDATE pending_notifications SET state = ?, outcome = ? WHERE uri = ? AND state = 'pending'",
        [(state, outcome, uri) for uri in uris],
    )


def forget_before(connection: sqlite3.Connection, moment: datetime) -> int:
    """Delete what was settled before `moment`; return the number of rows."""
    query = "DELETE FROM pending_notifications WHERE state != 'pending' AND received_at < ?"
    return connection.execute(query, (iso(moment),)).rowcount


def in_thread(connection: sqlite3.Connection, root_uri: str) -> list[ReceivedPost]:
    """Return the received posts of a thread, oldest first."""
    return _rows(connection, "root_uri = ?", root_uri)


def from_account(connection: sqlite3.Connection, did: str, since: datetime) -> list[ReceivedPost]:
    """Return what one account wrote to us since then."""
    return _rows(connection, "author_did = ? AND received_at > ?", did, iso(since))


def texts_since(connection: sqlite3.Connection, since: datetime, did: str) -> list[ReceivedPost]:
    """Return the newest posts received since then, newest first; with a `did` only those of that account."""
    where, order = "received_at > ? AND (? = '' OR author_did = ?)", f"received_at DESC LIMIT {_MOST_TEXTS}"
    return _rows(connection, where, iso(since), did, did, order=order)


def has_reached_us(connection: sqlite3.Connection, who: str, since: datetime) -> bool:
    """Return whether `who` (a DID, or a handle in lower case) wrote to us since then."""
    mine = "author_did = ?" if who.startswith("did:") else f"{_NAME} = ?"
    query = f"SELECT 1 FROM pending_notifications WHERE {mine} AND received_at > ? LIMIT 1"  # noqa: S608 - constants
    return connection.execute(query, (who, iso(since))).fetchone() is not None


def with_key(connection: sqlite3.Connection, tail: str) -> list[tuple[str, str]]:
    """Return the uris that end in `tail`, each with its author's handle ("" if unknown)."""
    found = _rows(connection, "substr(uri, -length(?1)) = ?1", tail)
    return [(one.uri, one.handle) for one in found]


def latest_handle(connection: sqlite3.Connection, did: str) -> str:
    """Return the newest handle of an account that wrote to us; "" if unknown."""
    rows = _rows(connection, "author_did = ? AND json_valid(payload)", did, order="indexed_at DESC LIMIT 1")
    return rows[0].handle if rows else ""


def authors(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return each DID, lower-case handle and display name under which an account wrote to us."""
    query = f"SELECT DISTINCT author_did, {_HANDLE}, {_field('author.display_name')} FROM pending_notifications"  # noqa: S608 - constants
    return [(str(row[0]), str(row[1] or "").lower(), str(row[2] or "")) for row in connection.execute(query)]


def holders(connection: sqlite3.Connection, handles: Iterable[str]) -> dict[str, str]:
    """Return the DID of each of these lower-case handles under which exactly one account wrote to us."""
    names = "(SELECT value FROM json_each(:names))"
    query = f"""
        SELECT name, min(did) FROM (
            SELECT {_NAME} AS name, author_did AS did FROM pending_notifications WHERE {_NAME} IN {names}
            UNION SELECT lower(handle), did FROM direct_conversations WHERE lower(handle) IN {names}
        ) GROUP BY name HAVING count(*) = 1
    """  # noqa: S608 - constants
    wanted = json.dumps([one for one in handles if one != INVALID_HANDLE])
    return {str(row[0]): str(row[1]) for row in connection.execute(query, {"names": wanted})}


def last_did_of(connection: sqlite3.Connection, *, did: str, handle: str) -> tuple[str, str] | None:
    """Return the newest DID and handle of an account that wrote to us under this DID or handle, or None."""
    rows = _rows(connection, f"author_did = ? OR {_HANDLE} = ?", did, handle, order="indexed_at DESC LIMIT 1")
    return (rows[0].author_did, rows[0].handle) if rows else None


def written_by(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the uris of what one account wrote to us."""
    return [one.uri for one in _rows(connection, "author_did = ?", did)]


def _rows(connection: sqlite3.Connection, where: str, *values: object, order: str = "indexed_at") -> list[ReceivedPost]:
    query = f"SELECT * FROM pending_notifications WHERE {where} ORDER BY {order}"  # noqa: S608 - constants
    return [
        ReceivedPost(**{**dict(row), "payload": json_object(row["payload"]) or {}, "outcome": row["outcome"] or ""})
        for row in connection.execute(query, values)
    ]


def _field_of(stored: object, *path: str) -> object:
    for name in path:
        stored = stored.get(name) if isinstance(stored, dict) else None
    return stored


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
    ),
)
"""The posts that a person wrote.

A post of somebody else that answers or names them stays, with a placeholder for them. If it waits for an answer in
their thread, it cannot be answered there any more.
"""

MESSAGES_OF_PEOPLE = PersonalRows(
    "received messages",
    (
        PersonalTable(name="direct_messages", theirs="author_did = :did", shown="text", at="sent_at", order="rev"),
        PersonalTable(name="direct_conversations", theirs="did = :did"),
    ),
)
"""The direct messages that a person wrote."""
