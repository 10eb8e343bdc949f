"""Proves that a picture on a post can be looked at over HTTP, at an address like that of Bluesky's picture service."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.town.running import Town


def picture(colour: str = "teal") -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(content, "PNG")
    return content.getvalue()


async def uploaded(town: Town, did: str, content: bytes, mime: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {town.login(did)}", "content-type": mime}
    answer = await town.http.post("com.atproto.repo.uploadBlob", content=content, headers=headers)
    blob: dict[str, Any] = answer.json()["blob"]
    return blob


async def posted(town: Town, did: str, blob: dict[str, Any]) -> httpx.Response:
    images = [{"alt": "a sea", "image": blob, "aspectRatio": {"width": 4, "height": 3}}]
    embed = {"$type": "app.bsky.embed.images", "images": images}
    record = {"text": "look", "createdAt": "2026-01-05T12:00:00.000Z", "embed": embed}
    body = {"repo": did, "collection": "app.bsky.feed.post", "record": record}
    return await town.post("com.atproto.repo.createRecord", body, town.login(did))


@pytest.mark.parametrize("size", ["thumb", "fullsize"])
async def test_the_pictures_of_a_post_are_served(town: Town, member: Callable[[str], str], size: str) -> None:
    did = member("kit")
    post = await posted(town, did, await uploaded(town, did, picture(), "image/png"))
    seen = await town.get("app.bsky.feed.getPosts", town.login(member("ada")), uris=post.json()["uri"])
    (image,) = seen.json()["posts"][0]["embed"]["images"]
    assert (image["alt"], image["aspectRatio"]) == ("a sea", {"width": 4, "height": 3})
    shown = await town.http.get(image[size])
    assert (shown.status_code, shown.headers["content-type"], shown.content) == (200, "image/png", picture())
    for suffix in ("@jpeg", "@webp"):
        assert (await town.http.get(f"{image[size]}{suffix}")).content == picture()


async def test_only_pictures_are_shown_and_only_in_the_sizes_that_there_are(
    town: Town, member: Callable[[str], str]
) -> None:
    did = member("kit")
    seen = await uploaded(town, did, picture(), "image/png")
    text = await uploaded(town, did, b"hello", "text/plain")
    address = "{}/img/{}/plain/{}/{}"
    cases = (("feed_fullsize", seen, "", 200), ("huge", seen, "", 400), ("avatar", seen, "@bmp", 400))
    for size, blob, suffix, status in (*cases, ("feed_fullsize", text, "", 400)):
        cid = blob["ref"]["$link"] + suffix
        assert (await town.http.get(address.format(town.url, size, did, cid))).status_code == status


async def test_a_post_that_tells_another_size_or_kind_than_the_file_has_is_refused(
    town: Town, member: Callable[[str], str]
) -> None:
    did = member("kit")
    blob = await uploaded(town, did, picture(), "image/png")
    for change, name in (({"size": 12}, "InvalidSize"), ({"mimeType": "image/jpeg"}, "InvalidMimeType")):
        answer = await posted(town, did, {**blob, **change})
        assert (answer.status_code, answer.json()["error"]) == (400, name)
    assert (await posted(town, did, blob)).status_code == 200
