"""The network as the page's JSON: threads with the newest stir first, and who lives here. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from adapters.atproto.types import Actor, Post, ThreadNode
from town.atproto.network import Network
from town.page.residents import ResidentStatus

_POSTS_LOOKED_AT = 200
_THREADS_SHOWN = 60

Json = dict[str, Any]


def feed(network: Network) -> list[Json]:
    """The threads, each as its posts in reading order with their depth."""
    roots: dict[str, ThreadNode] = {}
    for post in network.posts(_POSTS_LOOKED_AT):
        node = network.thread(post.uri)
        if node:
            roots.setdefault(node.post.uri, node)
        if len(roots) == _THREADS_SHOWN:
            break
    return [_thread(network, node) for node in roots.values()]


def people(network: Network, residents: Sequence[ResidentStatus]) -> list[Json]:
    """Who lives here, and what each is doing."""
    return [_person(network, status) for status in residents]


def _thread(network: Network, root: ThreadNode) -> Json:
    posts = [_post(network, node.post, depth) for node, depth in _walk(root, 0)]
    return {"uri": root.post.uri, "posts": posts}


def _walk(node: ThreadNode, depth: int) -> Iterator[tuple[ThreadNode, int]]:
    yield node, depth
    for reply in node.replies:
        yield from _walk(reply, depth + 1)


def _post(network: Network, post: Post, depth: int) -> Json:
    return {
        "uri": post.uri,
        "author": _actor(post.author),
        "text": post.text,
        "at": post.created_at,
        "depth": depth,
        "parent": post.reply.parent.uri if post.reply else None,
        "likes": [_actor(actor) for actor in network.likes(post.uri)],
    }


def _actor(actor: Actor) -> Json:
    return {"did": actor.did, "handle": actor.handle, "name": actor.display_name or actor.handle}


def _person(network: Network, status: ResidentStatus) -> Json:
    account = network.find(status.handle)
    profile = network.profile(account.did) if account else None
    return {
        **(
            _actor(network.actor(account.did))
            if account
            else {"did": "", "handle": status.handle, "name": status.handle}
        ),
        "bio": str(profile.value.get("description", "")) if profile else "",
        "awake": status.awake,
        "life": dict(status.life),
    }
