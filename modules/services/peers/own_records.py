"""Looks through the SOUL's own records on the network, which know more than its feed and never lag behind."""

from __future__ import annotations

from collections.abc import Callable

from adapters.atproto.client import Atproto
from adapters.atproto.types import Record
from common.result import ApiResult, Ok, answering

POSTS, FOLLOWS = "app.bsky.feed.post", "app.bsky.graph.follow"
_MAX_PAGES = 10


@answering
async def find_own_record(
    atproto: Atproto, collection: str, matches: Callable[[Record], bool]
) -> ApiResult[Record | None]:
    """The newest record of a kind that matches, among the latest 1,000; an `Err` if not all of these could be read."""
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = (await atproto.list_records(collection, cursor=cursor)).or_raise()
        if found := next(filter(matches, page.records), None):
            return Ok(found)
        cursor = page.cursor
        if not cursor:
            break
    return Ok(None)


def text_of(record: Record) -> str:
    """The text of a post; "" if it has none."""
    text = record.value.get("text")
    return text if isinstance(text, str) else ""
