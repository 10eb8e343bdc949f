"""Proves over HTTP that the gallery describes its channels as Are.na's API does, and serves their pictures."""

import io
import re
from collections.abc import AsyncIterator

import httpx
import pytest
from PIL import Image

from common.clock import FakeClock
from common.design_catalog import read_design_sources
from modules.services.identity.identity import extract_from_self
from tests.loopback import NO_TLS
from tests.patience import HANG_S
from town.gallery.library import BY_SLUG, NAMES, SIZES
from town.gallery.service import Fault, GalleryFaults, gallery_app
from town.residents import RESIDENTS
from town.serving import serve


@pytest.fixture
def faults() -> GalleryFaults:
    return GalleryFaults()


@pytest.fixture
async def gallery(clock: FakeClock, faults: GalleryFaults) -> AsyncIterator[httpx.AsyncClient]:
    app = gallery_app(clock, armed=faults)
    async with serve(app) as url, httpx.AsyncClient(base_url=url, verify=NO_TLS) as http:
        yield http


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


async def test_channels_are_found_by_their_words_page_by_page(gallery: httpx.AsyncClient) -> None:
    found = (await gallery.get("/v2/search/channels", params={"q": "threads", "per": 1})).json()
    assert (found["length"], found["total_pages"], found["current_page"], found["per"]) == (2, 2, 1, 1)
    assert [(one["slug"], one["length"], one["user"]["slug"]) for one in found["channels"]] == [
        ("signs-and-surfaces", 4, "print-shop")
    ]
    second = (await gallery.get("/v2/search/channels", params={"q": "threads", "per": 1, "page": 2})).json()
    assert [one["slug"] for one in second["channels"]] == ["unsorted"]
    for nothing in ("", "submarine"):
        assert (await gallery.get("/v2/search/channels", params={"q": nothing})).json()["channels"] == []


async def test_blocks_are_found_by_their_words(gallery: httpx.AsyncClient) -> None:
    found = (await gallery.get("/v2/search/blocks", params={"q": "spring repainted"})).json()
    assert [block["id"] for block in found["blocks"]] == [5005]
    everything = (await gallery.get("/v2/search", params={"q": "sign"})).json()
    assert {block["class"] for block in everything["blocks"]} == {"Image", "Link"}
    assert [channel["slug"] for channel in everything["channels"]] == ["signs-and-surfaces"]


async def test_a_channel_tells_itself_and_its_contents_tell_only_blocks(gallery: httpx.AsyncClient) -> None:
    channel = (await gallery.get("/v2/channels/tides-and-lights", params={"per": 2})).json()
    assert (channel["title"], channel["length"], channel["class"]) == ("Tides and lights", 4, "Channel")
    assert len(channel["contents"]) == 2
    contents = [
        (await gallery.get("/v2/channels/tides-and-lights/contents", params={"per": 2, "page": page})).json()
        for page in (1, 2, 3)
    ]
    assert [[block["id"] for block in page["contents"]] for page in contents] == [[5001, 5005], [5007, 5003], []]
    assert all(set(page) == {"contents"} for page in contents)
    first = contents[0]["contents"][0]
    assert (first["position"], first["connected_at"]) == (1, "2026-01-05T10:00:00.000Z")


async def test_a_block_tells_its_pictures_and_its_source(gallery: httpx.AsyncClient) -> None:
    block = (await gallery.get("/v2/blocks/5003")).json()
    assert (block["class"], block["title"], block["generated_title"]) == ("Image", "", "lit-window.png")
    assert block["source"] == {
        "url": "https://windows.example/night/7",
        "title": "Windows, night 7",
        "provider": {"name": "Windows", "url": "https://windows.example"},
    }
    for size in SIZES:
        shown = await gallery.get(block["image"][size]["url"])
        assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")
        assert max(opened(shown.content).size) <= SIZES[size]
    original = block["image"]["original"]
    assert len((await gallery.get(original["url"])).content) == original["file_size"]
    text = (await gallery.get("/v2/blocks/5007")).json()
    assert (text["class"], text["image"], text["source"]) == ("Text", None, None)


async def test_the_pictures_are_of_many_kinds(gallery: httpx.AsyncClient) -> None:
    shown = {name: (await gallery.get(f"/pictures/original/{name}")).content for name in NAMES}
    assert {opened(content).format for content in shown.values()} == {"PNG", "JPEG"}
    assert "A" in opened(shown["lit-window.png"]).mode
    assert len(shown["wet-slates.png"]) > 2_000_000
    assert opened(shown["lighthouse.jpg"]).getexif()[0x0112] == 6
    assert all(min(opened(content).size) >= 400 for content in shown.values())


@pytest.mark.parametrize("path", ["/exhibition", "/harbour-archive/tides-and-lights", "/block/5005"])
async def test_a_page_shows_pictures_that_are_there(gallery: httpx.AsyncClient, path: str) -> None:
    page = await gallery.get(path)
    assert page.headers["content-type"].startswith("text/html")
    urls = re.findall(r"/pictures/\w+/[\w-]+\.\w+", page.text)
    assert urls
    for url in urls:
        assert (await gallery.get(url)).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v2/channels/nowhere",
        "/v2/channels/nowhere/contents",
        "/v2/blocks/1",
        "/v2/else",
        "/pictures/original/none.png",
        "/pictures/huge/threads.png",
        "/print-shop/tides-and-lights",
        "/block/1",
    ],
)
async def test_what_there_is_not_is_not_found(gallery: httpx.AsyncClient, path: str) -> None:
    answer = await gallery.get(path)
    assert (answer.status_code, answer.json()["code"], answer.json()["message"]) == (404, 404, "Not Found")


async def test_a_hanging_gallery_answers_late(gallery: httpx.AsyncClient, faults: GalleryFaults) -> None:
    faults.arm(Fault("hang", seconds=60))
    with pytest.raises(httpx.ReadTimeout):
        await gallery.get("/v2/blocks/5001", timeout=httpx.Timeout(HANG_S, read=0.2))
    assert (await gallery.get("/v2/blocks/5001")).status_code == 200


def test_each_resident_has_pictures_of_its_own_to_show() -> None:
    shown = [
        [
            block.picture
            for name in re.findall(r"are\.na/[\w-]+/([\w-]+)", resident.self_md)
            for block in BY_SLUG[name].blocks
        ]
        for resident in RESIDENTS
    ]
    pictures = [picture for of_one in shown for picture in of_one if picture]
    assert all(any(of_one) for of_one in shown)
    assert len(pictures) == len(set(pictures))


def test_each_resident_may_show_its_pictures_unasked() -> None:
    for resident in RESIDENTS:
        listed = read_design_sources(extract_from_self(resident.self_md).design_catalog, resident.soul)
        assert listed, resident.name
        assert all(source.is_owners for source in listed), resident.name
