"""The values that the rooms of the town's AT Protocol network hand each other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]

POST = "app.bsky.feed.post"
LIKE = "app.bsky.feed.like"
REPOST = "app.bsky.feed.repost"
FOLLOW = "app.bsky.graph.follow"
POSTGATE = "app.bsky.feed.postgate"
THREADGATE = "app.bsky.feed.threadgate"
BLOCK = "app.bsky.graph.block"
PROFILE = "app.bsky.actor.profile"
NOTIFICATION_DECLARATION = "app.bsky.notification.declaration"


class XrpcError(Exception):
    """A refusal as the wire has it: a status and the body `{"error": name, "message": message}`."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.message = message


def invalid(message: str) -> XrpcError:
    """The commonest refusal: 400 `InvalidRequest`."""
    return XrpcError(400, "InvalidRequest", message)


def internal() -> XrpcError:
    """What Bluesky's server says where it did not think of the case."""
    return XrpcError(500, "InternalServerError", "Internal Server Error")


@dataclass(frozen=True, slots=True)
class AtprotoAccount:
    """Someone who lives in the network. `avatar` is a picture's URL, used until the profile record has one."""

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
    """A record as it stands. `seq` counts the network's writes; `sort_at` is the earlier of created and indexed."""

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


NoticeKind = Literal["like", "repost", "follow", "mention", "reply", "quote", "subscribed-post"]


@dataclass(frozen=True, slots=True)
class TownNotice:
    """A notification to `did`, caused by `record`."""

    did: str
    kind: NoticeKind
    record: StoredRecord
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class NetworkEvent:
    """Something changed: an account came, or a record was created, updated or deleted."""

    kind: Literal["account", "created", "updated", "deleted"]
    did: str
    uri: str = ""
    collection: str = ""
    cid: str = ""
