"""What hangs in the gallery: its channels and their blocks. Values only; they never change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

_FIRST_DAY = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who collects."""

    id: int
    slug: str
    full_name: str


@dataclass(frozen=True, slots=True)
class GalleryBlock:
    """Something in a channel.

    Attributes:
        id: of the block.
        kind: its class.
        title: may be empty.
        picture: the file's name; "" where there is none.
        content: the words of a text.
        description: what the collector says of it.
        source: where it was found; "" where nobody knows.
        source_title: of that page.
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
    """A collection of blocks, in their order."""

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
    """The channels whose title, description or blocks contain all of `words`; none for no words."""
    return [channel for channel in CHANNELS if _holds(_channel_text(channel), words)]


def blocks_about(words: str) -> list[GalleryBlock]:
    """The blocks that contain all of `words`; none for no words."""
    return [block for block in BLOCKS.values() if _holds(_block_text(block), words)]


def _channel_text(channel: GalleryChannel) -> str:
    return " ".join((channel.title, channel.description, *map(_block_text, channel.blocks)))


def _block_text(block: GalleryBlock) -> str:
    return f"{block.title} {block.content} {block.description}"


def _holds(text: str, words: str) -> bool:
    return bool(words.split()) and all(word in text.lower() for word in words.lower().split())
