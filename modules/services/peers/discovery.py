"""Who might be a SOUL, and the post by which a SOUL says who it is on GitHub. `PeerDiscovery` keeps what was found.

Somebody who is named, or claims a name, is a candidate. Only an account whose own feed carries an identity post is a
peer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Actor, FeedItem, Notification, Post
from common.text.github_text import own_words
from common.text.graphemes import fit_post_text, truncate_graphemes
from modules.services.peers.registry import PeerRegistry
from modules.services.peers.types import Sighting, Via
from modules.services.workspaces.addresses import workspaces_in

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


_MENTIONS_OF_A_POST = 5
_WORDS = frozenset({"reply", "mention", "quote"})


@dataclass(frozen=True, slots=True)
class Ourselves:
    """Who is never a peer, by handle in lower case and by did; `github` are our names there and the owner's."""

    handle: str
    owner_handle: str
    owner_did: str
    github: Collection[str] = ()

    def may_be_peer(self, actor: Actor, own_did: str) -> bool:
        """Whether an account is neither ours nor the owner's."""
        return actor.did not in {own_did, self.owner_did} and self.may_be_named(actor.handle)

    def may_be_named(self, handle: str) -> bool:
        """Whether a handle is one, and neither ours nor the owner's."""
        return is_handle(handle) and handle.lower() not in {self.handle.lower(), self.owner_handle.lower()}


def is_handle(name: str) -> bool:
    """Whether a name has the form of a handle; a server that is not our own may call an account anything."""
    return [span.value for span in detect_mentions(f"@{name}")] == [name.lower()]


def sightings_in(post: Notification | Post, ourselves: Ourselves, own_did: str) -> Iterator[Sighting]:
    """Who may be a SOUL, by one post."""
    author = post.author
    if ourselves.may_be_peer(author, own_did):
        owners = {name.lower() for name in ourselves.github if name}
        if workspaces := [one for one in workspaces_in(post) if one.owner in owners]:
            yield Sighting(author.handle, "workspace", workspaces[0].full_name)
        if extract_github_username_from_text(post.text):
            yield Sighting(author.handle, "social", post.uri)
        elif author.is_bot:
            yield Sighting(author.handle, "thread", post.uri)
    if author.did == own_did:
        return
    via: Via = "owner_mention" if author.did == ourselves.owner_did else "thread"
    handles = dict.fromkeys(span.value for span in detect_mentions(post.text))
    named = [handle for handle in handles if ourselves.may_be_named(handle)]
    for handle in named if via == "owner_mention" else named[:_MENTIONS_OF_A_POST]:
        yield Sighting(handle, via, post.uri)


class PeerDiscovery:
    """Keeps who may be a SOUL as candidates."""

    def __init__(self, registry: PeerRegistry, ourselves: Ourselves, own_did: Callable[[], str]) -> None:
        self._registry = registry
        self._ourselves = ourselves
        self._own_did = own_did

    def note_notifications(self, notifications: Iterable[Notification]) -> None:
        """Take in what reached us; a candidate that speaks to us is looked at again soon."""
        seen: list[Sighting] = []
        for item in notifications:
            if item.kind not in _WORDS:
                continue
            seen += self._sightings(item)
            if self._registry.is_peer_handle_only(item.author.handle):
                seen.append(Sighting(item.author.handle, "thread", item.uri))
        self._registry.register_peer_by_bluesky_handle(seen)

    def note_posts(self, posts: Iterable[Post]) -> None:
        """Take in a thread that was read."""
        found = [self._sightings(post) for post in posts]
        self._registry.register_peer_by_bluesky_handle(one for seen in found for one in seen)

    def _sightings(self, post: Notification | Post) -> list[Sighting]:
        return list(sightings_in(post, self._ourselves, self._own_did()))
