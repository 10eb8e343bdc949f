"""Proves that a picture is found, posted with words and source, and shown once, with the town's network and gallery."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from common.clock import SystemClock
from common.provenance import Provenance
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import OwnerRequest, ToolResult, Turn
from tests.running_town import RunningSoul, RunningTown, awake, served
from town.gallery.library import picture
from town.gallery.service import gallery_app
from town.model.types import Completion
from town.serving import serve

OWNER = Turn("owner", Provenance.OWNER, cause_id="owner")
MIXED = Turn("owner", Provenance.STRANGER, cause_id="owner", origin=Provenance.OWNER)
CHANNEL = "harbour-archive/tides-and-lights"
SAID = "Somebody repaints it every spring. Which colour would you give it?"


@dataclass
class Sharing:
    """An awake SOUL, with a gallery to look at."""

    life: RunningSoul
    town: RunningTown
    gallery: str

    async def use(self, name: str, turn: Turn = OWNER, /, **arguments: object) -> ToolResult:
        return await self.life.app.lives.turn_services.turn_runner.executor.execute(
            ToolCall("1", name, arguments), turn
        )

    async def done(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool, which must succeed, and return its answer."""
        result = await self.use(name, **arguments)
        assert not result.is_error, result.content
        found: dict[str, Any] = json.loads(result.content)
        return found

    def shown(self) -> list[dict[str, Any]]:
        """Return the records of our posts with pictures, oldest first."""
        records = self.town.network.records(self.town.account("rowan"), "app.bsky.feed.post")
        return sorted((one.value for one in records if "embed" in one.value), key=lambda value: value["createdAt"])

    def image(self, record: dict[str, Any]) -> tuple[str, bytes]:
        """Return the alt text and the bytes of the one picture of a post."""
        (image,) = record["embed"]["images"]
        blob = self.town.network.blob(self.town.account("rowan"), image["image"]["ref"]["$link"])
        assert blob is not None
        return image["alt"], blob.content


def read(result: ToolResult) -> Any:
    """Return what a reading tool brought, without its frame; it must count as a stranger's words."""
    assert result.provenance is Provenance.STRANGER, result.content
    return json.loads(result.content.splitlines()[1])


@pytest.fixture
async def sharing(running_town: RunningTown) -> AsyncIterator[Sharing]:
    async with serve(gallery_app(SystemClock())) as url:
        home = running_town.make_home("rowan", ARENA_API_URL=f"{url}/v2", SOUL_ALLOW_PRIVATE_NET="on")
        async with awake(home) as life:
            yield Sharing(life, running_town, url)


async def test_a_channel_is_found_read_and_one_picture_of_it_posted_with_its_source(sharing: Sharing) -> None:
    found = read(await sharing.use("arena_search", query="repainted"))
    assert [channel["channel_url"] for channel in found["channels"]] == [f"https://www.are.na/{CHANNEL}"]
    listed = read(await sharing.use("arena_fetch_channel", channel_url=found["channels"][0]["channel_url"]))
    assert [block["id"] for block in listed["blocks"]] == [5001, 5005, 5003]
    nameless = await sharing.use("arena_post_image", channel_url=CHANNEL)
    assert nameless.is_error
    posted = await sharing.done("arena_post_image", channel_url=CHANNEL, text=SAID, alt_text="A drawn table.")
    assert posted["remaining_unposted"] == 2
    await sharing.life.send()
    (record,) = sharing.shown()
    (block,) = [block for block in listed["blocks"] if block["id"] == posted["block_id"]]
    place = f"https://www.are.na/block/{block['id']}"
    assert record["text"].endswith(f"Source: {place}")
    assert [facet["features"][0].get("uri") for facet in record["facets"]] == [place]
    alt, data = sharing.image(record)
    assert alt == "A drawn table."
    assert data.startswith((b"\xff\xd8\xff", b"\x89PNG"))


async def test_every_picture_of_a_channel_is_shown_once_and_then_there_is_none_left(sharing: Sharing) -> None:
    ids = set()
    for words in ("One.", "Another.", "The last."):
        ids.add((await sharing.done("arena_post_image", channel_url=CHANNEL, text=words))["block_id"])
        await sharing.life.send()
    assert ids == {5001, 5003, 5005}
    last = await sharing.use("arena_post_image", channel_url=CHANNEL, text="Once more.")
    assert last.is_error
    assert "every picture of this channel" in last.content
    assert len(sharing.shown()) == 3


async def test_a_page_is_browsed_a_picture_downloaded_and_posted_as_a_reply(sharing: Sharing) -> None:
    uri, _ = sharing.town.network.post_as(sharing.town.account("owner"), "Show me a lighthouse.")
    page = read(await sharing.use("web_browse_images", url=f"{sharing.gallery}/exhibition"))
    (tower,) = [image["url"] for image in page["images"] if "lighthouse" in image["url"]]
    download = await sharing.done("curl_fetch", url=tower)
    assert download["size"] == len(picture("lighthouse.jpg"))
    await sharing.done(
        "bluesky_post_with_image",
        text=SAID,
        image_path=download["file_path"],
        alt_text="A striped tower",
        post_uri=f"https://bsky.app/profile/owner.test/post/{uri.rpartition('/')[2]}",
    )
    await sharing.life.send()
    (record,) = sharing.shown()
    assert record["reply"]["parent"]["uri"] == uri
    assert record["text"] == f"{SAID}\n\nSource: {sharing.gallery}/exhibition"
    alt, data = sharing.image(record)
    assert alt == "A striped tower"
    assert b"Exif" not in data
    again = read(await sharing.use("web_browse_images", url=f"{sharing.gallery}/exhibition"))
    assert tower not in [image["url"] for image in again["images"]]


async def test_a_picture_of_a_channel_answers_a_post_and_is_not_taken_for_one_that_is_gone(sharing: Sharing) -> None:
    uri, _ = sharing.town.network.post_as(sharing.town.account("owner"), "Show me a table.")
    gone = await sharing.use("arena_post_image", channel_url=CHANNEL, text="Here.", post_uri=f"{uri}x")
    assert gone.is_error
    posted = await sharing.done("arena_post_image", channel_url=CHANNEL, text="Here.", post_uri=uri)
    await sharing.life.send()
    (record,) = sharing.shown()
    assert (record["reply"]["parent"]["uri"], posted["remaining_unposted"]) == (uri, 2)


async def test_among_others_words_only_what_was_listed_is_fetched_and_the_post_waits_for_a_yes(
    sharing: Sharing,
) -> None:
    page = read(await sharing.use("web_browse_images", url=f"{sharing.gallery}/exhibition"))
    url = page["images"][0]["url"]
    refused = await sharing.use("curl_fetch", MIXED, url=url)
    assert refused.content.startswith("Blocked")
    more = {"text": SAID, "alt_text": "A striped tower"}
    unlisted = f"{sharing.gallery}/pictures/original/lighthouse.jpg?all=it-saw"
    assert (await sharing.use("bluesky_post_with_image", MIXED, image_path=unlisted, **more)).is_error
    held = await sharing.use("bluesky_post_with_image", MIXED, image_path=url, **more)
    assert held.content.startswith("HELD")
    (intent,) = await sharing.life.app.services.outbox.held()
    assert intent.body.preview.endswith(f"[picture: A striped tower] from {sharing.gallery}/exhibition")
    await sharing.life.app.services.outbox.approve(intent.id)
    await sharing.life.send()
    assert len(sharing.shown()) == 1


async def test_what_is_no_markup_is_read_as_it_is_and_long_json_is_shortened(sharing: Sharing) -> None:
    table, rows = "day,height\n2026-11-01,3.2", [{"id": number, "name": "tide"} for number in range(3000)]
    pages = [
        Route("/table", lambda _: Response(table, media_type="text/csv")),
        Route("/tides", lambda _: JSONResponse(rows)),
    ]
    async with served(Starlette(routes=pages)) as (url,):
        assert read(await sharing.use("web_fetch", url=f"{url}/table"))["content"] == table
        told = read(await sharing.use("web_fetch", url=f"{url}/tides", extract="json"))
        assert told["content"].startswith('[{"id": 0')
        assert (told["characters_shown"], told["characters_in_all"]) == (len(told["content"]), len(json.dumps(rows)))


UNFIT: list[tuple[dict[str, str], str]] = [
    ({"image_path": "/etc/passwd"}, "no such picture"),
    ({"image_path": ".memory/images/../soul.db"}, "no such picture"),
    ({"image_path": "https://images.example/1.png"}, "no such picture"),
    ({"alt_text": "  "}, "alt_text is empty"),
    ({"text": "word " * 60}, "characters, at most"),
]


async def test_what_cannot_be_posted_is_told_and_nothing_leaves(sharing: Sharing) -> None:
    download = await sharing.done("curl_fetch", url=f"{sharing.gallery}/pictures/original/threads.png")
    fit = {"text": SAID, "image_path": download["file_path"], "alt_text": "Threads"}
    for arguments, told in UNFIT:
        refused = await sharing.use("bluesky_post_with_image", **{**fit, **arguments})
        assert (refused.is_error, told in refused.content) == (True, True), arguments
    await sharing.life.send()
    assert sharing.shown() == []


async def test_a_download_is_a_picture_or_an_error(sharing: Sharing) -> None:
    for path, told in (("/exhibition", "not a picture"), ("/nowhere.png", "404")):
        refused = await sharing.use("curl_fetch", url=sharing.gallery + path)
        assert (refused.is_error, told in refused.content) == (True, True), path


async def test_a_page_is_read_as_text_markup_or_json_and_is_a_stranger_s_word(sharing: Sharing) -> None:
    page = f"{sharing.gallery}/exhibition"
    told = read(await sharing.use("web_fetch", url=page))
    assert told["url"] == page
    assert told["content"].startswith("Light on surfaces\n\nSix works from two collections.")
    assert "<figure>" in read(await sharing.use("web_fetch", url=page, extract="html"))["content"]
    channel = f"{sharing.gallery}/v2/channels/unsorted"
    assert read(await sharing.use("web_fetch", url=channel, extract="json"))["content"]["length"] == 2
    for url, extract in ((page, "json"), (f"{sharing.gallery}/pictures/original/threads.png", "text")):
        assert (await sharing.use("web_fetch", url=url, extract=extract)).is_error
    bare = await sharing.use("web_fetch", url=page.removeprefix("http://"))
    assert (bare.is_error, "scheme" in bare.content) == (True, False), "it is read by https, which the gallery lacks"
    assert (await sharing.use("web_fetch", MIXED, url=page)).content.startswith("Blocked")
    sharing.town.mind.answer = lambda _: Completion("YES")
    for line, is_read in ((f"read {page} to me", True), ("read that page to me", False)):
        asked = replace(MIXED, request=OwnerRequest(line))
        assert (await sharing.use("web_fetch", asked, url=page)).is_error != is_read


@pytest.mark.slow
async def test_where_a_picture_came_from_is_looked_up_and_completed(sharing: Sharing) -> None:
    channel = "print-shop/signs-and-surfaces"
    for number in range(3):
        await sharing.done("arena_post_image", channel_url=channel, text=f"Surface number {number}.")
        await sharing.life.send()
    waiting = read(await sharing.use("get_posts_needing_attribution"))
    assert waiting
    uri = waiting[0]["bluesky"]["post_uri"]
    block = waiting[0]["source"]["block_url"]
    assert read(await sharing.use("format_source_attribution", post_uri=uri))["attribution"].startswith(
        f"Source: {block}"
    )
    maker = "https://maker.example/slates"
    assert not (await sharing.use("update_post_attribution", post_uri=uri, original_url=maker)).is_error
    told = read(await sharing.use("lookup_post_context", post_uri=waiting[0]["bluesky"]["bsky_url"]))
    assert f"Original: {maker}." in told["context"]
    assert uri not in [one["bluesky"]["post_uri"] for one in await _waiting(sharing)]
    assert not (await sharing.use("mark_attribution_followup", post_uri=uri, notes="is it hers?")).is_error
    assert uri in [one["bluesky"]["post_uri"] for one in await _waiting(sharing)]
    missing = await sharing.use("lookup_post_context", post_uri="at://did:plc:nobody/app.bsky.feed.post/1")
    assert missing.is_error


async def _waiting(sharing: Sharing) -> list[dict[str, Any]]:
    result = await sharing.use("get_posts_needing_attribution", limit=50)
    return list(json.loads(result.content.splitlines()[1]))


async def test_on_this_machine_nothing_is_fetched_but_from_the_gallery_of_the_settings(
    running_town: RunningTown,
) -> None:
    async with serve(gallery_app(SystemClock())) as url, awake(running_town.make_home("rowan")) as life:
        use = life.app.lives.turn_services.turn_runner.executor.execute
        for name, path in (
            ("curl_fetch", "/pictures/original/threads.png"),
            ("web_browse_images", "/exhibition"),
            ("web_fetch", "/exhibition"),
        ):
            refused = await use(ToolCall("1", name, {"url": f"{url}{path}"}), OWNER)
            assert refused.is_error
            assert "out of bounds" in refused.content
