"""Applies our account's choices on Bluesky to a post or an account, and to a post of our own. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import regex

from adapters.atproto.types import AccountPreferences, Barrier, MutedWord, Notification, Post, PostLabel, Profile
from common.clock import parse_iso_or_none
from modules.services.outbox.bodies import PostBody

# NOTE(self): these scripts put no space between words.
_WITHOUT_SPACES = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_WORDS = regex.compile(r"[\p{L}\p{M}\p{N}_]+")
_PHRASE = regex.compile(r"[^\p{L}\p{M}\p{N}_]")

BARRIERS: dict[Barrier, str] = {
    "muted": "our account on Bluesky muted them",
    "blocked": "our account on Bluesky blocked them",
    "blocks us": "they block our account on Bluesky",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """The examined parts of a post: its address, texts, tags, labels, and whether we follow its author."""

    uri: str
    texts: tuple[str, ...]
    tags: tuple[str, ...] = ()
    labels: tuple[PostLabel, ...] = ()
    is_followed: bool = False
    barrier: Barrier = ""


def shown(post: Post | Notification | Profile) -> Shown:
    """Return the examined parts of a post or an account."""
    if isinstance(post, Profile):
        words = (post.display_name, post.description)
        return Shown("", words, labels=post.labels, is_followed=post.is_followed, barrier=post.barrier)
    texts = (post.text, *(picture.alt for picture in post.pictures if picture.alt))
    author = post.author
    return Shown(post.uri, texts, post.tags, post.labels, is_followed=author.is_followed, barrier=author.barrier)


def why_unseen(post: Shown, chosen: AccountPreferences, now: datetime) -> str:
    """Return why our account does not want to see a post, or ""."""
    if post.barrier:
        return BARRIERS[post.barrier]
    if post.uri in chosen.hidden_posts:
        return "our account on Bluesky hid this post"
    if name := _hidden_label(post.labels, chosen.hidden_labels):
        return f"our account on Bluesky hides what is labelled {name}"
    words = (word for word in chosen.muted_words if holds(word, now, is_followed=post.is_followed))
    if any(is_in(word, post.texts, post.tags) for word in words):
        return "it has a word that our account on Bluesky muted"
    return ""


def holds(word: MutedWord, now: datetime, *, is_followed: bool) -> bool:
    """Return whether a muted word applies now, to an author whom we follow or not."""
    until = parse_iso_or_none(word.until) if word.until else None
    return not (word.spares_followed and is_followed) and (until is None or now < until)


def is_in(word: MutedWord, texts: Iterable[str], tags: Iterable[str]) -> bool:
    """Return whether a muted word is one of the tags of a post, or stands in its text as a whole word or phrase."""
    wanted = _plain(word.value).removeprefix("#")
    if not wanted:
        return False
    if wanted in {_plain(tag) for tag in tags}:
        return True
    return word.in_text and any(_stands_in(wanted, _plain(text)) for text in texts)


def with_defaults(body: PostBody, chosen: AccountPreferences) -> PostBody:
    """Return a post of our own with our account's defaults on replies and quotes.

    If the post itself says who may reply, that holds.
    """
    said = body.model_fields_set
    defaults: dict[str, object] = {}
    if "replies" not in said and chosen.replies is not None:
        defaults["replies"] = chosen.replies
    if "may_be_quoted" not in said and not chosen.may_be_quoted:
        defaults["may_be_quoted"] = False
    return body.model_copy(update=defaults)


def _hidden_label(labels: Iterable[PostLabel], hidden: frozenset[tuple[str, str]]) -> str:
    return next((one.name for one in labels if not {(one.name, ""), (one.name, one.source)}.isdisjoint(hidden)), "")


def _stands_in(wanted: str, text: str) -> bool:
    if len(wanted) == 1 or _PHRASE.search(wanted) or _WITHOUT_SPACES.search(wanted):
        return wanted in text
    return wanted in _WORDS.findall(text)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
