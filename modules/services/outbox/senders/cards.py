"""The card under a post that holds one link: what the page itself says that it is, fetched when the post leaves.

Only a post of our own gets one, so that nobody has us fetch a page by writing to us. A page that cannot be read makes
no card, and never keeps a post from leaving.
"""

from __future__ import annotations

from collections.abc import Callable

from adapters.atproto.richtext import only_link
from adapters.atproto.types import Card
from adapters.web.client import WebClient
from common.text.html_text import PageReader
from common.text.untrusted import one_line

CARD_DEADLINE_S = 8.0
CARD_PAGE_MAX_BYTES = 512 * 1024
CARD_TITLE_MAX_CHARS = 300
CARD_DESCRIPTION_MAX_CHARS = 1_000

_HEAD_CHARS = 65_536
_PAGES = ("text/html", "application/xhtml+xml")
_TITLES = ("og:title", "twitter:title", "title")
_DESCRIPTIONS = ("og:description", "twitter:description", "description")


class LinkCards:
    """Makes cards of pages. `redact` takes our secrets out of what a page says."""

    def __init__(self, web: WebClient, redact: Callable[[str], str]) -> None:
        self._web = web
        self._redact = redact

    async def card_for(self, text: str) -> Card | None:
        """Return the card of the one link in a text; None where there are none or several, or no page with a title."""
        if not (url := only_link(text)):
            return None
        page = await self._web.fetch(url, kinds=_PAGES, max_bytes=CARD_PAGE_MAX_BYTES, deadline_s=CARD_DEADLINE_S)
        if not page.success:
            return None
        said = said_by_page(page.data.text)
        title = self._shown(said, _TITLES, CARD_TITLE_MAX_CHARS)
        return Card(url, title, self._shown(said, _DESCRIPTIONS, CARD_DESCRIPTION_MAX_CHARS)) if title else None

    def _shown(self, said: dict[str, str], names: tuple[str, ...], most_chars: int) -> str:
        found = (one_line(self._redact(said.get(name, "")), most_chars) for name in names)
        return next((text for text in found if text), "")


def said_by_page(html: str) -> dict[str, str]:
    """Return what the head of a page says of it, by name: its `title`, and its `meta` elements."""
    reader = _Head()
    reader.feed(html[:_HEAD_CHARS])
    return reader.said


class _Head(PageReader):
    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, str] = {}
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title" and "title" not in self.said
        if tag == "meta":
            given = dict(attrs)
            name, content = given.get("property") or given.get("name"), given.get("content")
            if name and content:
                self.said.setdefault(name.lower(), content)

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.said["title"] = self.said.get("title", "") + data
