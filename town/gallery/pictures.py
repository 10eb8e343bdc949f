"""The pictures of the gallery, drawn when they are first asked for: the same bytes at every start."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Mapping
from functools import cache

from PIL import Image, ImageDraw

SIZES: Mapping[str, int] = {"square": 180, "thumb": 200, "display": 600, "large": 1000, "original": 10_000}
"""The sizes of a picture, with the longest side in pixels that each may have."""

_ORIENTATION = 0x0112
_TURNED = 6  # to be shown a quarter turn clockwise
_MAKER = 0x010F


def _tide() -> Image.Image:
    """Waves of blue bars, one for each half hour of two days."""
    picture = Image.new("RGB", (1200, 800), "#f2efe6")
    draw = ImageDraw.Draw(picture)
    for number in range(96):
        height = 300 + round(220 * random.Random(number // 6).random()) - abs(number % 12 - 6) * 25
        draw.rectangle((12 + number * 12, 800 - height, 20 + number * 12, 800), fill=(40, 90 + number, 140))
    return picture


def _signs() -> Image.Image:
    """Discs and bars, as painted on shop signs."""
    picture = Image.new("RGB", (900, 900), "#22333b")
    draw = ImageDraw.Draw(picture)
    for number in range(9):
        left, top = 60 + number % 3 * 280, 60 + number // 3 * 280
        draw.ellipse((left, top, left + 220, top + 220), fill=("#eae0d5", "#c6ac8f", "#a63c06")[number % 3])
        draw.rectangle((left + 100, top + 20 * number % 90, left + 120, top + 220), fill="#5e503f")
    return picture


def _window() -> Image.Image:
    """A lit window by night, with a transparent sky."""
    picture = Image.new("RGBA", (800, 1000), (0, 0, 0, 0))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((80, 120, 720, 1000), fill=(46, 52, 70, 255))
    for number in range(12):
        left, top = 150 + number % 3 * 180, 200 + number // 3 * 180
        draw.rectangle((left, top, left + 110, top + 120), fill=(250, 214, 120, 255 if number in {4, 7, 8} else 60))
    return picture


def _slates() -> Image.Image:
    """Rows of slates in the grain of a photograph: larger than Bluesky takes."""
    width, height = 1400, 1100
    picture = Image.frombytes("RGB", (width, height), random.Random("slates").randbytes(width * height * 3))
    draw = ImageDraw.Draw(picture)
    for row in range(11):
        for column in range(8):
            left, top = column * 200 - row % 2 * 100, row * 100
            draw.rectangle((left, top, left + 196, top + 40), fill=(60 + 9 * row, 70 + 8 * row, 90 + 5 * column))
    return picture


def _lighthouse() -> Image.Image:
    """A tower lying on its side; its Exif data say how to turn it, and who made it."""
    picture = Image.new("RGB", (1000, 700), "#cfe0ea")
    draw = ImageDraw.Draw(picture)
    for number in range(7):
        draw.rectangle((100 + number * 100, 270, 200 + number * 100, 430), fill="#b5382b" if number % 2 else "#fffaf0")
    draw.ellipse((790, 250, 970, 450), fill="#f6c945")
    return picture


def _loom() -> Image.Image:
    """Crossing threads."""
    picture = Image.new("RGB", (1000, 1000), "#fbf5ea")
    draw = ImageDraw.Draw(picture)
    for number in range(25):
        at = 20 + number * 40
        draw.line((at, 0, at, 1000), fill="#7d4f50", width=14)
        draw.line((0, at, 1000, at), fill="#d9ae94" if number % 3 else "#3d5a40", width=8 + number % 5)
    return picture


def _leaves() -> Image.Image:
    """Pressed leaves on the pages of a garden diary."""
    picture = Image.new("RGB", (1000, 800), "#f7f3e6")
    draw = ImageDraw.Draw(picture)
    for number in range(12):
        left, top = 60 + number % 4 * 230, 50 + number // 4 * 240
        wide = 110 + number % 3 * 30
        draw.ellipse((left, top, left + wide, top + 190), fill=("#5b7b4b", "#8a9a5b", "#b08d3e")[number % 3])
        draw.line((left + wide // 2, top, left + wide // 2, top + 220), fill="#4a3f2a", width=5)
    return picture


def _jars() -> Image.Image:
    """Jars on two shelves, filled to different heights."""
    picture = Image.new("RGB", (1100, 900), "#e8e2d4")
    draw = ImageDraw.Draw(picture)
    for number in range(10):
        left, bottom = 70 + number % 5 * 200, 420 + number // 5 * 420
        draw.rectangle((left, bottom - 300, left + 150, bottom), fill="#fdfaf3", outline="#8d7f66", width=6)
        draw.rectangle((left + 8, bottom - 60 - 23 * number, left + 142, bottom - 6), fill=(150 + 9 * number, 70, 50))
        draw.rectangle((20, bottom, 1080, bottom + 24), fill="#6b4f35")
    return picture


_DRAWN: Mapping[str, Callable[[], Image.Image]] = {
    "tide-table.png": _tide,
    "painted-signs.png": _signs,
    "lit-window.png": _window,
    "wet-slates.png": _slates,
    "lighthouse.jpg": _lighthouse,
    "threads.png": _loom,
    "pressed-leaves.png": _leaves,
    "jar-shelf.png": _jars,
}
NAMES = tuple(_DRAWN)


def media_type(name: str) -> str:
    """The media type of a picture's file."""
    return "image/jpeg" if name.endswith(".jpg") else "image/png"


@cache
def picture(name: str, size: str = "original") -> bytes:
    """The file of a picture in one of the `SIZES`. Raises `KeyError` for a name or a size that there is not."""
    drawn, content, longest = _DRAWN[name](), io.BytesIO(), SIZES[size]
    if size == "square":
        side = min(drawn.size)
        drawn = drawn.crop((0, 0, side, side))
    drawn.thumbnail((longest, longest))
    if name.endswith(".jpg"):
        exif = Image.Exif()
        exif[_ORIENTATION], exif[_MAKER] = _TURNED, "Harbour Optics"
        drawn.save(content, "JPEG", exif=exif)
    else:
        drawn.save(content, "PNG")
    return content.getvalue()
