"""Pages that one item can spoil: what cannot be read as a whole is asked for in smaller pieces, down to one item.

Nesting, half a surrogate pair and the like are met by `common.lenient_json`, at no further request. Here is the rest:
an answer that is too large, or that is no JSON at all.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from adapters.atproto.convert import Json, text_of
from adapters.atproto.types import UnreadableErr
from common.result import ApiResult, Err, Ok

logger = logging.getLogger(__name__)

Ask = Callable[[int, str | None], Awaitable[ApiResult[Json]]]
"""Asks for a page: at most so many items, from a cursor on."""


@dataclass(frozen=True, slots=True)
class RawPage:
    """Items as the wire has them; `unreadable` ones were passed over; `rest` are the other fields of the answer."""

    items: tuple[object, ...]
    cursor: str | None
    unreadable: int
    rest: Json


async def read_page(ask: Ask, key: str, limit: int, cursor: str | None) -> ApiResult[RawPage]:
    """A page of the list under `key`, in one answer or in as many as it takes.

    An item that cannot be read is passed over where the answer tells the next cursor; else the page ends before it.
    """
    answer = await ask(limit, cursor)
    if isinstance(answer, UnreadableErr):
        return await _in_pieces(ask, key, limit, cursor, answer)
    if isinstance(answer, Err):
        return answer
    listed = answer.data.get(key)
    if not isinstance(listed, list):
        return Err(f"the answer holds no list of {key}", kind="transient")
    return Ok(RawPage(tuple(listed), text_of(answer.data, "cursor") or None, 0, answer.data))


async def _in_pieces(ask: Ask, key: str, limit: int, cursor: str | None, failed: UnreadableErr) -> ApiResult[RawPage]:
    if limit <= 1:
        if not failed.cursor or failed.cursor == cursor:
            return failed
        logger.warning("%s; the item is passed over", failed.error)
        return Ok(RawPage((), failed.cursor, 1, {}))
    half = limit // 2
    first = await read_page(ask, key, half, cursor)
    if isinstance(first, Err) or not first.data.cursor:
        return first
    second = await read_page(ask, key, limit - half, first.data.cursor)
    if isinstance(second, UnreadableErr):
        logger.warning("%s; the list ends before it", second.error)
        return Ok(replace(first.data, cursor=None, unreadable=first.data.unreadable + 1))
    if isinstance(second, Err):
        return second
    return Ok(
        RawPage(
            items=(*first.data.items, *second.data.items),
            cursor=second.data.cursor,
            unreadable=first.data.unreadable + second.data.unreadable,
            rest=second.data.rest | first.data.rest,
        )
    )
