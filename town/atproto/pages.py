"""Converts stored records to the values that the town shows: posts and thread trees."""

from __future__ import annotations

from typing import Protocol

from adapters.atproto.types import Actor, Post, ReplyRefs, StrongRef, ThreadNode
from common.clock import iso
from town.atproto.index import Index, Json, StoredRecord, root_uri

_MEDIA = ("app.bsky.embed.images", "app.bsky.embed.video")


class Records(Protocol):
    """The stored records and their accounts."""

    index: Index

    def actor(self, did: str) -> Actor:
        """Return the account as it appears beside its posts."""
        ...


def post(network: Records, record: StoredRecord) -> Post:
    """Return a post with its author and counts."""
    index, value = network.index, record.value
    embed = value.get("embed") or {}
    kinds = (embed.get("$type"), (embed.get("media") or {}).get("$type"))
    return Post(
        uri=record.uri,
        cid=record.cid,
        author=network.actor(record.at.did),
        text=str(value.get("text", "")),
        created_at=str(value.get("createdAt", "")),
        indexed_at=iso(record.indexed_at),
        reply=_refs(value),
        links=tuple(_links(value)),
        reply_count=len(index.replies(record.uri)),
        repost_count=index.reposts.count(record.uri),
        like_count=index.likes.count(record.uri),
        has_media=any(kind in _MEDIA for kind in kinds),
    )


def thread(network: Records, uri: str) -> ThreadNode | None:
    """Return the thread around `uri` from its topmost post that still exists, replies oldest first; None if unknown."""
    start = network.index.posts.get(uri)
    if start is None:
        return None
    top = network.index.posts.get(root_uri(start)) or [start, *network.index.ancestors(start)][-1]
    return _tree(network, top)


def _tree(network: Records, top: StoredRecord) -> ThreadNode:
    """Return the tree below `top`, built from its leaves: a thread may be deeper than Python's stack."""
    order: list[tuple[StoredRecord, list[StoredRecord]]] = []
    waiting = [top]
    while waiting:
        record = waiting.pop()
        replies = list(reversed(network.index.replies(record.uri)))
        order.append((record, replies))
        waiting += replies
    nodes: dict[str, ThreadNode] = {}
    for record, replies in reversed(order):
        nodes[record.uri] = ThreadNode(post(network, record), replies=tuple(nodes.pop(reply.uri) for reply in replies))
    return nodes[top.uri]


def _refs(value: Json) -> ReplyRefs | None:
    reply = value.get("reply")
    if not reply:
        return None
    parent, root = (StrongRef(reply[end]["uri"], reply[end]["cid"]) for end in ("parent", "root"))
    return ReplyRefs(parent=parent, root=root)


def _links(value: Json) -> list[str]:
    features = [feature for facet in value.get("facets") or () for feature in facet.get("features") or ()]
    links = [str(feature["uri"]) for feature in features if "uri" in feature]
    card = ((value.get("embed") or {}).get("external") or {}).get("uri")
    return [*links, str(card)] if card and card not in links else links
