"""Pages that one item can spoil: what cannot be read as a whole is asked for in smaller pieces, down to one item.

Nesting, half a surrogate pair and the like are met by `common.lenient_json`, at no further request. Here is the rest:
an answer that is too large, or that is no JSON at all.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from adapters.atproto.convert import Json, text_of
from adapters.atproto.detour import Ask, Detours
from adapters.atproto.types import UnreadableErr
from common.result import ApiResult, Err, Ok

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RawPage:
    """Items as the wire has them; `unreadable` ones were passed over; `rest` are the other fields of the answer."""

    items: tuple[object, ...]
    cursor: str | None
    unreadable: int
    rest: Json


@dataclass(frozen=True, slots=True)
class PagedListing:
    """A list of the service: how a page of it is asked for, the key under which the items stand, and ways past some."""

    ask: Ask
    key: str
    detours: Detours


async def read_page(listing: PagedListing, limit: int, cursor: str | None) -> ApiResult[RawPage]:
    """A page of `listing`, in one answer or in as many as it takes.

    An item that cannot be read is passed over where the answer tells the next cursor, or else where its moment can be
    found; if neither is so, the page ends before it.
    """
    answer = await listing.ask(limit, cursor)
    if isinstance(answer, UnreadableErr):
        return await _in_pieces(listing, limit, cursor, answer)
    if isinstance(answer, Err):
        return answer
    listed = answer.data.get(listing.key)
    if not isinstance(listed, list):
        return Err(f"the answer holds no list of {listing.key}", kind="transient")
    return Ok(RawPage(tuple(listed), text_of(answer.data, "cursor") or None, 0, answer.data))


async def _in_pieces(
    listing: PagedListing, limit: int, cursor: str | None, failed: UnreadableErr
) -> ApiResult[RawPage]:
    if limit <= 1:
        return await _behind(listing, cursor, failed)
    half = limit // 2
    first = await read_page(listing, half, cursor)
    if isinstance(first, Err) or not first.data.cursor:
        return first
    second = await read_page(listing, limit - half, first.data.cursor)
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


async def _behind(listing: PagedListing, cursor: str | None, failed: UnreadableErr) -> ApiResult[RawPage]:
    """A page of nothing, that ends behind the one unreadable item after `cursor`."""
    after = failed.cursor if failed.cursor != cursor else ""
    if not after:
        found = await listing.detours.around(listing.ask, cursor)
        if isinstance(found, UnreadableErr):
            return failed
        if isinstance(found, Err):
            return found
        after = found.data
    logger.warning("%s; the item is passed over", failed.error)
    return Ok(RawPage((), after, 1, {}))
