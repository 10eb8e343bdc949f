"""Tests of reading past an unreadable item by its time, with both forms of Bluesky's cursors."""

from datetime import timedelta

import pytest

from adapters.atproto.convert import Json
from adapters.atproto.reads import Ask, Detours
from adapters.atproto.types import UnreadableErr
from common.clock import FakeClock, iso, parse_iso
from common.result import ApiResult, Err, Ok

CLOCK = FakeClock()
NOW_MS = int(CLOCK.now().timestamp() * 1000)
ODD_MS = NOW_MS - 4_321_987


def moment_of(cursor: str) -> int:
    return int(cursor.split("__", maxsplit=1)[0]) if "__" in cursor else round(parse_iso(cursor).timestamp() * 1000)


def listing(odd_ms: int = ODD_MS, refuses: str = "none") -> tuple[Ask, list[str | None]]:
    """Return an `ask` for a list of one item a minute and an unreadable one, and the cursors that it was given."""
    asked: list[str | None] = []
    moments = sorted([odd_ms, *(NOW_MS - 60_000 * minute for minute in range(1, 600))], reverse=True)

    async def ask(limit: int, cursor: str | None) -> ApiResult[Json]:
        asked.append(cursor)
        if refuses in (cursor or ""):
            return Err("Malformed cursor", "invalid")
        before = NOW_MS if cursor is None else moment_of(cursor)
        found = [moment for moment in moments if moment < before][:limit]
        return UnreadableErr("too large", "transient") if odd_ms in found else Ok({"items": found})

    return ask, asked


@pytest.mark.parametrize("tail", [None, "__bafyreia"])
async def test_it_ends_right_behind_the_item_and_is_remembered(tail: str | None) -> None:
    ask, asked = listing()
    before = ODD_MS + 1_400
    start = f"{before}{tail}" if tail else iso(CLOCK.now() - timedelta(milliseconds=NOW_MS - before))
    detours = Detours(CLOCK)
    found = await detours.around(ask, start)
    assert isinstance(found, Ok)
    assert moment_of(found.data) == ODD_MS
    count = len(asked)
    assert count < 40
    assert await detours.around(ask, start) == found
    assert len(asked) == count


@pytest.mark.parametrize("refuses", ["Z", "none"])
async def test_an_item_before_every_cursor_is_looked_for_from_now_on_in_either_form(refuses: str) -> None:
    ask, _ = listing(NOW_MS - 30_000, refuses)
    found = await Detours(CLOCK).around(ask, None)
    assert isinstance(found, Ok)
    assert moment_of(found.data) == NOW_MS - 30_000


async def test_a_cursor_that_is_no_moment_leads_nowhere() -> None:
    ask, asked = listing()
    assert isinstance(await Detours(CLOCK).around(ask, "3kjsrcq75lw42"), UnreadableErr)
    assert asked == []


async def test_a_service_that_fails_on_the_way_is_asked_another_time() -> None:
    ask, _ = listing(refuses="T")
    found = await Detours(CLOCK).around(ask, iso(CLOCK.now()))
    assert isinstance(found, Err)
    assert not isinstance(found, UnreadableErr)
