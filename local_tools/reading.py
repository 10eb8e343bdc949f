"""What a SOUL can read on Bluesky beyond its own timeline: searches, feeds, lists, starter packs and trends.

For turns that the SOUL or its owner began. All of it is untrusted text, and whom our account, or its author, keeps from
being read is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pydantic import BaseModel, Field

from adapters.atproto.client import Atproto
from adapters.atproto.records import GENERATOR, LIST, STARTER_PACK, AtUri, parse_curated
from adapters.atproto.types import Curated, FeedPage, Profile
from common.clock import parse_iso_or_none
from common.provenance import Provenance
from common.result import ApiResult, Err, Ok
from common.text.strings import account_name
from local_tools.bluesky_turns import BlueskyLooks, LimitInput, may_look_up
from local_tools.words import ToolWords
from modules.services.agent.tools.types import Tool, ToolResult, Turn

_MOST_CHARS = 200


class SearchInput(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, max_length=_MOST_CHARS)
    what: Literal["posts", "people"] = "posts"
    author: str = ""
    since: str = ""
    language: str = ""
    limit: int = Field(default=15, ge=1, le=50)


class AddressInput(BaseModel):
    """A feed, a list or a starter pack."""

    address: str
    limit: int = Field(default=15, ge=1, le=50)


@dataclass(frozen=True, slots=True)
class ReadingTools:
    """The handlers; `looks` keeps out what is not to be read."""

    atproto: Atproto
    looks: BlueskyLooks

    @property
    def words(self) -> ToolWords:
        """What the model is told about them."""
        return self.looks.words

    async def search(self, args: SearchInput, turn: Turn) -> ToolResult:
        """Find posts or people by words."""
        if args.what == "people":
            return await self._people((await self.atproto.search_actors(args.query, args.limit)).or_raise())
        author = account_name(args.author)
        if author and not may_look_up(author, turn):
            return self.words.error("By Did")
        if args.since and parse_iso_or_none(args.since) is None:
            return self.words.error("Unclear Since")
        found = await self.atproto.search_posts(
            args.query, author=author, language=args.language, since=args.since, limit=args.limit
        )
        return await self._posts(found.or_raise())

    async def read_feed(self, args: AddressInput, turn: Turn) -> ToolResult:
        """Read the newest posts of a feed, or of the accounts on a list."""
        at = await self._at(args.address, turn, GENERATOR, LIST)
        get = self.atproto.get_feed if at.collection == GENERATOR else self.atproto.get_list_feed
        return await self._posts((await get(at.uri, args.limit)).or_raise())

    async def read_list(self, args: AddressInput, turn: Turn) -> ToolResult:
        """Read what a feed, a list or a starter pack is about, and who is on it."""
        at = await self._at(args.address, turn, GENERATOR, LIST, STARTER_PACK)
        get = {
            GENERATOR: self.atproto.get_feed_generator,
            LIST: partial(self.atproto.get_list, limit=args.limit),
            STARTER_PACK: self.atproto.get_starter_pack,
        }
        made = (await get[at.collection](at.uri)).or_raise()
        parts = [made, *made.feeds]
        makers = await self.looks.allowed(one.creator for one in parts)
        shown = [_described(one) for one in parts if one.creator.did in makers and not one.creator.barrier]
        listed = {"list": made.list_uri} if made.list_uri else {}
        return await self._people(made.members[: args.limit], {"described": shown, **listed})

    async def trends(self, args: LimitInput, turn: Turn) -> ToolResult:
        """Read what many talk about now; an address leads to the posts."""
        found = (await self.atproto.get_trends(min(args.limit, 25))).or_raise()
        told: list[dict[str, object]] = []
        for trend in found:
            at = parse_curated(trend.link)
            # NOTE(self): the link names a handle that the network chose; code alone looks it up.
            feed = (await self._resolved(at)).or_else(None) if at else None
            address = {"address": feed.uri} if feed else {}
            told.append({"topic": trend.name, "posts": trend.post_count, "since": trend.started_at, **address})
        return self.looks.framed(told)

    async def _posts(self, page: FeedPage) -> ToolResult:
        return self.looks.framed(await self.looks.shown(item.post for item in page.items))

    async def _people(self, found: Sequence[Profile], described: dict[str, object] | None = None) -> ToolResult:
        people = await self.looks.readable_people(found)
        accounts = [{"handle": one.handle, "did": one.did, "about": one.description} for one in people]
        return self.looks.framed({**described, "accounts": accounts} if described else accounts)

    async def _at(self, address: str, turn: Turn, *collections: str) -> AtUri:
        """Return the address with the DID of its account. Raises `ToolStopped`."""
        at = parse_curated(address.strip())
        if at is None or at.collection not in collections:
            self.words.stop("Address Unclear")
        if not may_look_up(at.repo, turn):
            self.words.stop("By Did")
        return (await self._resolved(at)).or_raise()

    async def _resolved(self, at: AtUri) -> ApiResult[AtUri]:
        if at.repo.startswith("did:"):
            return Ok(at)
        found = await self.atproto.resolve_handle(at.repo)
        return found if isinstance(found, Err) else Ok(at._replace(repo=found.data))


def _described(made: Curated) -> dict[str, object]:
    return {"name": made.name, "by": made.creator.handle, "about": made.description, "address": made.uri}


def reading_tools(tools: ReadingTools) -> Sequence[Tool]:
    """The family, as the registry takes it: looks for turns that the SOUL or its owner began."""
    handlers = (
        ("bluesky_search", SearchInput, tools.search),
        ("bluesky_read_feed", AddressInput, tools.read_feed),
        ("bluesky_read_list", AddressInput, tools.read_list),
        ("bluesky_trends", LimitInput, tools.trends),
    )
    return [
        tools.words.tool(name, model, "social", Provenance.SELF, handler, effect="look")
        for name, model, handler in handlers
    ]
