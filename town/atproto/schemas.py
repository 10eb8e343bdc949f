"""The shapes of the records and bodies that the network knows. Limits and refusals are Bluesky's."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from common.text.graphemes import grapheme_len
from town.atproto.chat import DECLARATION
from town.atproto.index import (
    FOLLOW,
    GENERATOR,
    LIKE,
    LIST,
    LIST_ITEM,
    POST,
    POSTGATE,
    PROFILE,
    REPOST,
    STARTER_PACK,
    THREADGATE,
    Json,
    invalid,
    link_bytes,
)

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HANDLE = rf"(?:{_LABEL}\.)+[a-zA-Z](?:[a-zA-Z0-9-]{{0,61}}[a-zA-Z0-9])?"
_DID_PATTERN = r"did:[a-z]+:[a-zA-Z0-9._:%-]*[a-zA-Z0-9._-]"
_NSID = rf"(?:{_LABEL}\.){{2,}}[a-zA-Z][a-zA-Z0-9]{{0,62}}"
_RECORD_KEY_PATTERN = r"(?!\.{1,2}$)[a-zA-Z0-9_~.:-]{1,512}"
_FORMATS = {
    "AT identifier": re.compile(rf"{_DID_PATTERN}|{_HANDLE}"),
    "DID": re.compile(_DID_PATTERN),
    "handle": re.compile(_HANDLE),
    "NSID": re.compile(_NSID),
    "record key": re.compile(_RECORD_KEY_PATTERN),
    "TID string": re.compile(r"[234567abcdefghij][234567abcdefghijklmnopqrstuvwxyz]{12}"),
    "at-uri": re.compile(rf"at://(?:{_DID_PATTERN}|{_HANDLE})(?:/{_NSID}(?:/{_RECORD_KEY_PATTERN})?)?"),
    "uri": re.compile(r"[a-z][a-z.-]{0,80}:[^\s]+"),
    "language": re.compile(r"(?:[a-zA-Z]{2,8}|[ix])(?:-[a-zA-Z0-9]{1,8})*"),
    "datetime": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,20})?(?:Z|[+-]\d\d:\d\d)"),
}

Path = str | None


class MismatchError(Exception):
    """A value does not fit its shape; the message is the server's."""


class Shape(Protocol):
    """Anything that can check a value."""

    def check(self, value: object, path: Path) -> None:
        """Raise `MismatchError` if `value` does not fit; the message names `path` unless it is None."""
        ...


@dataclass(frozen=True, slots=True)
class String:
    """A string, optionally with a format or a maximum length."""

    format: str = ""
    max_bytes: int = 0
    max_graphemes: int = 0

    def check(self, value: object, path: Path) -> None:
        if not isinstance(value, str):
            raise _wrong_type("string", value, path)
        if self.format and not fits(self.format, value):
            raise _mismatch(f"Invalid {self.format} (got {_shown(value)})", path)
        if self.max_bytes and (size := len(value.encode("utf-8", "surrogatepass"))) > self.max_bytes:
            raise _mismatch(f"string too big (maximum {self.max_bytes}, got {size})", path)
        if self.max_graphemes and (size := grapheme_len(value)) > self.max_graphemes:
            raise _mismatch(f"grapheme too big (maximum {self.max_graphemes}, got {size})", path)


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer, optionally with bounds."""

    minimum: int | None = None
    maximum: int | None = None

    def check(self, value: object, path: Path) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong_type("integer", value, path)
        if self.minimum is not None and value < self.minimum:
            raise _mismatch(f"integer too small (minimum {self.minimum}, got {value})", path)
        if self.maximum is not None and value > self.maximum:
            raise _mismatch(f"integer too big (maximum {self.maximum}, got {value})", path)


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    def check(self, value: object, path: Path) -> None:
        if not isinstance(value, bool):
            raise _wrong_type("boolean", value, path)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list whose items have one shape."""

    item: Shape
    maximum: int = 0

    def check(self, value: object, path: Path) -> None:
        if not isinstance(value, list):
            raise _wrong_type("array", value, path)
        if self.maximum and len(value) > self.maximum:
            raise _mismatch(f"array too big (maximum {self.maximum}, got {len(value)})", path)
        for index, item in enumerate(value):
            self.item.check(item, None if path is None else f"{path}[{index}]")


@dataclass(frozen=True, slots=True)
class Fields:
    """An object; fields that are not named may hold anything."""

    required: Mapping[str, Shape] = field(default_factory=dict)
    optional: Mapping[str, Shape] = field(default_factory=dict)

    def check(self, value: object, path: Path) -> None:
        if not isinstance(value, dict):
            raise _wrong_type("object", value, path)
        for key in self.required:
            if key not in value:
                raise _mismatch(f'Missing required key "{key}"', path)
        for key, shape in {**self.required, **self.optional}.items():
            if key in value:
                shape.check(value[key], None if path is None else f"{path}.{key}")


@dataclass(frozen=True, slots=True)
class Variant:
    """An object whose shape depends on `$type`; unknown types are allowed unless it is closed."""

    types: Mapping[str, Shape]
    closed: bool = False

    def check(self, value: object, path: Path) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("$type"), str):
            raise _wrong_type('an object which includes the "$type" property', value, path)
        shape = self.types.get(value["$type"])
        if shape:
            shape.check(value, path)
        elif self.closed:
            names = [f'"{name}"' for name in self.types]
            one_of = f"{', '.join(names[:-1])} or {names[-1]}"
            raise _mismatch(f"Expected one of {one_of} (got {_shown(value['$type'])})", path and f"{path}.$type")


@dataclass(frozen=True, slots=True)
class File:
    """A reference to an uploaded file."""

    accept: str
    max_bytes: int

    def check(self, value: object, path: Path) -> None:
        if not isinstance(value, dict) or value.get("$type") != "blob" or "ref" not in value:
            raise _wrong_type("blob", value, path)
        mime, size = str(value.get("mimeType", "")), value.get("size", 0)
        if not mime.startswith(self.accept.removesuffix("*")):
            raise _mismatch(f'Expected "{self.accept}" (got {_shown(mime)})', path and f"{path}.mimeType")
        if isinstance(size, int) and size > self.max_bytes:
            raise _mismatch(f"blob too big (maximum {self.max_bytes}, got {size})", path)


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value that the data model allows."""

    def check(self, value: object, path: Path) -> None:
        check_data_model(value, path)


def fits(name: str, text: str) -> bool:
    """Return whether `text` has the named format."""
    if name == "CID string":
        try:
            link_bytes(text)
        except ValueError:
            return False
        return True
    if not _FORMATS[name].fullmatch(text):
        return False
    if name == "datetime":
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return False
    return True


def check_data_model(value: object, path: Path) -> None:
    """Check that `value` holds no floats, which AT Protocol does not have. Raises `MismatchError`."""
    if isinstance(value, float):
        kinds = "one of null, boolean, integer, string, cid, bytes, array or object"
        raise _wrong_type(kinds, value, path)
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        check_data_model(child, f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}")


def _wrong_type(expected: str, value: object, path: Path) -> MismatchError:
    return _mismatch(f"Expected {expected} value type (got {_shown(value)})", path)


def _mismatch(message: str, path: Path) -> MismatchError:
    return MismatchError(message if path is None else f"{message} at {path}")


def _shown(value: object) -> str:
    if isinstance(value, dict) and value:
        return f'{{"{next(iter(value))}": ...}}'
    return json.dumps(value, ensure_ascii=False)


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
    GENERATOR: (
        "record key",
        Fields(
            {"did": _DID, "displayName": String(max_bytes=240, max_graphemes=24), "createdAt": _TIME},
            {"description": String(max_bytes=3000, max_graphemes=300), "avatar": File("image/", 10**6)},
        ),
    ),
    LIST: (
        "TID string",
        Fields(
            {"name": String(max_bytes=64), "purpose": String(), "createdAt": _TIME},
            {"description": String(max_bytes=3000, max_graphemes=300), "avatar": File("image/", 10**6)},
        ),
    ),
    LIST_ITEM: ("TID string", Fields({"list": String("at-uri"), "subject": _DID, "createdAt": _TIME})),
    STARTER_PACK: (
        "TID string",
        Fields(
            {"name": String(max_bytes=500, max_graphemes=50), "list": String("at-uri"), "createdAt": _TIME},
            {
                "description": String(max_bytes=3000, max_graphemes=300),
                "feeds": Listing(Fields({"uri": String("at-uri")}), 3),
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
UPDATE_SEEN = Fields({"seenAt": _TIME})
MUTE = Fields({"actor": String("AT identifier")})
PREFERENCES = Fields({"preferences": Listing(Anything())})


def typed_record(collection: str, record: Json) -> Json:
    """Return the record with its `$type`. Raises `XrpcError` if it has another one."""
    given = record.get("$type", collection)
    if given != collection:
        raise invalid(f"Invalid $type: expected {collection}, got {given}")
    return {"$type": collection, **record}


def check_record(collection: str, rkey: str, record: Json, *, validate: bool | None, path: str) -> str | None:
    """Check a record and return `valid`, `unknown` (no known shape), or None if `validate` is False.

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
