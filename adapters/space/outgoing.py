"""The queue of a member's chat messages: one at a time, slowly enough for the room's rate limit, each sent once.

A room drops a message that comes too soon, so a message counts as delivered only when the room echoes it. The queue is
lost with the process: a message is not worth sending after a minute. Pure; times are monotonic s, lengths UTF-16 units.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from adapters.space.wire_fields import SPACE_MAX_CHAT_U16
from common.constants import SECOND_MS
from common.text.utf16 import u16_slice

SPACE_CHAT_SPACING_MS = 3_100

SPACING_S: Final = SPACE_CHAT_SPACING_MS / SECOND_MS
ECHO_WAIT_S: Final = 5.0
LIFETIME_S: Final = 60.0
MAX_REFUSALS: Final = 3
MAX_WAITING: Final = 50


@dataclass(frozen=True, slots=True)
class Chat:
    """A queued message; `id` is unique in this process."""

    id: str
    content: str
    thread_id: str = ""


@dataclass(frozen=True, slots=True)
class ChatDelivery:
    """The outcome of a message.

    Attributes:
        chat: the message.
        state: `echoed` by the room, `unechoed` if no echo came within 5 s, `dropped` if it was not sent.
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
    """A FIFO queue. `take` returns what may be sent now, `settle` the outcomes since its last call."""

    def __init__(self) -> None:
        self._queue: deque[_Waiting] = deque()
        self._flying: _Waiting | None = None
        self._sent_at = float("-inf")
        self._count = 0
        self._done: list[ChatDelivery] = []

    def __len__(self) -> int:
        return len(self._queue) + (self._flying is not None)

    @property
    def is_full(self) -> bool:
        return len(self) >= MAX_WAITING

    def add(self, content: str, now: float, *, thread_id: str = "") -> Chat:
        """Queues a message, cut to the limit of a chat."""
        self._count += 1
        chat = Chat(f"chat-{self._count}", u16_slice(content, SPACE_MAX_CHAT_U16), thread_id)
        self._queue.append(_Waiting(chat, now))
        return chat

    def take(self, now: float) -> Chat | None:
        """Returns the message to send now, or None. It then counts as sent."""
        self._expire(now)
        if self._flying or not self._queue or now < self._sent_at + SPACING_S:
            return None
        self._flying, self._sent_at = self._queue.popleft(), now
        return self._flying.chat

    def next_at(self, *, speaking: bool) -> float | None:
        """Returns when `take` (if `speaking`) or `settle` will have something to do; None while nothing waits."""
        moments = [one.since + LIFETIME_S for one in self._queue]
        if self._flying:
            moments.append(self._sent_at + ECHO_WAIT_S)
        elif self._queue and speaking:
            moments.append(self._sent_at + SPACING_S)
        return min(moments, default=None)

    def echoed(self, content: str) -> None:
        """The room broadcast a message of this member."""
        waiting = self._matching(content)
        if waiting is None:
            return
        if waiting is self._flying:
            self._flying = None
        else:
            self._queue.remove(waiting)
        self._done.append(ChatDelivery(waiting.chat, "echoed"))

    def refused(self, now: float) -> None:
        """The room refused the message as too soon: it is queued again, at most `MAX_REFUSALS` times."""
        if (waiting := self._flying) is None:
            return
        self._flying, self._sent_at = None, now
        waiting.refusals += 1
        if waiting.refusals > MAX_REFUSALS:
            self._drop(waiting, f"the room refused it {waiting.refusals} times as too fast")
        else:
            self._queue.appendleft(waiting)

    def rejected(self, reason: str) -> None:
        """The room refused the message as invalid: it is dropped."""
        if (waiting := self._flying) is not None:
            self._flying = None
            self._drop(waiting, reason)

    def cut_off(self) -> None:
        """The connection was lost: an unconfirmed message is queued again, unless the record shows it."""
        if self._flying:
            self._queue.appendleft(self._flying)
            self._flying = None

    def close(self, reason: str) -> None:
        """Drops all messages for `reason`."""
        self.cut_off()
        for waiting in self._queue:
            self._drop(waiting, reason)
        self._queue.clear()

    def settle(self, now: float) -> list[ChatDelivery]:
        """Returns the outcomes since the last call."""
        self._expire(now)
        if self._flying and now >= self._sent_at + ECHO_WAIT_S:
            self._done.append(ChatDelivery(self._flying.chat, "unechoed"))
            self._flying = None
        done, self._done = self._done, []
        return done

    def _expire(self, now: float) -> None:
        old = [one for one in self._queue if now >= one.since + LIFETIME_S]
        for waiting in old:
            self._queue.remove(waiting)
            self._drop(waiting, f"it could not be said within {LIFETIME_S:.0f} s")

    def _drop(self, waiting: _Waiting, reason: str) -> None:
        self._done.append(ChatDelivery(waiting.chat, "dropped", reason))

    def _matching(self, content: str) -> _Waiting | None:
        tried: Iterable[_Waiting] = [self._flying] if self._flying else []
        candidates = (*tried, *self._queue)
        return next((one for one in candidates if one.chat.content.strip() == content.strip()), None)
