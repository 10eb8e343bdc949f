"""Carries the news that a promise was kept into the agent space, once.

A room gives no receipt but its echo. What was on its way when the process died is looked for in the record that the
room replays to whoever joins: `OwnWords` must be shown each event of the room, from before the first join on.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol

from adapters.space.types import Event, History, Said
from common.clock import parse_iso, parse_iso_or_none
from common.result import ApiResult, Err, Ok
from modules.journal.journal import Journal
from modules.journal.types import Entry
from modules.outbox.types import Intent, Sent, Wait

ABSENT = "the agent space is not connected"

_KEPT = 500
_ECHO_WAIT_S = 10.0
_ASK_AGAIN_S = 5.0
_CLOCKS_APART = timedelta(hours=1)


class Speaker(Protocol):
    """A place in a room, as far as announcing needs it."""

    @property
    def is_active(self) -> bool: ...

    async def send_chat(self, content: str) -> ApiResult[str]: ...

    async def delivered(self, chat_id: str) -> ApiResult[bool]: ...


class OwnWords:
    """What the room heard from `name`, live and replayed, the latest 500."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._heard: deque[tuple[str, str]] = deque(maxlen=_KEPT)

    def hear(self, event: Event) -> None:
        """Something happened in the room."""
        self._heard.extend(self._own(event))

    def heard(self, words: str, since: datetime) -> bool:
        """Whether the room heard these words since then, as far as its clock can be compared with ours."""
        earliest = since - _CLOCKS_APART
        return any(
            said == words.strip() and (parse_iso_or_none(at) or earliest) >= earliest for said, at in self._heard
        )

    def _own(self, event: Event) -> Iterator[tuple[str, str]]:
        if isinstance(event, Said) and event.name == self._name:
            yield event.content.strip(), event.timestamp
        elif isinstance(event, History):
            for entry in event.entries:
                if entry.type == "chat" and entry.agent_name == self._name:
                    yield entry.content.strip(), entry.timestamp


class SpaceCourier:
    """Sends intents of the kind `space_chat`; `gate` keeps them in while there is no room."""

    def __init__(self, room: Speaker | None, own_words: OwnWords, journal: Journal) -> None:
        self._room = room
        self._own_words = own_words
        self._journal = journal
        self._on_the_way: dict[str, str] = {}

    def gate(self, _: sqlite3.Connection, intent: Intent, __: datetime) -> Wait | None:
        """Asked by the outbox before each departure."""
        if intent.kind != "space_chat" or (self._room is not None and self._room.is_active):
            return None
        return Wait(ABSENT, _ASK_AGAIN_S)

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Say it, and wait for the echo."""
        room = self._room
        if room is None:
            return Err(ABSENT, "transient")
        chat_id = self._on_the_way.get(intent.id)
        if chat_id is None:
            sent = await room.send_chat(str(intent.body["text"]))
            if isinstance(sent, Err):
                return sent
            self._on_the_way[intent.id] = chat_id = sent.data
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
        """Whether the room has heard it."""
        if self._room is None or not self._room.is_active:
            return Err(ABSENT, "transient")
        since = parse_iso(intent.departed_at or intent.created_at)
        if not self._own_words.heard(str(intent.body["text"]), since):
            return Ok(None)
        self._on_the_way.pop(intent.id, None)
        return Ok(await self._arrived(intent))

    async def _arrived(self, intent: Intent) -> Sent:
        text = str(intent.body["text"])
        entry = Entry("act", "commitments", "[space] Fulfillment announced", "done", text, intent_id=intent.id)
        await self._journal.record(entry)
        return Sent()
