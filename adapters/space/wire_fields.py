"""Validates the fields of a frame, once for both sides of the wire; queues messages until they are sent. Pure.

The context of a validation tells which side reads. A room (`Side.ROOM`) refuses a required field that is missing, of
another type, blank or too long, because its members must be able to rely on it. A member (`Side.MEMBER`) cuts what is
too long and refuses only what is missing, because other server programs may differ. Both replace an optional field of a
wrong type by its default. Without a context the value is from this program and unchanged; only lone surrogates, which
UTF-8 cannot encode, become U+FFFD. Lengths are counted in UTF-16 code units, as in JavaScript.
"""

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError

from common.constants import SECOND_MS
from common.lenient_json import with_whole_pairs
from common.text.strings import u16_len, u16_slice

SPACE_MAX_CHAT_U16 = 100_000

T = TypeVar("T")
Read: TypeAlias = Callable[[object, ValidationInfo], object]

Frame: TypeAlias = Mapping[str, Any]
"""One JSON object of the wire."""

MAX_NAME_U16: Final = 100
MAX_VERSION_U16: Final = 50
MAX_DETAIL_U16: Final = 1_000
MAX_SUMMARY_U16: Final = 5_000
MAX_WORK_U16: Final = 5_000
"""The limit for an action, a target, a link and an error."""
MAX_WORKSPACE_U16: Final = 200
MAX_LINE_U16: Final = 2_000
MAX_STAMP_U16: Final = 200
MAX_CAPABILITY_U16: Final = 50
MAX_CAPABILITIES: Final = 16
MAX_ITEMS: Final = 200
MAX_AGENTS: Final = 1_000
MAX_ENTRIES: Final = 5_000

MISSING: Final[Frame] = dict.fromkeys(
    (
        *("name", "id", "version", "timestamp", "content", "summary", "action", "target", "success", "state"),
        *("workspace", "planNumber", "totalTasks", "completedTasks", "blockedTasks", "inProgressTasks"),
        *("agents", "entries", "message", "reason", "joinedAt", "lastSeen", "agentName", "agentId"),
    )
)
"""Null for each field without a default: a missing field is validated like one of a wrong type."""


class Side(Enum):
    """The side that reads a frame: a room reads requests, a member reads events."""

    ROOM = "room"
    MEMBER = "member"


def validate(adapter: TypeAdapter[T], value: Frame, side: Side) -> T:
    """Return one object of the wire, as `side` reads it. Raises `ValidationError`."""
    return adapter.validate_python({**MISSING, **value}, context=side, by_alias=True, by_name=False)


def valid_items(
    adapter: TypeAdapter[T], items: object, info: ValidationInfo, most: int, *, newest: bool = False
) -> object:
    """Return the valid items among the first `most` of a list, or with `newest` the last; () if it is not a list."""
    if info.context is None:
        return items
    if not isinstance(items, list):
        return ()
    valid: list[T] = []
    for item in items[-most:] if newest else items[:most]:
        if isinstance(item, Mapping):
            try:
                valid.append(validate(adapter, item, info.context))
            except ValidationError:
                continue
    return tuple(valid)


def _cut(text: str, most: int) -> str:
    return text if 2 * len(text) <= most else u16_slice(text, most)


def _required(most: int, *, by_member: bool = True, blank: bool = False, cut: bool = False) -> Read:
    """Validate required text, which may be blank with `blank`; for a member it is only required with `by_member`.

    A room refuses text longer than `most` code units, or cuts it with `cut`; a member always cuts it.
    """

    def read(value: object, info: ValidationInfo) -> object:
        if info.context is None:
            return with_whole_pairs(value)
        text = value if isinstance(value, str) else ""
        if info.context is Side.ROOM and (not (text if blank else text.strip()) or (not cut and u16_len(text) > most)):
            raise PydanticCustomError("text", "must be text of 1 to {most} characters", {"most": most})
        if by_member and not text:
            raise PydanticCustomError("text", "must be text")
        return _cut(text, most)

    return read


def _optional(most: int, *, cut: bool = True) -> Read:
    """Validate optional text. Longer text is cut; without `cut`, longer or blank text becomes ""."""

    def read(value: object, info: ValidationInfo) -> object:
        if info.context is None:
            return with_whole_pairs(value)
        if not isinstance(value, str) or (not cut and (not value.strip() or u16_len(value) > most)):
            return ""
        return _cut(value, most)

    return read


def _texts(most: int, items: int = MAX_ITEMS, *, cut: bool = True, absent: tuple[str, ...] | None = ()) -> Read:
    """Validate a list of at most `items` texts; `absent` if it is not a list. Longer texts are cut or left out."""

    def read(value: object, info: ValidationInfo) -> object:
        if info.context is None:
            return tuple(with_whole_pairs(value)) if isinstance(value, list | tuple) else value
        if not isinstance(value, list):
            return absent
        texts = (item for item in value if isinstance(item, str) and (cut or u16_len(item) <= most))
        return tuple(_cut(text, most) for text in itertools.islice(texts, items))

    return read


def _number(*, needed: bool) -> Read:
    """Validate a number; an `int` stays one, because JavaScript writes no `.0`. A room requires it if `needed`."""

    def read(value: object, info: ValidationInfo) -> object:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return value
        if info.context is Side.MEMBER or (info.context is Side.ROOM and not needed):
            return 0
        raise PydanticCustomError("number", "must be a number")

    return read


def _flag(value: object) -> object:
    if isinstance(value, bool):
        return value
    raise PydanticCustomError("flag", "must be true or false")


def _resume(value: object, info: ValidationInfo) -> object:
    if info.context is None or (isinstance(value, str) and u16_len(value) <= MAX_NAME_U16):
        return value
    return None


def _addressed(value: object, info: ValidationInfo) -> object:
    """Validate the addressed names. Only the host sets them, so a room ignores them in requests."""
    return () if info.context is Side.ROOM else _NAMES(value, info)


def _replayed(value: object, info: ValidationInfo) -> object:
    return value is True and info.context is None


def _local_only(value: object, info: ValidationInfo) -> object:
    """Ignore the value of a frame: this field is not part of the wire."""
    return value if info.context is None else None


_NAMES = _texts(MAX_NAME_U16)
_AS_GIVEN: Final = PlainSerializer(lambda value: value)
OMIT_EMPTY: Final = Field(exclude_if=lambda value: not value)
OMIT_NONE: Final = Field(exclude_if=lambda value: value is None)

Name: TypeAlias = Annotated[str, BeforeValidator(_required(MAX_NAME_U16))]
Id: TypeAlias = Annotated[str, BeforeValidator(_required(MAX_NAME_U16, by_member=False))]
Version: TypeAlias = Annotated[str, BeforeValidator(_required(MAX_VERSION_U16, by_member=False, blank=True))]
Stamp: TypeAlias = Annotated[str, BeforeValidator(_optional(MAX_STAMP_U16))]
"""A time, ISO-8601 UTC."""
EntryStamp: TypeAlias = Annotated[str, BeforeValidator(_required(MAX_STAMP_U16))]
Content: TypeAlias = Annotated[str, BeforeValidator(_required(SPACE_MAX_CHAT_U16))]
EntryContent: TypeAlias = Annotated[str, BeforeValidator(_optional(SPACE_MAX_CHAT_U16))]
Work: TypeAlias = Annotated[str, BeforeValidator(_required(MAX_WORK_U16))]
Workspace: TypeAlias = Annotated[str, BeforeValidator(_required(MAX_WORKSPACE_U16))]
Reflection: TypeAlias = Annotated[str, BeforeValidator(_required(MAX_SUMMARY_U16, cut=True))]
Line: TypeAlias = Annotated[str, BeforeValidator(_optional(MAX_LINE_U16))]
Lines: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_texts(MAX_LINE_U16))]
Detail: TypeAlias = Annotated[str, BeforeValidator(_optional(MAX_DETAIL_U16)), OMIT_EMPTY]
Problem: TypeAlias = Annotated[str, BeforeValidator(_optional(MAX_WORK_U16)), OMIT_EMPTY]
Link: TypeAlias = Annotated[str, BeforeValidator(_optional(MAX_WORK_U16, cut=False)), OMIT_EMPTY]
ThreadId: TypeAlias = Annotated[str, BeforeValidator(_optional(MAX_WORKSPACE_U16, cut=False)), OMIT_EMPTY]
Essence: TypeAlias = Annotated[str, BeforeValidator(_optional(MAX_LINE_U16)), OMIT_EMPTY]
Token: TypeAlias = Annotated[str, BeforeValidator(_optional(MAX_STAMP_U16)), OMIT_EMPTY]
JoinStamp: TypeAlias = Annotated[Stamp, OMIT_EMPTY]
Resume: TypeAlias = Annotated[str | None, BeforeValidator(_resume), OMIT_NONE]
Addressed: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_addressed), OMIT_EMPTY]
Capabilities: TypeAlias = Annotated[
    tuple[str, ...] | None,
    BeforeValidator(_texts(MAX_CAPABILITY_U16, MAX_CAPABILITIES, cut=False, absent=None)),
    OMIT_NONE,
]
Count: TypeAlias = Annotated[float, PlainValidator(_number(needed=True)), _AS_GIVEN]
OptionalCount: TypeAlias = Annotated[float, PlainValidator(_number(needed=False)), _AS_GIVEN]
Success: TypeAlias = Annotated[bool, PlainValidator(_flag)]
Replayed: TypeAlias = Annotated[bool, PlainValidator(_replayed), Field(exclude=True)]
LocalOnly: TypeAlias = Annotated[Any, PlainValidator(_local_only), Field(exclude=True)]


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

    def add(self, content: str, now: float) -> Chat:
        """Queue a message, cut to the limit of a chat."""
        self._count += 1
        chat = Chat(f"chat-{self._count}", u16_slice(content, SPACE_MAX_CHAT_U16))
        self._queue.append(_Waiting(chat, now))
        return chat

    def take(self, now: float) -> Chat | None:
        """Return the message to send now, or None. It then counts as sent."""
        self._expire(now)
        if self._flying or not self._queue or now < self._sent_at + SPACING_S:
            return None
        self._flying, self._sent_at = self._queue.popleft(), now
        return self._flying.chat

    def next_at(self, *, speaking: bool) -> float | None:
        """Return when `take` (if `speaking`) or `settle` will have something to do; None while nothing waits."""
        moments = [one.since + LIFETIME_S for one in self._queue]
        if self._flying:
            moments.append(self._sent_at + ECHO_WAIT_S)
        elif self._queue and speaking:
            moments.append(self._sent_at + SPACING_S)
        return min(moments, default=None)

    def echoed(self, content: str) -> None:
        """Record that the room broadcast a message of this member."""
        waiting = self._matching(content)
        if waiting is None:
            return
        if waiting is self._flying:
            self._flying = None
        else:
            self._queue.remove(waiting)
        self._done.append(ChatDelivery(waiting.chat, "echoed"))

    def refused(self, now: float) -> None:
        """Queue the message again that the room refused as too soon, at most `MAX_REFUSALS` times."""
        if (waiting := self._flying) is None:
            return
        self._flying, self._sent_at = None, now
        waiting.refusals += 1
        if waiting.refusals > MAX_REFUSALS:
            self._drop(waiting, f"the room refused it {waiting.refusals} times as too fast")
        else:
            self._queue.appendleft(waiting)

    def rejected(self, reason: str) -> None:
        """Drop the message that the room refused as invalid."""
        if (waiting := self._flying) is not None:
            self._flying = None
            self._drop(waiting, reason)

    def cut_off(self) -> None:
        """Queue the unconfirmed message again after a lost connection; an echo in the record still confirms it."""
        if self._flying:
            self._queue.appendleft(self._flying)
            self._flying = None

    def close(self, reason: str) -> None:
        """Drop all messages for `reason`."""
        self.cut_off()
        for waiting in self._queue:
            self._drop(waiting, reason)
        self._queue.clear()

    def settle(self, now: float) -> list[ChatDelivery]:
        """Return the outcomes since the last call."""
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
