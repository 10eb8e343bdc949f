"""Tests of the Are.na adapter against the town's gallery, and against answers that no gallery should give."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from adapters.arena import Arena, Block, parse_channel_url
from adapters.web.client import WebClient, WebTransport
from common.clock import SystemClock
from common.result import Err
from tests.adapters.results import ok
from town.gallery.library import picture
from town.gallery.service import Fault, GalleryFaults, gallery_app
from town.serving import serve


@pytest.fixture
def faults() -> GalleryFaults:
    return GalleryFaults()


@asynccontextmanager
async def reading(app: Starlette, path: str = "/v2") -> AsyncIterator[Arena]:
    async with serve(app) as url:
        web = WebClient(WebTransport(allow=[url]))
        yield Arena(web, f"{url}{path}")
        await web.aclose()


@pytest.fixture
async def arena(faults: GalleryFaults) -> AsyncIterator[Arena]:
    async with reading(gallery_app(SystemClock(), armed=faults)) as arena:
        yield arena


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://www.are.na/www-jim/rpg-ui-01", ("www-jim", "rpg-ui-01")),
        ("are.na/www-jim/rpg-ui-01/", ("www-jim", "rpg-ui-01")),
        ("http://are.na/a/b?page=2", ("a", "b")),
        ("www-jim/rpg-ui-01", ("www-jim", "rpg-ui-01")),
        ("https://www.are.na/block/123", None),
        ("https://www.are.na/www-jim", None),
        ("https://are.na.example/a/b", None),
        ("https://example.org/are.na/a/b", None),
        ("../../etc/passwd", None),
        ("a/b/c", None),
        ("", None),
    ],
)
def test_a_channel_is_known_by_its_address(url: str, found: tuple[str, str] | None) -> None:
    assert parse_channel_url(url) == found


async def test_channels_are_found_by_words_but_for_very_small_ones(arena: Arena) -> None:
    found = ok(await arena.search_channels("threads"))
    assert [channel.slug for channel in found.channels] == ["signs-and-surfaces"]
    assert found.total_results == 2
    assert found.channels[0].url == "https://www.are.na/print-shop/signs-and-surfaces"
    nothing = await arena.search_channels("  ")
    assert isinstance(nothing, Err)
    assert nothing.kind == "invalid"


async def test_a_channel_tells_its_pictures_with_their_sources(arena: Arena) -> None:
    page = ok(await arena.fetch_channel("harbour-archive", "tides-and-lights"))
    assert (page.channel.title, page.channel.length, page.total_blocks) == ("Tides and lights", 4, 4)
    assert [block.id for block in page.image_blocks] == [5001, 5005, 5003]
    tide = page.image_blocks[0]
    assert (tide.title, tide.source_url) == ("Tide table, two days", "https://harbour.example/tides/two-days")
    assert (tide.provider, tide.filename, tide.username) == ("Harbour", "tide-table.png", "The Harbour Archive")
    assert ok(await arena.fetch_picture(tide)).body == picture("tide-table.png")


async def test_pages_are_read_until_one_has_a_picture_that_is_wanted(arena: Arena) -> None:
    seen: list[int] = []

    def wanted(block: Block) -> bool:
        seen.append(block.id)
        return block.id == 5003

    found = ok(await arena.find_images("harbour-archive", "tides-and-lights", wanted, per=1))
    assert [block.id for block in found.image_blocks] == [5003]
    assert seen == [5001, 5005, 5003]
    none = ok(await arena.find_images("harbour-archive", "tides-and-lights", lambda _: False, per=1))
    assert none.image_blocks == ()


@pytest.mark.parametrize(("owner", "slug"), [("harbour-archive", "nowhere"), ("print-shop", "tides-and-lights")])
async def test_a_channel_that_is_not_there_is_not_found(arena: Arena, owner: str, slug: str) -> None:
    missing = await arena.fetch_channel(owner, slug)
    assert isinstance(missing, Err)
    assert missing.kind == "not_found"


@pytest.mark.parametrize("kind", ["rate_limited", "server_error", "bad_gateway", "cut"])
async def test_what_the_service_does_is_an_error_that_says_so(arena: Arena, faults: GalleryFaults, kind: Any) -> None:
    faults.arm(Fault(kind, "*"))
    failed = await arena.fetch_channel("harbour-archive", "tides-and-lights")
    assert isinstance(failed, Err)
    assert failed.kind == "transient"
    ok(await arena.fetch_channel("harbour-archive", "tides-and-lights"))


def _answering(answer: object) -> Callable[[Request], Response]:
    return lambda _: answer if isinstance(answer, Response) else JSONResponse(answer)


GOOD = {"id": 1, "class": "Image", "image": {"original": {"url": "https://images.example/1"}}}


@pytest.mark.parametrize(
    "answer",
    [
        {"contents": None},
        {"contents": {"0": GOOD}},
        {"contents": [7, None, "x", {}, {**GOOD, "id": "1"}, {**GOOD, "class": "Text"}, {**GOOD, "image": 7}]},
        {"contents": [{**GOOD, "image": {"original": {"url": 7}}}]},
    ],
)
async def test_an_odd_item_costs_that_item_only(answer: dict[str, Any]) -> None:
    told = {"id": 1, "slug": "b", "title": 7, "length": "many", "user": None}
    routes = [Route("/v2/channels/b", _answering(told)), Route("/v2/channels/b/contents", _answering(answer))]
    async with reading(Starlette(routes=routes)) as arena:
        page = ok(await arena.fetch_channel("a", "b"))
    assert (page.image_blocks, page.channel.title, page.channel.length) == ((), "", 0)


@pytest.mark.parametrize(
    "answer", [[], Response("{", media_type="application/json"), Response("<p>", media_type="text/html")]
)
async def test_an_answer_that_cannot_be_read_is_an_error(answer: object) -> None:
    async with reading(Starlette(routes=[Route("/v2/channels/b", _answering(answer))])) as arena:
        assert isinstance(await arena.fetch_channel("a", "b"), Err)


async def test_a_picture_on_this_machine_is_fetched_only_from_the_gallery_that_the_owner_named(arena: Arena) -> None:
    async with serve(gallery_app(SystemClock())) as elsewhere:
        refused = await arena.fetch_picture(Block(1, f"{elsewhere}/pictures/original/threads.png"))
    assert isinstance(refused, Err)
    assert refused.kind == "invalid"
