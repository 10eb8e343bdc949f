"""Who might be a SOUL: read from what reaches us. Pure but for `PeerDiscovery`, which keeps what was found.

That somebody is named, or claims a name, makes a candidate. A peer is only whose own feed carries an identity post.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Actor, Notification, Post
from modules.services.peers.identity_post import extract_github_username_from_text
from modules.services.peers.registry import PeerRegistry
from modules.services.peers.types import Sighting, Via
from modules.services.workspaces.addresses import workspaces_in

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
