"""Chooses a picture to show: one that was not shown before, from a collection of the design catalogue.

Code chooses, and binds the picture to the post; a model is told what the source says of it, and writes the words.
A collection from which nothing could be had rests for a while.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from adapters.arena.client import parse_channel_url
from adapters.arena.types import Block, Channel
from common.clock import Clock
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.design_catalog import DesignSource, get_random_browse_url, get_random_design_source
from common.result import ApiResult, Err, Ok, answering
from common.text.graphemes import grapheme_len, truncate_graphemes
from common.text.injections import gives_orders
from common.text.untrusted import clean, one_line
from modules.services.outbox.bodies import AttachedPicture, PictureSource
from modules.services.outbox.outbox import Outbox
from modules.services.pictures.finding import PictureFinder, place_of, source_of, title_of
from modules.services.pictures.page_images import WIDTH_LEAST, PageImage
from modules.services.pictures.pictures import Pictures
from modules.services.skills.framing import Framer

CHOOSING_DEADLINE_S = 60.0
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
    """A picture that is ready to be posted. `title`, `about` and `shown_by` are what its source says of it.

    `hold` is why the post waits for the owner's approval, "" if it does not: anybody may have hung the picture there.
    """

    picture: AttachedPicture
    title: str
    about: str
    shown_by: str
    hold: str = ""

    def described(self, alt: str) -> AttachedPicture:
        """Return the picture with our own words for those who cannot see it; what its source says is none of ours.

        Without any, and where they order a model about, the name of the collection stands there.
        """
        own = truncate_graphemes(" ".join(bare_words(clean(alt)).split()), _ABOUT_CHARS)
        usable = own and not gives_orders(own) and not any(own in said or said in own for said in self.said)
        return self.picture.model_copy(update={"alt": own}) if usable else self.picture

    @property
    def said(self) -> tuple[str, ...]:
        """What its source says of it: words that are somebody else's, and no answer by themselves."""
        return (self.title, self.about, f"{self.title}. {self.about}") if self.about else (self.title,)

    def framed(self, framer: Framer) -> str:
        """Return its title, and what else its source says of it, a line each, inside a frame."""
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
        """How many characters of a post are left beside its source."""
        return PORTABLE_MAX_GRAPHEMES - grapheme_len(self.credited(""))

    def credited(self, text: str) -> str:
        """Return `text` with the source under it."""
        return f"{text}\n\nSource: {self.place}" if self.place else text


def bare_words(text: str) -> str:
    """Return the words of a text, without addresses and tags.

    Models write the source of another picture, or one that they make up, and copy the frame around what they were told.
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
    """Chooses among the pictures of `sources`, which is asked anew each time."""

    pictures: Pictures
    outbox: Outbox
    sources: Callable[[], Sequence[DesignSource]]
    clock: Clock
    rng: random.Random
    _finder: PictureFinder = field(init=False)
    _rests_until: dict[str, datetime] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._finder = PictureFinder(self.pictures, self.rng)

    def pick_source(self, *, owners: bool = False) -> DesignSource | None:
        """Return any collection that does not rest, or any of the owner's; None if there is none."""
        now = self.clock.now()
        listed = [source for source in self.sources() if source.is_owners or not owners]
        ready = [source for source in listed if self._rests_until.get(source.url, now) <= now]
        return get_random_design_source(self.rng, ready)

    def source_at(self, url: str) -> DesignSource | None:
        """Return the collection at `url`; None if it is listed no longer."""
        return next((source for source in self.sources() if source.url == url), None)

    async def choose(
        self, source: DesignSource, *, why: str, deadline_s: float = CHOOSING_DEADLINE_S
    ) -> ApiResult[ChosenPicture]:
        """Return a picture of `source` that was never shown and waits in no post; `why` goes to the post log.

        An `Err` says why there is none; the source rests then.
        """
        try:
            async with self.clock.timeout(deadline_s):
                chosen = await self._choose(source, why)
        except TimeoutError:
            chosen = Err(f"no picture within {deadline_s:g} s", "transient")
        if isinstance(chosen, Err):
            self._rests_until[source.url] = self.clock.now() + SOURCE_RESTS
        return chosen

    @answering
    async def _choose(self, source: DesignSource, why: str) -> ApiResult[ChosenPicture]:
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
