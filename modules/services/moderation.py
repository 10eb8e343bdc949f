"""Our account's choices on Bluesky, read once a day, with mutes and blocks between others and us, and their effect.

Nothing is stored: each start reads again, and a known barrier stays known until the process ends. Until the choices
could be read once, posts of others wait; afterwards the last known choices hold.
"""

import asyncio
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import regex
from cachetools import LRUCache

from adapters.atproto.client import Atproto
from adapters.atproto.types import AccountPreferences, Actor, Barrier, MutedWord, Notification, Post, PostLabel, Profile
from common.clock import Clock, parse_iso_or_none
from common.result import Err
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.identity.identity import Me
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.rules.policy import named_in, who_is_told
from modules.services.outbox.types import Intent, ProposedAction, Verdict, Wait

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


READ_AGAIN_S = 24 * 3600.0
TRY_AGAIN_S = 60.0
READ_WITHIN_S = 40.0

_RULE = "moderation"
_ASK_AGAIN_S = 60.0
_MOST_ACCOUNTS = 10_000
_NO_SUCH_METHOD = frozenset({"invalid", "not_found"})


class Moderation:
    """Applies the choices, but not to the owner. The outbox may call `rule` and `gate` from any thread."""

    def __init__(self, *, atproto: Atproto, journal: Journal, clock: Clock, me: Me) -> None:
        self._atproto = atproto
        self._journal = journal
        self._clock = clock
        self._me = me
        self._chosen = AccountPreferences()
        self._barriers = LRUCache[str, Barrier](_MOST_ACCOUNTS)
        self._followed = LRUCache[str, bool](_MOST_ACCOUNTS)
        self._not_before = clock.monotonic()
        self._reading = asyncio.Lock()
        self.is_known = False

    async def refresh(self) -> None:
        """Read the choices, if it is time."""
        async with self._reading:
            now = self._clock.monotonic()
            if now < self._not_before or not self._atproto.did:
                return
            try:
                async with asyncio.timeout(READ_WITHIN_S):
                    read = await self._atproto.get_preferences()
            except TimeoutError:
                read = Err(f"no answer within {READ_WITHIN_S:.0f} s", kind="transient")
            if isinstance(read, Err):
                self._not_before = now + self._clock.real(TRY_AGAIN_S)
                self.is_known = self.is_known or read.kind in _NO_SUCH_METHOD
                summary = "The preferences of the account could not be read"
                await self._journal.record(Entry("error", _RULE, summary, line="warn", reason=read.error))
                return
            self._chosen, self.is_known = read.data, True
            self._not_before = now + self._clock.real(READ_AGAIN_S)

    def note(self, *actors: Actor | Profile) -> None:
        """Store how we stand with these accounts, from data that the network just returned; see renames of ours."""
        for actor in actors:
            if actor.is_followed:
                self._followed[actor.did] = True
            else:
                self._followed.pop(actor.did, None)
            if actor.did == self._atproto.did:
                self._me.take_handle(actor.handle)
            if self._me.is_owner(actor.did):
                self._me.take_owner_handle(actor.handle)
                continue
            for name in filter(None, (actor.did, actor.handle.lower())):
                if actor.barrier:
                    self._barriers[name] = actor.barrier
                else:
                    self._barriers.pop(name, None)

    def why_unseen(self, item: Post | Notification | Profile) -> str:
        """Return why a post or an account is neither shown to a model nor answered; "" for the owner's and ours."""
        did = item.did if isinstance(item, Profile) else item.author.did
        if did in {self._me.owner_did, self._atproto.did}:
            return ""
        return why_unseen(shown(item), self._chosen, self._clock.now())

    def follows(self, did: str) -> bool:
        """Return whether we follow an account, by the latest data."""
        return did in self._followed

    def why_left_alone(self, names: Iterable[str]) -> tuple[str, str]:
        """Return which of these accounts (DIDs or handles) must not be addressed, and why; both "" if all may be."""
        for name in names:
            if barrier := self._barriers.get(name, ""):
                return name, BARRIERS[barrier]
        return "", ""

    def as_chosen(self, body: PostBody) -> PostBody:
        """Return a post with the account's defaults."""
        return with_defaults(body, self._chosen)

    def rule(self, connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:
        """Refuse what would reach or name such an account; what the owner asked for passes."""
        who, reason = self._against(action, action.text)
        return [Verdict(_RULE, "block", reason, who, instead="silence")] if reason else [Verdict(_RULE)]

    def gate(self, connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:
        """Hold an intent that was accepted before an obstacle was known, until the obstacle ends or it expires.

        A post of our own waits until it is known who may reply to it and quote it.
        """
        if intent.kind == "post" and not (intent.by_owner or self.is_known):
            return Wait("what our account chose for its own posts could not be read", _ASK_AGAIN_S)
        _, reason = self._against(intent, intent.body.public_text)
        return Wait(reason, _ASK_AGAIN_S) if reason else None

    def _against(self, act: ProposedAction | Intent, text: str) -> tuple[str, str]:
        if act.by_owner or act.kind == "delete":
            return "", ""
        return self.why_left_alone((who_is_told(act), *named_in(text)))
