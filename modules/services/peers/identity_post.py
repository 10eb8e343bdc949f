"""The post by which a SOUL says who it is on GitHub: how it is written, and how it is read. Pure.

It starts with a marker, directly followed by the GitHub username in backticks, and ends with the link to the account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from adapters.atproto.types import FeedItem, Post
from common.text.github_text import own_words
from common.text.graphemes import fit_post_text, truncate_graphemes

IDENTITY_POST_MARKER = "🔗—"
_RESERVED = frozenset({"orgs", "features", "topics", "explore", "settings", "sponsors", "about"})
_NAME = r"[a-zA-Z0-9](?:-?[a-zA-Z0-9]){0,38}"
_USERNAME = re.compile(_NAME)
_MARKED = re.compile(rf"\s*{IDENTITY_POST_MARKER}`({_NAME})`")
_TICKED = re.compile(
    rf"`({_NAME})`(?=.{{0,80}}(?<!\bnot )(?<!n't )(?<!n\u2019t )\bon github\b)", re.IGNORECASE | re.DOTALL
)
_PROFILE = re.compile(
    rf"(?<![\w./-])(?:https?://)?(?:www\.)?github\.com/({_NAME})"
    r"(?=/?(?:[?#][^\s\u2026]*)?(?:[\s),;:!]|\.(?![\w.])|$))",
    re.IGNORECASE,
)
_IN_ORDER = (_TICKED, _PROFILE)


def is_github_username(name: str) -> bool:
    """Whether GitHub would let an account have this name."""
    return _USERNAME.fullmatch(name) is not None and name.lower() not in _RESERVED


def github_url(username: str) -> str:
    """The address of an account on GitHub."""
    return f"https://github.com/{username}"


def tells_username(text: str, username: str) -> bool:
    """Whether a text tells a GitHub username: in backticks, as a link to the account, or before "on GitHub"."""
    name = re.escape(username)
    told = rf"`@?{name}`|(?<![\w.-])github\.com/{name}(?![\w-])|(?<![\w-]){name} on github\b"
    return re.search(told, text, re.IGNORECASE) is not None


def names_did(shown: str, did: str) -> bool:
    """Return whether a page on GitHub says that its account is `did` on Bluesky.

    It says so on a line that holds nothing else: the DID or the address of its profile, after `Bluesky:` or alone.
    Who is mentioned, quoted or shown as an example is somebody else.
    """
    line = re.compile(rf"(?:bluesky:\s*)?(?:at://|https?://[\w.-]+/profile/)?{re.escape(did)}/?", re.IGNORECASE)
    return did in shown and any(line.fullmatch(one.strip()) for part in own_words(shown) for one in part.split("\n"))


def build_identity_post_text(username: str, sentence: str) -> str:
    """The whole post around one sentence, at most 300 graphemes; the sentence gives way, the fixed parts never."""
    return fit_post_text(f"{IDENTITY_POST_MARKER}`{username}` {truncate_graphemes(sentence)}", github_url(username))


def extract_github_username_from_text(text: str) -> str | None:
    """The GitHub username that a text claims for its author, as it is written there; None if it claims none.

    Looked for in this order: behind the marker of an identity post; in backticks before "on GitHub"; a link to an
    account or to a tab of its page, not to a repository, and not one that was cut off. A name without backticks
    or a link claims nothing: it could be any word.
    """
    return next(_names_in(text), None)


def is_identity_post(post: Post) -> bool:
    """Whether a post is written as an identity post; a reply never is."""
    return post.reply is None and post.text.lstrip().startswith(IDENTITY_POST_MARKER)


def find_identity_post(items: Iterable[FeedItem]) -> Post | None:
    """The first identity post of a feed; reposts are somebody else's."""
    return next((item.post for item in items if item.reposted_by is None and is_identity_post(item.post)), None)


def _names_in(text: str) -> Iterator[str]:
    if (marked := _MARKED.match(text)) and is_github_username(marked[1]):
        yield marked[1]
    for pattern in _IN_ORDER:
        yield from (match[1] for match in pattern.finditer(text) if is_github_username(match[1]))
