"""The stored state of direct messages: how far the log was read, and what waits for an answer."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from adapters.atproto.types import DirectMessage
from common.clock import Clock, iso
from common.redact import Redactor
from modules.lives.messages.types import Burst, Line
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.services.explanation.drafts import Draft, in_words
from modules.services.identity.identity import Me
from modules.services.inbox import messages
from modules.services.inbox.messages import ReceivedMessage, Talk
from modules.services.outbox import approval, store
from modules.services.outbox.types import Intent
from modules.services.work.table import add
from modules.services.work.types import OWNER_MESSAGE, NewWork

ANSWERED = "answered"

_KEPT = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class MessageState:
    """Reads and writes rows of `soul.db`. Secrets are removed from a message before it is stored."""

    database: Database
    clock: Clock
    redactor: Redactor
    me: Me

    async def cursor(self) -> str:
        """Return how far the log was read; "" if it never was."""
        return await self.database.run(lambda connection: marks.get(connection, messages.CURSOR))

    async def take_in(self, new: Sequence[tuple[str, DirectMessage]], cursor: str | None) -> int:
        """Store messages, each with its conversation's id, and how far the log was read; return how many are new.

        A row of work is added for each new message by the owner; one that is read again may have been passed on.
        """
        now = self.clock.now()
        rows = [
            ReceivedMessage(
                talk_id, one.id, one.rev, one.sender_did, self.redactor.text(one.text), one.sent_at, iso(now)
            )
            for talk_id, one in sorted(new, key=lambda said: said[1].rev)
        ]
        owner = self.me.owner_did
        owners = [one.name for one in rows if one.author_did == owner]

        def write(connection: sqlite3.Connection) -> int:
            new = [name for name in owners if messages.named(connection, name) is None]
            count = messages.take_in(connection, rows)
            add(connection, [NewWork(OWNER_MESSAGE, one, {}, owner, "owner", cause_id=one) for one in new], iso(now))
            messages.forget_before(connection, now - _KEPT)
            if cursor:
                marks.put(connection, {messages.CURSOR: cursor})
            return count

        return await self.database.run(write)

    async def keep_talk(self, talk: Talk) -> None:
        """Store a conversation of two."""
        await self.database.run(lambda connection: messages.keep_talk(connection, talk))

    async def talk_with(self, did: str) -> Talk | None:
        """Return our conversation with an account, or None if it is not known."""
        return await self.database.run(lambda connection: messages.talk_with(connection, did))

    async def waiting_in(self, talk_id: str) -> int:
        """Return how many messages of a conversation wait for an answer."""
        return await self.database.run(lambda connection: messages.count_waiting(connection, talk_id))

    async def answered_requests_only(self, talk_id: str) -> bool:
        """Return whether a conversation has answers, and all of them are to requests about the author's own data."""

        def read(connection: sqlite3.Connection) -> bool:
            talk = messages.talk(connection, talk_id)
            is_request = talk is not None and talk.status == "request"
            return is_request and messages.has_outcome(connection, talk_id, ANSWERED)

        return await self.database.run(read)

    async def named(self, name: str) -> ReceivedMessage | None:
        """Return the message of that name, or None if we did not receive it."""
        return await self.database.run(lambda connection: messages.named(connection, name))

    async def bursts(self) -> list[Burst]:
        """Return the waiting messages of others: a burst for each conversation, the oldest first."""
        return await self.database.run(self._bursts_in)

    def _bursts_in(self, connection: sqlite3.Connection) -> list[Burst]:
        waiting = [one for one in messages.waiting(connection) if not self.me.is_owner(one.author_did)]
        found: list[Burst] = []
        for talk_id in dict.fromkeys(one.conversation_id for one in waiting):
            talk = messages.talk(connection, talk_id)
            if talk is not None:
                found.append(Burst(talk, tuple(one for one in waiting if one.conversation_id == talk_id)))
        return found

    async def burst(self, talk_id: str, up_to: str) -> Burst | None:
        """Return what waits in a conversation, up to the revision `up_to`; None if nothing does."""
        return await self.database.run(lambda connection: self.burst_in(connection, talk_id, up_to))

    def burst_in(self, connection: sqlite3.Connection, talk_id: str, up_to: str) -> Burst | None:
        """Return what `burst` returns, as a step of a caller's transaction."""
        for found in self._bursts_in(connection):
            if found.talk.id == talk_id and (said := tuple(one for one in found.messages if one.rev <= up_to)):
                return Burst(found.talk, said)
        return None

    async def said_by(self, talk: Talk, most: int) -> list[Line]:
        """Return the newest `most` messages of the other person in a conversation, oldest first."""
        said = await self.database.run(lambda connection: messages.said_in(connection, talk.id, most))
        return [Line(talk.handle, one.text, one.rev, one.sent_at) for one in said]

    async def in_words(self, drafts: Sequence[Intent]) -> list[Draft]:
        """Return a description of each draft."""
        return await self.database.run(lambda connection: in_words(connection, drafts))

    async def waiting_numbers(self) -> dict[str, int]:
        """Return the numbers of the intents that wait for approval or to be sent, by their ids."""

        def numbered(connection: sqlite3.Connection) -> dict[str, int]:
            numbers = store.draft_numbers(connection)
            return {one.id: numbers.get(one.id, 0) for one in approval.waiting(connection)}

        return await self.database.run(numbered)

    async def as_command(self, line: str) -> str:
        """Return the command that a whole line stands for, or the line itself."""
        return await self.database.run(lambda connection: approval.as_command(connection, line))

    async def newest_rev(self, conversation_id: str) -> str:
        """Return the revision of the newest message that we received in a conversation; "" if there is none."""
        return await self.database.run(lambda connection: messages.newest_rev(connection, conversation_id))

    async def settle(
        self, settled: Sequence[ReceivedMessage], outcome: str, state: Literal["handled", "dropped"]
    ) -> None:
        """Record that messages were handled or dropped, with this outcome."""

        def write(connection: sqlite3.Connection) -> None:
            for message in settled:
                messages.settle(connection, message, state, outcome)

        await self.database.run(write)
