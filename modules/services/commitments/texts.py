"""The public texts of a commitment: the bodies of issues, and the line in its room."""

from collections.abc import Mapping
from typing import Any

from adapters.atproto.records import web_url
from common.text.github_text import comment_body, without_mentions
from common.text.untrusted import one_line
from modules.services.commitments.naming import QueuedCommitment, extract_fulfillment_url, title_of
from modules.services.voice_phrases import Phrase

ANNOUNCED_CHARS = 120
TITLE_CHARS = 256
ASKED_AS_ISSUE = "<!-- soul:asked-as-issue -->"
"""The mark of an issue that somebody asked for as an issue: it goes into no plan until work on it is requested."""

_QUOTED_CHARS = 1_000
_STOOD_ALREADY = "stood there already: "
_DONE_BY = {"create_issue": "issue opened: ", "create_plan": "plan stands: "}


def issue_body(commitment: QueuedCommitment, text: str, phrase: Phrase) -> str:
    """Return the body of an issue: the text, a rule, the words of the commitment, and where they were said."""
    said = one_line(commitment.source_reply_text, _QUOTED_CHARS)
    quoted = f"> {without_mentions(said)}\n\n" if said else ""
    return f"{comment_body(text)}\n\n---\n\n{quoted}{without_mentions(told_origin(commitment, phrase))}"


def numbered_title(title: str, number: int, count: int) -> str:
    """Return the title in one line that GitHub accepts, with ` (2/3)` if there are several issues."""
    mark = f" ({number}/{count})" if count > 1 else ""
    line = " ".join(title.split())
    room = TITLE_CHARS - len(mark)
    return (line if len(line) <= room else f"{line[: room - 1].rstrip()}…") + mark


def done_line(commitment: QueuedCommitment, result: Mapping[str, Any]) -> str:
    """Return the line that other members of the room read: `Done — <title>: <url>`."""
    title, url = done_title(commitment, result, ANNOUNCED_CHARS), extract_fulfillment_url(commitment.type, result)
    return f"Done — {title}: {url}" if url else f"Done — {title}"


def done_title(commitment: QueuedCommitment, result: Mapping[str, Any], most: int) -> str:
    """Return the title, cut to `most` characters, behind words that say what was only opened, or stood there before."""
    by = _STOOD_ALREADY if result.get("deduplicated") else _DONE_BY.get(commitment.type, "")
    by = f"only {_share(result)}: " if result.get("wanted") else by
    return f"{by}{one_line(title_of(commitment), most)}"


def part_line(result: Mapping[str, Any] | None) -> str:
    """Return what was made of a commitment that ended early, with all links, for the owner; "" if nothing was."""
    if not result or not result.get("wanted"):
        return ""
    return f"{_share(result)}: {' '.join(one['url'] for one in result['issues'])}"


def _share(result: Mapping[str, Any]) -> str:
    return f"{result['count']} of {result['wanted']} issues opened"


def told_origin(commitment: QueuedCommitment, phrase: Phrase) -> str:
    """Return the line that says where a commitment was made, with a link if that place is public."""
    if commitment.source == "space":
        return phrase("github.committed_in_room")
    link = web_url(commitment.source_thread_uri)
    return phrase("github.committed_in_thread", url=link) if link else phrase("github.committed_on_bluesky")
