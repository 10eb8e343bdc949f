"""What a promise says in public: the bodies of issues and comments, and the line in its room. Pure.

Words from a room must call nobody on GitHub: a name behind an `@` is parted from it by a sign that nobody sees. What is
code stays as it is, GitHub notifies nobody from there.
"""

from __future__ import annotations

import re

from common.constants import GITHUB_BODY_MAX_CHARS
from modules.commitments.naming import web_url
from modules.commitments.policy import title_of
from modules.commitments.types import QueuedCommitment
from modules.foreign_text import one_line

ANNOUNCED_CHARS = 120
TITLE_CHARS = 256

_QUOTED_CHARS = 1_000
_ROOM_FOR_THE_REST = 3_000
_CUT = "\n\n*[Cut here: the text was longer than GitHub takes.]*"
_FENCE = "```"
_QUOTE = r"^(?P<{mark}>(?: {{0,3}}>)*)"
_FENCED = _QUOTE + r" {{0,3}}{fence}[^`\n]*(?:\n(?P={mark})(?! {{0,3}}{fence}+[ \t]*$)[^\n]*)*(?:\n(?P={mark})[^\n]*)?"
# NOTE(self): one reads fences as pairs, the other line by line. Neither knows all of Markdown, and who wants to call
# somebody writes what one of them takes for code; so only what both take for code is left alone.
_CODES = (
    re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`", re.DOTALL),
    re.compile(
        f"{_FENCED.format(mark='one', fence='```')}|{_FENCED.format(mark='two', fence='~~~')}"
        r"|(?<![`\\])`[^`\n]+`(?!`)",
        re.MULTILINE,
    ),
)
_MENTION = re.compile(r"(?<![\w/])@(?=[A-Za-z0-9])")
_UNSEEN = "\u200b"


def issue_body(commitment: QueuedCommitment, text: str) -> str:
    """The body of an issue: what is wanted, a rule, the words of the promise, and where they were said."""
    said = one_line(commitment.source_reply_text, _QUOTED_CHARS)
    quoted = f"> {without_mentions(said)}\n\n" if said else ""
    return f"{comment_body(text)}\n\n---\n\n{quoted}{_origin(commitment)}"


def comment_body(text: str) -> str:
    """Words for GitHub: calling nobody, and short enough that what belongs behind them still fits."""
    body = without_mentions(text.strip())
    room = GITHUB_BODY_MAX_CHARS - _ROOM_FOR_THE_REST
    cut = _CUT if len(body) > room else ""
    kept = body[: room - len(_CUT)] if cut else body
    if kept.count(_FENCE) % 2:
        kept += f"\n{_FENCE}"
    return kept + cut


def without_mentions(text: str) -> str:
    """`text` that reads the same and notifies nobody on GitHub."""
    first, second = (_covered(code, text) for code in _CODES)
    return _MENTION.sub(lambda at: "@" if first[at.start()] and second[at.start()] else f"@{_UNSEEN}", text)


def numbered_title(title: str, number: int, count: int) -> str:
    """One line that GitHub takes, with ` (2/3)` where there are several."""
    mark = f" ({number}/{count})" if count > 1 else ""
    line = " ".join(title.split())
    room = TITLE_CHARS - len(mark)
    return (line if len(line) <= room else f"{line[: room - 1].rstrip()}…") + mark


def done_line(commitment: QueuedCommitment, url: str) -> str:
    """What the room is told: `Done — <title>: <url>`. Other members read this form."""
    title = one_line(title_of(commitment), ANNOUNCED_CHARS)
    return f"Done — {title}: {url}" if url else f"Done — {title}"


def _origin(commitment: QueuedCommitment) -> str:
    where = commitment.source_thread_uri
    if commitment.source == "space":
        return f"*Promised in an agent space conversation ({where.rsplit('/', 1)[-1]}).*"
    link = web_url(where)
    return f"*Promised in [a Bluesky thread]({link}).*" if link else "*Promised in a Bluesky thread.*"


def _covered(code: re.Pattern[str], text: str) -> bytearray:
    """For each sign of `text`, whether it stands in what `code` finds."""
    covered = bytearray(len(text))
    for found in code.finditer(text):
        covered[found.start() : found.end()] = b"\1" * len(found[0])
    return covered
