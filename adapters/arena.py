"""Are.na: channels of pictures that people collect, read without an account (version 2 of its API).

Every call has a deadline, and a malformed item is skipped. Texts are untrusted; a missing text is "".
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import httpx

from adapters.web.client import WebClient, origin_of
from adapters.web.types import Fetched
from common.lenient_json import parse
from common.result import ApiResult, Err, Ok, answering


@dataclass(frozen=True, slots=True)
class Channel:
    """A collection; `length` counts its blocks."""

    id: int
    slug: str
    title: str
    length: int
    owner: str = ""

    @property
    def url(self) -> str:
        """The URL of its page."""
        return f"https://www.are.na/{self.owner or 'channels'}/{self.slug}"


@dataclass(frozen=True, slots=True)
class Block:
    """A picture in a channel: `image_url` is its largest size, `source_url` the page where it was found."""

    id: int
    image_url: str
    title: str = ""
    description: str = ""
    source_url: str = ""
    source_title: str = ""
    provider: str = ""
    filename: str = ""
    username: str = ""
    connected_at: str = ""

    @property
    def url(self) -> str:
        """The URL of its page."""
        return f"https://www.are.na/block/{self.id}"


@dataclass(frozen=True, slots=True)
class ChannelPage:
    """One page of a channel: its pictures, and how many blocks of any kind the page has."""

    channel: Channel
    image_blocks: Sequence[Block]
    total_blocks: int


@dataclass(frozen=True, slots=True)
class ChannelsFound:
    """Channels that a search found on one page, and how many there are in all."""

    channels: Sequence[Channel]
    total_results: int


Json: TypeAlias = Mapping[str, Any]

CHANNEL_MAX_PAGES = 10
MAX_PER_PAGE = 100
PICTURE_MAX_BYTES = 10 * 1024 * 1024

_SEARCHED_LEAST = 3
_DEADLINE_S = 20.0
_ANSWER_MAX_BYTES = 4 * 1024 * 1024
_TEXT_CHARS = 4000
_CHANNEL = re.compile(r"(?:(?:https?://)?(?:www\.)?are\.na/)?([\w-]{1,200})/([\w-]{1,200})/?(?:[?#].*)?")
_NO_CHANNELS = {"block", "search", "explore", "about", "settings", "api"}
_NOTHING: Json = {}


def parse_channel_url(url: str) -> tuple[str, str] | None:
    """Return `(owner, slug)` of `https://www.are.na/owner/slug` or `owner/slug`; None if it names no channel."""
    match = _CHANNEL.fullmatch(url.strip())
    return (match[1], match[2]) if match and match[1] not in _NO_CHANNELS else None


class Arena:
    """Reads channels and their pictures. `api_url` is the API, by default that of Are.na."""

    def __init__(self, web: WebClient, api_url: str) -> None:
        self._web = web
        self._api_url = api_url

    @answering
    async def search_channels(self, query: str, page: int = 1, per: int = 10) -> ApiResult[ChannelsFound]:
        """Return channels of at least three blocks that contain the words of `query`."""
        if not query.strip():
            return Err("a search needs words", "invalid")
        answer = await self._get("search/channels", q=query.strip(), page=page, per=min(per, MAX_PER_PAGE))
        found = [channel for one in _items(answer, "channels") if (channel := _channel(one)) is not None]
        kept = tuple(channel for channel in found if channel.length >= _SEARCHED_LEAST)
        return Ok(ChannelsFound(kept, _number(answer, "length")))

    @answering
    async def fetch_channel(self, owner: str, slug: str, page: int = 1, per: int = 50) -> ApiResult[ChannelPage]:
        """Return one page of a channel. A channel that does not exist is an `Err` of kind `not_found`."""
        told = await self._channel(owner, slug)
        blocks, count = await self._contents(slug, page, per)
        return Ok(ChannelPage(told, blocks, count))

    @answering
    async def find_images(
        self, owner: str, slug: str, wanted: Callable[[Block], bool], per: int = 50
    ) -> ApiResult[ChannelPage]:
        """Return the wanted pictures on the first page of a channel that has any; none after ten pages."""
        told = await self._channel(owner, slug)
        for page in range(1, CHANNEL_MAX_PAGES + 1):
            blocks, count = await self._contents(slug, page, per)
            found = tuple(filter(wanted, blocks))
            if found or count < min(per, MAX_PER_PAGE):
                return Ok(ChannelPage(told, found, count))
        return Ok(ChannelPage(told, (), 0))

    async def fetch_picture(self, block: Block) -> ApiResult[Fetched]:
        """Return the file of a block in its largest size, at most 10 MB."""
        url = block.image_url
        at_home = _has_origin(url, self._api_url)
        return await self._web.fetch(
            url, kinds=("image/*",), max_bytes=PICTURE_MAX_BYTES, deadline_s=_DEADLINE_S, named=at_home
        )

    async def _channel(self, owner: str, slug: str) -> Channel:
        channel = _channel(await self._get(f"channels/{quote(slug, safe='')}", per=1))
        if channel is None or (channel.owner and channel.owner != owner):
            return Err(f"{owner} has no channel {slug}", "not_found").or_raise()
        return channel

    async def _contents(self, slug: str, page: int, per: int) -> tuple[tuple[Block, ...], int]:
        """Return the pictures on a page, and how many blocks of any kind it has."""
        path = f"channels/{quote(slug, safe='')}/contents"
        items = _items(await self._get(path, page=page, per=min(per, MAX_PER_PAGE)), "contents")
        return tuple(block for one in items if (block := _block(one)) is not None), len(items)

    async def _get(self, path: str, **query: str | int) -> Json:
        fetched = await self._web.fetch(
            f"{self._api_url}/{path}?{urlencode(query)}",
            kinds=("application/json",),
            max_bytes=_ANSWER_MAX_BYTES,
            deadline_s=_DEADLINE_S,
            named=True,
        )
        try:
            answer = parse(fetched.or_raise().body)
        except ValueError:
            answer = None
        return answer if isinstance(answer, dict) else Err("the answer could not be read", "transient").or_raise()


def _has_origin(url: str, other: str) -> bool:
    try:
        return origin_of(httpx.URL(url)) == origin_of(httpx.URL(other))
    except httpx.InvalidURL:
        return False


def _channel(told: Json) -> Channel | None:
    number, slug, user = told.get("id"), _text(told, "slug"), _object(told, "user")
    if not isinstance(number, int) or not slug:
        return None
    title, length = _text(told, "title"), _number(told, "length")
    return Channel(number, slug, title, length, _text(user, "slug"))


def _block(told: Json) -> Block | None:
    """Return the block if it is a picture; None for any other."""
    number, image, source = told.get("id"), _object(told, "image"), _object(told, "source")
    url = _text(_object(image, "original"), "url")
    if told.get("class") != "Image" or not isinstance(number, int) or not url:
        return None
    return Block(
        id=number,
        image_url=url,
        title=_text(told, "title") or _text(told, "generated_title"),
        description=_text(told, "description"),
        source_url=_text(source, "url"),
        source_title=_text(source, "title"),
        provider=_text(_object(source, "provider"), "name"),
        filename=_text(image, "filename"),
        username=_text(_object(told, "user"), "username"),
        connected_at=_text(told, "connected_at"),
    )


def _items(told: Json, name: str) -> list[Json]:
    items = told.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _object(told: Json, name: str) -> Json:
    part = told.get(name)
    return part if isinstance(part, dict) else _NOTHING


def _text(told: Json, name: str) -> str:
    text = told.get(name)
    return text.strip()[:_TEXT_CHARS] if isinstance(text, str) else ""


def _number(told: Json, name: str) -> int:
    number = told.get(name)
    return number if isinstance(number, int) else 0
