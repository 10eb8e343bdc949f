"""The design catalogue: collections of pictures to show, and a test whether a text is about design. Pure."""

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

_NAME_CHARS = 100
_URL_CHARS = 500
_MOST_SOURCES = 50
_NAME_EDGES = " \t-\u2013\u2014:*_[]()"
_URL_EDGES = ").,;>\"'*_"
_ARENA_HOSTS = {"are.na", "www.are.na"}
_ADDRESS = re.compile(r"https?://\S{1,500}")
_DESIGN = re.compile(
    r"\b(?:designs?|designed|designers?|visuals?|ui|ux|arts?|artists?|artworks?|illustrations?|illustrators?"
    r"|architectures?|architects?|aesthetics?|tastes?|typograph(?:y|ic)|typefaces?|fonts?|lettering|interfaces?"
    r"|palettes?|posters?|engravings?|photographs?|photography|drawings?|paintings?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DesignSource:
    """A collection of pictures: a channel of Are.na, or a site whose pages at `browse_urls` (else `url`) show some.

    `is_owners`: its URL is in SOUL.md, so the owner vouches for its pictures.
    """

    type: Literal["arena", "web"]
    url: str
    name: str
    tags: tuple[str, ...] = ()
    browse_urls: tuple[str, ...] = ()
    is_owners: bool = False


DESIGN_CATALOG = (
    DesignSource(
        "web",
        "https://searchsystem.co/",
        "Search System",
        ("typography", "branding", "architecture", "product", "photography"),
        (
            "https://searchsystem.co/",
            "https://searchsystem.co/tagged/typography",
            "https://searchsystem.co/tagged/architecture",
            "https://searchsystem.co/tagged/branding",
            "https://searchsystem.co/tagged/product",
        ),
    ),
    DesignSource("arena", "https://www.are.na/www-jim/rpg-ui-01", "RPG UI", ("ui", "gaming", "interface", "rpg")),
)


def get_random_design_source(
    rng: random.Random, sources: Sequence[DesignSource] = DESIGN_CATALOG
) -> DesignSource | None:
    """Return one of `sources`; None if there are none."""
    return rng.choice(sources) if sources else None


def get_random_browse_url(source: DesignSource, rng: random.Random) -> str:
    """Return a page of `source` that shows pictures."""
    return rng.choice(source.browse_urls or (source.url,))


def read_design_sources(bullets: Iterable[str], soul_md: str = "") -> tuple[DesignSource, ...]:
    """Return the sources of a list with one `Name — url` a line; lines without a URL are skipped."""
    named = {found.rstrip(_URL_EDGES) for found in _ADDRESS.findall(soul_md)}
    found = [source for bullet in bullets if (source := _source(bullet)) is not None][:_MOST_SOURCES]
    return tuple(replace(source, is_owners=source.url in named) for source in found)


def speaks_of_design(text: str) -> bool:
    """Return whether `text` mentions design, an art, or one of their means."""
    return _DESIGN.search(text) is not None


def _source(bullet: str) -> DesignSource | None:
    name, scheme, rest = bullet.partition("http")
    words = rest.split(maxsplit=1)
    url = (scheme + words[0]).rstrip(_URL_EDGES) if words else ""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not host or len(url) > _URL_CHARS:
        return None
    kind: Literal["arena", "web"] = "arena" if host in _ARENA_HOSTS else "web"
    return DesignSource(kind, url, name.strip(_NAME_EDGES)[:_NAME_CHARS] or host)
