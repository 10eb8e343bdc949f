"""The tool to read the web: one page at a URL that the owner chose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel

from adapters.web.client import WebClient
from common.lenient_json import parse
from common.provenance import Provenance
from common.text.html_text import text_of_page
from local_tools.bluesky import BlueskyTools
from local_tools.bluesky_turns import is_by_owner, names
from local_tools.words import READ_CHARS, ToolWords, within
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.skills.skills import Skills

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
