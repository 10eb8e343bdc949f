"""Received direct messages, as rows of `soul.db`. Each function is one step of a transaction of its caller.

A row waits (`pending`) until the outcome of its message is stored. Only conversations of two are kept. Times are
ISO-8601 UTC: `sent_at` from the service, `received_at` by our own clock.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from common.clock import iso
from modules.runtime.database import marks

MESSAGES = "chat:"
"""The beginning of the name of each direct message."""
CURSOR = "messages.cursor"
"""The mark that says how far the log of all conversations was read."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation between us and the account `did`. In a `request` only requests about personal data are read.

    `handle` is that of the account when it last wrote, "" if unknown; `is_bot` whether its profile said so.
    """

    id: str
    did: str
    status: Literal["request", "accepted"]
    handle: str = ""
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A received message and its outcome; `handle` is its author's, "" if unknown."""

    conversation_id: str
    id: str
    rev: str
    author_did: str
    text: str
    sent_at: str
    received_at: str
    state: Literal["pending", "handled", "dropped"] = "pending"
    outcome: str = ""
    handle: str = ""
    is_bot: bool = False

    reason: ClassVar[str] = "message"
    """How it reached us; for posts it is mention, reply or quote."""

    @property
    def at(self) -> str:
        return self.sent_at

    @property
    def name(self) -> str:
        """Its name in the outbox and the journal."""
        return message_name(self.conversation_id, self.id)


def message_name(conversation_id: str, message_id: str) -> str:
    """Return the name of a direct message in the outbox and the journal; it is no address on the network."""
    return f"{MESSAGES}{conversation_id}/{message_id}"


def keep_talk(connection: sqlite3.Connection, talk: Talk) -> None:
    """Store a conversation, or what has changed in it."""
    connection.execute(
        "INSERT OR REPLACE INTO direct_conversations (id, did, status, handle, is_bot) VALUES (?, ?, ?, ?, ?)",
        (talk.id, talk.did, talk.status, talk.handle, talk.is_bot),
    )


def talk(connection: sqlite3.Connection, conversation_id: str) -> Talk | None:
    """Return a conversation if it is known to be one of two, otherwise None."""
    return _talk(connection, "id = ?", conversation_id)


def talk_with(connection: sqlite3.Connection, did: str) -> Talk | None:
    """Return our conversation with an account, of several the one stored last; None if none is known."""
    return _talk(connection, "did = ? ORDER BY rowid DESC LIMIT 1", did)


def written_by(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the name of each message that one account wrote to us."""
    return [one.name for one in _received(connection, "author_did = ?", did)]


def authors(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Return DID, lower-case handle and "" for each account with a conversation of two whose handle is known."""
    query = "SELECT did, handle FROM direct_conversations WHERE handle <> ''"
    return [(str(row[0]), str(row[1]).lower(), "") for row in connection.execute(query)]


def take_in(connection: sqlite3.Connection, messages: Iterable[ReceivedMessage]) -> int:
    """Store new messages, which then wait; return how many are new."""
    before = connection.total_changes
    connection.executemany(
        "INSERT OR IGNORE INTO direct_messages"
        " (conversation_id, id, rev, author_did, text, sent_at, received_at, state)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 'pending')",
        [
            (one.conversation_id, one.id, one.rev, one.author_did, one.text, one.sent_at, one.received_at)
            for one in messages
        ],
    )
    return connection.total_changes - before


def waiting(connection: sqlite3.Connection) -> list[ReceivedMessage]:
    """Return all waiting messages, oldest first."""
    return _received(connection, "state = 'pending' ORDER BY rev")


def count_waiting(connection: sqlite3.Connection, conversation_id: str) -> int:
    """Return how many messages of a conversation wait."""
    query = "SELECT count(*) FROM direct_messages WHERE state = 'pending' AND conversation_id = ?"
    return int(connection.execute(query, (conversation_id,)).fetchone()[0])


def has_outcome(connection: sqlite3.Connection, conversation_id: str, outcome: str) -> bool:
    """Return whether a message of a conversation had this outcome."""
    query = "SELECT 1 FROM direct_messages WHERE conversation_id = ? AND outcome = ? LIMIT 1"
    return connection.execute(query, (conversation_id, outcome)).fetchone() is not None


def named(connection: sqlite3.Connection, name: str) -> ReceivedMessage | None:
    """Return the message of that name, or None."""
    talk_id, _, message_id = name.removeprefix(MESSAGES).partition("/")
    return next(iter(_received(connection, "conversation_id = ? AND m.id = ?", talk_id, message_id)), None)


def later_than(connection: sqlite3.Connection, message: ReceivedMessage) -> list[ReceivedMessage]:
    """Return what the same account wrote in the same conversation after a message, oldest first."""
    where = "conversation_id = ? AND author_did = ? AND rev > ? ORDER BY rev"
    return _received(connection, where, message.conversation_id, message.author_did, message.rev)


def said_in(connection: sqlite3.Connection, conversation_id: str, most: int) -> list[ReceivedMessage]:
    """Return the newest `most` messages of others in a conversation, oldest first."""
    found = _received(connection, "conversation_id = ? ORDER BY rev DESC LIMIT ?", conversation_id, most)
    return found[::-1]


def from_account(connection: sqlite3.Connection, did: str, since: datetime) -> list[ReceivedMessage]:
    """Return what one account wrote to us since then, in no order."""
    return _received(connection, "author_did = ? AND received_at > ?", did, iso(since))


def newest_rev(connection: sqlite3.Connection, conversation_id: str) -> str:
    """Return the revision of the newest received message in a conversation; "" if there is none."""
    query = "SELECT coalesce(max(rev), '') FROM direct_messages WHERE conversation_id = ?"
    return str(connection.execute(query, (conversation_id,)).fetchone()[0])


def settle(
    connection: sqlite3.Connection,
    message: ReceivedMessage,
    state: Literal["handled", "dropped"],
    outcome: str,
) -> None:
    """Store that the message was handled or dropped, with its outcome."""
    connection.execute(
        "UPDATE direct_messages SET state = ?, outcome = ? WHERE conversation_id = ? AND id = ?",
        (state, outcome, message.conversation_id, message.id),
    )


def leave_account(connection: sqlite3.Connection) -> None:
    """Delete the conversations of an account that the home left: the present one is in none of them."""
    connection.execute("DELETE FROM direct_conversations")
    read_anew(connection, "this home belongs to another account now")


def read_anew(connection: sqlite3.Connection, outcome: str = "the database was restored from a copy") -> None:
    """Drop waiting messages and read the log from the start: after a restore they may have been answered already."""
    connection.execute("UPDATE direct_messages SET state = 'dropped', outcome = ? WHERE state = 'pending'", (outcome,))
    marks.remove(connection, CURSOR)


def forget_before(connection: sqlite3.Connection, moment: datetime) -> int:
    """Delete what was settled before `moment`; return the number of rows."""
    query = "DELETE FROM direct_messages WHERE state <> 'pending' AND received_at < ?"
    return connection.execute(query, (iso(moment),)).rowcount


def _talk(connection: sqlite3.Connection, where: str, value: str) -> Talk | None:
    query = f"SELECT id, did, status, handle, is_bot FROM direct_conversations WHERE {where}"  # noqa: S608 - constants
    row = connection.execute(query, (value,)).fetchone()
    return Talk(row[0], row[1], row[2], row[3], is_bot=bool(row[4])) if row else None


def _received(connection: sqlite3.Connection, where: str, *values: object) -> list[ReceivedMessage]:
    query = f"""
        SELECT conversation_id, m.id, rev, author_did, text, sent_at, received_at, state, outcome,
            coalesce(handle, '') AS handle, coalesce(is_bot, 0) AS is_bot
        FROM direct_messages AS m LEFT JOIN direct_conversations AS c ON c.id = conversation_id WHERE {where}
    """  # noqa: S608 - constants
    rows = connection.execute(query, values)
    return [ReceivedMessage(**{**dict(row), "is_bot": bool(row["is_bot"])}) for row in rows]
