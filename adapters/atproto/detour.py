"""A way past an item that no request can read, where the service did not tell the cursor behind it.

Bluesky's cursors are moments: an ISO date for notifications, milliseconds and an id for most other lists. What is older
than a moment can be asked for, so the moment of the item is looked for: first in growing steps back, then by halving.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cachetools import LRUCache

from adapters.atproto.convert import Json
from adapters.atproto.types import UnreadableErr
from common.clock import Clock, parse_iso_or_none
from common.result import ApiResult, Err, Ok

Ask = Callable[[int, str | None], Awaitable[ApiResult[Json]]]
"""Asks for a page: at most so many items, from a cursor on."""

_FIRST_STEP_MS = 1_000
_GROWS_BY = 8
_FARTHEST_MS = 60 * 86_400_000
_KEPT = 200
_MILLISECONDS = re.compile(r"([0-9]{13})(__.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Moment:
    """A cursor that is a moment; `tail` is what follows the milliseconds, None where the cursor is an ISO date."""

    ms: int
    tail: str | None

    def earlier(self, ms: int) -> str:
        """The cursor for a moment that lies so many milliseconds before this one."""
        if self.tail is not None:
            return f"{self.ms - ms}{self.tail}"
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self.ms - ms)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


@dataclass(slots=True)
class Detours:
    """Finds cursors behind unreadable items of one list, and remembers the latest of them.

    Attributes:
        clock: tells from where on to look for an item that stands first, before any cursor.

    """

    clock: Clock
    _known: LRUCache[str | None, str] = field(default_factory=lambda: LRUCache(_KEPT))

    async def around(self, ask: Ask, cursor: str | None) -> ApiResult[str]:
        """The cursor behind the item that follows `cursor`, to the millisecond.

        What was made in the same millisecond is passed over with it, and so is what lies between two such items. Where
        the cursor is no moment there is no way, and the `Err` is an `UnreadableErr`.
        """
        if (known := self._known.get(cursor)) is not None:
            return Ok(known)
        found: ApiResult[str] = UnreadableErr("no cursor behind the item could be found", kind="transient")
        for start in self._starts(cursor):
            found = await _search(ask, start)
            if isinstance(found, Ok):
                self._known[cursor] = found.data
                break
        return found

    def _starts(self, cursor: str | None) -> Iterator[_Moment]:
        """Where to begin: at the cursor; before the first cursor now, in each of the two forms."""
        if cursor is None:
            now_ms = int(self.clock.now().timestamp() * 1000)
            yield from (_Moment(now_ms, None), _Moment(now_ms, "__0"))
        elif timed := _MILLISECONDS.fullmatch(cursor):
            yield _Moment(int(timed[1]), timed[2])
        elif moment := parse_iso_or_none(cursor):
            yield _Moment(int(moment.timestamp() * 1000), None)


async def _search(ask: Ask, start: _Moment) -> ApiResult[str]:
    unreadable_ms, readable_ms = 0, _FIRST_STEP_MS
    while isinstance(answer := await ask(1, start.earlier(readable_ms)), Err):
        if not isinstance(answer, UnreadableErr) or readable_ms >= _FARTHEST_MS:
            return answer
        unreadable_ms, readable_ms = readable_ms, readable_ms * _GROWS_BY
    while readable_ms - unreadable_ms > 1:
        middle_ms = (readable_ms + unreadable_ms) // 2
        answer = await ask(1, start.earlier(middle_ms))
        if isinstance(answer, UnreadableErr):
            unreadable_ms = middle_ms
        elif isinstance(answer, Err):
            return answer
        else:
            readable_ms = middle_ms
    return Ok(start.earlier(readable_ms))
