"""What a text on GitHub does beside being read: whom it calls, and which issues it closes. Pure.

A text is read as GitHub reads it, as CommonMark: what is quoted, code, a comment, or the words of a link calls nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from common.constants import GITHUB_BODY_MAX_CHARS
from common.text.html_text import text_of_page

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_UNSEEN = "\u200b"
# NOTE(self): the rule of GitHub's html-pipeline: no word before it, and neither a team nor a name with a dot behind it.
_MENTION = re.compile(
    r"(?<![\w@])@([a-z0-9](?:[a-z0-9]|-(?=[a-z0-9])){0,38})(?![\w/-])(?=\.*(?:[^\w.]|$))", re.ASCII | re.IGNORECASE
)
_ADDRESS = re.compile(r"!?\[[^\[\]\n]{1,300}\]\([^()\n]{0,2000}\)|(?:https?://|www\.)\S+", re.IGNORECASE)
_CODE_IN_HTML = re.compile(r"<(pre|code|a|blockquote)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_CLOSING = re.compile(
    r"\b(clos(?:e[sd]?)|fix(?:e[sd])?|resolve[sd]?)(?=[^\w#\u200b]{0,12}"
    r"(?:#[0-9]|gh-[0-9]|[\w.-]{1,100}/[\w.-]{1,100}#[0-9]|https?://[^\s/]{1,100}/[^\s/]{1,100}/[^\s/]{1,100}/(?:issues|pull)/[0-9]))",
    re.IGNORECASE,
)


@lru_cache(maxsize=512)
def mentioned_logins(text: str) -> frozenset[str]:
    """Return the accounts that a text calls by `@login`, in lower case."""
    if "@" not in text and "&" not in text:
        return frozenset()
    tokens = _parser().parse(text[:GITHUB_BODY_MAX_CHARS])
    said = (_ADDRESS.sub(" ", part) for part in _spoken(tokens))
    return frozenset(login.lower() for part in said for login in _MENTION.findall(part))


def without_closing_words(text: str) -> str:
    """Return a text that reads the same and closes no issue on GitHub; done twice it is as done once."""
    return _CLOSING.sub(rf"\1{_UNSEEN}", text)


def _spoken(tokens: Iterable[Token]) -> Iterator[str]:
    """The parts of a text in which whoever wrote it speaks."""
    quotes = 0
    for token in tokens:
        if token.type in {"blockquote_open", "blockquote_close"}:
            quotes += token.nesting
        elif quotes:
            continue
        elif token.type == "inline":
            yield "".join(_words(token.children or ()))
        elif token.type == "html_block":
            yield text_of_page(_CODE_IN_HTML.sub(" ", token.content))


def _words(children: Iterable[Token]) -> Iterator[str]:
    """The text of a line without code, HTML and the addresses in it."""
    for child in children:
        yield child.content if child.type == "text" else "\n" if child.type.endswith("break") else " "


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - takes time to load, and most commands need none of it

    # NOTE(self): links are told by their shape: of brackets that nothing closes the library takes quadratic time.
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["link", "image"])
