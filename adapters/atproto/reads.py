"""What can be asked of Bluesky."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from cachetools import LRUCache, TTLCache

from adapters.atproto import convert
from adapters.atproto.convert import Json
from adapters.atproto.convert_preferences import account_preferences
from adapters.atproto.detour import Detours
from adapters.atproto.paging import PagedListing, RawPage, read_page
from adapters.atproto.preference_types import AccountPreferences
from adapters.atproto.records import parse_at_uri
from adapters.atproto.types import (
    FeedPage,
    NotificationPage,
    Page,
    Post,
    Profile,
    Record,
    RecordPage,
    ReplyRefs,
    ServiceErr,
    StrongRef,
    ThreadNode,
    UnreadableErr,
)
from adapters.web.rate_limit import BackOff, RateLimitStatus
from common.clock import Clock
from common.result import ApiResult, Err, Ok, answering

if TYPE_CHECKING:
    from adapters.atproto.xrpc import Xrpc

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
    """The questions. Each answers `Err` for what the world did, and raises only for our own bugs."""

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
        """An account's page, by handle or DID."""
        answer = await self._xrpc.query("app.bsky.actor.getProfile", actor=actor)
        return _whole(answer, convert.profile, "the profile lacks its DID")

    async def get_timeline(self, limit: int = 50, cursor: str | None = None) -> ApiResult[FeedPage]:
        """What the accounts we follow posted, newest first."""
        return _feed(await self._page("app.bsky.feed.getTimeline", "feed", limit, cursor))

    async def get_author_feed(
        self,
        actor: str,
        limit: int = 50,
        cursor: str | None = None,
        filter: str | None = None,  # noqa: A002 - the service's own word
    ) -> ApiResult[FeedPage]:
        """What an account posted, newest first. `filter` is for example `posts_no_replies`."""
        method = "app.bsky.feed.getAuthorFeed"
        return _feed(await self._page(method, "feed", limit, cursor, actor=actor, filter=filter))

    async def get_followers(self, actor: str, limit: int = 50, cursor: str | None = None) -> ApiResult[Page]:
        """Who follows an account."""
        method = "app.bsky.graph.getFollowers"
        return _actors(await self._page(method, "followers", limit, cursor, actor=actor))

    async def get_follows(self, actor: str, limit: int = 50, cursor: str | None = None) -> ApiResult[Page]:
        """Whom an account follows."""
        method = "app.bsky.graph.getFollows"
        return _actors(await self._page(method, "follows", limit, cursor, actor=actor))

    @answering
    async def get_notifications(
        self,
        limit: int = 50,
        cursor: str | None = None,
        reasons: Sequence[str] = (),
    ) -> ApiResult[NotificationPage]:
        """What happened to us, newest first; with `reasons`, only that."""
        method, wanted = "app.bsky.notification.listNotifications", list(reasons) or None
        raw = (await self._page(method, "notifications", limit, cursor, reasons=wanted)).or_raise()
        found = convert.each(raw.items, convert.notification)
        left_out = raw.unreadable + len(raw.items) - len(found)
        return Ok(NotificationPage(found, raw.cursor, convert.text_of(raw.rest, "seenAt") or None, left_out))

    async def get_post_thread(self, uri: str, depth: int = 0, parent_height: int = 100) -> ApiResult[ThreadNode]:
        """A post with `depth` levels of replies and `parent_height` ancestors.

        A post of which the service says that it is gone or blocked is an `Err` of kind `not_found`; an answer without a
        thread is `transient`, for it says nothing.
        """
        answer = await self._thread(uri, min(max(depth, 0), _MAX_DEPTH), min(max(parent_height, 0), _MAX_PARENTS))
        if isinstance(answer, ServiceErr) and not answer.name and answer.kind in {"not_found", "invalid"}:
            return replace(answer, kind="transient")  # whoever said so, it was not the network
        if isinstance(answer, Err):
            return answer
        view = convert.object_of(answer.data, "thread")
        if node := convert.thread(view):
            return Ok(node)
        if convert.text_of(view, "$type") in _GONE:
            return Err(f"the post is gone or blocked: {uri}", kind="not_found")
        return Err(f"the answer holds no thread: {uri}", kind="transient")

    async def get_posts(self, uris: Sequence[str]) -> ApiResult[tuple[Post, ...]]:
        """Return those of at most 25 posts that can be read now, in no order: what is deleted or blocked is missing."""
        answer = await self._xrpc.query("app.bsky.feed.getPosts", uris=list(uris))
        return answer if isinstance(answer, Err) else Ok(convert.items_of(answer.data, "posts", convert.post))

    async def get_reply_refs(self, parent_uri: str, parent_cid: str) -> ApiResult[ReplyRefs]:
        """Where a reply to a post hangs, as its thread tells.

        When that fails twice the parent doubles as root: a reply that forks the thread is better than none.
        """
        if not parent_uri or not parent_cid:
            return Err("a reply needs the uri and the cid of the post it answers", kind="invalid")
        if not parent_uri.startswith("at://"):
            return Err(f"not an at:// uri: {parent_uri}", kind="invalid")
        parent = StrongRef(parent_uri, parent_cid)
        thread = await self.get_post_thread(parent_uri, depth=0, parent_height=0)
        if isinstance(thread, Err) and thread.kind == "transient":
            thread = await self.get_post_thread(parent_uri, depth=0, parent_height=0)
        return Ok(resolve_reply_refs(parent, None if isinstance(thread, Err) else thread.data))

    async def has_agent_replied_in_thread(self, uri: str) -> bool:
        """Whether we already answered exactly this post. False when the service cannot say."""
        thread = await self.get_post_thread(uri, depth=1, parent_height=0)
        return not isinstance(thread, Err) and any(reply.post.author.did == self.did for reply in thread.data.replies)

    async def get_preferences(self) -> ApiResult[AccountPreferences]:
        """What our account chose on Bluesky. From then on the labels of its labelers come with what is read."""
        answer = await self._xrpc.query("app.bsky.actor.getPreferences")
        read = _whole(answer, account_preferences, "the answer holds no preferences")
        if not isinstance(read, Err):
            self._xrpc.labelers = read.data.labelers
        return read

    async def get_record(self, uri: str) -> ApiResult[Record | None]:
        """A raw record; `Ok(None)` only when the service says that it is not there."""
        if not (at := parse_at_uri(uri)):
            return Err(f"not the address of a record: {uri}", kind="invalid")
        method = "com.atproto.repo.getRecord"
        answer = await self._xrpc.query(method, repo=at.repo, collection=at.collection, rkey=at.rkey)
        if isinstance(answer, Err):
            absent = isinstance(answer, ServiceErr) and answer.name == "RecordNotFound"
            return Ok(None) if absent else answer
        return _whole(answer, convert.record, "the record lacks its address")

    @answering
    async def list_records(
        self,
        collection: str,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ApiResult[RecordPage]:
        """Our own records of one kind, newest first."""
        if not self.did:
            return Err("listing our own records: not logged in", kind="auth")
        method = "com.atproto.repo.listRecords"
        page = (await self._page(method, "records", limit, cursor, repo=self.did, collection=collection)).or_raise()
        return Ok(RecordPage(convert.each(page.items, convert.record), page.cursor))

    @answering
    async def resolve_handle(self, handle: str, *, fresh: bool = False) -> ApiResult[str]:
        """Return the DID of a handle; it is remembered for a day, and looked up again with `fresh`."""
        if not fresh and (known := self._dids.get(handle.lower())):
            return Ok(known)
        answer = (await self._xrpc.query("com.atproto.identity.resolveHandle", handle=handle)).or_raise()
        if not (did := convert.text_of(answer, "did")):
            return Err(f"the answer holds no DID for {handle}", kind="transient")
        self._remember(handle, did)
        return Ok(did)

    def _remember(self, handle: str, did: str) -> None:
        self._dids[handle.lower()] = did

    async def _thread(self, uri: str, depth: int, parents: int) -> ApiResult[Json]:
        """A thread, or as much of it as can be read: without its replies, then the post alone."""
        answer: ApiResult[Json] = Ok({})
        for below, above in dict.fromkeys([(depth, parents), (0, min(parents, _FEW_PARENTS)), (0, 0)]):
            answer = await self._xrpc.query("app.bsky.feed.getPostThread", uri=uri, depth=below, parentHeight=above)
            if not isinstance(answer, UnreadableErr):
                break
        return answer

    async def _page(
        self, method: str, key: str, limit: int, cursor: str | None, **params: str | list[str] | None
    ) -> ApiResult[RawPage]:
        async def ask(limit: int, cursor: str | None) -> ApiResult[Json]:
            return await self._xrpc.query(method, limit=limit, cursor=cursor, **params)

        names = (str(value) for value in params.values())
        detours = self._detours.setdefault((method, *names), Detours(self._clock))
        return await read_page(PagedListing(ask, key, detours), min(max(limit, 1), _MAX_LIMIT), cursor)

    def rate_limit_status(self) -> RateLimitStatus:
        """The request budget as the last answer told it."""
        return self._xrpc.budget.status

    def burst(self, *, sets_pace: bool = True) -> AbstractAsyncContextManager[None]:
        """`async with atproto.burst():` calls inside follow each other at once, and nothing comes between.

        Without `sets_pace`, the next request after it leaves at once too.
        """
        return self._xrpc.burst(sets_pace=sets_pace)

    def back_off(self) -> BackOff | None:
        """How long and why nothing is sent; None while requests may leave."""
        return self._xrpc.budget.back_off()

    def server_time_skew(self) -> float | None:
        """Seconds that our clock is ahead of the service's, by its last answer; None before the first."""
        return self._xrpc.budget.skew_s


def _whole(answer: ApiResult[Json], made: Callable[[Json], T | None], problem: str) -> ApiResult[T]:
    if isinstance(answer, Err):
        return answer
    value = made(answer.data)
    return Err(problem, kind="transient") if value is None else Ok(value)


def _feed(page: ApiResult[RawPage]) -> ApiResult[FeedPage]:
    if isinstance(page, Err):
        return page
    return Ok(FeedPage(convert.each(page.data.items, convert.feed_item), page.data.cursor))


def _actors(page: ApiResult[RawPage]) -> ApiResult[Page]:
    if isinstance(page, Err):
        return page
    return Ok(Page(convert.each(page.data.items, convert.actor), page.data.cursor))


def resolve_reply_refs(parent: StrongRef, thread: ThreadNode | None) -> ReplyRefs:
    """Return the refs of a reply to `parent`, given the thread it was found in.

    The root is the one that the parent itself names; without that, or without a thread, the parent doubles as root.
    """
    named = thread.post.reply if thread else None
    return ReplyRefs(parent, named.root if named else parent)
