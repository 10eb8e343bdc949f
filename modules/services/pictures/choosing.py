"""Chooses a picture that was not shown before, from Are.na or a page of the design catalogue.

Code chooses the picture and binds it to the post; a model is told what the source says about it, and writes the text.
A collection without a usable picture rests for a while. Fetches keep within fixed limits.
"""

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import urljoin, urlsplit

from cachetools import LRUCache

from adapters.arena import Block, Channel, ChannelPage, parse_channel_url
from adapters.web.types import Fetched
from common.clock import Clock
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.design_catalog import DesignSource, get_random_browse_url, get_random_design_source
from common.result import ApiResult, Err, Ok, answering
from common.text.graphemes import grapheme_len, truncate_graphemes
from common.text.html_text import PageReader
from common.text.injections import gives_orders
from common.text.untrusted import clean, one_line
from modules.services.outbox.bodies import AttachedPicture, PictureSource
from modules.services.outbox.outbox import Outbox
from modules.services.pictures.pictures import EXTENSIONS, SOURCE_MAX_BYTES, Pictures
from modules.services.skills.skills import Framer

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
    """A picture on a page. `context` is its caption; sizes are in pixels, None if the page does not give them."""

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
    """Return the pictures of a page: from `img`, `source`, `og:image` and CSS backgrounds, each once.

    Left out are drawings (`.svg`), inline data, pictures known to be narrower than `min_width` or with a side of at
    most 10 pixels, and those named as a pixel, a spacer or the like.
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
            case "source" if told.get("type", "image/webp") in EXTENSIONS and not self._source:
                url, width = _largest(told.get("srcset", ""))
                self._source = PageImage(url, width=width) if url else None
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
        named = (told.get("src", ""), told.get("data-src", ""))
        src = next((one for one in named if one and not one.startswith("data:")), "")
        image = PageImage(
            url if width or not src else src,
            width=width or _size(told.get("width", "")),
            height=None if width else _size(told.get("height", "")),
        )
        if self._source and (self._source.width or not image.url):
            image = self._source
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
    """Return the address with the largest width of a `srcset`, and that width; without widths the first, and None."""
    sized, before, tokens = list[tuple[int, str]](), "", srcset.split()
    for token in tokens:
        size, _, rest = token.partition(",")
        is_sized = before and _is_width(size)
        if is_sized:
            sized.append((int(size[:-1]), before))
        before = rest if is_sized else token
    width, url = max(sized, default=(0, tokens[0].rstrip(",") if tokens else ""))
    return url, width or None


def _is_width(text: str) -> bool:
    return text.endswith("w") and text[:-1].isascii() and text[:-1].isdecimal() and len(text) < len("100000w")


def _size(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    return int(match[1]) if match else None


def _absolute(page_url: str, url: str) -> str:
    """Return the absolute address; "" if it cannot be fetched."""
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


_LISTED_MOST = 500
_PAGE_MAX_BYTES = 1024 * 1024
_DEADLINE_S = 30.0
_FILE_NAME = re.compile(r"[^\n]{1,300}\.(?:png|jpe?g|gif|webp|avif|tiff?|bmp|heic)", re.IGNORECASE)
_SIGNS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"GIF8": "image/gif"}


@dataclass(frozen=True, slots=True)
class Picked:
    """A picture of a channel that was not shown before, and how many other such pictures are left."""

    block: Block
    channel: Channel
    remaining: int


class PictureFinder:
    """Finds pictures. Those that it has listed may be fetched by their address, whoever names it."""

    def __init__(self, pictures: Pictures, rng: random.Random) -> None:
        self._pictures = pictures
        self._rng = rng
        self._listed: LRUCache[str, PictureSource] = LRUCache(_LISTED_MOST)

    async def channel(self, owner: str, slug: str, page: int) -> ApiResult[ChannelPage]:
        """Return one page of a channel and list its pictures."""
        found = await self._pictures.arena.fetch_channel(owner, slug, page)
        if isinstance(found, Ok):
            for block in found.data.image_blocks:
                self._listed[block.image_url] = source_of(block, found.data.channel)
        return found

    async def unposted(self, owner: str, slug: str) -> ApiResult[ChannelPage]:
        """Return the pictures of a channel that were not shown before, from the first page with any.

        Returns an `Err` of kind `not_found` if none is left.
        """

        def is_new(block: Block) -> bool:
            return not self._pictures.was_posted(PictureSource(block_id=block.id))

        found = await self._pictures.arena.find_images(owner, slug, is_new)
        if isinstance(found, Ok) and not found.data.image_blocks:
            return Err("every picture of the channel was shown before", "not_found")
        return found

    @answering
    async def pick(self, owner: str, slug: str) -> ApiResult[Picked]:
        """Return a random new picture of a channel; an `Err` of kind `not_found` if all were shown before."""
        found = (await self.unposted(owner, slug)).or_raise()
        blocks = found.image_blocks
        return Ok(Picked(self._rng.choice(blocks), found.channel, len(blocks) - 1))

    @answering
    async def browse(self, url: str, min_width: int) -> ApiResult[PageImages]:
        """Return the pictures of a page that were not shown before, and list them."""
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
        """Return whether a channel or a page that was read shows this picture."""
        return url in self._listed

    def source_of(self, url: str) -> PictureSource:
        """Return what is known about the source of a picture."""
        return self._listed.get(url) or PictureSource(image_url=url)

    @answering
    async def fetch(self, url: str, max_bytes: int = SOURCE_MAX_BYTES) -> ApiResult[tuple[bytes, str, PictureSource]]:
        """Return the file of a picture, its media type, and what is known about its source."""
        fetched = (
            await self._pictures.web.fetch(url, kinds=("*",), max_bytes=max_bytes, deadline_s=_DEADLINE_S)
        ).or_raise()
        mime_type = _media_type(fetched)
        if not mime_type:
            return Err(f"the answer is {fetched.kind or 'of no stated type'}, not a picture", "invalid")
        return Ok((fetched.body, mime_type, self.source_of(url)))


def source_of(block: Block, channel: Channel) -> PictureSource:
    """Return the source of a block, in words that are safe to store."""
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
    """Return the title of a block in one line; if that is only a file name, the source's or the channel's title."""
    named = "" if _FILE_NAME.fullmatch(block.title) else block.title
    return one_line(named or block.source_title or channel.title, _TEXT_CHARS)


def place_of(source: PictureSource) -> str:
    """Return the address at which readers find a picture; "" if none is known.

    What the person who added it says about its origin is a stranger's word, and never stands in a post.
    """
    return source.block_url or source.page_url or source.image_url


def _media_type(fetched: Fetched) -> str:
    """Return the media type by the first bytes; "" if it is not a picture that can be shared."""
    body = fetched.body
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for sign, mime in _SIGNS.items() if body.startswith(sign)), "")


SOURCE_RESTS = timedelta(hours=6)

_TRIES = 3
_NOT_OWNERS = "its picture hangs in a collection that SOUL.md does not name"
_ABOUT_CHARS = 500
_PLACE_MOST = PORTABLE_MAX_GRAPHEMES // 2
_ADDRESS = re.compile(r"(?:\bsource:[ \t]{0,9})?https?://\S{1,2000}", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]{0,500}>", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t]{2,99}")


@dataclass(frozen=True, slots=True)
class ChosenPicture:
    """A picture that is ready to be posted. `title`, `about` and `shown_by` are what its source says about it.

    `hold` is why the post waits for the owner's approval, or "": anybody may have added the picture there.
    """

    picture: AttachedPicture
    title: str
    about: str
    shown_by: str
    hold: str = ""

    def described(self, alt: str) -> AttachedPicture:
        """Return the picture with our own alt text; what its source says is not used as ours.

        Without usable words, or if they give orders to a model, the name of the collection stands there.
        """
        own = truncate_graphemes(" ".join(bare_words(clean(alt)).split()), _ABOUT_CHARS)
        usable = own and not gives_orders(own) and not any(own in said or said in own for said in self.said)
        return self.picture.model_copy(update={"alt": own}) if usable else self.picture

    @property
    def said(self) -> tuple[str, ...]:
        """The words of its source about it: somebody else's words, and no answer by themselves."""
        return (self.title, self.about, f"{self.title}. {self.about}") if self.about else (self.title,)

    def framed(self, framer: Framer) -> str:
        """Return its title and what else its source says about it, one line each, inside a frame."""
        said = "\n".join(part for part in (self.title, self.about) if part)
        return framer.frame("reading", author=self.shown_by, uri=self.place, text=said)

    @property
    def place(self) -> str:
        """The address that names its source; "" if even the shortest would fill half of a post."""
        source = self.picture.source
        places = (place_of(source), source.image_url)
        return next((place for place in places if place and grapheme_len(place) <= _PLACE_MOST), "")

    @property
    def room(self) -> int:
        """The number of graphemes of a post that are left beside its source."""
        return PORTABLE_MAX_GRAPHEMES - grapheme_len(self.credited(""))

    def credited(self, text: str) -> str:
        """Return `text` with the source under it."""
        return f"{text}\n\nSource: {self.place}" if self.place else text


def bare_words(text: str) -> str:
    """Return the words of a text, without addresses and tags.

    Models write the source of another picture, or invent one, and copy the frame around what they were told.
    """
    return _BLANKS.sub(" ", _ADDRESS.sub("", _TAG.sub(" ", text))).strip()


@dataclass(frozen=True, slots=True)
class _Candidate:
    source: PictureSource
    title: str
    about: str
    shown_by: str
    block: Block | None = None


@dataclass(slots=True)
class PictureChooser:
    """Chooses among the pictures of `sources`, which is called each time.

    Listing a source and fetching a picture may each take `deadline_s`; drawing one has limits of its own.
    """

    pictures: Pictures
    outbox: Outbox
    sources: Callable[[], Sequence[DesignSource]]
    clock: Clock
    rng: random.Random
    deadline_s: float = 20.0
    _finder: PictureFinder = field(init=False)
    _rests_until: dict[str, datetime] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._finder = PictureFinder(self.pictures, self.rng)

    def pick_source(self, *, owners: bool = False) -> DesignSource | None:
        """Return a random collection that does not rest, with `owners` only of the owner's; None if there is none."""
        now = self.clock.now()
        listed = [source for source in self.sources() if source.is_owners or not owners]
        ready = [source for source in listed if self._rests_until.get(source.url, now) <= now]
        return get_random_design_source(self.rng, ready)

    def source_at(self, url: str) -> DesignSource | None:
        """Return the collection at `url`; None if it is no longer listed."""
        return next((source for source in self.sources() if source.url == url), None)

    async def choose(self, source: DesignSource, *, why: str) -> ApiResult[ChosenPicture]:
        """Return a picture of `source` that was never shown and waits in no post; `why` goes to the post log.

        An `Err` says why there is none; the source then rests.
        """
        try:
            chosen = await self._choose(source, why)
        except TimeoutError:
            chosen = Err(f"no picture within {self.deadline_s:g} s", "transient")
        if isinstance(chosen, Err):
            self._rests_until[source.url] = self.clock.now() + SOURCE_RESTS
        return chosen

    @answering
    async def _choose(self, source: DesignSource, why: str) -> ApiResult[ChosenPicture]:
        async with asyncio.timeout(self.deadline_s):
            found = await self._candidates(source)
        problem = Err("it shows no picture that is new and described", "not_found")
        for candidate in self.rng.sample(found, min(_TRIES, len(found))):
            made = await self._attach(candidate, source, why)
            if isinstance(made, Ok):
                return made
            problem = made
        return problem

    @answering
    async def _attach(self, candidate: _Candidate, of: DesignSource, why: str) -> ApiResult[ChosenPicture]:
        async with asyncio.timeout(self.deadline_s):
            fetched = await self._fetch(candidate)
        attached = (await self.pictures.attach(fetched, alt=of.name, why=why, source=candidate.source)).or_raise()
        if await self.outbox.with_picture(attached.sha256) is not None:
            return Err("the picture waits in a post already", "conflict")
        hold = "" if of.is_owners else _NOT_OWNERS
        return Ok(ChosenPicture(attached, candidate.title, candidate.about, candidate.shown_by, hold))

    async def _fetch(self, candidate: _Candidate) -> bytes:
        if candidate.block:
            return (await self.pictures.arena.fetch_picture(candidate.block)).or_raise().body
        return (await self._finder.fetch(candidate.source.image_url)).or_raise()[0]

    async def _candidates(self, source: DesignSource) -> list[_Candidate]:
        if source.type == "web":
            page = (await self._finder.browse(get_random_browse_url(source, self.rng), WIDTH_LEAST)).or_raise()
            images = [image for image in page.images if image.alt.strip() or image.context.strip()]
            return [self._of_page(image, source) for image in images]
        named = parse_channel_url(source.url)
        if named is None:
            return Err("it names no channel", "invalid").or_raise()
        channel = (await self._finder.unposted(*named)).or_raise()
        return [_of_channel(block, channel.channel) for block in channel.image_blocks]

    def _of_page(self, image: PageImage, source: DesignSource) -> _Candidate:
        listed = self._finder.source_of(image.url)
        alt, caption = (one_line(text, _ABOUT_CHARS) for text in (image.alt, image.context))
        title = caption or alt
        return _Candidate(listed, title, alt if alt != title else "", listed.page_title or source.name)


def _of_channel(block: Block, channel: Channel) -> _Candidate:
    source = source_of(block, channel)
    title = title_of(block, channel)
    about = truncate_graphemes(one_line(clean(block.description), _ABOUT_CHARS), _ABOUT_CHARS)
    return _Candidate(source, title, about, source.arena_user, block)
