"""Messages of the owner without an answer yet: rows in `soul.db`, oldest first, each kept until it is answered.

A row is written before a turn begins and removed with its answer. So a crash, a restart or a model service that is down
loses no message of the owner.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

from common.clock import Clock, iso
from common.constants import OWNER_CAUSE
from common.provenance import Provenance
from common.redact import Redactor
from common.session_keys import OWNER_SESSION
from modules.runtime.database.database import Database
from modules.runtime.llm.dialect import Message, Text
from modules.services.sessions import store
from modules.services.sessions.sessions import Sessions
from modules.services.sessions.types import blocks

_SELECT = "SELECT id, text, received_at, session_id, via FROM owner_messages"


@dataclass(frozen=True, slots=True)
class OwnerMessage:
    """A message that waits for an answer. `session_id` names the conversation that already has it, or is "".

    `via` is the unique key of a message that did not come through the terminal.
    """

    id: int
    text: str
    received_at: str
    session_id: str = ""
    via: str = ""

    @property
    def cause(self) -> str:
        """The cause of the acts that follow from it."""
        return cause_of(self.via or str(self.id))


def cause_of(key: str) -> str:
    """Return the cause of the acts that follow from a message: its number in the terminal or its key elsewhere."""
    return f"{OWNER_CAUSE}:{key}"


class OwnerInbox:
    """The owner's messages that wait for an answer. Secrets are removed before anything is written."""

    def __init__(self, database: Database, sessions: Sessions, clock: Clock, redactor: Redactor) -> None:
        self._database = database
        self._sessions = sessions
        self._clock = clock
        self._redactor = redactor

    async def add(self, text: str, via: str = "") -> OwnerMessage:
        """Store a message, durably on return. A message with a `via` that is known is stored once.

        Raises `StorageError`.
        """
        kept, received_at = self._redactor.text(text), iso(self._clock.now())

        return await self._database.run(lambda connection: insert(connection, kept, received_at, via))

    async def oldest(self) -> OwnerMessage | None:
        """Return the message of the terminal to answer next, or None."""
        return await self._database.run(lambda connection: _first(connection, "via = ''"))

    async def count(self) -> int:
        """Return how many messages of the terminal wait for an answer."""
        return await self._database.run(count)

    async def remove(self, message: OwnerMessage) -> None:
        """Remove a message that was answered or never will be."""
        await self._database.run(
            lambda connection: connection.execute("DELETE FROM owner_messages WHERE id = ?", (message.id,))
        )

    async def forget(self, via: str) -> None:
        """Remove the message with this `via`, if there is one."""
        query = "DELETE FROM owner_messages WHERE via = ?"
        await self._database.run(lambda connection: connection.execute(query, (via,)))

    async def may_be_kept(self, message: OwnerMessage) -> bool:
        """Return whether anything of a message may be kept: not if a memory was forgotten since it came."""
        return message.received_at > await self._database.run(lambda rows: store.kept_after(rows, OWNER_SESSION))

    async def put_in_session(self, message: OwnerMessage) -> OwnerMessage:
        """Add the message to the current conversation, once; a second call changes nothing."""
        earlier = message.session_id
        is_over = not earlier or await self._database.run(lambda connection: store.is_over(connection, earlier))
        if not is_over and await self._was_said_last(message):
            return message

        def note(connection: sqlite3.Connection, session_id: str) -> None:
            connection.execute("UPDATE owner_messages SET session_id = ? WHERE id = ?", (session_id, message.id))

        session = await self._sessions.open(OWNER_SESSION)
        said = [(Message("user", message.text), Provenance.OWNER)]
        return replace(message, session_id=await self._sessions.add(session.id, said, note, did=""))

    async def _was_said_last(self, message: OwnerMessage) -> bool:
        """Return whether the message is the owner's last; a message of the terminal always counts as that."""
        said = [row for row in await self._sessions.rows(message.session_id) if row.role == "user" and not row.is_note]
        words = [block.text for block in blocks(said[-1].message) if isinstance(block, Text)] if said else []
        return not message.via or words == [message.text]

    async def answer_in_session(self, message: OwnerMessage) -> str | None:
        """Return the answer that was stored before a crash prevented its display; None if there is none."""
        rows = await self._sessions.rows(message.session_id)
        if not rows or rows[-1].role != "assistant":
            return None
        said = blocks(rows[-1].message)
        if not all(isinstance(block, Text) for block in said):
            return None
        return "\n".join(block.text for block in said if isinstance(block, Text))


def insert(connection: sqlite3.Connection, text: str, received_at: str, via: str = "") -> OwnerMessage:
    """Store a message without secrets; one with a known `via` is stored once."""
    if via and (earlier := _first(connection, "via = ?", via)):
        return earlier
    query = "INSERT INTO owner_messages (text, received_at, via) VALUES (?, ?, ?) RETURNING id"
    number = int(connection.execute(query, (text, received_at, via)).fetchone()[0])
    return OwnerMessage(number, text, received_at, via=via)


def waiting(connection: sqlite3.Connection) -> list[OwnerMessage]:
    """Return the messages of the terminal and of the page that wait for an answer, oldest first."""
    rows = connection.execute(f"{_SELECT} WHERE via = '' ORDER BY id").fetchall()
    return [OwnerMessage(*row) for row in rows]


def count(connection: sqlite3.Connection) -> int:
    """Return how many messages of the owner in the terminal wait for an answer."""
    return int(connection.execute("SELECT count(*) FROM owner_messages WHERE via = ''").fetchone()[0])


def _first(connection: sqlite3.Connection, where: str, *values: str) -> OwnerMessage | None:
    row = connection.execute(f"{_SELECT} WHERE {where} ORDER BY id LIMIT 1", values).fetchone()
    return OwnerMessage(*row) if row else None
