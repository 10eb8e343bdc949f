"""Lists and reads conversations in pages, both current and archived ones.

Each function reads within the caller's transaction.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from common.errors import UsageError
from common.session_keys import FORMER_PREFIX
from modules.services.sessions import archives, store
from modules.services.sessions.archives import Archive
from modules.services.sessions.types import ArchivedLine, MessageRow, Session, epoch_ms

State = Literal["goes on", "archived", "waits"]

_GOES_ON = """
SELECT sessions.*, count(*) AS messages FROM sessions JOIN session_messages ON session_id = sessions.id
WHERE ended_at IS NULL AND seq > coalesce(
    (SELECT max(last_seq) FROM archives WHERE archives.session_id = sessions.id AND state = 'prepared'), 0)
GROUP BY sessions.id ORDER BY last_active_at DESC LIMIT ?
"""
_NAMED = """
SELECT DISTINCT session_id FROM (SELECT session_id FROM session_messages UNION SELECT session_id FROM archives)
WHERE substr(session_id, 1, length(:given)) = :given
"""


@dataclass(frozen=True, slots=True)
class KeptTalk:
    """One stretch of a conversation.

    Attributes:
        session_id: its conversation.
        session_key: the key of that conversation.
        state: it goes on, is in the store, or waits to be stored.
        at: the time of the last message or of the archiving, ISO-8601 UTC.
        messages: the number of messages.
        tokens: the tokens that models used for the whole conversation so far; None for a part of it.
        archive: None for a stretch that goes on.

    """

    session_id: str
    session_key: str
    state: State
    at: str
    messages: int
    tokens: int | None
    archive: Archive | None = None

    @property
    def part(self) -> int | None:
        """Its number, if the conversation went on after it; otherwise None."""
        return self.archive.part if self.archive else None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A talk and its lines; None if they are in the store."""

    talk: KeptTalk
    lines: tuple[ArchivedLine, ...] | None


def listed(connection: sqlite3.Connection, limit: int) -> list[KeptTalk]:
    """Return the newest stretches, newest first."""
    found = [
        KeptTalk(row["id"], row["key"], "goes on", row["last_active_at"], row["messages"], _sum(connection, row["id"]))
        for row in connection.execute(_GOES_ON, (limit,)).fetchall()
    ]
    found += [_archived(archive, "waits") for archive in archives.prepared(connection)]
    found += [_archived(archive, "archived") for archive in archives.done(connection, None, limit)]
    found = [talk for talk in found if not talk.session_key.startswith(FORMER_PREFIX)]
    return sorted(found, key=lambda talk: talk.at, reverse=True)[:limit]


def find(connection: sqlite3.Connection, given: str) -> Session:
    """Return the conversation with this id, or with an id that begins with it.

    Raises:
        UsageError: there is none, or more than one.

    """
    meant = [row[0] for row in connection.execute(_NAMED, {"given": given})] if given else []
    if len(meant) > 1:
        raise UsageError(f"{len(meant)} conversations begin with {given}", remedy="Give more characters of the id.")
    session = store.find(connection, meant[0]) if meant else None
    if session is None or session.key.startswith(FORMER_PREFIX):
        raise UsageError(f"There is no conversation {given!r}", remedy="`soul talks` shows them.")
    return session


def stretches(connection: sqlite3.Connection, session: Session) -> list[Stretch]:
    """Return all stretches of one conversation, in the order of its messages."""
    rows = store.rows(connection, session.id)
    waiting = {archive.key for archive in archives.prepared(connection)}
    found = []
    for archive in archives.of_session(connection, session.id):
        if archive.key not in waiting:
            found.append(Stretch(_archived(archive, "archived"), None))
            continue
        taken = [row for row in rows if row.seq <= archive.last_seq]
        rows = rows[len(taken) :]
        found.append(Stretch(_archived(archive, "waits"), _lines(taken)))
    if rows:
        tokens = _sum(connection, session.id)
        talk = KeptTalk(session.id, session.key, "goes on", session.last_active_at, len(rows), tokens)
        found.append(Stretch(talk, _lines(rows)))
    return found


def _archived(archive: Archive, state: State) -> KeptTalk:
    tokens = archive.metadata.get("totalTokens")
    return KeptTalk(
        session_id=archive.session_id,
        session_key=archive.session_key,
        state=state,
        at=archive.prepared_at,
        messages=archive.message_count,
        tokens=int(tokens) if tokens else None,
        archive=archive,
    )


def _sum(connection: sqlite3.Connection, session_id: str) -> int:
    return sum(store.tokens(connection, session_id))


def _lines(rows: Iterable[MessageRow]) -> tuple[ArchivedLine, ...]:
    return tuple(ArchivedLine(row.role, row.message, epoch_ms(row.created_at)) for row in rows)
