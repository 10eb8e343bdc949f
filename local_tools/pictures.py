"""The tools for pictures: find one, post it with text and source, and look up where a shared one came from.

A picture is fetched from a URL that the model chose only in a turn that holds only the owner's words. One that a page
or a channel listed may be posted by its URL: the request reveals nothing to whoever receives it.
"""

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from functools import partial
from typing import Literal

from pydantic import BaseModel, Field

from adapters.arena import Channel, parse_channel_url
from adapters.atproto.types import StrongRef
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.files import Json
from common.provenance import Provenance
from common.result import ApiResult, Ok
from common.text.graphemes import fit_post_text, grapheme_len, truncate_graphemes
from common.text.untrusted import clean, one_line
from local_tools.bluesky import BlueskyTools
from local_tools.bluesky_turns import post_terms
from local_tools.words import REASON_CHARS, ToolWords
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.types import Published
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.outbox.bodies import AttachedPicture, PictureSource
from modules.services.pictures.choosing import PictureFinder, place_of, source_of
from modules.services.pictures.pictures import Pictures, format_source_attribution, generate_post_context
from modules.services.skills.skills import Skills


class ArenaSearchInput(BaseModel):
    """A search for channels."""

    query: str
    page: int = Field(default=1, ge=1, le=100)
    per: int = Field(default=10, ge=1, le=50)


class ArenaChannelInput(BaseModel):
    """A page of a channel."""

    channel_url: str
    page: int = Field(default=1, ge=1, le=100)


class ArenaPostInput(BaseModel):
    """A post with a picture of a channel. With `post_uri` it is a reply."""

    channel_url: str
    text: str = ""
    alt_text: str = ""
    post_uri: str = ""


class ImagePostInput(BaseModel):
    """A post with a picture. With `post_uri` it is a reply."""

    text: str
    image_path: str
    alt_text: str
    post_uri: str = ""


class FetchImageInput(BaseModel):
    """A picture to download."""

    url: str
    max_size_mb: int = Field(default=5, ge=1, le=10)


class BrowseInput(BaseModel):
    """A page with pictures."""

    url: str
    min_width: int = Field(default=400, ge=1, le=10_000)
    max_results: int = Field(default=12, ge=1, le=20)


class SharedPostInput(BaseModel):
    """A post of ours that showed a picture."""

    post_uri: str


class WaitingInput(BaseModel):
    """The number of posts to list."""

    limit: int = Field(default=10, ge=1, le=50)


class FollowUpInput(BaseModel):
    """Whether the source of a picture still has to be found."""

    post_uri: str
    needs_followup: Literal["yes", "no"] = "yes"
    notes: str = ""


class AttributionInput(BaseModel):
    """The page where the maker of a picture shows it."""

    post_uri: str
    original_url: str
    notes: str = ""


_MEGABYTE = 1024 * 1024
_TEXT_CHARS = 300
_ALT_CHARS = 1000
_TIME_LIMIT_S = 120.0


class PictureTools:
    """The handlers, with their services."""

    def __init__(
        self, pictures: Pictures, publisher: Publisher, on_bluesky: BlueskyTools, finder: PictureFinder, skills: Skills
    ) -> None:
        self._pictures = pictures
        self._publisher = publisher
        self._on_bluesky = on_bluesky
        self._finder = finder
        self.words = ToolWords(skills, "picture-tools", time_limit_s=_TIME_LIMIT_S)

    async def search(self, args: ArenaSearchInput, turn: Turn) -> ToolResult:
        found = (await self._pictures.arena.search_channels(args.query, args.page, args.per)).or_raise()
        told = [_told(channel) for channel in found.channels]
        return self._read({"channels": told, "total_results": found.total_results} if told else {}, "Are.na")

    async def channel(self, args: ArenaChannelInput, turn: Turn) -> ToolResult:
        named = parse_channel_url(args.channel_url)
        if named is None:
            return self.words.error("No Channel")
        found = (await self._finder.channel(*named, args.page)).or_raise()
        blocks = [
            {
                "id": block.id,
                "title": one_line(block.title, _TEXT_CHARS),
                "description": truncate_graphemes(block.description, PORTABLE_MAX_GRAPHEMES),
                "image_url": block.image_url,
                "source_url": block.source_url,
                "connected_at": block.connected_at,
            }
            for block in found.image_blocks
        ]
        channel = _told(found.channel)
        return self._read({"channel": channel, "total_blocks": found.total_blocks, "blocks": blocks}, "Are.na")

    async def browse(self, args: BrowseInput, turn: Turn) -> ToolResult:
        found = (await self._finder.browse(args.url, args.min_width)).or_raise()
        shown = [dataclasses.asdict(image) for image in found.images[: args.max_results]]
        told = {"page_title": found.title, "page_url": args.url, "images": shown}
        counts = {"total_found": len(found.images), "filtered_out": found.left_out}
        return self._read(told | counts, args.url)

    async def download(self, args: FetchImageInput, turn: Turn) -> ToolResult:
        data, mime_type, source = (await self._finder.fetch(args.url, args.max_size_mb * _MEGABYTE)).or_raise()
        path = await self._pictures.files.keep_download(data, mime_type, source)
        told = {"success": True, "file_path": str(path), "size": len(data), "mime_type": mime_type, "is_image": True}
        return ToolResult(json.dumps(told))

    async def post(self, args: ImagePostInput, turn: Turn) -> ToolResult:
        """Publish a picture that was downloaded, or that a page or a channel listed."""
        if not args.alt_text.strip():
            return self.words.error("No Alt Text")
        target = await self._replied_to(args.post_uri, turn)
        data, source = await self._file(args.image_path)
        text = _with_source(args.text, place_of(source))
        if (length := grapheme_len(text)) > PORTABLE_MAX_GRAPHEMES:
            most = grapheme_len(args.text.strip()) - (length - PORTABLE_MAX_GRAPHEMES)
            return self.words.error("Too Long", length=grapheme_len(args.text.strip()), most=max(0, most))
        alt = truncate_graphemes(clean(args.alt_text).strip(), _ALT_CHARS)
        attached = await self._pictures.attach(data, alt=alt, why=turn.cause_id or turn.loop, source=source)
        published = await self._publish(text, self._usable(attached), target, turn)
        return self._on_bluesky.answered(published, "posted", ends=False)

    async def post_from_channel(self, args: ArenaPostInput, turn: Turn) -> ToolResult:
        """Publish a picture of a channel that was not shown before."""
        named = parse_channel_url(args.channel_url)
        if named is None or not (args.text.strip() or args.alt_text.strip()):
            return self.words.error("No Alt Text" if named else "No Channel")
        target = await self._replied_to(args.post_uri, turn)
        picked = (await self._finder.pick(*named)).or_else(None, "not_found")
        if picked is None:
            return self.words.error("Nothing Left")
        block, channel = picked.block, picked.channel
        fetched = (await self._pictures.arena.fetch_picture(block)).or_raise()
        source = source_of(block, channel)
        attached = await self._pictures.attach(
            fetched.body,
            alt=truncate_graphemes(clean(args.alt_text or args.text).strip(), _ALT_CHARS),
            why=turn.cause_id or turn.loop,
            source=source,
        )
        picture = self._usable(attached)
        text = fit_post_text(args.text.strip() or args.alt_text.strip(), f"Source: {place_of(source)}")
        published = await self._publish(text, picture, target, turn)
        answer = self._on_bluesky.answered(published, "posted", ends=False)
        if published.status != "accepted":
            return answer
        told = {"state": "queued", "uri": published.uri, "block_id": block.id}
        told |= {"channel": channel.url, "remaining_unposted": picked.remaining}
        return dataclasses.replace(answer, content=json.dumps(told))

    async def lookup(self, args: SharedPostInput, turn: Turn) -> ToolResult:
        entry = await self._entry(args.post_uri)
        if entry is None:
            return self.words.error("Not Logged")
        context = generate_post_context(entry, self._pictures.now())
        return self._read({"context": context, "entry": entry}, args.post_uri)

    async def attribution(self, args: SharedPostInput, turn: Turn) -> ToolResult:
        entry = await self._entry(args.post_uri)
        if entry is None:
            return self.words.error("Not Logged")
        return self._read({"attribution": format_source_attribution(entry)}, args.post_uri)

    async def waiting(self, args: WaitingInput, turn: Turn) -> ToolResult:
        found = await asyncio.to_thread(self._pictures.log.get_posts_needing_attribution_followup, args.limit)
        return self._read(found, "the post log")

    async def follow_up(self, args: FollowUpInput, turn: Turn) -> ToolResult:
        mark = partial(self._pictures.log.mark_post_needs_attribution_followup, args.post_uri, notes=args.notes)
        found = await asyncio.to_thread(mark, needs=args.needs_followup == "yes")
        return self.words.done("Noted") if found else self.words.error("Not Logged")

    async def update(self, args: AttributionInput, turn: Turn) -> ToolResult:
        log = self._pictures.log
        found = await asyncio.to_thread(log.update_post_attribution, args.post_uri, args.original_url, args.notes)
        return self.words.done("Noted") if found else self.words.error("Not Logged")

    async def _file(self, path: str) -> tuple[bytes, PictureSource]:
        if self._finder.is_listed(path):
            data, _, source = (await self._finder.fetch(path)).or_raise()
            return data, source
        return (await self._pictures.files.read_download(path)).or_else(None) or self.words.stop("No Such Picture")

    async def _replied_to(self, named: str, turn: Turn) -> StrongRef | None:
        """Return the post that is answered, by its uri or its web address; None if none is named."""
        return await self._on_bluesky.target(named, turn) if named else None

    async def _publish(self, text: str, picture: AttachedPicture, target: StrongRef | None, turn: Turn) -> Published:
        terms = post_terms(text, turn, is_all=False)
        if target is None:
            return await self._publisher.post(text, terms, pictures=(picture,))
        terms = dataclasses.replace(terms, own_words=False)
        return await self._publisher.reply(text, target, terms, root=None, pictures=(picture,))

    async def _entry(self, post: str) -> Json | None:
        log = self._pictures.log
        look = log.lookup_post_by_uri if post.startswith("at://") else log.lookup_post_by_bsky_url
        return await asyncio.to_thread(look, post)

    def _usable(self, attached: ApiResult[AttachedPicture]) -> AttachedPicture:
        if isinstance(attached, Ok):
            return attached.data
        if attached.kind == "conflict":
            self.words.stop("Shown Before")
        return self.words.stop("Unusable", problem=one_line(attached.error, REASON_CHARS))

    def _read(self, result: object, uri: str) -> ToolResult:
        return self._on_bluesky.framed(result, uri=uri)


def picture_tools(
    pictures: Pictures, publisher: Publisher, on_bluesky: BlueskyTools, finder: PictureFinder, skills: Skills
) -> Sequence[Tool]:
    """Return the tools of the family."""
    tools = PictureTools(pictures, publisher, on_bluesky, finder, skills)

    social = partial(tools.words.tool, capability="social")
    look = partial(social, needs=Provenance.SELF, effect="look")
    share = partial(social, needs=Provenance.SELF, holdable=True)
    # NOTE(self): these cannot wait for approval, so they need a turn with only the owner's words.
    act = partial(social, needs=Provenance.OWNER)
    return (
        look("arena_search", ArenaSearchInput, handler=tools.search),
        look("arena_fetch_channel", ArenaChannelInput, handler=tools.channel),
        share("arena_post_image", ArenaPostInput, handler=tools.post_from_channel),
        act("web_browse_images", BrowseInput, handler=tools.browse, effect="fetch"),
        act("curl_fetch", FetchImageInput, handler=tools.download),
        share("bluesky_post_with_image", ImagePostInput, handler=tools.post),
        look("lookup_post_context", SharedPostInput, handler=tools.lookup),
        look("get_posts_needing_attribution", WaitingInput, handler=tools.waiting),
        look("format_source_attribution", SharedPostInput, handler=tools.attribution),
        act("mark_attribution_followup", FollowUpInput, handler=tools.follow_up),
        act("update_post_attribution", AttributionInput, handler=tools.update),
    )


def _told(channel: Channel) -> dict[str, object]:
    return {
        "title": one_line(channel.title, _TEXT_CHARS),
        "slug": channel.slug,
        "block_count": channel.length,
        "owner": channel.owner,
        "channel_url": channel.url,
    }


def _with_source(text: str, place: str) -> str:
    """Return the text with the URL of its picture, unless it is in there already."""
    text = text.strip()
    return text if not place or place in text else f"{text}\n\nSource: {place}"
