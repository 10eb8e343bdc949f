"""Reads from Bluesky: profiles, posts, feeds, notifications, preferences and records.

An unreadable item spoils only itself: a page that cannot be read as a whole is requested in smaller pieces, and reading
continues after the item.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeVar

import httpx
from cachetools import LRUCache, TTLCache

from adapters.atproto import convert
from adapters.atproto.convert import Json, each, objects_of, text_of
from adapters.atproto.records import REPLY_RULES, parse_at_uri
from adapters.atproto.types import (
    AccountPreferences,
    Actor,
    Curated,
    FeedItem,
    ListPage,
    MutedWord,
    NotificationPage,
    Post,
    Profile,
    Record,
    ReplyRefs,
    ServiceErr,
    StrongRef,
    ThreadNode,
    Trend,
    UnreadableErr,
)
from adapters.web.spacing import BackOff, RateLimitStatus
from common.clock import Clock, parse_iso_or_none
from common.result import ApiResult, Err, Ok, answering

if TYPE_CHECKING:
    from adapters.atproto.xrpc import Xrpc


Ask = Callable[[int, str | None], Awaitable[ApiResult[Json]]]
"""Requests a page: at most so many items, starting at a cursor."""

_FIRST_STEP_MS = 1_000
_GROWS_BY = 8
_FARTHEST_MS = 60 * 86_400_000
_KEPT = 200
_MILLISECONDS = re.compile(r"([0-9]{13})(__.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Moment:
    """A cursor that is a moment; `tail` is what follows the milliseconds, None if the cursor is an ISO date."""

    ms: int
    tail: str | None

    def earlier(self, ms: int) -> str:
        """Return the cursor for the moment `ms` milliseconds before this one."""
        if self.tail is not None:
            return f"{self.ms - ms}{self.tail}"
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self.ms - ms)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


@dataclass(slots=True)
class Detours:
    """Finds cursors after unreadable items of one list, and caches the latest of them.

    Attributes:
        clock: tells where to start looking if the first item of the list is unreadable, before any cursor.

    """

    clock: Clock
    _known: LRUCache[str | None, str] = field(default_factory=lambda: LRUCache(_KEPT))

    async def around(self, ask: Ask, cursor: str | None) -> ApiResult[str]:
        """Return the cursor after the item that follows `cursor`, to the millisecond.

        Other items of the same millisecond are skipped too, and so is what lies between two such items. If the cursor
        is not a moment, the result is an `UnreadableErr`.
        """
        if (known := self._known.get(cursor)) is not None:
            return Ok(known)
        found: ApiResult[str] = UnreadableErr("no cursor behind the item could be found", kind="transient")
        for start in self._starts(cursor):
            found = await _search(ask, start)
            if isinstance(found, Ok):
                self._known[cursor] = found.data
                break
        return found

    def _starts(self, cursor: str | None) -> Iterator[_Moment]:
        """Yield where to start: at the cursor; without one at the present moment, in each of the two forms."""
        if cursor is None:
            now_ms = int(self.clock.now().timestamp() * 1000)
            yield from (_Moment(now_ms, None), _Moment(now_ms, "__0"))
        elif timed := _MILLISECONDS.fullmatch(cursor):
            yield _Moment(int(timed[1]), timed[2])
        elif moment := parse_iso_or_none(cursor):
            yield _Moment(int(moment.timestamp() * 1000), None)


async def _search(ask: Ask, start: _Moment) -> ApiResult[str]:
    unreadable_ms, readable_ms = 0, _FIRST_STEP_MS
    while isinstance(answer := await ask(1, start.earlier(readable_ms)), Err):
        if not isinstance(answer, UnreadableErr) or readable_ms >= _FARTHEST_MS:
            return answer
        unreadable_ms, readable_ms = readable_ms, readable_ms * _GROWS_BY
    while readable_ms - unreadable_ms > 1:
        middle_ms = (readable_ms + unreadable_ms) // 2
        answer = await ask(1, start.earlier(middle_ms))
        if isinstance(answer, UnreadableErr):
            unreadable_ms = middle_ms
        elif isinstance(answer, Err):
            return answer
        else:
            readable_ms = middle_ms
    return Ok(start.earlier(readable_ms))


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RawPage:
    """Items as the wire has them; `unreadable` ones were skipped; `rest` has the other fields of the answer."""

    items: tuple[object, ...]
    cursor: str | None
    unreadable: int
    rest: Json


@dataclass(frozen=True, slots=True)
class PagedListing:
    """A list of the service: how to request a page, the key of its items, and how to skip unreadable ones."""

    ask: Ask
    key: str
    detours: Detours


async def read_page(listing: PagedListing, limit: int, cursor: str | None) -> ApiResult[RawPage]:
    """Return a page of `listing`, from one answer or as many as it takes.

    An unreadable item is skipped if the answer tells the next cursor, or else if its moment can be found; otherwise the
    page ends before it.
    """
    answer = await listing.ask(limit, cursor)
    if isinstance(answer, UnreadableErr):
        return await _in_pieces(listing, limit, cursor, answer)
    if isinstance(answer, Err):
        return answer
    listed = answer.data.get(listing.key)
    if not isinstance(listed, list):
        return Err(f"the answer holds no list of {listing.key}", kind="transient")
    return Ok(RawPage(tuple(listed), text_of(answer.data, "cursor") or None, 0, answer.data))


async def _in_pieces(
    listing: PagedListing, limit: int, cursor: str | None, failed: UnreadableErr
) -> ApiResult[RawPage]:
    if limit <= 1:
        return await _behind(listing, cursor, failed)
    half = limit // 2
    first = await read_page(listing, half, cursor)
    if isinstance(first, Err) or not first.data.cursor:
        return first
    second = await read_page(listing, limit - half, first.data.cursor)
    if isinstance(second, UnreadableErr):
        logger.warning("%s; the list ends before it", second.error)
        return Ok(replace(first.data, cursor=None, unreadable=first.data.unreadable + 1))
    if isinstance(second, Err):
        return second
    return Ok(
        RawPage(
            items=(*first.data.items, *second.data.items),
            cursor=second.data.cursor,
            unreadable=first.data.unreadable + second.data.unreadable,
            rest=second.data.rest | first.data.rest,
        )
    )


async def _behind(listing: PagedListing, cursor: str | None, failed: UnreadableErr) -> ApiResult[RawPage]:
    """Return an empty page that ends after the one unreadable item at `cursor`."""
    after = failed.cursor if failed.cursor != cursor else ""
    if not after:
        found = await listing.detours.around(listing.ask, cursor)
        if isinstance(found, UnreadableErr):
            return failed
        if isinstance(found, Err):
            return found
        after = found.data
    logger.warning("%s; the item is passed over", failed.error)
    return Ok(RawPage((), after, 1, {}))


MOST_LABELERS = 20
_MOST_WORDS = 1_000
_MOST_POSTS = 10_000
_MOST_RULES = 5
_DEFS = "app.bsky.actor.defs#"
_LIST_RULE = "app.bsky.feed.threadgate#listRule"
_NO_QUOTES = "app.bsky.feed.postgate#disableRule"
_DID = re.compile(r"did:[a-z]+:[A-Za-z0-9._:%-]{1,200}")
_LIST = re.compile(r"at://[^/\s]+/app\.bsky\.graph\.list/[^/\s]+")
_RULE_NAMES = {kind: name for name, kind in REPLY_RULES.items()}


def account_preferences(answer: Json) -> AccountPreferences | None:
    """Return the account's preferences; None if the answer holds no list of them."""
    if not isinstance(answer.get("preferences"), list):
        return None
    parts = objects_of(answer, "preferences")

    def all_of(kind: str, key: str) -> list[object]:
        lists = (part.get(key) for part in parts if text_of(part, "$type") == f"{_DEFS}{kind}")
        return [item for items in lists if isinstance(items, list) for item in items]

    hidden = [uri for uri in all_of("hiddenPostsPref", "items") if isinstance(uri, str)]
    labelers = [text_of(item, "did") for item in all_of("labelersPref", "labelers") if isinstance(item, dict)]
    labels = [part for part in parts if text_of(part, "$type") == f"{_DEFS}contentLabelPref"]
    hides = [part for part in labels if text_of(part, "visibility") == "hide" and text_of(part, "label")]
    settings = next((part for part in parts if text_of(part, "$type") == f"{_DEFS}postInteractionSettingsPref"), {})
    return AccountPreferences(
        muted_words=each(all_of("mutedWordsPref", "items")[:_MOST_WORDS], _muted_word),
        hidden_posts=frozenset(hidden[:_MOST_POSTS]),
        labelers=tuple(dict.fromkeys(did for did in labelers if _DID.fullmatch(did)))[:MOST_LABELERS],
        hidden_labels=frozenset((text_of(part, "label"), text_of(part, "labelerDid")) for part in hides[:_MOST_WORDS]),
        replies=_replies(settings),
        may_be_quoted=all(
            text_of(rule, "$type") != _NO_QUOTES for rule in objects_of(settings, "postgateEmbeddingRules")
        ),
    )


def _muted_word(item: Json) -> MutedWord | None:
    targets = item.get("targets")
    if not (value := text_of(item, "value").strip()):
        return None
    return MutedWord(
        value=value,
        in_text=isinstance(targets, list) and "content" in targets,
        spares_followed=text_of(item, "actorTarget") == "exclude-following",
        until=text_of(item, "expiresAt"),
    )


def _replies(settings: Json) -> tuple[str, ...] | None:
    """Return who may reply; None: everybody. A rule that is not known allows nobody."""
    if not isinstance(settings.get("threadgateAllowRules"), list):
        return None
    rules = objects_of(settings, "threadgateAllowRules")[:_MOST_RULES]
    named = (_rule(rule) for rule in rules)
    return tuple(dict.fromkeys(name for name in named if name))


def _rule(rule: Json) -> str:
    kind, named = text_of(rule, "$type"), text_of(rule, "list")
    if kind == _LIST_RULE:
        return named if _LIST.fullmatch(named) else ""
    return _RULE_NAMES.get(kind, "")


ATPROTO_HANDLE_CACHE_S = 24 * 3600

T = TypeVar("T")

_MAX_LIMIT = 100
_MOST_NAMES = 10_000
_MOST_LISTS = 1_000
# NOTE(self): deeper answers exceed the nesting that the JSON parser accepts (200; a reply costs two levels).
_MAX_DEPTH = 80
_MAX_PARENTS = 150
_FEW_PARENTS = 8
_GONE = frozenset({"app.bsky.feed.defs#notFoundPost", "app.bsky.feed.defs#blockedPost"})


class Reader:
    """The reading calls. Each returns an `Err` for a failure outside the program, and raises only for our own bugs."""

    def __init__(self, xrpc: Xrpc, clock: Clock) -> None:
        self._xrpc = xrpc
        self._clock = clock
        self._dids = TTLCache[str, str](_MOST_NAMES, ATPROTO_HANDLE_CACHE_S, timer=clock.monotonic)
        self._detours = LRUCache[tuple[str, ...], Detours](_MOST_LISTS)

    @property
    def did(self) -> str:
        """Our own DID; "" before login."""
        session = self._xrpc.keeper.session
        return session.did if session else ""

    @property
    def handle(self) -> str:
        """Our own handle; "" before login."""
        session = self._xrpc.keeper.session
        return session.handle if session else ""

    async def get_profile(self, actor: str) -> ApiResult[Profile]:
        """Return an account's profile, by handle or DID."""
        answer = await self._query("app.bsky.actor.getProfile", actor=actor)
        return _whole(answer, convert.profile, "the profile lacks its DID")

    async def get_timeline(self, limit: int = 50, cursor: str | None = None) -> ApiResult[ListPage[FeedItem]]:
        """Return a page of posts by the accounts that we follow, newest first."""
        return await self._page_of(convert.feed_item, "app.bsky.feed.getTimeline", "feed", limit, cursor)

    async def get_author_feed(
        self,
        actor: str,
        limit: int = 50,
        cursor: str | None = None,
        filter: str | None = None,  # noqa: A002 - the service's own name for it
    ) -> ApiResult[ListPage[FeedItem]]:
        """Return a page of posts by an account, newest first. `filter` is for example `posts_no_replies`."""
        method = "app.bsky.feed.getAuthorFeed"
        return await self._page_of(convert.feed_item, method, "feed", limit, cursor, actor=actor, filter=filter)

    async def get_followers(self, actor: str, limit: int = 50, cursor: str | None = None) -> ApiResult[ListPage[Actor]]:
        """Return a page of the followers of an account."""
        method = "app.bsky.graph.getFollowers"
        return await self._page_of(convert.actor, method, "followers", limit, cursor, actor=actor)

    async def get_follows(self, actor: str, limit: int = 50, cursor: str | None = None) -> ApiResult[ListPage[Actor]]:
        """Return a page of the accounts that an account follows."""
        method = "app.bsky.graph.getFollows"
        return await self._page_of(convert.actor, method, "follows", limit, cursor, actor=actor)

    @answering
    async def search_posts(
        self,
        query: str,
        *,
        author: str = "",
        language: str = "",
        since: str = "",
        sort: Literal["latest", "top"] = "latest",
        limit: int = 25,
        cursor: str | None = None,
    ) -> ApiResult[ListPage[FeedItem]]:
        """Return posts that contain the words of `query`.

        Args:
            query: the words, also `"a phrase"` or `#tag`.
            author: only by this account, a handle or DID; "" for everybody.
            language: only in this language, such as `en`; "" for all.
            since: only from this day or moment on, in ISO-8601; "" for all.
            sort: the newest first, or the most popular first.
            limit: how many, at most 100.
            cursor: the cursor of an earlier page.

        """
        filters = {"author": author, "lang": language, "since": since}
        given = {name: value for name, value in filters.items() if value}
        method = "app.bsky.feed.searchPosts"
        page = (await self._page(method, "posts", limit, cursor, q=query, sort=sort, **given)).or_raise()
        return Ok(ListPage(tuple(FeedItem(post) for post in convert.each(page.items, convert.post)), page.cursor))

    @answering
    async def search_actors(self, query: str, limit: int = 25) -> ApiResult[tuple[Profile, ...]]:
        """Return accounts whose names or descriptions contain the words of `query`."""
        page = (await self._page("app.bsky.actor.searchActors", "actors", limit, None, q=query)).or_raise()
        return Ok(convert.each(page.items, convert.profile))

    async def get_feed(self, uri: str, limit: int = 50, cursor: str | None = None) -> ApiResult[ListPage[FeedItem]]:
        """Return a page of the feed at `uri`: the posts that its generator chose, in its order."""
        return await self._page_of(convert.feed_item, "app.bsky.feed.getFeed", "feed", limit, cursor, feed=uri)

    async def get_feed_generator(self, uri: str) -> ApiResult[Curated]:
        """Return the description of the feed at `uri`."""
        answer = await self._query("app.bsky.feed.getFeedGenerator", feed=uri)
        return _whole(answer, _curated_at("view"), "the answer describes no feed")

    @answering
    async def get_list(self, uri: str, limit: int = 50) -> ApiResult[Curated]:
        """Return the list at `uri` and its first members."""
        page = (await self._page("app.bsky.graph.getList", "items", limit, None, list=uri)).or_raise()
        described = _whole(Ok(page.rest), _curated_at("list"), "the answer describes no list").or_raise()
        return Ok(replace(described, members=convert.each(page.items, convert.member)))

    async def get_list_feed(
        self, uri: str, limit: int = 50, cursor: str | None = None
    ) -> ApiResult[ListPage[FeedItem]]:
        """Return a page of posts by the members of the list at `uri`, newest first."""
        return await self._page_of(convert.feed_item, "app.bsky.feed.getListFeed", "feed", limit, cursor, list=uri)

    async def get_starter_pack(self, uri: str) -> ApiResult[Curated]:
        """Return the starter pack at `uri`: its feeds, its list and some of its accounts."""
        answer = await self._query("app.bsky.graph.getStarterPack", starterPack=uri)
        return _whole(answer, _curated_at("starterPack"), "the answer describes no starter pack")

    async def get_trends(self, limit: int = 10) -> ApiResult[tuple[Trend, ...]]:
        """Return the topics that many people post about now, at most 25."""
        answer = await self._query("app.bsky.unspecced.getTrends", limit=limit)
        return answer if isinstance(answer, Err) else Ok(convert.items_of(answer.data, "trends", convert.trend))

    @answering
    async def get_notifications(
        self,
        limit: int = 50,
        cursor: str | None = None,
        reasons: Sequence[str] = (),
    ) -> ApiResult[NotificationPage]:
        """Return a page of our notifications, newest first; with `reasons`, only those of these kinds."""
        method, wanted = "app.bsky.notification.listNotifications", list(reasons) or None
        raw = (await self._page(method, "notifications", limit, cursor, reasons=wanted)).or_raise()
        found = convert.each(raw.items, convert.notification)
        left_out = raw.unreadable + len(raw.items) - len(found)
        return Ok(NotificationPage(found, raw.cursor, convert.text_of(raw.rest, "seenAt") or None, left_out))

    async def get_post_thread(self, uri: str, depth: int = 0, parent_height: int = 100) -> ApiResult[ThreadNode]:
        """Return a post with `depth` levels of replies and `parent_height` ancestors.

        If the service says that the post is gone or blocked, the `Err` is `not_found`; an answer without a thread
        proves nothing, so it is `transient`.
        """
        answer = await self._thread(uri, min(max(depth, 0), _MAX_DEPTH), min(max(parent_height, 0), _MAX_PARENTS))
        if isinstance(answer, ServiceErr) and not answer.name and answer.kind in {"not_found", "invalid"}:
            return replace(answer, kind="transient")  # this answer did not come from the network
        if isinstance(answer, Err):
            return answer
        view = convert.object_of(answer.data, "thread")
        if node := convert.thread(view):
            return Ok(node)
        if convert.text_of(view, "$type") in _GONE:
            return Err(f"the post is gone or blocked: {uri}", kind="not_found")
        return Err(f"the answer holds no thread: {uri}", kind="transient")

    async def get_posts(self, uris: Sequence[str]) -> ApiResult[tuple[Post, ...]]:
        """Return those of at most 25 posts that can be read now, in no order; deleted or blocked ones are missing."""
        answer = await self._query("app.bsky.feed.getPosts", uris=list(uris))
        return answer if isinstance(answer, Err) else Ok(convert.items_of(answer.data, "posts", convert.post))

    async def get_preferences(self) -> ApiResult[AccountPreferences]:
        """Return our account's preferences. From now on reads include the labels of its labelers."""
        answer = await self._query("app.bsky.actor.getPreferences")
        read = _whole(answer, account_preferences, "the answer holds no preferences")
        if not isinstance(read, Err):
            self._xrpc.labelers = read.data.labelers
        return read

    async def get_record(self, uri: str) -> ApiResult[Record | None]:
        """Return a raw record; `Ok(None)` only if the service says that it does not exist."""
        if not (at := parse_at_uri(uri)):
            return Err(f"not the address of a record: {uri}", kind="invalid")
        method = "com.atproto.repo.getRecord"
        answer = await self._query(method, repo=at.repo, collection=at.collection, rkey=at.rkey)
        if isinstance(answer, Err):
            absent = isinstance(answer, ServiceErr) and answer.name == "RecordNotFound"
            return Ok(None) if absent else answer
        return _whole(answer, convert.record, "the record lacks its address")

    async def list_records(
        self,
        collection: str,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ApiResult[ListPage[Record]]:
        """Return a page of our own records of one collection, newest first."""
        if not self.did:
            return Err("listing our own records: not logged in", kind="auth")
        method = "com.atproto.repo.listRecords"
        return await self._page_of(
            convert.record, method, "records", limit, cursor, repo=self.did, collection=collection
        )

    @answering
    async def resolve_handle(self, handle: str, *, fresh: bool = False) -> ApiResult[str]:
        """Return the DID of a handle; it is cached for a day, and looked up again with `fresh`."""
        if not fresh and (known := self._dids.get(handle.lower())):
            return Ok(known)
        answer = (await self._query("com.atproto.identity.resolveHandle", handle=handle)).or_raise()
        if not (did := convert.text_of(answer, "did")):
            return Err(f"the answer holds no DID for {handle}", kind="transient")
        self._remember(handle, did)
        return Ok(did)

    def _remember(self, handle: str, did: str) -> None:
        self._dids[handle.lower()] = did

    async def _query(self, method: str, **params: str | int | list[str] | None) -> ApiResult[Json]:
        answer = await self._xrpc.query(method, **params)
        # NOTE(self): what is said of our own account comes with 401 or at a login; an account out of use is another's.
        if isinstance(answer, Err) and answer.kind == "fatal" and answer.status == httpx.codes.BAD_REQUEST:
            return replace(answer, kind="not_found")
        return answer

    async def _thread(self, uri: str, depth: int, parents: int) -> ApiResult[Json]:
        """Return a thread, or as much of it as can be read: without its replies, then the post alone."""
        answer: ApiResult[Json] = Ok({})
        for below, above in dict.fromkeys([(depth, parents), (0, min(parents, _FEW_PARENTS)), (0, 0)]):
            answer = await self._query("app.bsky.feed.getPostThread", uri=uri, depth=below, parentHeight=above)
            if not isinstance(answer, UnreadableErr):
                break
        return answer

    @answering
    async def _page_of(
        self,
        made: Callable[[Json], T | None],
        method: str,
        key: str,
        limit: int,
        cursor: str | None,
        **params: str | list[str] | None,
    ) -> ApiResult[ListPage[T]]:
        page = (await self._page(method, key, limit, cursor, **params)).or_raise()
        return Ok(ListPage(convert.each(page.items, made), page.cursor))

    async def _page(
        self, method: str, key: str, limit: int, cursor: str | None, **params: str | list[str] | None
    ) -> ApiResult[RawPage]:
        async def ask(limit: int, cursor: str | None) -> ApiResult[Json]:
            return await self._query(method, limit=limit, cursor=cursor, **params)

        names = (str(value) for value in params.values())
        detours = self._detours.setdefault((method, *names), Detours(self._clock))
        return await read_page(PagedListing(ask, key, detours), min(max(limit, 1), _MAX_LIMIT), cursor)

    def rate_limit_status(self) -> RateLimitStatus:
        """Return the request budget according to the last answer."""
        return self._xrpc.budget.status

    def burst(self, *, sets_pace: bool = True) -> AbstractAsyncContextManager[None]:
        """Send the requests of all calls inside `async with` one after the other, with no other request in between.

        Without `sets_pace`, the next request after the burst does not wait for the spacing either.
        """
        return self._xrpc.burst(sets_pace=sets_pace)

    def back_off(self) -> BackOff | None:
        """Return for how long and why nothing is sent; None while requests may leave."""
        return self._xrpc.budget.back_off()

    def server_time_skew(self) -> float | None:
        """Return how many seconds our clock is ahead of the service's, by its last answer; None before the first."""
        return self._xrpc.budget.skew_s


def _whole(answer: ApiResult[Json], made: Callable[[Json], T | None], problem: str) -> ApiResult[T]:
    if isinstance(answer, Err):
        return answer
    value = made(answer.data)
    return Err(problem, kind="transient") if value is None else Ok(value)


def _curated_at(key: str) -> Callable[[Json], Curated | None]:
    return lambda answer: convert.curated(convert.object_of(answer, key))


def resolve_reply_refs(parent: StrongRef, thread: ThreadNode | None) -> ReplyRefs:
    """Return the refs of a reply to `parent`, given the thread it was found in.

    The root is the one that the parent itself names; without one, or without a thread, the parent is also the root.
    """
    named = thread.post.reply if thread else None
    return ReplyRefs(parent, named.root if named else parent)
