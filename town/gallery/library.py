"""The contents of the gallery: channels and blocks, their pictures, and their JSON in the format of Are.na (v2).

Pictures are read from `pictures/`, except a large one, which is drawn. They have the same bytes at every start.
"""

import io
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from PIL import Image, ImageDraw

from common.clock import iso

SIZES: Mapping[str, int] = {"square": 180, "thumb": 200, "display": 600, "large": 1000, "original": 10_000}
"""The sizes of a picture, with the longest side in pixels that each may have."""

_ORIENTATION = 0x0112
_TURNED = 6  # a viewer must turn it 90 degrees clockwise
_MAKER = 0x010F
_FILES = Path(__file__).with_name("pictures")
NAMES = (
    "tide-table.png",
    "painted-signs.png",
    "lit-window.png",
    "wet-slates.png",
    "lighthouse.jpg",
    "threads.png",
    "pressed-leaves.png",
    "jar-shelf.png",
)


def _slates() -> Image.Image:
    """Draw rows of slates with the grain of a photograph: larger than Bluesky accepts."""
    width, height = 1400, 1100
    picture = Image.frombytes("RGB", (width, height), random.Random("slates").randbytes(width * height * 3))
    draw = ImageDraw.Draw(picture)
    for row in range(11):
        for column in range(8):
            left, top = column * 200 - row % 2 * 100, row * 100
            draw.rectangle((left, top, left + 196, top + 40), fill=(60 + 9 * row, 70 + 8 * row, 90 + 5 * column))
    return picture


def media_type(name: str) -> str:
    """Return the media type of a picture's file."""
    return "image/jpeg" if name.endswith(".jpg") else "image/png"


@cache
def picture(name: str, size: str = "original") -> bytes:
    """Return the file of a picture in one of the `SIZES`. Raises `KeyError` for an unknown size."""
    content, longest = io.BytesIO(), SIZES[size]
    shown: Image.Image
    if name == "wet-slates.png":
        shown = _slates()
    else:
        shown = Image.open(io.BytesIO((_FILES / name).with_suffix(".png").read_bytes()))
    if size == "square":
        side = min(shown.size)
        shown = shown.crop((0, 0, side, side))
    shown.thumbnail((longest, longest))
    if name.endswith(".jpg"):
        exif = Image.Exif()
        exif[_ORIENTATION], exif[_MAKER] = _TURNED, "Harbour Optics"
        shown.save(content, "JPEG", exif=exif)
    else:
        shown.save(content, "PNG")
    return content.getvalue()


_FIRST_DAY = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class User:
    """A collector."""

    id: int
    slug: str
    full_name: str


@dataclass(frozen=True, slots=True)
class GalleryBlock:
    """A block of a channel.

    Attributes:
        id: the block's id.
        kind: its class.
        title: may be empty.
        picture: the file's name; "" if there is none.
        content: the content of a text.
        description: the collector's description.
        source: the URL where it was found; "" if unknown.
        source_title: the title of that page.
        user: who added it.

    """

    id: int
    kind: Literal["Image", "Text", "Link"]
    title: str
    user: User
    picture: str = ""
    content: str = ""
    description: str = ""
    source: str = ""
    source_title: str = ""

    @property
    def added_at(self) -> datetime:
        """When it was added, in UTC."""
        return _FIRST_DAY + timedelta(hours=self.id % 1000)


@dataclass(frozen=True, slots=True)
class GalleryChannel:
    """A collection of blocks, in order."""

    id: int
    slug: str
    title: str
    owner: User
    blocks: tuple[GalleryBlock, ...]
    description: str = ""


_HARBOUR = User(11, "harbour-archive", "The Harbour Archive")
_PRESS = User(12, "print-shop", "The Print Shop")
_KITCHEN = User(13, "kitchen-door", "The Kitchen Door")

_TIDE = GalleryBlock(
    5001,
    "Image",
    "Tide table, two days",
    _HARBOUR,
    picture="tide-table.png",
    description="Every bar is half an hour. Drawn by hand, then once more by somebody who disagreed.",
    source="https://harbour.example/tides/two-days",
    source_title="Two days of tide",
)
_SIGNS = GalleryBlock(5002, "Image", "Painted signs", _PRESS, picture="painted-signs.png")
_WINDOW = GalleryBlock(
    5003,
    "Image",
    "",
    _PRESS,
    picture="lit-window.png",
    description="Three rooms awake.",
    source="https://windows.example/night/7",
    source_title="Windows, night 7",
)
_SLATES = GalleryBlock(5004, "Image", "Wet slates", _HARBOUR, picture="wet-slates.png")
_LIGHTHOUSE = GalleryBlock(
    5005,
    "Image",
    "The old light",
    _HARBOUR,
    picture="lighthouse.jpg",
    description="Decommissioned, repainted every spring all the same.",
    source="https://harbour.example/lights/old",
    source_title="The old light",
)
_LOOM = GalleryBlock(5006, "Image", "Threads", _PRESS, picture="threads.png")
_NOTE = GalleryBlock(
    5007, "Text", "On tables", _HARBOUR, content="A table of tides is a promise with a rounding error."
)
_LINK = GalleryBlock(
    5008, "Link", "How to read a sign", _PRESS, source="https://signs.example/read", source_title="How to read a sign"
)
_LEAVES = GalleryBlock(
    5009,
    "Image",
    "Pressed leaves",
    _KITCHEN,
    picture="pressed-leaves.png",
    description="One for each month in which something grew.",
    source="https://kitchen.example/garden/leaves",
    source_title="Leaves of one year",
)
_JARS = GalleryBlock(
    5010, "Image", "Ten jars", _KITCHEN, picture="jar-shelf.png", description="The last of them is a gift."
)

CHANNELS = (
    GalleryChannel(
        901, "tides-and-lights", "Tides and lights", _HARBOUR, (_TIDE, _LIGHTHOUSE, _NOTE, _WINDOW), "By the sea."
    ),
    GalleryChannel(902, "signs-and-surfaces", "Signs and surfaces", _PRESS, (_SIGNS, _SLATES, _LOOM, _LINK)),
    GalleryChannel(903, "unsorted", "Unsorted", _PRESS, (_LOOM, _NOTE)),
    GalleryChannel(904, "garden-and-shelf", "Garden and shelf", _KITCHEN, (_LEAVES, _JARS)),
)
BY_SLUG: Mapping[str, GalleryChannel] = {channel.slug: channel for channel in CHANNELS}
BLOCKS: Mapping[int, GalleryBlock] = {block.id: block for channel in CHANNELS for block in channel.blocks}


def channels_about(words: str) -> list[GalleryChannel]:
    """Return the channels whose title, description or blocks contain all of `words`; none for no words."""
    return [channel for channel in CHANNELS if _holds(_channel_text(channel), words)]


def blocks_about(words: str) -> list[GalleryBlock]:
    """Return the blocks that contain all of `words`; none for no words."""
    return [block for block in BLOCKS.values() if _holds(_block_text(block), words)]


def _channel_text(channel: GalleryChannel) -> str:
    return " ".join((channel.title, channel.description, *map(_block_text, channel.blocks)))


def _block_text(block: GalleryBlock) -> str:
    return f"{block.title} {block.content} {block.description}"


def _holds(text: str, words: str) -> bool:
    return bool(words.split()) and all(word in text.lower() for word in words.lower().split())


Json: TypeAlias = dict[str, Any]
_KILOBYTE = 1024


@dataclass(frozen=True, slots=True)
class GalleryViews:
    """Renders the contents as JSON; `base_url` is where the gallery serves its pages and pictures."""

    base_url: str

    def channel(self, channel: GalleryChannel) -> Json:
        """Return a channel without its contents."""
        return {
            "id": channel.id,
            "title": channel.title,
            "slug": channel.slug,
            "created_at": iso(channel.blocks[0].added_at),
            "updated_at": iso(channel.blocks[-1].added_at),
            "published": True,
            "open": False,
            "collaboration": False,
            "length": len(channel.blocks),
            "kind": "default",
            "status": "closed",
            "user_id": channel.owner.id,
            "class": "Channel",
            "base_class": "Channel",
            "metadata": {"description": channel.description} if channel.description else None,
            "user": self.user(channel.owner),
        }

    def connected(self, channel: GalleryChannel, block: GalleryBlock) -> Json:
        """Return a block in a channel."""
        place = channel.blocks.index(block) + 1
        return {
            **self.block(block),
            "position": place,
            "connection_id": channel.id * 100 + place,
            "connected_at": iso(block.added_at),
            "connected_by_user_id": block.user.id,
        }

    def block(self, block: GalleryBlock) -> Json:
        """Return a block by itself."""
        words = f"<p>{escape(block.description)}</p>" if block.description else ""
        return {
            "id": block.id,
            "title": block.title,
            "generated_title": block.title or block.picture or "Untitled",
            "class": block.kind,
            "base_class": "Block",
            "state": "available",
            "created_at": iso(block.added_at),
            "updated_at": iso(block.added_at),
            "comment_count": 0,
            "content": block.content,
            "content_html": f"<p>{escape(block.content)}</p>" if block.content else "",
            "description": block.description,
            "description_html": words,
            "source": _source(block),
            "image": self._image(block.picture) if block.picture else None,
            "user": self.user(block.user),
        }

    def user(self, user: User) -> Json:
        """Return a collector."""
        return {
            "id": user.id,
            "slug": user.slug,
            "username": user.full_name,
            "full_name": user.full_name,
            "class": "User",
            "base_class": "User",
        }

    def picture_url(self, name: str, size: str) -> str:
        """Return the address of a picture in one of its sizes."""
        return f"{self.base_url}/pictures/{size}/{name}"

    def _image(self, name: str) -> Json:
        size = len(picture(name))
        sizes: Json = {each: {"url": self.picture_url(name, each)} for each in SIZES}
        sizes["original"] |= {"file_size": size, "file_size_display": f"{size / _KILOBYTE:.0f} KB"}
        return {"filename": name, "content_type": media_type(name), **sizes}


def _source(block: GalleryBlock) -> Json | None:
    if not block.source:
        return None
    host = urlsplit(block.source).hostname or ""
    return {
        "url": block.source,
        "title": block.source_title,
        "provider": {"name": host.split(".")[0].capitalize(), "url": f"https://{host}"},
    }
