"""Selects the part of the record that is replayed to a newcomer: chats and results first, other entries after them.

The entries are kept in memory as JSON, so that a join reads no file and encodes nothing. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from adapters.space.types import LogEntry
from adapters.space.wire import encode_entry
from adapters.space.wire_json import SPACE_MAX_PAYLOAD_BYTES

REPLAY_BASE = 200
REPLAY_PER_AGENT = 50
REPLAY_MAX = 1_000
_FRAME_BYTES = 256
_MOST_BYTES = SPACE_MAX_PAYLOAD_BYTES - _FRAME_BYTES
_FOREMOST = frozenset({"chat", "action_result"})


def dynamic_history_limit(agents: int) -> int:
    """Returns the number of entries for a newcomer; `agents` counts the members including it."""
    return min(REPLAY_BASE + max(0, agents - 2) * REPLAY_PER_AGENT, REPLAY_MAX)


class Replay:
    """The most recent entries of a room's record, as many as can be replayed."""

    def __init__(self, entries: Iterable[LogEntry] = ()) -> None:
        self._foremost = _Tail()
        self._others = _Tail()
        self._count = 0
        for entry in entries:
            self.add(entry)

    def add(self, entry: LogEntry) -> None:
        self._count += 1
        (self._foremost if entry.type in _FOREMOST else self._others).add(self._count, encode_entry(entry))

    def select(self, limit: int) -> list[str]:
        """Returns at most `limit` entries as JSON, oldest first, below 1 MiB together, always with the newest."""
        if limit <= 0 or not self._count:
            return []
        newest = max(self._foremost.last(1) + self._others.last(1))
        foremost = [kept for kept in self._foremost.last(limit - 1) if kept != newest]
        others = [kept for kept in self._others.last(limit) if kept != newest]
        room_left = limit - 1 - len(foremost)
        chosen = sorted([newest, *foremost, *others[len(others) - min(room_left, len(others)) :]], reverse=True)
        texts: list[str] = []
        size = 0
        for _, text in chosen:
            size += len(text.encode()) + 1
            if size > _MOST_BYTES:
                break
            texts.append(text)
        return texts[::-1]


class _Tail:
    """The last entries of one kind, with their position in the record."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, str]] = deque(maxlen=REPLAY_MAX)
        self._chars = 0

    def add(self, place: int, text: str) -> None:
        if len(self._kept) == REPLAY_MAX:
            self._chars -= len(self._kept.popleft()[1])
        self._kept.append((place, text))
        self._chars += len(text)
        while self._chars > _MOST_BYTES and len(self._kept) > 1:
            self._chars -= len(self._kept.popleft()[1])

    def last(self, count: int) -> list[tuple[int, str]]:
        return list(self._kept)[-count:] if count > 0 else []
