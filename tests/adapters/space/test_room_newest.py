"""Tests that a room that opens while a SOUL sleeps is news, and that one that it knew is not."""

from adapters.space.discovery import RoomNewest, RoomSearch
from common.clock import FakeClock
from common.result import ApiResult, Err, Ok


async def test_a_room_that_opens_is_news_to_all_that_sleep_after_one_search() -> None:
    clock, searches = FakeClock(), list[str]()
    room: ApiResult[str] = Err("none here", "not_found")

    async def discover() -> ApiResult[str]:
        searches.append("")
        return room

    search = RoomSearch(clock, discover)
    rowan, wren = RoomNewest(search), RoomNewest(search)
    assert [await one.came() for one in (rowan, wren)] == [Ok(data=False), Ok(data=False)]
    room = Ok("ws://127.0.0.1:7777")
    await clock.advance(60)
    assert [await one.came() for one in (rowan, wren)] == [Ok(data=True), Ok(data=True)]
    assert len(searches) == 2
    assert await RoomNewest(search).came() == Ok(data=False), "who was not let in there sleeps on"


async def test_a_room_that_closes_and_opens_again_at_its_address_is_news() -> None:
    clock, found = FakeClock(), "ws://127.0.0.1:7777"

    async def discover() -> ApiResult[str]:
        return Ok(found)

    newest = RoomNewest(RoomSearch(clock, discover))
    came = [await newest.came()]
    for now in ("", "ws://127.0.0.1:7777"):
        found = now
        await clock.advance(60)
        came.append(await newest.came())
    assert came == [Ok(data=False), Ok(data=False), Ok(data=True)]
