"""Finds links, mentions and tags in a text: pure rules, with offsets as the wire needs them."""

from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import regex

from common.text.graphemes import grapheme_len
from common.text.handles import UNSPACED
from common.text.patterns import lazy_regex

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LAST_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HANDLE = rf"(?:{_LABEL}\.)+{_LAST_LABEL}"
_BRACKETS = r"\u2018-\u201f\u00ab\u00bb\u2039\u203a\u2014\u2015\u2026\u3000-\u3003\u3008-\u3011\u3014-\u301f"
_BRACKETS += r"\uff01\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d\uff5e\uff61-\uff64"
_OPENS = rf"(?<![^\s({_BRACKETS}{UNSPACED}])"
_CLOSES = rf"(?=\Z|[\s).,!?;:\-{_BRACKETS}])"
_HANDLE_CLOSES = rf"(?![^\W{UNSPACED}]|[.-][A-Za-z0-9])"
# NOTE(self): a link ends at a quote, a bracket or a full stop of any script, before the next link, and where a
# script without spaces follows a Latin letter, a digit or the host. At the beginning of a part of a URL
# such a script belongs to it, except Hiragana right after the host.
_ENDS = rf"\s<>\"\]{{}}|`\u200b-\u200f\u2060\ufeff{_BRACKETS}"
_BEGUN = rf"(?:(?<=[/=_#&?+:(-])|(?<=[{UNSPACED}]))[{UNSPACED}]"
_NOT_NEXT = r"(?![,;]+https?://)"
_URL_HOST = rf"(?:{_NOT_NEXT}(?:[^/?#{_ENDS}{UNSPACED}]|{_BEGUN}|(?<=\.)[{UNSPACED}]))+"
_URL_PATH = rf"[/?#](?:(?!\p{{Hiragana}})(?:{_NOT_NEXT}(?:[^{_ENDS}{UNSPACED}]|{_BEGUN}))+)?"
_BEFORE_URL = rf"(?<![^\P{{L}}{UNSPACED}]|\p{{N}})"

# Project pages that people name without a scheme, by top-level domain.
_BARE_HOSTS = {"com": ("github", "gitlab", "npmjs"), "org": ("bitbucket", "pypi"), "io": ("crates",)}
_BARE_HOST = "|".join(rf"(?:{'|'.join(names)})\.{tld}" for tld, names in _BARE_HOSTS.items())

_URL = lazy_regex(rf"{_BEFORE_URL}https?://(?:{_URL_HOST})?(?:{_URL_PATH})?", regex.IGNORECASE)
_BARE_URL = lazy_regex(rf"{_BEFORE_URL}(?<![@./:=&?#%+-])(?:{_BARE_HOST}){_URL_PATH}", regex.IGNORECASE)
_MENTION = lazy_regex(rf"{_OPENS}@((?>{_HANDLE})){_HANDLE_CLOSES}")
_CASHTAG = lazy_regex(rf"{_OPENS}\$([A-Z]{{1,6}}){_CLOSES}")
_HASHTAG = lazy_regex(
    rf"{_OPENS}[#\uff03](\p{{L}}(?:[\p{{L}}\p{{M}}\p{{N}}_\u30fb-]*[\p{{L}}\p{{M}}\p{{N}}_])?){_CLOSES}"
)
_POST_URL = lazy_regex(
    rf"(?:https?://)?(?:www\.)?bsky\.app/profile/({_HANDLE}|did:[a-z]+:[A-Za-z0-9._:%-]+)"
    r"/post/([A-Za-z0-9._:~-]{1,512})/?(?:[?#].*)?",
)
_PROJECT = lazy_regex(rf"(?:https?://)?(?:www\.)?(?:{_BARE_HOST})/", regex.IGNORECASE)
_CUT_OFF = lazy_regex(r"\u2026|\.{2,}")
_EMPHASIS = "*_~"
_TRAILING = ".,;:!?'"
_TAG_MAX_GRAPHEMES = 64
_TAG_MAX_BYTES = 640


@dataclass(frozen=True, slots=True)
class Span:
    """A match in a text. `start` and `end` count code points; `value` is what the facet says."""

    value: str
    start: int
    end: int


def detect_urls(text: str) -> list[Span]:
    """Return the links, in order. `value` is the whole URL; a bare project link gets `https://` in `value` only."""
    spans = [span for match in _URL.finditer(text) if (span := _link(match, ""))]
    bare = [span for match in _BARE_URL.finditer(text) if (span := _link(match, "https://"))]
    return _apart(spans, bare)


def only_link(text: str) -> str:
    """Return the one link in a text; "" if there are none or several, or if it leads to a post on Bluesky."""
    urls = [span.value for span in detect_urls(text)]
    return urls[0] if len(urls) == 1 and parse_bsky_post_url(urls[0]) is None else ""


def detect_mentions(text: str) -> list[Span]:
    """Return handles after `@`. `value` is the handle in lower case, without `@`; the span includes the `@`."""
    return [Span(match[1].lower(), match.start(), match.end()) for match in _MENTION.finditer(text)]


def is_mention(text: str) -> bool:
    """Return whether `text` is an @ and a handle, and nothing else."""
    return [(span.start, span.end) for span in detect_mentions(text)] == [(0, len(text))]


def detect_cashtags(text: str) -> list[Span]:
    """Return cashtags such as `$ABC`: one to six capitals. `value` is without `$`."""
    return [Span(match[1], match.start(), match.end()) for match in _CASHTAG.finditer(text)]


def detect_hashtags(text: str) -> list[Span]:
    """Return hashtags in any script that are short enough for the network. `value` is without `#`."""
    return [Span(match[1], match.start(), match.end()) for match in _HASHTAG.finditer(text) if _tag_fits(match[1])]


def parse_bsky_post_url(url: str) -> tuple[str, str] | None:
    """Return the handle or DID, and the record key, of a link to a post on bsky.app; None for any other link."""
    match = _POST_URL.fullmatch(url)
    return (match[1], match[2]) if match else None


def build_facets(text: str, did_map: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the facets of a text in wire form, in order and without overlaps.

    Args:
        text: the text of the post.
        did_map: handle in lower case to DID; mentions of other handles get no facet.

    """
    links = detect_urls(text)
    mentions = [span for span in detect_mentions(text) if span.value in did_map]
    features = {span: {"$type": "app.bsky.richtext.facet#link", "uri": span.value} for span in links}
    for span in mentions:
        features.setdefault(span, {"$type": "app.bsky.richtext.facet#mention", "did": did_map[span.value]})
    tags = [*detect_cashtags(text), *detect_hashtags(text)]
    for span in tags:
        features.setdefault(span, {"$type": "app.bsky.richtext.facet#tag", "tag": span.value})
    facets: list[dict[str, Any]] = []
    code_points = octets = 0
    for span in _apart(links, mentions, tags):
        first = octets + len(text[code_points : span.start].encode())
        code_points, octets = span.end, first + len(text[span.start : span.end].encode())
        facets.append({"index": {"byteStart": first, "byteEnd": octets}, "features": [features[span]]})
    return facets


def _link(match: regex.Match[str], scheme: str) -> Span | None:
    url = _without_trailing(_without_emphasis(match))
    if _PROJECT.match(url) and _CUT_OFF.match(match.string, match.start() + len(url)):
        return None
    body = url.split("/", 1)[-1].lstrip("/") if scheme else url.split("://", 1)[1]
    if not any(char.isalnum() for char in body):
        return None
    return Span(scheme + url, match.start(), match.start() + len(url))


def _without_emphasis(match: regex.Match[str]) -> str:
    """Return the URL without trailing emphasis marks that also come before it: `**https://example.org**`."""
    before = match.string[match.start() - 1 : match.start()]
    url = match[0].rstrip(_TRAILING) if before and before in _EMPHASIS else match[0]
    return url.rstrip(before) if before and before in _EMPHASIS else url


def _without_trailing(url: str) -> str:
    """Return the URL without the punctuation of the sentence, and without a closing bracket that was not opened."""
    end, unopened = len(url), url.count(")") - url.count("(")
    while end and (url[end - 1] in _TRAILING or (url[end - 1] == ")" and unopened > 0)):
        end -= 1
        unopened -= url[end] == ")"
    return url[:end]


def _apart(*kinds: list[Span]) -> list[Span]:
    """Return all spans in order; of two that overlap, only the one of the earlier kind."""
    kept: list[Span] = []
    for span in chain(*kinds):
        place = bisect(kept, span.start, key=lambda one: one.start)
        # NOTE(self): kept spans are in order and do not overlap, so only the neighbours of this one can overlap it.
        if all(other.end <= span.start or span.end <= other.start for other in kept[max(0, place - 1) : place + 1]):
            kept.insert(place, span)
    return kept


def _tag_fits(tag: str) -> bool:
    return grapheme_len(tag) <= _TAG_MAX_GRAPHEMES and len(tag.encode()) <= _TAG_MAX_BYTES
