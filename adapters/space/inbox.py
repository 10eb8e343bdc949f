"""The received messages and events that were not taken yet; a message that the room replays is kept once.

Lost with the process. Bounded: the oldest are dropped. Pure.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from cachetools import FIFOCache

from adapters.space.member_name import MemberName
from adapters.space.types import History, Joined, LogEntry, PresenceList, Said, SpaceEvent

MESSAGES_KEPT: Final = 500
EVENTS_KEPT: Final = 1_000
_KNOWN_KEPT = 10_000


class Inbox:
    """The inbox of `me`."""

    def __init__(self, me: MemberName) -> None:
        self._me = me
        self._messages: deque[Said] = deque(maxlen=MESSAGES_KEPT)
        self._events: deque[SpaceEvent] = deque(maxlen=EVENTS_KEPT)
        self._known = FIFOCache[int, None](_KNOWN_KEPT)
        self._fresh = True
        self._room_id = ""

    @property
    def fresh_room(self) -> bool:
        """Whether the latest record is another room's: by the ids or, without ids, if no message in it was known."""
        return self._fresh

    def take_messages(self) -> list[Said]:
        """Returns and clears the messages of others, and those of our own that only the record contained."""
        messages = list(self._messages)
        self._messages.clear()
        return messages

    def take_events(self) -> list[SpaceEvent]:
        """Returns and clears all events, the echoes of our own messages included."""
        events = list(self._events)
        self._events.clear()
        return events

    def note(self, event: SpaceEvent, stamp: str = "") -> None:
        """Keeps an event. `stamp` is the room's time of it, if `event` bears another."""
        self._events.append(event)
        if isinstance(event, Said):
            self._know(_words(stamp or event.timestamp, event.name, event.content))
            if event.name != self._me.current:
                self._messages.append(event)

    def replay(self, told: History, ours: History | None = None) -> list[Said]:
        """Keeps the room's record in place of an earlier one; returns the new messages in it, oldest first.

        Args:
            told: the record with the room's times, by which messages are recognised.
            ours: the same record with times of our own clock, if they differ.

        """
        told_ids = bool(told.room_id and self._room_id)
        moved = told_ids and told.room_id != self._room_id
        self._room_id = told.room_id
        if moved:
            self._forget()
        self._events = deque((event for event in self._events if not isinstance(event, History)), maxlen=EVENTS_KEPT)
        history = ours or told
        self._events.append(history)
        both = zip(told.entries, history.entries, strict=True)
        chats = [(_of(raw), entry) for raw, entry in both if entry.type == "chat" and entry.content]
        self._fresh = moved if told_ids else not any(words in self._known for words, _ in chats)
        new = [
            Said(entry.agent_name, entry.agent_id, entry.content, entry.timestamp, replayed=True)
            for words, entry in chats
            if self._know(words)
        ]
        self._messages.extend(new)
        return new

    def _forget(self) -> None:
        """Drops what came from the previous room; the new one's member list came before its record, and stays."""
        self._messages.clear()
        self._known.clear()
        self._events = deque(
            (event for event in self._events if isinstance(event, Joined | PresenceList)), maxlen=EVENTS_KEPT
        )

    def _know(self, words: int) -> bool:
        """Remembers a message; returns whether it is new."""
        if words in self._known:
            return False
        self._known[words] = None
        return True


def _of(entry: LogEntry) -> int:
    return _words(entry.timestamp, entry.agent_name, entry.content)


def _words(timestamp: str, name: str, content: str) -> int:
    # NOTE(self): a hash in place of the text, which may be long.
    return hash((timestamp, name, content))
