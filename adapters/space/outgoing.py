"""What a member still has to say: one message at a time, slowly enough for the room's limiter, each said once.

A room throws away what comes too soon, so a message counts as said only when the room echoes it. Nothing here survives
a crash: words of a minute ago are not worth saying late. Pure; times are monotonic seconds, lengths UTF-16 code units.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from common.constants import SECOND_MS, SPACE_CHAT_SPACING_MS, SPACE_MAX_CHAT_U16
from common.text.utf16 import u16_slice

SPACING_S: Final = SPACE_CHAT_SPACING_MS / SECOND_MS
ECHO_WAIT_S: Final = 5.0
LIFETIME_S: Final = 60.0
MAX_REFUSALS: Final = 3
MAX_WAITING: Final = 50


@dataclass(frozen=True, slots=True)
class Chat:
    """A message on its way; `id` is unique in this process."""

    id: str
    content: str
    thread_id: str = ""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a message.

    Attributes:
        chat: the message.
        state: `echoed` when the room echoed it, `unechoed` when it was sent and no echo came in time, else `dropped`.
        reason: why it was dropped.

    """

    chat: Chat
    state: Literal["echoed", "unechoed", "dropped"]
    reason: str = ""


@dataclass(slots=True)
class _Waiting:
    chat: Chat
    since: float
    refusals: int = 0


class Outgoing:
    """First in, first out. `take` gives what may be sent now; `settle` tells what became of the rest."""

    def __init__(self) -> None:
        self._queue: deque[_Waiting] = deque()
        self._flying: _Waiting | None = None
        self._sent_at = float("-inf")
        self._count = 0
        self._done: list[Delivery] = []

    def __len__(self) -> int:
        return len(self._queue) + (self._flying is not None)

    @property
    def is_full(self) -> bool:
        return len(self) >= MAX_WAITING

    def add(self, content: str, now: float, *, thread_id: str = "") -> Chat:
        """Queue words, cut to what a room takes."""
        self._count += 1
        chat = Chat(f"chat-{self._count}", u16_slice(content, SPACE_MAX_CHAT_U16), thread_id)
        self._queue.append(_Waiting(chat, now))
        return chat

    def take(self, now: float) -> Chat | None:
        """The message to send at this moment, if one may be sent; it counts as sent."""
        self._expire(now)
        if self._flying or not self._queue or now < self._sent_at + SPACING_S:
            return None
        self._flying, self._sent_at = self._queue.popleft(), now
        return self._flying.chat

    def next_at(self, *, speaking: bool) -> float | None:
        """When `take` (if we may speak) or `settle` has something to do; None while nothing waits."""
        moments = [one.since + LIFETIME_S for one in self._queue]
        if self._flying:
            moments.append(self._sent_at + ECHO_WAIT_S)
        elif self._queue and speaking:
            moments.append(self._sent_at + SPACING_S)
        return min(moments, default=None)

    def echoed(self, content: str) -> None:
        """The room told all members words of ours."""
        waiting = self._matching(content)
        if waiting is None:
            return
        if waiting is self._flying:
            self._flying = None
        else:
            self._queue.remove(waiting)
        self._done.append(Delivery(waiting.chat, "echoed"))

    def refused(self, now: float) -> None:
        """The room's limiter threw the message away: say it again after a while, but not for ever."""
        if (waiting := self._flying) is None:
            return
        self._flying, self._sent_at = None, now
        waiting.refusals += 1
        if waiting.refusals > MAX_REFUSALS:
            self._drop(waiting, f"the room refused it {waiting.refusals} times as too fast")
        else:
            self._queue.appendleft(waiting)

    def rejected(self, reason: str) -> None:
        """The room will never take the message as it is."""
        if (waiting := self._flying) is not None:
            self._flying = None
            self._drop(waiting, reason)

    def cut_off(self) -> None:
        """The connection is lost: what was on its way is said again, unless the room's record shows it."""
        if self._flying:
            self._queue.appendleft(self._flying)
            self._flying = None

    def close(self, reason: str) -> None:
        """Nothing more will be sent."""
        self.cut_off()
        for waiting in self._queue:
            self._drop(waiting, reason)
        self._queue.clear()

    def settle(self, now: float) -> list[Delivery]:
        """What became of messages since the last call."""
        self._expire(now)
        if self._flying and now >= self._sent_at + ECHO_WAIT_S:
            self._done.append(Delivery(self._flying.chat, "unechoed"))
            self._flying = None
        done, self._done = self._done, []
        return done

    def _expire(self, now: float) -> None:
        old = [one for one in self._queue if now >= one.since + LIFETIME_S]
        for waiting in old:
            self._queue.remove(waiting)
            self._drop(waiting, f"it could not be said within {LIFETIME_S:.0f} s")

    def _drop(self, waiting: _Waiting, reason: str) -> None:
        self._done.append(Delivery(waiting.chat, "dropped", reason))

    def _matching(self, content: str) -> _Waiting | None:
        tried: Iterable[_Waiting] = [self._flying] if self._flying else []
        candidates = (*tried, *self._queue)
        return next((one for one in candidates if one.chat.content.strip() == content.strip()), None)
