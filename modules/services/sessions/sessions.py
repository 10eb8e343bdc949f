"""Conversations, stored message by message: a message is on the disk before it is answered."""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime

from common.clock import Clock
from common.provenance import Provenance
from common.redact import Redactor
from modules.runtime.database.database import Database
from modules.runtime.llm.dialect import Message, Text, Usage
from modules.services.sessions import store
from modules.services.sessions.types import MessageRow, Session, blocks, parts, redacted, to_fields, tokens_of


class Sessions:
    """The conversations of one SOUL. `estimate` returns the number of tokens of a text."""

    def __init__(self, database: Database, clock: Clock, redactor: Redactor, estimate: Callable[[str], int]) -> None:
        self._database = database
        self._clock = clock
        self._redactor = redactor
        self._estimate = estimate

    async def open(self, key: str) -> Session:
        """Return the current conversation under `key`, or begin one."""
        now = self._clock.now()
        return await self._database.run(
            lambda connection: store.going_on(connection, key) or store.begin(connection, key, now)
        )

    async def add(
        self,
        session_id: str,
        said: Sequence[tuple[Message, Provenance]],
        within: Callable[[sqlite3.Connection, str], object] | None = None,
        *,
        did: str | None = None,
        is_note: bool = False,
    ) -> str:
        """Store messages, all or none; a round's calls and their results belong in one call of this.

        Args:
            session_id: the conversation.
            said: messages, each with its provenance.
            within: runs in the same transaction, with the id that is returned.
            did: the account whose words they are or answer; None for that of the messages before them.
            is_note: whether they are words of the program.

        Returns:
            The id of the session that holds them: if this one has ended meanwhile, the current one under its key.

        Raises:
            LookupError: there is no such session.

        """
        rows = [row for message, provenance in said for row in self._rows(message, provenance, did, is_note=is_note)]
        now = self._clock.now()

        def write(connection: sqlite3.Connection) -> str:
            session = store.find(connection, session_id)
            if session is None:
                raise LookupError(f"no session {session_id}")
            if store.is_over(connection, session_id):
                session = store.going_on(connection, session.key) or store.begin(connection, session.key, now)
            store.append(connection, session.id, rows, now)
            if within:
                within(connection, session.id)
            return session.id

        return await self._database.run(write)

    async def add_once(
        self, key: str, said: Message, provenance: Provenance, *, did: str = "", is_note: bool = False
    ) -> str:
        """Store a message under `key`, unless the same words were the last message: then this is a second try.

        `did` is the account whose words they are; "" for the owner's, and for what was said in a room. `is_note` marks
        words of the program.

        Returns:
            The id of that session.

        """
        session = await self.open(key)
        rows = await self.rows(session.id)
        if rows and rows[-1].role == "user" and _words(rows[-1].message) == _words(redacted(said, self._redactor)):
            return session.id
        return await self.add(session.id, [(said, provenance)], did=did, is_note=is_note)

    async def rows(self, session_id: str) -> list[MessageRow]:
        """Return the stored messages of a conversation, oldest first."""
        return await self._database.run(lambda connection: store.rows(connection, session_id))

    async def provenance(self, session_id: str) -> Provenance:
        """Return the provenance of the least trusted words in a conversation; the owner's while it is empty."""
        return await self._database.run(lambda connection: store.least_trusted(connection, session_id))

    async def count(self, session_id: str, usage: Usage) -> None:
        """Add the tokens of a model call."""
        await self._database.run(lambda connection: store.count(connection, session_id, usage))

    async def owner_words(self, session_key: str) -> list[str]:
        """Return the owner's messages in the current conversation, oldest first."""
        said = await self._database.run(lambda connection: store.words_of_owner(connection, session_key))
        return ["\n".join(block.text for block in blocks(message) if isinstance(block, Text)) for message in said]

    async def idle(self, before: datetime) -> list[Session]:
        """Return current conversations in which nothing was said since `before`, the longest idle first."""
        return await self._database.run(lambda connection: store.idle(connection, before))

    def summary_row(self, text: str, provenance: Provenance, dids: str = "") -> store.NewMessageRow:
        """Return the row that replaces the rows that were condensed to `text`."""
        message = redacted(Message("user", text), self._redactor)
        fields = {**to_fields("user", message), store.SUMMARY: True}
        return store.NewMessageRow("user", fields, tokens_of(message, self._estimate), provenance, dids)

    def _rows(
        self, message: Message, provenance: Provenance, did: str | None, *, is_note: bool
    ) -> list[store.NewMessageRow]:
        note = {store.NOTE: True} if is_note else {}
        return [
            store.NewMessageRow(role, to_fields(role, part) | note, tokens_of(part, self._estimate), provenance, did)
            for role, part in parts(redacted(message, self._redactor))
        ]


def _words(message: Message) -> str:
    """Return the first text of a message."""
    return next((block.text for block in blocks(message) if isinstance(block, Text)), "")
