"""Indexes the network's records: threads, likes, follows, feeds, notifications; and shows posts as the town does.

It is built only from the records added and removed, like an AppView. CIDs are exactly those of AT Protocol, so that
a record has the same cid here and on Bluesky. No HTTP, no clock.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import libipld

from adapters.atproto.types import Actor, Post, ReplyRefs, StrongRef, ThreadNode
from common.clock import iso

Json: TypeAlias = dict[str, Any]

POST = "app.bsky.feed.post"
LIKE = "app.bsky.feed.like"
REPOST = "app.bsky.feed.repost"
FOLLOW = "app.bsky.graph.follow"
POSTGATE = "app.bsky.feed.postgate"
THREADGATE = "app.bsky.feed.threadgate"
BLOCK = "app.bsky.graph.block"
PROFILE = "app.bsky.actor.profile"
GENERATOR = "app.bsky.feed.generator"
LIST = "app.bsky.graph.list"
LIST_ITEM = "app.bsky.graph.listitem"
STARTER_PACK = "app.bsky.graph.starterpack"


class XrpcError(Exception):
    """A refusal with its HTTP status and the body `{"error": name, "message": message}`."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.message = message


def invalid(message: str) -> XrpcError:
    """Return the most common refusal: 400 `InvalidRequest`."""
    return XrpcError(400, "InvalidRequest", message)


def internal() -> XrpcError:
    """Return the error with which Bluesky's server answers a case that it does not handle."""
    return XrpcError(500, "InternalServerError", "Internal Server Error")


@dataclass(frozen=True, slots=True)
class AtprotoAccount:
    """An account of the network. `avatar` is a picture's URL, used until the profile record has one."""

    did: str
    handle: str
    password: str
    email: str = ""
    avatar: str | None = None


class Address(NamedTuple):
    """The parts of an `at://` uri."""

    did: str
    collection: str
    rkey: str

    @property
    def uri(self) -> str:
        return f"at://{self.did}/{self.collection}/{self.rkey}"

    @classmethod
    def parse(cls, uri: str) -> Address:
        did, _, rest = uri.removeprefix("at://").partition("/")
        collection, _, rkey = rest.partition("/")
        return cls(did, collection, rkey)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A stored record. `seq` counts the network's writes; `sort_at` is the earlier of created and indexed."""

    at: Address
    cid: str
    value: Json
    indexed_at: datetime
    sort_at: datetime
    seq: int

    @property
    def uri(self) -> str:
        return self.at.uri

    @property
    def order(self) -> tuple[datetime, int]:
        return (self.sort_at, self.seq)


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """An uploaded file."""

    cid: str
    mime_type: str
    content: bytes


NoticeKind = Literal["like", "repost", "follow", "mention", "reply", "quote"]


@dataclass(frozen=True, slots=True)
class TownNotice:
    """A notification to `did`, caused by `record`."""

    did: str
    kind: NoticeKind
    record: StoredRecord
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class NetworkEvent:
    """A change: an account was created, or a record was created, updated or deleted."""

    kind: Literal["account", "created", "updated", "deleted"]
    did: str
    uri: str = ""
    collection: str = ""
    cid: str = ""


_DAG_CBOR = 0x71
_RAW = 0x55


def record_cid(value: Json) -> str:
    """Return the cid of a record given as JSON; `$link` and `$bytes` are read as links and bytes."""
    return _cid(_DAG_CBOR, libipld.encode_dag_cbor(_from_json(value)))


def blob_cid(content: bytes) -> str:
    """Return the cid of a file."""
    return _cid(_RAW, content)


def link_bytes(cid: str) -> bytes:
    """Return the binary form of a base32 cid. Raises `ValueError`."""
    raw = base64.b32decode(cid[1:].upper() + "=" * (-(len(cid) - 1) % 8))
    libipld.decode_cid(raw)
    return raw


def _cid(codec: int, content: bytes) -> str:
    raw = bytes((1, codec, 0x12, 32)) + hashlib.sha256(content).digest()
    return "b" + base64.b32encode(raw).decode().rstrip("=").lower()


def _from_json(value: object) -> object:
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$link"}:
        return link_bytes(value["$link"])
    if set(value) == {"$bytes"}:
        return base64.b64decode(value["$bytes"] + "==")
    return {key: _from_json(item) for key, item in value.items()}


NOTIFIED_ANCESTORS = 4


class Edges:
    """The edges of one kind from actors to subjects. A second edge to the same subject does not count."""

    def __init__(self) -> None:
        self._in: dict[str, dict[str, list[StoredRecord]]] = defaultdict(dict)
        self._out: dict[str, dict[str, list[StoredRecord]]] = defaultdict(dict)

    def add(self, subject: str, record: StoredRecord) -> bool:
        """Add an edge; return whether it is the first from this actor to the subject."""
        records = self._in[subject].setdefault(record.at.did, [])
        self._out[record.at.did][subject] = records
        records.append(record)
        return len(records) == 1

    def remove(self, subject: str, record: StoredRecord) -> None:
        actor = record.at.did
        records = self._in[subject].get(actor, [])
        records[:] = [other for other in records if other.uri != record.uri]
        if not records:
            self._in[subject].pop(actor, None)
            self._out[actor].pop(subject, None)

    def to(self, subject: str) -> list[StoredRecord]:
        """Return the edges to `subject`, newest first."""
        return _newest_first(records[0] for records in self._in[subject].values())

    def out_of(self, actor: str) -> list[StoredRecord]:
        """Return the edges from `actor`, newest first."""
        return _newest_first(records[0] for records in self._out[actor].values())

    def count(self, subject: str) -> int:
        return len(self._in[subject])

    def count_out_of(self, actor: str) -> int:
        return len(self._out[actor])

    def between(self, actor: str, subject: str) -> str | None:
        """Return the uri of the edge from `actor` to `subject`, if there is one."""
        records = self._in[subject].get(actor)
        return records[0].uri if records else None


class Index:
    """The network as readers see it."""

    def __init__(self) -> None:
        self.posts: dict[str, StoredRecord] = {}
        self.likes = Edges()
        self.reposts = Edges()
        self.follows = Edges()
        self.quotes = Edges()
        self.gates: dict[str, StoredRecord] = {}
        self._replies: dict[str, dict[str, StoredRecord]] = defaultdict(dict)
        self._feeds: dict[str, dict[str, StoredRecord]] = defaultdict(dict)
        self._notices: dict[str, list[TownNotice]] = defaultdict(list)

    def add(self, record: StoredRecord) -> None:
        """Index a new record; a malformed one is stored but shown nowhere."""
        collection, subject = record.at.collection, subject_of(record)
        if collection == POST:
            self._add_post(record)
        elif collection == LIKE:
            self._add_edge(self.likes, subject, record, "like")
        elif collection == REPOST:
            self._add_edge(self.reposts, subject, record, "repost")
            self._feeds[record.at.did][record.uri] = record
        elif collection == THREADGATE and _gated_post(record):
            self.gates[_gated_post(record)] = record
        elif collection == FOLLOW and self.follows.add(subject, record):
            self._notify({}, subject, "follow", record, None)

    def remove(self, record: StoredRecord) -> None:
        """Remove a record and what it caused."""
        for notices in self._notices.values():
            notices[:] = [notice for notice in notices if notice.record.uri != record.uri]
        self._feeds[record.at.did].pop(record.uri, None)
        collection, subject = record.at.collection, subject_of(record)
        if collection == POST:
            self.posts.pop(record.uri, None)
            self._replies[parent_uri(record)].pop(record.uri, None)
            self.quotes.remove(quoted_uri(record), record)
        elif collection == LIKE:
            self.likes.remove(subject, record)
        elif collection == REPOST:
            self.reposts.remove(subject, record)
        elif collection == FOLLOW:
            self.follows.remove(subject, record)
        elif collection == THREADGATE:
            self.gates.pop(_gated_post(record), None)

    def may_reply(self, did: str, root: str) -> bool:
        """Return whether an account may reply in the thread that begins with `root`, by the rules of its author."""
        gate, author = self.gates.get(root), Address.parse(root).did
        allow = gate.value.get("allow") if gate else None
        if allow is None or did == author:
            return True
        first = self.posts.get(root)
        ties = {
            "mentionRule": first is not None and did in mentioned_dids(first.value),
            "followerRule": self.follows.between(did, author) is not None,
            "followingRule": self.follows.between(author, did) is not None,
        }
        return any(ties.get(str(rule["$type"]).partition("#")[2], False) for rule in allow)

    def replies(self, uri: str) -> list[StoredRecord]:
        """Return the direct replies to a post, newest first."""
        return _newest_first(self._replies[uri].values())

    def ancestors(self, post: StoredRecord) -> Iterator[StoredRecord]:
        """Yield the posts above, nearest first, up to the first missing one."""
        seen = {post.uri}
        above = self.posts.get(parent_uri(post))
        while above and above.uri not in seen:
            yield above
            seen.add(above.uri)
            above = self.posts.get(parent_uri(above))

    def feed(self, dids: Iterable[str]) -> list[StoredRecord]:
        """Return the posts and reposts of these accounts, newest first, without reposts of deleted posts."""
        records = (record for did in dids for record in self._feeds[did].values())
        return _newest_first(r for r in records if r.at.collection == POST or subject_of(r) in self.posts)

    def notices(self, did: str) -> list[TownNotice]:
        """Return an account's notifications, newest first, without those about deleted posts."""
        standing = [n for n in self._notices[did] if n.subject is None or n.subject in self.posts]
        return sorted(standing, key=lambda notice: notice.record.order, reverse=True)

    def post_count(self, did: str) -> int:
        return sum(1 for record in self._feeds[did].values() if record.at.collection == POST)

    def _add_post(self, post: StoredRecord) -> None:
        self.posts[post.uri] = post
        self._feeds[post.at.did][post.uri] = post
        if parent_uri(post) and not self.may_reply(post.at.did, root_uri(post)):
            return
        if parent := parent_uri(post):
            self._replies[parent][post.uri] = post
        told: dict[str, TownNotice] = {}
        for did in mentioned_dids(post.value):
            self._notify(told, did, "mention", post, None)
        if quoted := quoted_uri(post):
            self.quotes.add(quoted, post)
            self._notify(told, Address.parse(quoted).did, "quote", post, quoted)
        for _, ancestor in zip(range(NOTIFIED_ANCESTORS), self.ancestors(post), strict=False):
            self._notify(told, ancestor.at.did, "reply", post, ancestor.uri)

    def _add_edge(self, edges: Edges, subject: str, record: StoredRecord, kind: NoticeKind) -> None:
        if edges.add(subject, record) and Address.parse(subject).collection == POST:
            self._notify({}, Address.parse(subject).did, kind, record, subject)

    def _notify(
        self, told: dict[str, TownNotice], did: str, kind: NoticeKind, record: StoredRecord, subject: str | None
    ) -> None:
        if did != record.at.did and did not in told:
            told[did] = TownNotice(did, kind, record, subject)
            self._notices[did].append(told[did])


def _gated_post(gate: StoredRecord) -> str:
    """Return the uri of the post that a gate applies to; "" if its key is not the post's, which makes it invalid."""
    post = str(gate.value.get("post", ""))
    return post if post == f"at://{gate.at.did}/{POST}/{gate.at.rkey}" else ""


def parent_uri(post: StoredRecord) -> str:
    """Return the uri of the post that this one answers; "" for none."""
    return _reply_uri(post, "parent")


def root_uri(post: StoredRecord) -> str:
    """Return the uri of the thread's first post."""
    return _reply_uri(post, "root") or post.uri


def quoted_uri(post: StoredRecord) -> str:
    """Return the uri of the record that a post quotes; "" for none."""
    embed = post.value.get("embed")
    ref = embed.get("record") if isinstance(embed, dict) else None
    if isinstance(ref, dict) and isinstance(ref.get("record"), dict):
        ref = ref["record"]
    return str(ref.get("uri", "")) if isinstance(ref, dict) else ""


def mentioned_dids(post: Json) -> list[str]:
    """Return the dids that the facets of a post mention."""
    features = [feature for facet in post.get("facets") or () for feature in facet.get("features") or ()]
    return [str(f["did"]) for f in features if f.get("$type") == "app.bsky.richtext.facet#mention" and "did" in f]


def tags_of(post: StoredRecord) -> list[str]:
    """Return the hashtags in the facets of a post, in lower case."""
    features = [feature for facet in post.value.get("facets") or () for feature in facet.get("features") or ()]
    return [str(f["tag"]).lower() for f in features if f.get("$type") == "app.bsky.richtext.facet#tag" and "tag" in f]


def _reply_uri(post: StoredRecord, end: str) -> str:
    reply = post.value.get("reply")
    ref = reply.get(end) if isinstance(reply, dict) else None
    return str(ref.get("uri", "")) if isinstance(ref, dict) else ""


def subject_of(record: StoredRecord) -> str:
    """Return the uri that a like or repost points at, or the did that a follow names."""
    subject = record.value.get("subject")
    return str(subject.get("uri", "") if isinstance(subject, dict) else subject or "")


def _newest_first(records: Iterable[StoredRecord]) -> list[StoredRecord]:
    return sorted(records, key=lambda record: record.order, reverse=True)


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
