"""Finds and fetches pictures to share: in channels of Are.na, and on pages. Fetches keep within fixed bounds."""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from cachetools import LRUCache

from adapters.arena.types import Block, Channel, ChannelPage
from adapters.web.types import Fetched
from common.result import ApiResult, Err, Ok, answering
from common.text.untrusted import one_line
from modules.services.outbox.bodies import PictureSource
from modules.services.pictures.files import SOURCE_MAX_BYTES
from modules.services.pictures.page_images import PageImages, find_images
from modules.services.pictures.pictures import Pictures

_LISTED_MOST = 500
_PAGE_MAX_BYTES = 1024 * 1024
_DEADLINE_S = 30.0
_TEXT_CHARS = 300
_FILE_NAME = re.compile(r"[^\n]{1,300}\.(?:png|jpe?g|gif|webp|avif|tiff?|bmp|heic)", re.IGNORECASE)
_SIGNS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"GIF8": "image/gif"}


@dataclass(frozen=True, slots=True)
class Picked:
    """A picture of a channel that was not shown before, and how many such pictures are left beside it."""

    block: Block
    channel: Channel
    remaining: int


class PictureFinder:
    """Looks for pictures. Those that it has listed may be fetched by their address, whoever names it."""

    def __init__(self, pictures: Pictures, rng: random.Random) -> None:
        self._pictures = pictures
        self._rng = rng
        self._listed: LRUCache[str, PictureSource] = LRUCache(_LISTED_MOST)

    async def channel(self, owner: str, slug: str, page: int) -> ApiResult[ChannelPage]:
        """One page of a channel; its pictures are listed."""
        found = await self._pictures.arena.fetch_channel(owner, slug, page)
        if isinstance(found, Ok):
            for block in found.data.image_blocks:
                self._listed[block.image_url] = source_of(block, found.data.channel)
        return found

    async def unposted(self, owner: str, slug: str) -> ApiResult[ChannelPage]:
        """The pictures of a channel that were not shown before, of the first page with any.

        `Err` of kind `not_found` if none is left.
        """

        def is_new(block: Block) -> bool:
            return not self._pictures.was_posted(PictureSource(block_id=block.id))

        found = await self._pictures.arena.find_images(owner, slug, is_new)
        if isinstance(found, Ok) and not found.data.image_blocks:
            return Err("every picture of the channel was shown before", "not_found")
        return found

    @answering
    async def pick(self, owner: str, slug: str) -> ApiResult[Picked]:
        """Any picture of a channel that was not shown before. `Err` of kind `not_found` if none is left."""
        found = (await self.unposted(owner, slug)).or_raise()
        blocks = found.image_blocks
        return Ok(Picked(self._rng.choice(blocks), found.channel, len(blocks) - 1))

    @answering
    async def browse(self, url: str, min_width: int) -> ApiResult[PageImages]:
        """The pictures of a page that were not shown before; they are listed."""
        page = (
            await self._pictures.web.fetch(
                url, kinds=("text/html", "application/xhtml+xml"), max_bytes=_PAGE_MAX_BYTES, deadline_s=_DEADLINE_S
            )
        ).or_raise()
        found = await asyncio.to_thread(find_images, page.text, page.url, min_width=min_width)
        same_host = urlsplit(page.url).hostname == urlsplit(url).hostname
        place = page.url if same_host else url
        for image in found.images:
            self._listed[image.url] = PictureSource(
                type="web", image_url=image.url, page_url=place, page_title=one_line(found.title, _TEXT_CHARS)
            )
        new = [image for image in found.images if not self._pictures.was_posted(self._listed[image.url])]
        return Ok(PageImages(found.title, new, found.left_out + len(found.images) - len(new)))

    def is_listed(self, url: str) -> bool:
        """Whether a channel or a page that was read shows this picture."""
        return url in self._listed

    def source_of(self, url: str) -> PictureSource:
        """What is known of the source of a picture."""
        return self._listed.get(url) or PictureSource(image_url=url)

    @answering
    async def fetch(self, url: str, max_bytes: int = SOURCE_MAX_BYTES) -> ApiResult[tuple[bytes, str, PictureSource]]:
        """The file of a picture, its media type, and what is known of its source."""
        fetched = (
            await self._pictures.web.fetch(url, kinds=("*",), max_bytes=max_bytes, deadline_s=_DEADLINE_S)
        ).or_raise()
        mime_type = _media_type(fetched)
        if not mime_type:
            return Err(f"the answer is {fetched.kind or 'of no stated type'}, not a picture", "invalid")
        return Ok((fetched.body, mime_type, self.source_of(url)))


def source_of(block: Block, channel: Channel) -> PictureSource:
    """Where a block comes from, in words that are safe to keep."""
    return PictureSource(
        type="arena",
        image_url=block.image_url,
        page_title=one_line(block.source_title, _TEXT_CHARS),
        original_url=block.source_url,
        source_provider=one_line(block.provider, _TEXT_CHARS),
        filename=one_line(block.filename, _TEXT_CHARS),
        channel_url=channel.url,
        block_id=block.id,
        block_url=block.url,
        block_title=one_line(block.title, _TEXT_CHARS),
        arena_user=one_line(block.username, _TEXT_CHARS),
    )


def title_of(block: Block, channel: Channel) -> str:
    """What a block is called, in one line; where it has no title but the name of its file, what is known beside it."""
    named = "" if _FILE_NAME.fullmatch(block.title) else block.title
    return one_line(named or block.source_title or channel.title, _TEXT_CHARS)


def place_of(source: PictureSource) -> str:
    """The address by which readers find a picture; "" if none is known.

    What whoever hung it there says of its origin is a stranger's word, and never stands in a post.
    """
    return source.block_url or source.page_url or source.image_url


def _media_type(fetched: Fetched) -> str:
    """What the first bytes say that it is; "" for what is no picture that can be shared."""
    body = fetched.body
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for sign, mime in _SIGNS.items() if body.startswith(sign)), "")
