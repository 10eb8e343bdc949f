"""What a commitment says in public: the bodies of issues and comments, and the line in its room.

Words from a room must notify nobody on GitHub. An invisible character follows each `@`, also in code: what GitHub takes
for code depends on all of Markdown and HTML. In the path of a URL `@` is written `%40`, so that the link still works.
"""

from __future__ import annotations

import re

from adapters.atproto.records import web_url
from common.constants import GITHUB_BODY_MAX_CHARS
from common.text.markdown import close_code
from common.text.untrusted import one_line
from modules.services.commitments.naming import title_of
from modules.services.commitments.types import QueuedCommitment
from modules.services.voice_phrases.store import Phrase

ANNOUNCED_CHARS = 120
TITLE_CHARS = 256

_QUOTED_CHARS = 1_000
_ROOM_FOR_THE_REST = 3_000
_CUT = "\n\n[…]"
_URL = re.compile(r"(?:https?://|www\.)[^\s<>/]{1,255}/[^\s<>]{1,2000}", re.IGNORECASE)
# NOTE(self): HTML reads the numbers without a semicolon too. Behind an invisible sign it was done before.
_AT = re.compile("(?:@|&(?:#0*64(?![0-9]);?+|#x0*40(?![0-9a-f]);?+|commat;))(?!\u200b)", re.IGNORECASE)
_UNSEEN = "\u200b"
_DONE_BY = {"create_issue": "issue opened: ", "create_plan": "plan stands: "}


def issue_body(commitment: QueuedCommitment, text: str, phrase: Phrase) -> str:
    """The body of an issue: what is wanted, a rule, the words of the commitment, and where they were said."""
    said = one_line(commitment.source_reply_text, _QUOTED_CHARS)
    quoted = f"> {without_mentions(said)}\n\n" if said else ""
    return f"{comment_body(text)}\n\n---\n\n{quoted}{without_mentions(_origin(commitment, phrase))}"


def comment_body(text: str) -> str:
    """Words for GitHub: calling nobody, and short enough that what belongs behind them still fits."""
    body = without_mentions(text.strip())
    room = GITHUB_BODY_MAX_CHARS - _ROOM_FOR_THE_REST
    cut = _CUT if len(body) > room else ""
    return close_code(body[: room - len(_CUT)] if cut else body) + cut


def without_mentions(text: str) -> str:
    """`text` that reads the same and notifies nobody on GitHub; done twice it is as done once."""
    linked = _URL.sub(lambda url: url[0].replace("@", "%40"), text)
    return _AT.sub(lambda at: f"{at[0]}{_UNSEEN}", linked)


def numbered_title(title: str, number: int, count: int) -> str:
    """One line that GitHub takes, with ` (2/3)` where there are several."""
    mark = f" ({number}/{count})" if count > 1 else ""
    line = " ".join(title.split())
    room = TITLE_CHARS - len(mark)
    return (line if len(line) <= room else f"{line[: room - 1].rstrip()}…") + mark


def done_line(commitment: QueuedCommitment, url: str) -> str:
    """What the room is told: `Done — <title>: <url>`, which other members read.

    Of what is only written down, to be done, the words before the title say that.
    """
    what = _DONE_BY.get(commitment.type, "")
    title = f"{what}{one_line(title_of(commitment), ANNOUNCED_CHARS)}"
    return f"Done — {title}: {url}" if url else f"Done — {title}"


def _origin(commitment: QueuedCommitment, phrase: Phrase) -> str:
    where = commitment.source_thread_uri
    if commitment.source == "space":
        return phrase("github.committed_in_room", room=where.rsplit("/", 1)[-1])
    link = web_url(where)
    return phrase("github.committed_in_thread", url=link) if link else phrase("github.committed_on_bluesky")
