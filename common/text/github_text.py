"""Texts of GitHub: whom a comment mentions, which issues it closes, and the lines of a source file. Pure.

A comment is parsed as CommonMark, as on GitHub: quotes, code, HTML comments and the text of links mention nobody. A
source file keeps its encoding, and the bytes that are not changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from common.constants import GITHUB_BODY_MAX_CHARS
from common.text.html_text import text_of_page
from common.text.markdown import close_code
from common.text.strings import likeness

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


LINE_END = re.compile(r"(?:\r\n?|\n)")

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_WESTERN = ("cp1252", "latin-1")
_OTHERS = ["gb18030", "euc_jp", "euc_kr", "big5", "cp1251", "koi8_r", "shift_jis"]
"""Of encodings that fit about equally well, the first is used."""
_EQUAL_CHAOS = 0.02
_LONG_RUN = re.compile(rb"[\x80-\xff]{4}")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_GUESSED_BYTES = 65_536
_MOST_COMPARED_LINES, _LEAST_RATIO = 8, 50.0
_COMPARED_CHARS = 400


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text, the encoding of its file, and its byte order mark (b"" without one)."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def about(self) -> str:
        """The encoding as shown to the model; "" for plain UTF-8."""
        named = f"{self.encoding} with a byte order mark" if self.mark else self.encoding
        return "" if named == "utf-8" else named

    @property
    def is_crlf(self) -> bool:
        """Whether most lines end in CR LF."""
        return 2 * self.text.count("\r\n") > self.text.count("\n")

    def encoded(self, text: str) -> bytes:
        """Return a text as bytes of this file. Raises `UnicodeEncodeError` for a character that its encoding lacks."""
        return self.mark + text.encode(self.encoding)

    def with_line_ends(self, text: str) -> str:
        """Return a text with the line ends of this file, because the model does not see whether they are CR LF."""
        return "\r\n".join(LINE_END.split(text)) if self.is_crlf else text


def read_source(data: bytes) -> SourceText | None:
    """Return the text of a file, or None if it is not text. Encoding it again gives the same bytes."""
    mark, encoding = next(((mark, name) for mark, name in _BOMS if data.startswith(mark)), (b"", "utf-8"))
    if (found := _decoded(data, encoding, mark)) is not None:
        return found
    if mark or _CONTROL.search(data):
        return None
    guessed: tuple[str, ...] = _WESTERN
    if _LONG_RUN.search(data):
        guessed = (*_likely(data[:_GUESSED_BYTES]), *_WESTERN)
    return next((found for name in guessed if (found := _decoded(data, name, b"")) is not None), None)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if not lines[-1] else lines)]


def numbered(lines: Sequence[str], first: int) -> str:
    """Return lines prefixed with their numbers, starting at `first`."""
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, first))


def line_at(text: str, position: int) -> int:
    """Return the number of the line of a position."""
    return text.count("\n", 0, position) + 1


def nearest(text: str, wanted: str) -> str:
    """Return the numbered lines that are most similar to the beginning of `wanted`; "" if nothing is similar."""
    sought = [line.strip() for line in lines_of("\n".join(LINE_END.split(wanted.strip("\r\n"))))][:_MOST_COMPARED_LINES]
    lines = lines_of(text)
    bare = [line.strip() for line in lines]
    best, at, target = _LEAST_RATIO, -1, "\n".join(sought)[:_COMPARED_CHARS]
    for number in range(max(0, len(lines) - len(sought)) + 1 if target else 0):
        place = "\n".join(bare[number : number + len(sought)])[:_COMPARED_CHARS]
        ratio = likeness(target, place, least=best)
        if ratio > best:
            best, at = ratio, number
    return numbered(lines[at : at + len(sought)], at + 1) if at >= 0 else ""


def _likely(data: bytes) -> list[str]:
    """Return the encodings that fit the bytes best, the likeliest first."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - its tables take 2 MiB, and most files are UTF-8

    chaos = {one.encoding: one.chaos for one in from_bytes(data, cp_isolation=_OTHERS)}
    least = min(chaos.values(), default=0.0)
    return [name for name in _OTHERS if chaos.get(name, 1.0) <= least + _EQUAL_CHAOS]


def _decoded(data: bytes, encoding: str, mark: bytes) -> SourceText | None:
    try:
        found = SourceText(data[len(mark) :].decode(encoding), encoding, mark)
        return found if found.encoded(found.text) == data else None
    except UnicodeError:
        return None


_UNSEEN = "\u200b"
# NOTE(self): the rule of GitHub's html-pipeline: no word before it, and neither a team nor a dotted name after it.
_MENTION = re.compile(
    r"(?<![\w@])@([a-z0-9](?:[a-z0-9]|[-_](?=[a-z0-9])){0,38})(?![\w/-])(?=\.*(?:[^\w.]|$))", re.ASCII | re.IGNORECASE
)
_ADDRESS = re.compile(r"!?\[[^\[\]\n]{1,300}\]\([^()\n]{0,2000}\)|(?:https?://|www\.)\S+", re.IGNORECASE)
_HTML = re.compile(r"<!--.*?(?:-->|\Z)|<(/?)(pre|code|a|blockquote)\b[^<>]*>", re.IGNORECASE | re.DOTALL)
_ROOM_FOR_THE_REST = 3_000
_CUT = "\n\n[…]"
_URL = re.compile(r"(?:https?://|www\.)[^\s<>/]{1,255}/[^\s<>]{1,2000}", re.IGNORECASE)
# NOTE(self): HTML reads the numbers without a semicolon too. An invisible character marks an @ that is already done.
_AT = re.compile("(?:@|&(?:#0*64(?![0-9]);?+|#x0*40(?![0-9a-f]);?+|commat;))(?!\u200b)", re.IGNORECASE)
_CLOSING = re.compile(
    r"\b(clos(?:e[sd]?)|fix(?:e[sd])?|resolve[sd]?)(?=[^\w#\u200b]{0,12}"
    r"(?:#[0-9]|gh-[0-9]|[\w.-]{1,100}/[\w.-]{1,100}#[0-9]|https?://[^\s/]{1,100}/[^\s/]{1,100}/[^\s/]{1,100}/(?:issues|pull)/[0-9]))",
    re.IGNORECASE,
)
_OWN_MARK = re.compile(r"(?<!\s)\s*+<!-- soul:[a-z]{1,20}=\w{0,64} -->")


def without_own_marks(text: str) -> str:
    """Return `text` without the marks by which SOULs recognise their own work; other hidden text stays."""
    return _OWN_MARK.sub("", text)


@lru_cache(maxsize=512)
def mentioned_logins(text: str) -> frozenset[str]:
    """Return the accounts that a text mentions as `@login`, in lower case."""
    if "@" not in text and "&" not in text:
        return frozenset()
    said = (_ADDRESS.sub(" ", part) for part in own_words(text))
    return frozenset(login.lower() for part in said for login in _MENTION.findall(part))


def without_closing_words(text: str) -> str:
    """Return a text that closes no issue on GitHub: `Fix #12` becomes `Fix issue #12`. Idempotent."""
    return _CLOSING.sub(r"\1 issue", text)


def comment_body(text: str) -> str:
    """Return a text for GitHub that mentions nobody and is short enough for what has to follow it."""
    body = without_mentions(text.strip())
    room = GITHUB_BODY_MAX_CHARS - _ROOM_FOR_THE_REST
    cut = _CUT if len(body) > room else ""
    return close_code(body[: room - len(_CUT)] if cut else body) + cut


def without_mentions(text: str) -> str:
    """Return a text that reads the same and notifies nobody on GitHub. Idempotent.

    An invisible character follows each `@`, also in code: what GitHub treats as code depends on all of Markdown and
    HTML. In the path of a URL `@` is written `%40`, so that the link still works.
    """
    linked = _URL.sub(lambda url: url[0].replace("@", "%40"), text)
    return _AT.sub(lambda at: f"{at[0]}{_UNSEEN}", linked)


def own_words(text: str) -> Iterator[str]:
    """Yield the parts of a text that are the author's own words: no quote, no code, no link or comment in HTML."""
    outside = _Outside()
    quotes = 0
    for token in _parser().parse(text[:GITHUB_BODY_MAX_CHARS]):
        if token.type in {"blockquote_open", "blockquote_close"}:
            quotes += token.nesting
        elif quotes:
            continue
        elif token.type == "inline":
            yield "".join(_words(token.children or (), outside))
        elif token.type == "html_block":
            yield text_of_page(outside.of(token.content))


class _Outside:
    """Reads the HTML of a text in order, and tracks the open tags: `<blockquote>` may span many blocks."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def of(self, html: str) -> str:
        """Return the part of the next piece that is not in code, a link or a quote."""
        parts: list[str] = []
        begin = 0
        for found in _HTML.finditer(html):
            parts.append(" " if self.is_inside else html[begin : found.start()])
            begin = found.end()
            if tag := (found[2] or "").lower():
                left = self._open.get(tag, 0) + (-1 if found[1] else 1)
                self._open[tag] = max(left, 0)
        parts.append(" " if self.is_inside else html[begin:])
        return " ".join(parts)

    @property
    def is_inside(self) -> bool:
        """Whether what follows is not the author's own words."""
        return any(self._open.values())


def _words(children: Iterable[Token], outside: _Outside) -> Iterator[str]:
    """Yield the text of a line without code, HTML and the URLs in it."""
    for child in children:
        if child.type == "html_inline":
            outside.of(child.content)
        is_said = child.type == "text" and not outside.is_inside
        yield child.content if is_said else "\n" if child.type.endswith("break") else " "


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - takes time to load, and most commands need none of it

    # NOTE(self): links are found by pattern: the library takes quadratic time for unclosed brackets.
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["link", "image"])
