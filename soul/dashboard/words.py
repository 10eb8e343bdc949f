"""Turns texts into HTML for a page: backticks become code, and addresses of records become words.

Whoever wrote a text, it makes no link, no picture and no markup of its own.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markupsafe import Markup

_LINE = MarkdownIt("zero").enable("backticks")
_TALK = MarkdownIt("zero", {"breaks": True}).enable(
    ["backticks", "emphasis", "newline", "escape", "list", "fence", "blockquote"]
)
_RECORD = re.compile(
    r"at://[\w.:%-]{1,253}/(?:[\w-]{1,63}\.){1,8}(\w{1,63})/[\w.~:-]{1,512}"
    r"|https://bsky\.app/profile/[\w.:%-]{1,253}/(post)/[\w.~:-]{1,512}"
)

_RECORD_AT_END = re.compile(r"\s{1,9}at://\S{1,1000}\Z")


def in_line(text: str) -> Markup:
    """Return a sentence: `code` in backticks is shown as code, the address of a post as "a post"."""
    return _without_addresses(_LINE.renderInline(text))


def in_log(line: str) -> Markup:
    """Return a line of the log, without the address of a record at its end."""
    return in_line(_RECORD_AT_END.sub("", line))


def in_talk(text: str) -> Markup:
    """Return what somebody said, with its lists, code and emphasis."""
    return _without_addresses(_TALK.render(text))


def _without_addresses(shown: str) -> Markup:
    def named(found: re.Match[str]) -> str:
        return f'<span title="{found[0]}">a {found[1] or found[2]}</span>'

    return Markup(_RECORD.sub(named, shown))  # noqa: S704 - markdown-it escaped it, and no address holds markup
