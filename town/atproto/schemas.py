"""Which records and bodies the network knows, and what fits them. Pure data; the limits are Bluesky's."""

from __future__ import annotations

from town.atproto.chat import DECLARATION
from town.atproto.lexicon import (
    Anything,
    Boolean,
    Fields,
    File,
    Integer,
    Listing,
    MismatchError,
    Shape,
    String,
    Variant,
    fits,
)
from town.atproto.values import (
    FOLLOW,
    LIKE,
    NOTIFICATION_DECLARATION,
    POST,
    POSTGATE,
    PROFILE,
    REPOST,
    THREADGATE,
    Json,
    invalid,
)

MAX_WRITES = 200
MAX_BLOB_BYTES = 5 * 1024 * 1024
_IMAGE_BYTES = 2_000_000
_WRITES = "com.atproto.repo.applyWrites"

_TIME = String("datetime")
_DID = String("DID")
_STRONG_REF = Fields({"uri": String("at-uri"), "cid": String("CID string")})
_IMAGE = File("image/*", _IMAGE_BYTES)
_SELF_LABELS = Variant(
    {"com.atproto.label.defs#selfLabels": Fields({"values": Listing(Fields({"val": String(max_bytes=128)}), 10)})}
)
_FACET = Fields(
    {
        "index": Fields({"byteStart": Integer(0), "byteEnd": Integer(0)}),
        "features": Listing(
            Variant(
                {
                    "app.bsky.richtext.facet#mention": Fields({"did": _DID}),
                    "app.bsky.richtext.facet#link": Fields({"uri": String("uri")}),
                    "app.bsky.richtext.facet#tag": Fields({"tag": String(max_bytes=640, max_graphemes=64)}),
                }
            )
        ),
    }
)
_ASPECT = Fields({"width": Integer(1), "height": Integer(1)})
_IMAGES = Fields({"images": Listing(Fields({"image": _IMAGE, "alt": String()}, {"aspectRatio": _ASPECT}), 4)})
_EXTERNAL = Fields(
    {
        "external": Fields(
            {"uri": String("uri"), "title": String(), "description": String()}, {"thumb": File("image/*", 10**6)}
        )
    }
)
_VIDEO = Fields({"video": File("video/mp4", 10**8)}, {"alt": String(max_graphemes=1000), "aspectRatio": _ASPECT})
_MEDIA: dict[str, Shape] = {
    "app.bsky.embed.images": _IMAGES,
    "app.bsky.embed.external": _EXTERNAL,
    "app.bsky.embed.video": _VIDEO,
}
_QUOTE = Fields({"record": _STRONG_REF})
_EMBED = Variant(
    {
        **_MEDIA,
        "app.bsky.embed.record": _QUOTE,
        "app.bsky.embed.recordWithMedia": Fields({"record": _QUOTE, "media": Variant(_MEDIA)}),
    }
)

_RECORDS: dict[str, tuple[str, Fields]] = {
    POST: (
        "TID string",
        Fields(
            {"text": String(max_bytes=3000, max_graphemes=300), "createdAt": _TIME},
            {
                "facets": Listing(_FACET),
                "reply": Fields({"root": _STRONG_REF, "parent": _STRONG_REF}),
                "embed": _EMBED,
                "langs": Listing(String("language"), 3),
                "labels": _SELF_LABELS,
                "tags": Listing(String(max_bytes=640, max_graphemes=64), 8),
            },
        ),
    ),
    LIKE: ("TID string", Fields({"subject": _STRONG_REF, "createdAt": _TIME})),
    REPOST: ("TID string", Fields({"subject": _STRONG_REF, "createdAt": _TIME})),
    DECLARATION: ("self", Fields({"allowIncoming": String()}, {"allowGroupInvites": String()})),
    NOTIFICATION_DECLARATION: ("self", Fields({"allowSubscriptions": String()})),
    FOLLOW: ("TID string", Fields({"subject": _DID, "createdAt": _TIME})),
    THREADGATE: (
        "TID string",
        Fields(
            {"post": String("at-uri"), "createdAt": _TIME},
            {
                "allow": Listing(
                    Variant(
                        {f"{THREADGATE}#{kind}Rule": Fields() for kind in ("mention", "follower", "following")}
                        | {f"{THREADGATE}#listRule": Fields({"list": String("at-uri")})}
                    ),
                    5,
                ),
                "hiddenReplies": Listing(String("at-uri"), 300),
            },
        ),
    ),
    POSTGATE: (
        "TID string",
        Fields(
            {"post": String("at-uri"), "createdAt": _TIME},
            {
                "embeddingRules": Listing(Variant({f"{POSTGATE}#disableRule": Fields()}), 5),
                "detachedEmbeddingUris": Listing(String("at-uri"), 50),
            },
        ),
    ),
    PROFILE: (
        "self",
        Fields(
            {},
            {
                "displayName": String(max_bytes=640, max_graphemes=64),
                "description": String(max_bytes=2560, max_graphemes=256),
                "avatar": File("image/", 10**6),
                "banner": File("image/", 10**6),
                "labels": _SELF_LABELS,
                "createdAt": _TIME,
            },
        ),
    ),
}

CHAT_MESSAGE = Fields(
    {"text": String(max_bytes=10_000, max_graphemes=1000)},
    {
        "facets": Listing(_FACET),
        "embed": Variant({"app.bsky.embed.record": _QUOTE}),
        "replyTo": Fields({"messageId": String()}),
    },
)
_COLLECTION = String("NSID")
_RKEY = String("record key")
_REPO = {"repo": String("AT identifier")}
_RECORD = Fields()
_PLACE = {**_REPO, "collection": _COLLECTION}

CREATE_RECORD = Fields({**_PLACE, "record": _RECORD}, {"rkey": _RKEY})
PUT_RECORD = Fields({**_PLACE, "rkey": _RKEY, "record": _RECORD})
DELETE_RECORD = Fields({**_PLACE, "rkey": _RKEY})
APPLY_WRITES = Fields(
    {
        **_REPO,
        "writes": Listing(
            Variant(
                {
                    f"{_WRITES}#create": Fields({"collection": _COLLECTION, "value": _RECORD}, {"rkey": _RKEY}),
                    f"{_WRITES}#update": Fields({"collection": _COLLECTION, "rkey": _RKEY, "value": _RECORD}),
                    f"{_WRITES}#delete": Fields({"collection": _COLLECTION, "rkey": _RKEY}),
                },
                closed=True,
            )
        ),
    }
)
CREATE_SESSION = Fields({"identifier": String(), "password": String()})
CREATE_ACCOUNT = Fields({"handle": String("handle")}, {"email": String(), "password": String()})
APP_PASSWORD = Fields({"name": String()}, {"privileged": Boolean()})
ACTIVITY_SUBSCRIPTION = Fields(
    {"subject": _DID, "activitySubscription": Fields({"post": Boolean(), "reply": Boolean()})}
)
UPDATE_SEEN = Fields({"seenAt": _TIME})
MUTE = Fields({"actor": String("AT identifier")})
PREFERENCES = Fields({"preferences": Listing(Anything())})


def typed_record(collection: str, record: Json) -> Json:
    """The record with its `$type`. Raises `XrpcError` when it says another one."""
    given = record.get("$type", collection)
    if given != collection:
        raise invalid(f"Invalid $type: expected {collection}, got {given}")
    return {"$type": collection, **record}


def check_record(collection: str, rkey: str, record: Json, *, validate: bool | None, path: str) -> str | None:
    """Whether a record may be stored: `valid`, `unknown` (no shape known), or None when not asked to look.

    Raises:
        XrpcError: it does not fit, in the server's words.

    """
    if validate is False:
        return None
    if collection not in _RECORDS:
        if validate:
            raise invalid(f"Unknown lexicon type: {collection}")
        return "unknown"
    key, shape = _RECORDS[collection]
    if key == "self" and rkey != "self":
        raise invalid(f'Invalid record key for {collection}: Expected "self" (got "{rkey}") at $')
    if key != "self" and not fits(key, rkey):
        raise invalid(f'Invalid record key for {collection}: Invalid {key} (got "{rkey}") at $')
    try:
        shape.check(record, path)
    except MismatchError as error:
        raise invalid(f"Invalid {collection} record: {error}") from error
    return "valid"
