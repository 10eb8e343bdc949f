"""Sends the news that a commitment was fulfilled into the agent space, once.

A room confirms a message only by its echo. If the process died meanwhile, the message is looked for in the record that
the room replays to whoever joins: `EchoLog` must receive each event of the room, from before the first join on. The
news is for the room in which the commitment was made: the one with the same id. If a room gives no id, it is the one at
the address of the commitment, or the one whose record holds the words of the commitment.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol

from cachetools import FIFOCache

from adapters.space.member_cycle import aliases
from adapters.space.types import History, Said, SpaceEvent
from common.clock import parse_iso, parse_iso_or_none
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import SpaceChatBody
from modules.services.outbox.types import Intent, Sent, Wait

ABSENT = "the agent space is not connected"
OTHER_ROOM = "its commitment belongs to another room"

_KEPT = 500
_ECHO_WAIT_S = 10.0
_ASK_AGAIN_S = 5.0
_CLOCKS_APART = timedelta(hours=1)


class RoomSpeaker(Protocol):
    """The connection to a room, as far as the sender needs it."""

    @property
    def is_active(self) -> bool: ...

    @property
    def url(self) -> str: ...

    @property
    def room_id(self) -> str: ...

    async def send_chat(self, content: str) -> ApiResult[str]: ...

    async def delivered(self, chat_id: str) -> ApiResult[bool]: ...


class EchoLog:
    """The SOUL's latest 500 messages that the room received, under any of its names, live and replayed."""

    def __init__(self, name: str) -> None:
        self._names = frozenset((name, *aliases(name)))
        self._messages: deque[tuple[str, str, str]] = deque(maxlen=_KEPT)
        self._here: deque[str] = deque(maxlen=_KEPT)
        self._places = FIFOCache[str, str](_KEPT)
        self._room_id = ""

    def receive(self, event: SpaceEvent, url: str = "") -> None:
        """Record the SOUL's own messages in an event of the room at `url`.

        A replayed record is another room's if the id differs; without ids, if it holds none of the SOUL's messages.
        """
        own = list(self._own(event))
        words = [said for said, _ in own]
        if isinstance(event, History):
            before, self._room_id = self._room_id, event.room_id
            ids_known = bool(before and self._room_id)
            if before != self._room_id if ids_known else not set(words) & set(self._here):
                self._here.clear()
        self._messages.extend((said, at, self._room_id) for said, at in own)
        self._here.extend(words)
        self._places.update(dict.fromkeys(words, url))

    def said_here(self, words: str) -> bool:
        """Return whether the SOUL said these words in its current or last room."""
        return words.strip() in self._here

    def place(self, words: str) -> str:
        """Return the address of the room in which these words were last said; "" if that is not known."""
        return self._places.get(words.strip(), "")

    def contains(self, words: str, since: datetime, room_id: str = "") -> bool:
        """Return whether a room received these words since then, with an hour's tolerance between the clocks.

        With `room_id`, rooms that are known to be others do not count.
        """
        earliest = since - _CLOCKS_APART
        return any(
            said == words.strip()
            and (parse_iso_or_none(at) or earliest) >= earliest
            and (not (room_id and told_in) or room_id == told_in)
            for said, at, told_in in self._messages
        )

    def _own(self, event: SpaceEvent) -> Iterator[tuple[str, str]]:
        if isinstance(event, Said) and event.name in self._names:
            yield event.content.strip(), event.timestamp
        elif isinstance(event, History):
            for entry in event.entries:
                if entry.type == "chat" and entry.agent_name in self._names:
                    yield entry.content.strip(), entry.timestamp


class SpaceSender:
    """Sends intents of the kind `space_chat`; `gate` holds them back until their room is connected."""

    def __init__(self, room: RoomSpeaker | None, echo_log: EchoLog, journal: Journal) -> None:
        self._room = room
        self._echo_log = echo_log
        self._journal = journal
        self._on_the_way: dict[str, str] = {}

    def gate(self, _: sqlite3.Connection, intent: Intent, __: datetime) -> Wait | None:
        """Return how long an intent must wait for its room, or None."""
        why_not = self._absent(intent) if intent.kind == "space_chat" else ""
        return Wait(why_not, _ASK_AGAIN_S) if why_not else None

    def was_delivered(self, words: str, since: datetime, room_id: str = "") -> bool:
        """Return whether a room received these words of the SOUL's since then; see `EchoLog.contains`."""
        return self._echo_log.contains(words, since, room_id)

    def where(self, words: str) -> str:
        """Return the address of the room in which the SOUL said these words, or else of the current room, or ""."""
        return self._echo_log.place(words) or (self._room.url if self._room is not None else "")

    @answering
    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Send the line, and wait for the echo."""
        room = self._room
        if room is None:
            return Err(ABSENT, "transient")
        chat_id = self._on_the_way.get(intent.id)
        if chat_id is None:
            if not isinstance(intent.body, SpaceChatBody):
                return Err("it holds no line for a room", "invalid")
            self._on_the_way[intent.id] = chat_id = (await room.send_chat(intent.body.text)).or_raise()
        try:
            async with asyncio.timeout(_ECHO_WAIT_S):
                echoed = await room.delivered(chat_id)
        except TimeoutError:
            return Err("it waits to be said in the room", "unknown_outcome")
        del self._on_the_way[intent.id]
        if isinstance(echoed, Err):
            return echoed if echoed.kind == "transient" else Err(echoed.error, "unknown_outcome")
        if not echoed.data:
            return Err("the room did not echo it", "unknown_outcome")
        return Ok(await self._arrived(intent))

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Return the result if the room received the line, else `Ok(None)`; an `Err` if its room is not connected."""
        if why_not := self._absent(intent):
            return Err(why_not, "transient")
        since = parse_iso(intent.first_sent_at or intent.created_at)
        if not self._echo_log.contains(intent.body.preview, since):
            return Ok(None)
        self._on_the_way.pop(intent.id, None)
        return Ok(await self._arrived(intent))

    def _absent(self, intent: Intent) -> str:
        """Return why the SOUL is not in the intent's room, or ""; an old line without room data goes to any room."""
        if self._room is None or not self._room.is_active:
            return ABSENT
        body = intent.body
        if not isinstance(body, SpaceChatBody):
            return ""
        if body.room_id and self._room.room_id:
            return "" if body.room_id == self._room.room_id else OTHER_ROOM
        if body.room is None or self._echo_log.said_here(body.said):
            return ""
        return "" if body.room and body.room == self._room.url else OTHER_ROOM

    async def _arrived(self, intent: Intent) -> Sent:
        text = intent.body.preview
        entry = Entry("act", "commitments", "[space] Fulfillment announced", "done", text, intent_id=intent.id)
        await self._journal.record(entry)
        return Sent()
