"""Renders records as `app.bsky.*` shows them to a viewer: profiles, posts, threads, feed lines, notifications."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from starlette.datastructures import QueryParams
from starlette.responses import Response

from common.clock import iso
from town.atproto.chat import DECLARATION
from town.atproto.index import (
    GENERATOR,
    LIST,
    LIST_ITEM,
    REPOST,
    Address,
    AtprotoAccount,
    Json,
    StoredRecord,
    TownNotice,
    XrpcError,
    invalid,
    parent_uri,
    root_uri,
    subject_of,
)
from town.atproto.network import Network
from town.atproto.schemas import Boolean, Fields, Integer, Listing, MismatchError, Shape

_EPOCH = "1970-01-01T00:00:00.000Z"
_DEFS = "app.bsky.feed.defs"
_QUOTE_DEPTH = 2


@dataclass(frozen=True, slots=True)
class AtprotoViews:
    """The records as `viewer` sees them; `base_url` is the address at which this service serves pictures."""

    network: Network
    viewer: str | None
    base_url: str

    def profile_basic(self, did: str) -> Json:
        """Return an account as shown beside its posts."""
        actor, record = self.network.actor(did), self.network.profile(did)
        about = record.value if record else {}
        picture = self._picture("avatar", did, about.get("avatar")) or actor.avatar
        return {
            "did": did,
            "handle": actor.handle,
            **_given(displayName=actor.display_name, avatar=picture, createdAt=about.get("createdAt")),
            **_given(associated=self._associated(did)),
            "viewer": self._about_us(did),
            "labels": _self_labels(record),
        }

    def profile(self, did: str) -> Json:
        """Return an account as shown in a list of people."""
        record = self.network.profile(did)
        return {
            **self.profile_basic(did),
            **_given(
                description=record.value.get("description") if record else None,
                indexedAt=iso(record.indexed_at) if record else None,
            ),
        }

    def profile_detailed(self, did: str) -> Json:
        """Return an account as shown on its own page."""
        index = self.network.index
        return {
            **self.profile(did),
            "followersCount": index.follows.count(did),
            "followsCount": index.follows.count_out_of(did),
            "postsCount": index.post_count(did),
        }

    def post(self, record: StoredRecord, depth: int = 0) -> Json:
        """Return a post with its author, counts, and the viewer's own reactions."""
        index, uri = self.network.index, record.uri
        embed = record.value.get("embed")
        return {
            "uri": uri,
            "cid": record.cid,
            "author": self.profile_basic(record.at.did),
            "record": record.value,
            **_given(embed=self._embed(record.at.did, embed, depth + 1) if embed and depth < _QUOTE_DEPTH else None),
            "bookmarkCount": 0,
            "replyCount": len(index.replies(uri)),
            "repostCount": index.reposts.count(uri),
            "likeCount": index.likes.count(uri),
            "quoteCount": index.quotes.count(uri),
            "indexedAt": iso(record.indexed_at),
            **_given(threadgate=self._gate(uri)),
            "viewer": {"threadMuted": False, "embeddingDisabled": False, **self._our_marks(record)},
            "labels": _self_labels(record),
        }

    def generator(self, record: StoredRecord) -> Json:
        """Return a feed as its creator describes it."""
        return {
            **self._made(record),
            "viewer": {},
            "creator": self.profile(record.at.did),
            "did": record.value["did"],
            "displayName": record.value["displayName"],
            **_given(description=record.value.get("description")),
            "likeCount": self.network.index.likes.count(record.uri),
        }

    def account_list(self, record: StoredRecord) -> Json:
        """Return a list of accounts, without its items."""
        described = _given(description=record.value.get("description"))
        return {**self._list_basic(record), "creator": self.profile(record.at.did), **described}

    def _list_basic(self, record: StoredRecord) -> Json:
        named = {name: record.value[name] for name in ("name", "purpose")}
        return {**self._made(record), "viewer": {}, **named, "listItemCount": len(self.list_items(record))}

    def list_items(self, record: StoredRecord) -> list[StoredRecord]:
        """Return the accounts on a list, newest first; only the list's creator can add some."""
        items = self.network.records(record.at.did, LIST_ITEM)
        listed = [
            one for one in items if one.value.get("list") == record.uri and self.network.find(one.value["subject"])
        ]
        return sorted(listed, key=lambda item: item.order, reverse=True)

    def list_item(self, item: StoredRecord) -> Json:
        """Return one account on a list."""
        return {"uri": item.uri, "subject": self.profile(str(item.value["subject"]))}

    def starter_pack(self, record: StoredRecord, sample: int) -> Json:
        """Return a starter pack with its feeds, its list, and at most `sample` accounts of the list."""
        at = Address.parse(str(record.value["list"]))
        listed = self.network.record(at.did, LIST, at.rkey) if self.network.find(at.did) else None
        named = [Address.parse(str(feed["uri"])) for feed in record.value.get("feeds") or ()]
        feeds = [self.network.record(one.did, GENERATOR, one.rkey) for one in named if self.network.find(one.did)]
        return {
            **self._made(record),
            "record": record.value,
            "creator": self.profile_basic(record.at.did),
            "feeds": [self.generator(feed) for feed in feeds if feed],
            **({"list": self._list_basic(listed)} if listed else {}),
            "listItemsSample": [self.list_item(one) for one in self.list_items(listed)[:sample]] if listed else [],
        }

    def _made(self, record: StoredRecord) -> Json:
        marks = {"labels": _self_labels(record), "indexedAt": iso(record.indexed_at)}
        return {"uri": record.uri, "cid": record.cid, **marks}

    def feed_line(self, record: StoredRecord) -> Json:
        """Return a post, or a repost of one, as a line in a feed."""
        index, line = self.network.index, {}
        post = record
        if record.at.collection == REPOST:
            post = index.posts[subject_of(record)]
            line["reason"] = {
                "$type": f"{_DEFS}#reasonRepost",
                "by": self.profile_basic(record.at.did),
                "uri": record.uri,
                "cid": record.cid,
                "indexedAt": iso(record.indexed_at),
            }
        line["post"] = self.post(post)
        if parent := parent_uri(post):
            line["reply"] = {"root": self._post_or_gone(root_uri(post)), "parent": self._post_or_gone(parent)}
        return line

    def thread(self, record: StoredRecord, depth: int, height: int) -> Json:
        """Return a post, `height` posts above it and `depth` levels of replies, newest reply first."""
        node = {"$type": f"{_DEFS}#threadViewPost", "post": self.post(record)}
        if parent := parent_uri(record):
            node.update(_given(parent=self._above(parent, root_uri(record), height)))
        node.update(_given(replies=self._below(record, root_uri(record), depth)))
        return node

    def notification(self, notice: TownNotice, *, is_read: bool) -> Json:
        """Return a notification to the viewer."""
        record = notice.record
        return {
            "uri": record.uri,
            "cid": record.cid,
            "author": self.profile(record.at.did),
            "reason": notice.kind,
            **_given(reasonSubject=notice.subject),
            "record": record.value,
            "isRead": is_read,
            "indexedAt": iso(record.sort_at),
            "labels": _self_labels(record),
        }

    def _above(self, uri: str, root: str, height: int) -> Json | None:
        if height < 1:
            return None
        record = self.network.index.posts.get(uri)
        if record is None:
            return _gone(uri)
        if root_uri(record) != root:
            return None
        node = {"$type": f"{_DEFS}#threadViewPost", "post": self.post(record)}
        if parent := parent_uri(record):
            node.update(_given(parent=self._above(parent, root, height - 1)))
        return node

    def _below(self, record: StoredRecord, root: str, depth: int) -> list[Json] | None:
        if depth < 1:
            return None
        return [
            {
                "$type": f"{_DEFS}#threadViewPost",
                "post": self.post(reply),
                **_given(replies=self._below(reply, root, depth - 1)),
            }
            for reply in self.network.index.replies(record.uri)
            if root_uri(reply) == root
        ]

    def _post_or_gone(self, uri: str) -> Json:
        record = self.network.index.posts.get(uri)
        return {"$type": f"{_DEFS}#postView", **self.post(record)} if record else _gone(uri)

    def _associated(self, did: str) -> Json | None:
        record = self.network.record(did, DECLARATION, "self")
        return {"chat": {key: text for key, text in record.value.items() if key != "$type"}} if record else None

    def _about_us(self, did: str) -> Json:
        if self.viewer is None:
            return {}
        follows = self.network.index.follows
        ties = _given(
            following=follows.between(self.viewer, did),
            followedBy=follows.between(did, self.viewer),
        )
        network = self.network
        shut = {"muted": did in network.mutes(self.viewer), "blockedBy": network.blocking(did, self.viewer) is not None}
        return {**shut, **_given(blocking=network.blocking(self.viewer, did)), **ties}

    def _our_marks(self, post: StoredRecord) -> Json:
        if self.viewer is None:
            return {}
        index = self.network.index
        return _given(
            like=index.likes.between(self.viewer, post.uri),
            repost=index.reposts.between(self.viewer, post.uri),
            replyDisabled=not index.may_reply(self.viewer, root_uri(post)) or None,
        )

    def _gate(self, uri: str) -> Json | None:
        gate = self.network.index.gates.get(uri)
        return {"uri": gate.uri, "cid": gate.cid, "record": gate.value, "lists": []} if gate else None

    def _embed(self, did: str, embed: Json, depth: int) -> Json | None:
        kind = embed.get("$type", "")
        view = {"$type": f"{kind}#view"}
        match kind:
            case "app.bsky.embed.images":
                return {**view, "images": [self._image(did, image) for image in embed["images"]]}
            case "app.bsky.embed.external":
                card = embed["external"]
                shown = {key: card[key] for key in ("uri", "title", "description")}
                return {
                    **view,
                    "external": {**shown, **_given(thumb=self._picture("feed_thumbnail", did, card.get("thumb")))},
                }
            case "app.bsky.embed.record":
                return {**view, "record": self._quoted(embed["record"]["uri"], depth)}
            case "app.bsky.embed.recordWithMedia":
                media = self._embed(did, embed["media"], depth)
                quoted = {"record": self._quoted(embed["record"]["record"]["uri"], depth)}
                return {**view, "record": quoted, "media": media} if media else None
        return None

    def quote(self, uri: str) -> Json:
        """Return a post as shown inside a message."""
        return {"$type": "app.bsky.embed.record#view", "record": self._quoted(uri, _QUOTE_DEPTH)}

    def _image(self, did: str, image: Json) -> Json:
        return {
            "thumb": self._picture("feed_thumbnail", did, image["image"]),
            "fullsize": self._picture("feed_fullsize", did, image["image"]),
            "alt": image["alt"],
            **_given(aspectRatio=image.get("aspectRatio")),
        }

    def _quoted(self, uri: str, depth: int) -> Json:
        record = self.network.index.posts.get(uri)
        if record is None:
            return {"$type": "app.bsky.embed.record#viewNotFound", "uri": uri, "notFound": True}
        post = self.post(record, depth)
        counts = {key: post[key] for key in ("replyCount", "repostCount", "likeCount", "quoteCount")}
        return {
            "$type": "app.bsky.embed.record#viewRecord",
            **{key: post[key] for key in ("uri", "cid", "author", "labels", "indexedAt")},
            "value": post["record"],
            **counts,
            **({"embeds": [post["embed"]] if "embed" in post else []} if depth < _QUOTE_DEPTH else {}),
        }

    def _picture(self, size: str, did: str, blob: Json | None) -> str | None:
        return f"{self.base_url}/img/{size}/plain/{did}/{blob['ref']['$link']}" if blob else None


def _given(**values: object) -> Json:
    return {key: value for key, value in values.items() if value not in (None, "")}


def _gone(uri: str) -> Json:
    return {"$type": f"{_DEFS}#notFoundPost", "uri": uri, "notFound": True}


def _self_labels(record: StoredRecord | None) -> list[Json]:
    labels = record.value.get("labels") if record else None
    if record is None or not isinstance(labels, dict):
        return []
    cts = record.value.get("createdAt", _EPOCH)
    return [
        {"src": record.at.did, "uri": record.uri, "cid": record.cid, "val": str(label["val"]), "cts": cts}
        for label in labels.get("values", ())
    ]


Access = Literal["open", "session", "main_password", "refresh", "chat"]
"""Who may call: anybody, any session, a session of the account's main password, the holder of a refresh token, or a
session that may read direct messages."""


@dataclass(frozen=True, slots=True)
class MethodCall:
    """One request: its checked parameters and body, and its session's account (`did` is "" without a session)."""

    network: Network
    base_url: str
    did: str = ""
    token: str = ""
    params: Json = field(default_factory=dict)
    body: Json = field(default_factory=dict)
    content: bytes = b""
    content_type: str = ""

    @property
    def views(self) -> AtprotoViews:
        return AtprotoViews(self.network, self.did or None, self.base_url)

    def page(self, records: list[StoredRecord]) -> tuple[list[StoredRecord], Json]:
        """Return at most `limit` records after the cursor, and the cursor of the next page if there is one."""
        before = _read_cursor(self.params.get("cursor"))
        rest = [r for r in records if before is None or _order(r) < before]
        limit = self.params["limit"]
        if len(rest) <= limit:
            return rest, {}
        return rest[:limit], {"cursor": "{}__{}".format(*_order(rest[limit - 1]))}


Handler = Callable[[MethodCall], Json | Response | None]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the service. A query has `params`; a procedure takes JSON that fits `body`, or a file."""

    nsid: str
    handler: Handler
    access: Access = "session"
    params: Fields = field(default_factory=Fields)
    defaults: Mapping[str, object] = field(default_factory=dict)
    body: Fields | None = None
    is_procedure: bool = False
    takes_file: bool = False
    points: Callable[[Json], int] = lambda _: 0

    @property
    def verb(self) -> str:
        return "POST" if self.is_procedure or self.body or self.takes_file else "GET"

    def read_params(self, query: QueryParams) -> Json:
        """Return the query's parameters, typed and with defaults. Raises `XrpcError`."""
        shapes = {**self.params.required, **self.params.optional}
        given = {name: _typed(shape, query.getlist(name)) for name, shape in shapes.items() if name in query}
        try:
            self.params.check(given, None)
        except MismatchError as error:
            raise invalid(f"Invalid {self.nsid} params: {error}") from error
        return {**self.defaults, **given}


def with_did(call: MethodCall, uri: str) -> str:
    """Return the uri of a record with the DID of its account in place of a handle."""
    at = Address.parse(uri)
    account = call.network.find(at.did)
    return at._replace(did=account.did).uri if account else uri


def require_account(network: Network, actor: str, problem: str) -> AtprotoAccount:
    """Return the account. Raises `XrpcError` 400 with `problem` if it is unknown."""
    account = network.find(actor)
    if account is None:
        raise invalid(problem)
    return account


def _typed(shape: Shape, texts: list[str]) -> object:
    if isinstance(shape, Listing):
        return texts
    text = texts[-1]
    if isinstance(shape, Integer) and text.lstrip("-").isdigit():
        return int(text)
    if isinstance(shape, Boolean) and text in {"true", "false"}:
        return text == "true"
    return text


def _order(record: StoredRecord) -> tuple[int, int]:
    return int(record.sort_at.timestamp() * 1000), record.seq


def _read_cursor(cursor: str | None) -> tuple[int, int] | None:
    if not cursor:
        return None
    moment, _, seq = cursor.partition("__")
    if not (moment.isdigit() and seq.isdigit()):
        raise XrpcError(502, "InternalServerError", "Internal Server Error")
    return int(moment), int(seq)
