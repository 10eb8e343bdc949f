"""Finds the pictures that a page shows. Pure, in time linear to the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urljoin, urlsplit

from common.text.html_text import PageReader

PAGE_MAX_CHARS = 400_000
WIDTH_LEAST = 400

_SIDE_LEAST = 10
_TEXT_CHARS = 300
_URL_CHARS = 2000
_CSS_URL = re.compile(r"background(?:-image)?\s{0,9}:[^;{}]{0,200}?url\(\s{0,9}['\"]?([^'\")\s]{1,2000})")
_NO_PICTURE = re.compile(r"pixel|tracking|beacon|spacer|blank|favicon|logo[-_]?small|small[-_]?logo", re.IGNORECASE)
_SIZE = re.compile(r"\s{0,9}(\d{1,5})(?:px)?\s{0,9}")


@dataclass(frozen=True, slots=True)
class PageImage:
    """A picture on a page. `context` is its caption; sizes are in pixels, None where the page does not tell them."""

    url: str
    alt: str = ""
    context: str = ""
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class PageImages:
    """The title of a page, its pictures in order, and how many were left out."""

    title: str
    images: Sequence[PageImage]
    left_out: int


def find_images(page: str, page_url: str, *, min_width: int = WIDTH_LEAST) -> PageImages:
    """Return the pictures of a page: of `img`, `source`, `og:image` and CSS backgrounds, each once.

    Left out are drawings (`.svg`), inline data, what is known to be narrower than `min_width`, what has a side of at
    most 10 pixels, and what is named as a pixel, a spacer or the like.
    """
    reader = _ImageReader()
    reader.feed(page[:PAGE_MAX_CHARS])
    found: dict[str, PageImage] = {}
    for image in reader.images:
        url = _absolute(page_url, image.url)
        if url and url not in found:
            found[url] = replace(image, url=url)
    kept = [image for image in found.values() if _is_shown(image, min_width)]
    return PageImages(" ".join(reader.title.split())[:_TEXT_CHARS], kept, len(reader.images) - len(kept))


@dataclass
class _Figure:
    images: list[int] = field(default_factory=list)
    caption: str = ""


class _ImageReader(PageReader):
    def __init__(self) -> None:
        super().__init__()
        self.images: list[PageImage] = []
        self.title = ""
        self._within = ""
        self._figure: _Figure | None = None
        self._source: PageImage | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self._css(told.get("style", ""))
        match tag:
            case "title" | "style" | "figcaption":
                self._within = tag
            case "figure":
                self._figure = _Figure()
            case "picture":
                self._source = None
            case "meta" if told.get("property", told.get("name")) in {"og:image", "twitter:image"}:
                self._add(PageImage(told.get("content", "")))
            case "source" if "srcset" in told:
                url, width = _largest(told["srcset"])
                self._source = self._source or PageImage(url, width=width)
            case "img":
                self._image(told)

    def handle_endtag(self, tag: str) -> None:
        if tag == self._within:
            self._within = ""
        if tag == "picture":
            self._source = None
        if tag == "figure" and self._figure:
            caption = " ".join(self._figure.caption.split())[:_TEXT_CHARS]
            for number in self._figure.images:
                self.images[number] = replace(self.images[number], context=caption)
            self._figure = None

    def handle_data(self, data: str) -> None:
        match self._within:
            case "title":
                self.title += data[:_TEXT_CHARS]
            case "style":
                self._css(data)
            case "figcaption" if self._figure and len(self._figure.caption) < _TEXT_CHARS:
                self._figure.caption += data

    def _image(self, told: dict[str, str]) -> None:
        url, width = _largest(told.get("srcset", ""))
        image = PageImage(
            url or told.get("src") or told.get("data-src", ""),
            width=width or _size(told.get("width", "")),
            height=None if url else _size(told.get("height", "")),
        )
        image = self._source or image
        self._add(replace(image, alt=" ".join(told.get("alt", "").split())[:_TEXT_CHARS]))

    def _css(self, text: str) -> None:
        for found in _CSS_URL.finditer(text):
            self._add(PageImage(found[1]))

    def _add(self, image: PageImage) -> None:
        if image.url and self._figure:
            self._figure.images.append(len(self.images))
        if image.url:
            self.images.append(image)


def _largest(srcset: str) -> tuple[str, int | None]:
    """The address with the largest width of a `srcset`, and that width; ("", None) if it tells no widths."""
    candidates: Iterable[list[str]] = (part.split() for part in srcset.split(", "))
    sized = [(int(part[1][:-1]), part[0]) for part in candidates if len(part) > 1 and _is_width(part[1])]
    width, url = max(sized, default=(0, ""))
    return url, width or None


def _is_width(text: str) -> bool:
    return text.endswith("w") and text[:-1].isascii() and text[:-1].isdecimal() and len(text) < len("100000w")


def _size(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    return int(match[1]) if match else None


def _absolute(page_url: str, url: str) -> str:
    """The address as it can be fetched; "" for what is no address of a picture."""
    try:
        joined = urljoin(page_url, url.strip()[:_URL_CHARS])
        parts = urlsplit(joined)
    except ValueError:
        return ""
    return joined if parts.scheme in {"http", "https"} and parts.hostname else ""


def _is_shown(image: PageImage, min_width: int) -> bool:
    path = urlsplit(image.url).path
    sides = [side for side in (image.width, image.height) if side is not None]
    narrow = image.width is not None and image.width < min_width
    tiny = any(side <= _SIDE_LEAST for side in sides)
    return not (narrow or tiny or path.lower().endswith(".svg") or _NO_PICTURE.search(path))
