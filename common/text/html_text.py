"""The text of a page, without its markup. Pure, in time linear to the page."""

import re
from html.parser import HTMLParser

PAGE_MAX_CHARS = 1024 * 1024
"""At least the bytes of the longest page that is fetched."""

_UNSEEN = {"script", "style", "template", "noscript", "svg", "head"}
_BREAKS = {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "pre", "blockquote"}
_LINE_BREAKS = re.compile(r"\n{3,}")


def text_of_page(page: str) -> str:
    """Return what a reader of the page sees, a line for each block; without scripts, styles and the head."""
    reader = _TextReader()
    reader.feed(page[:PAGE_MAX_CHARS])
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return _LINE_BREAKS.sub("\n\n", "\n".join(lines)).strip()


class PageReader(HTMLParser):
    """Parses a page with any markup, without failing."""

    # NOTE(self): `close` is never called: it would parse unfinished markup at the end in quadratic time.
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def parse_marked_section(self, i: int, report: bool = True) -> int:  # noqa: FBT001, FBT002 - as it is called
        """Skip `<![…>` as browsers do; the base class raises if it does not know the keyword in it."""
        return self.parse_bogus_comment(i)


class _TextReader(PageReader):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._unseen = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN and not self._unseen:
            self._unseen = tag
        if tag == "body":
            self._unseen = ""
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._unseen:
            self._unseen = ""
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(" ".join(data.split("\n")))
