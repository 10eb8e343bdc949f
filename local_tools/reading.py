"""The tools to read: one page of the web at a URL that the owner chose, and Bluesky beyond its own timeline.

On Bluesky these are searches, feeds, lists, starter packs and trends, for turns that the SOUL or its owner began. All
results are untrusted text, without accounts that are hidden by our account's choice or by their own.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pydantic import BaseModel, Field

from adapters.atproto.client import Atproto
from adapters.atproto.records import GENERATOR, LIST, STARTER_PACK, AtUri, parse_curated, web_url
from adapters.atproto.types import Curated, FeedItem, ListPage, Profile
from adapters.web.client import WebClient
from common.clock import iso, parse_local_or_none
from common.lenient_json import parse
from common.provenance import Provenance
from common.result import ApiResult, Err, Ok
from common.text.html_text import text_of_page
from common.text.injections import gives_orders
from common.text.strings import account_name
from common.text.untrusted import clean
from local_tools.bluesky import BlueskyTools
from local_tools.bluesky_turns import BlueskyLooks, LimitInput, is_by_owner, names, note_accounts
from local_tools.words import READ_CHARS, ToolWords, within
from modules.lives.growth.policy import READ, ReadingTurn
from modules.lives.growth.reading import want_to_know
from modules.lives.rhythm import OwnTimeTurn
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.skills.skills import Skills
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition

_MOST_CHARS, _FINDING_CHARS, _MOST_SOURCES = 200, 1_000, 5


class SearchInput(BaseModel):
    """A search for posts or people."""

    query: str = Field(min_length=1, max_length=_MOST_CHARS)
    what: Literal["posts", "people"] = "posts"
    author: str = ""
    since: str = ""
    language: str = ""
    limit: int = Field(default=15, ge=1, le=50)


class AddressInput(BaseModel):
    """An account, a feed, a list or a starter pack."""

    address: str
    limit: int = Field(default=15, ge=1, le=50)


class QuestionInput(BaseModel):
    """A question to look up later."""

    question: str = Field(min_length=1)


class FindingInput(BaseModel):
    """The result of a reading. Without `sources` it is based on the first posts that were read."""

    finding: str = ""
    sources: list[str] = []


@dataclass(frozen=True, slots=True)
class ReadingTools:
    """The handlers; `looks` leaves out what must not be read, and `table` holds what is to be looked up.

    `per_day`: the most questions that are looked up a day; with 0, none is noted. `timezone` is that of days.
    """

    atproto: Atproto
    looks: BlueskyLooks
    table: WorkTable
    per_day: int
    timezone: str

    @property
    def words(self) -> ToolWords:
        """The texts for the model about these tools."""
        return self.looks.words

    async def search(self, args: SearchInput, turn: Turn) -> ToolResult:
        """Find posts or people by words."""
        if args.what == "people":
            return await self._people((await self.atproto.search_actors(args.query, args.limit)).or_raise(), turn)
        author = account_name(args.author)
        author = self.looks.account(author, turn) if author else ""
        since = parse_local_or_none(args.since, self.timezone)
        if since is None and args.since:
            return self.words.error("Unclear Since")
        found = await self.atproto.search_posts(
            args.query, author=author, language=args.language, since=iso(since) if since else "", limit=args.limit
        )
        return await self._posts(found.or_raise(), turn)

    async def read_feed(self, args: AddressInput, turn: Turn) -> ToolResult:
        """Read the newest posts of an account, of a feed, or of the accounts on a list."""
        if account := _account_at(args.address):
            account = self.looks.account(account, turn)
            # NOTE(self): our replies may repeat what others told us to say.
            kinds = "posts_no_replies" if account in {self.atproto.did, self.atproto.handle} else None
            feed = await self.atproto.get_author_feed(account, args.limit, filter=kinds)
            return await self._posts(feed.or_raise(), turn)
        at = await self._at(args.address, turn, GENERATOR, LIST)
        get = self.atproto.get_feed if at.collection == GENERATOR else self.atproto.get_list_feed
        return await self._posts((await get(at.uri, args.limit)).or_raise(), turn)

    async def read_list(self, args: AddressInput, turn: Turn) -> ToolResult:
        """Read what a feed, a list or a starter pack is about, and which accounts are on it."""
        at = await self._at(args.address, turn, GENERATOR, LIST, STARTER_PACK)
        get: Mapping[str, Callable[[str], Awaitable[ApiResult[Curated]]]] = {
            GENERATOR: self.atproto.get_feed_generator,
            LIST: partial(self.atproto.get_list, limit=args.limit),
            STARTER_PACK: self.atproto.get_starter_pack,
        }
        made = (await get[at.collection](at.uri)).or_raise()
        parts = [made, *made.feeds]
        makers = await self.looks.allowed(one.creator for one in parts)
        shown = [_described(one) for one in parts if one.creator.did in makers and not one.creator.barrier]
        listed = {"list": made.list_uri} if made.list_uri else {}
        return await self._people(made.members[: args.limit], turn, {"described": shown, **listed})

    async def trends(self, args: LimitInput, turn: Turn) -> ToolResult:
        """Read what many people post about now; an address leads to the posts."""
        found = (await self.atproto.get_trends(min(args.limit, 25))).or_raise()
        told: list[dict[str, object]] = []
        for trend in found:
            at = parse_curated(trend.link)
            # NOTE(self): the link names a handle that the network chose; only code looks it up.
            feed = (await self._resolved(at)).or_else(None) if at else None
            address = {"address": feed.uri} if feed else {}
            told.append({"topic": trend.name, "posts": trend.post_count, "since": trend.started_at, **address})
        return self.looks.framed(told)

    async def want(self, args: QuestionInput, turn: Turn) -> ToolResult:
        """Record a question that will be looked up in a turn of its own."""
        is_owners = turn.asked_by is Provenance.OWNER and turn.is_at_owner_word
        waits = await want_to_know(self.table, args.question, is_owners=is_owners)
        return self.words.done("Noted Question", is_owners=is_owners) if waits else self.words.error("Question Waits")

    async def finish(self, args: FindingInput, turn: Turn) -> ToolResult:
        """End a reading with its finding, if there is one."""
        finding, seen = clean(args.finding).strip(), _seen(turn)
        if not finding:
            return self.words.end("Nothing Kept", Disposition(READ))
        if gives_orders(finding):
            return self.words.error("Finding Gives Orders")
        sources = sources_of(seen, args.sources) or sources_of(seen, seen)
        if not sources:
            return self.words.error("Read First")
        # NOTE(self): it may hold words of everybody whom the turn has read, whichever sources the model names.
        decision = {"finding": finding[:_FINDING_CHARS], "sources": sources, "dids": sorted(set(seen.values()))}
        return replace(self.words.end("Kept", Disposition(READ)), decision=decision)

    async def _posts(self, page: ListPage[FeedItem], turn: Turn) -> ToolResult:
        told = await self.looks.shown((item.post for item in page.items), turn)
        _seen(turn).update({str(one["uri"]): str(one["author_did"]) for one in told})
        return self.looks.framed_posts(told)

    async def _people(
        self, found: Sequence[Profile], turn: Turn, described: dict[str, object] | None = None
    ) -> ToolResult:
        people = await self.looks.readable_people(found)
        _seen(turn).update({one.did: one.did for one in people})
        note_accounts(turn, people)
        accounts = [
            {"handle": one.handle, "did": one.did, "about": one.description, **self.looks.own_mark(one.did)}
            for one in people
        ]
        return self.looks.framed({**described, "accounts": accounts} if described else accounts)

    async def _at(self, address: str, turn: Turn, *collections: str) -> AtUri:
        """Return the uri with the DID of its account. Raises `ToolStopped`."""
        at = parse_curated(address.strip())
        if at is None or at.collection not in collections:
            self.words.stop("Address Unclear")
        return (await self._resolved(at._replace(repo=self.looks.account(at.repo, turn)))).or_raise()

    async def _resolved(self, at: AtUri) -> ApiResult[AtUri]:
        if at.repo.startswith("did:"):
            return Ok(at)
        found = await self.atproto.resolve_handle(at.repo)
        return found if isinstance(found, Err) else Ok(at._replace(repo=found.data))


def sources_of(seen: Mapping[str, str], said: Container[str]) -> dict[str, str]:
    """Return links to what a turn was shown, with each author's DID: those named in `said`, else the first posts."""
    named = [one for one in seen if one in said or _link(one) in said]
    # NOTE(self): an entry for an account is the account itself, or a memory about it: a post says more.
    named = named or [one for one in seen if one != seen[one]]
    return {_link(one): seen[one] for one in named[:_MOST_SOURCES]}


def _seen(turn: Turn) -> dict[str, str]:
    """Return what a turn of the SOUL's own was shown, to be added to; for any other turn an unused dict."""
    return turn.subject.seen if isinstance(turn.subject, ReadingTurn | OwnTimeTurn) else {}


def _account_at(address: str) -> str:
    """Return the handle or DID that an address gives, alone or as the link of a profile; "" for any other address."""
    name = account_name(address)
    return name if "/" not in name and ("." in name or name.startswith("did:")) else ""


def _link(seen: str) -> str:
    return web_url(seen) or f"https://bsky.app/profile/{seen}"


def _described(made: Curated) -> dict[str, object]:
    return {"name": made.name, "by": made.creator.handle, "about": made.description, "address": made.uri}


def reading_tools(tools: ReadingTools) -> Sequence[Tool]:
    """Return the tools of the family: looks for turns that the SOUL or its owner began."""
    handlers = (
        ("bluesky_search", SearchInput, tools.search),
        ("bluesky_read_feed", AddressInput, tools.read_feed),
        ("bluesky_read_list", AddressInput, tools.read_list),
        ("bluesky_trends", LimitInput, tools.trends),
    )
    tool, own = tools.words.tool, Provenance.SELF
    want = tool(
        "want_to_know", QuestionInput, "self", own, tools.want, named_only=True, fits=lambda _: tools.per_day > 0
    )
    return [
        *(tool(name, model, "social", own, handler, effect="look") for name, model, handler in handlers),
        replace(want, from_line=frozenset({"question"})),
        tool(
            "reading_done",
            FindingInput,
            "self",
            Provenance.STRANGER,
            tools.finish,
            subject=ReadingTurn,
            answers=ReadingTurn,
        ),
    ]


_KINDS = ("text/*", "application/json", "application/*+json", "application/xhtml+xml", "application/xml")
_MAX_BYTES = 1024 * 1024
_DEADLINE_S = 30.0


class WebFetchInput(BaseModel):
    """A page."""

    url: str
    extract: Literal["text", "html", "json"] = "text"


class WebTools:
    """The handler, with its services."""

    def __init__(self, web: WebClient, on_bluesky: BlueskyTools, words: ToolWords) -> None:
        self._web = web
        self._on_bluesky = on_bluesky
        self._words = words

    async def fetch(self, args: WebFetchInput, turn: Turn) -> ToolResult:
        """Read a page. In a turn with others' words, the owner's newest line must give its URL."""
        url = args.url if "://" in args.url else f"https://{args.url}"
        if not (is_by_owner(turn) or names(turn, url.removeprefix("https://"))):
            return self._words.error("Not Named")
        fetched = await self._web.fetch(url, kinds=_KINDS, max_bytes=_MAX_BYTES, deadline_s=_DEADLINE_S)
        page = fetched.or_raise()
        told: Mapping[str, object] = within(page.text)
        if args.extract == "json":
            try:
                content = await asyncio.to_thread(parse, page.body)
            except ValueError:
                return self._words.error("No JSON")
            whole = json.dumps(content, ensure_ascii=False)
            told = {"content": content} if len(whole) <= READ_CHARS else within(whole)
        elif args.extract == "text" and page.kind.endswith(("html", "xml")):
            told = within(await asyncio.to_thread(text_of_page, page.text))
        return self._on_bluesky.framed({"url": page.url, **told}, uri=page.url)


def web_tools(web: WebClient, on_bluesky: BlueskyTools, skills: Skills) -> Sequence[Tool]:
    """Return the tools of the family. They cannot wait for approval, so they need the owner's own words."""
    words = ToolWords(skills, "picture-tools")
    fetch = WebTools(web, on_bluesky, words).fetch
    return (words.tool("web_fetch", WebFetchInput, "social", Provenance.OWNER, fetch, effect="fetch", named_only=True),)
