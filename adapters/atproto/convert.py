"""Converts JSON of the network, direct messages among it, into our types. Pure and tolerant.

The network is written by many programs. A field of the wrong type counts as absent, and an item without its essential
fields is left out; the rest of the page is still read.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from adapters.atproto.richtext import is_mention
from adapters.atproto.types import (
    Actor,
    Barrier,
    Blob,
    Card,
    Conversation,
    Curated,
    DirectMessage,
    FeedItem,
    MessageEvent,
    MessageEventKind,
    Notification,
    Picture,
    Post,
    PostLabel,
    Profile,
    Record,
    ReplyRefs,
    StrongRef,
    ThreadNode,
    Trend,
)
from common.clock import parse_iso, parse_iso_or_none
from common.constants import POST_MAX_BYTES, PROFILE_BIO_MAX_BYTES
from common.text.hidden import visible_text

Json = dict[str, Any]
T = TypeVar("T")

BOT_LABEL = "bot"
MOST_PICTURES = 4
MAX_DISPLAY_NAME_CHARS = 640
MAX_ALT_CHARS = 2_000
MAX_CARD_TITLE_CHARS, MAX_CARD_CHARS = 300, 1_000
_MAX_NAME_CHARS = 8_192
_MAX_LINK_CHARS = 2_048
_MAX_LINKS = 32
_MAX_LABELS = 64
_MAX_TAGS = 64
_MAX_COUNT = 2**53
_MENTION = "app.bsky.richtext.facet#mention"
_IMAGES = "app.bsky.embed.images"
_VIDEO = "app.bsky.embed.video"
_MEDIA = (_IMAGES, _VIDEO, "app.bsky.embed.gallery")


def text_of(source: Json, key: str) -> str:
    """Return a string field; "" if it is not a string, or longer than any name, address or token."""
    value = source.get(key)
    return value if isinstance(value, str) and len(value) <= _MAX_NAME_CHARS else ""


def prose_of(source: Json, key: str, most_chars: int) -> str:
    """Return a string field that somebody wrote, cut to `most_chars`, the limit of the network's own programs."""
    value = source.get(key)
    return value[:most_chars] if isinstance(value, str) else ""


def object_of(source: Json, key: str) -> Json:
    """Return an object field; {} if it is not an object."""
    value = source.get(key)
    return value if isinstance(value, dict) else {}


def items_of(source: Json, key: str, convert: Callable[[Json], T | None]) -> tuple[T, ...]:
    """Convert the items of a list field; leave out those that are not objects or cannot be converted."""
    return each(objects_of(source, key), convert)


def each(items: Iterable[object], convert: Callable[[Json], T | None]) -> tuple[T, ...]:
    """Convert the items of a list; leave out those that are not objects or cannot be converted."""
    converted = (convert(item) for item in items if isinstance(item, dict))
    return tuple(item for item in converted if item is not None)


def actor(view: Json) -> Actor | None:
    """Return an account; None without a DID."""
    did = text_of(view, "did")
    if not did:
        return None
    return Actor(
        did=did,
        handle=text_of(view, "handle"),
        display_name=prose_of(view, "displayName", MAX_DISPLAY_NAME_CHARS),
        avatar=text_of(view, "avatar") or None,
        is_bot=any(_calls_itself_a_bot(label, did) for label in objects_of(view, "labels")),
        is_followed=bool(text_of(object_of(view, "viewer"), "following")),
        barrier=barrier_of(object_of(view, "viewer")),
    )


def barrier_of(viewer: Json) -> Barrier:
    """Return what stands between us and an account, according to the network; a block takes precedence over a mute."""
    if text_of(viewer, "blocking") or object_of(viewer, "blockingByList"):
        return "blocked"
    if viewer.get("blockedBy") is True:
        return "blocks us"
    return "muted" if viewer.get("muted") is True or object_of(viewer, "mutedByList") else ""


def profile(view: Json) -> Profile | None:
    """Return an account's profile; None without a DID."""
    who = actor(view)
    if who is None:
        return None
    viewer = object_of(view, "viewer")
    return Profile(
        did=who.did,
        handle=who.handle,
        display_name=who.display_name,
        description=prose_of(view, "description", PROFILE_BIO_MAX_BYTES),
        labels=items_of(view, "labels", _label)[:_MAX_LABELS],
        created_at=text_of(view, "createdAt"),
        is_followed=bool(text_of(viewer, "following")),
        follows_us=bool(text_of(viewer, "followedBy")),
        barrier=who.barrier,
    )


def curated(view: Json) -> Curated | None:
    """Return a feed, a list or a starter pack; None without uri, name or creator."""
    uri, creator, stored = text_of(view, "uri"), actor(object_of(view, "creator")), object_of(view, "record")
    name = text_of(view, "displayName") or text_of(view, "name") or text_of(stored, "name")
    if not uri or creator is None or not name:
        return None
    return Curated(
        uri,
        name,
        creator,
        prose_of(stored or view, "description", MAX_CARD_CHARS),
        items_of(view, "listItemsSample", member),
        text_of(object_of(view, "list"), "uri"),
        items_of(view, "feeds", curated),
    )


def member(item: Json) -> Profile | None:
    """Return the account that an item of a list names."""
    return profile(object_of(item, "subject"))


def trend(view: Json) -> Trend | None:
    """Return a trending topic; None without a name."""
    name = text_of(view, "displayName") or text_of(view, "topic")
    if not name:
        return None
    return Trend(
        name, text_of(view, "link"), count_of(view, "postCount"), text_of(view, "startedAt"), text_of(view, "category")
    )


def strong_ref(source: Json) -> StrongRef | None:
    """Return a uri with a cid; None if one is missing."""
    uri, cid = text_of(source, "uri"), text_of(source, "cid")
    return StrongRef(uri, cid) if uri and cid else None


def post(view: Json) -> Post | None:
    """Return a post; None without uri, cid or author."""
    ref, author = strong_ref(view), actor(object_of(view, "author"))
    if not ref or not author:
        return None
    record = object_of(view, "record")
    return Post(
        uri=ref.uri,
        cid=ref.cid,
        author=author,
        text=prose_of(record, "text", POST_MAX_BYTES),
        created_at=text_of(record, "createdAt"),
        indexed_at=text_of(view, "indexedAt"),
        reply=_reply(record),
        links=links(record),
        reply_count=count_of(view, "replyCount"),
        repost_count=count_of(view, "repostCount"),
        like_count=count_of(view, "likeCount"),
        has_media=any(text_of(embed, "$type") in _MEDIA for embed in _embeds(record)),
        pictures=_pictures(record, view),
        embed_digest=_digest(object_of(record, "embed"), or_else=ref.cid),
        quoted_uri=(quoted_uri := _quoted_uri(object_of(record, "embed"))),
        quoted=_quoted(_quoted_view(view), quoted_uri),
        video_alt=_video_alt(record),
        card=_card(record) or _card_of_record(_quoted_view(view)),
        tags=_tags(record),
        labels=_labels(view),
        is_closed_to_us=object_of(view, "viewer").get("replyDisabled") is True,
    )


def feed_item(item: Json) -> FeedItem | None:
    """Return an item of a feed. Only a repost has a `reposted_by`; a pinned post does not."""
    shown = post(object_of(item, "post"))
    reason = object_of(item, "reason")
    reposted = text_of(reason, "$type") == "app.bsky.feed.defs#reasonRepost"
    return FeedItem(shown, actor(object_of(reason, "by")) if reposted else None) if shown else None


def notification(item: Json) -> Notification | None:
    """Return a notification; None without uri, cid, author, kind or a readable time."""
    ref, author, kind = strong_ref(item), actor(object_of(item, "author")), text_of(item, "reason")
    if not ref or not author or not kind or not _is_time(text_of(item, "indexedAt")):
        return None
    record = object_of(item, "record")
    return Notification(
        uri=ref.uri,
        cid=ref.cid,
        author=author,
        kind=kind,
        text=prose_of(record, "text", POST_MAX_BYTES),
        created_at=text_of(record, "createdAt"),
        indexed_at=text_of(item, "indexedAt"),
        is_read=item.get("isRead") is True,
        reason_subject=text_of(item, "reasonSubject") or None,
        reply=_reply(record),
        links=links(record),
        pictures=_pictures(record, {}),
        mentions=_mentions(record),
        tags=_tags(record),
        labels=_labels(item),
    )


def _is_time(text: str) -> bool:
    try:
        parse_iso(text)
    except ValueError:
        return False
    return True


def thread(view: Json) -> ThreadNode | None:
    """Return a thread; None if its focal post is gone or blocked."""
    node = _with_replies(view)
    if node is None:
        return None
    chain: list[Post] = []
    above = object_of(view, "parent")
    while ancestor := post(object_of(above, "post")):
        chain.append(ancestor)
        above = object_of(above, "parent")
    parent: ThreadNode | None = None
    for ancestor in reversed(chain):
        parent = ThreadNode(ancestor, parent)
    return ThreadNode(node.post, parent, node.replies)


def blob(wire: Json) -> Blob | None:
    """Return an uploaded file; None without its content hash."""
    cid = text_of(object_of(wire, "ref"), "$link")
    return Blob(cid, text_of(wire, "mimeType"), count_of(wire, "size")) if cid else None


def record(wire: Json) -> Record | None:
    """Return a raw record; None without its uri. If the wire has no cid, it is ""."""
    uri = text_of(wire, "uri")
    return Record(uri, text_of(wire, "cid"), object_of(wire, "value")) if uri else None


def _calls_itself_a_bot(label: Json, did: str) -> bool:
    """Return whether a label is the account's own "bot" label; what others call an account is only their opinion."""
    return text_of(label, "src") == did and text_of(label, "val") == BOT_LABEL and label.get("neg") is not True


def _with_replies(view: Json) -> ThreadNode | None:
    shown = post(object_of(view, "post"))
    return ThreadNode(shown, None, items_of(view, "replies", _with_replies)) if shown else None


def _reply(record: Json) -> ReplyRefs | None:
    reply = object_of(record, "reply")
    parent, root = strong_ref(object_of(reply, "parent")), strong_ref(object_of(reply, "root"))
    return ReplyRefs(parent, root) if parent and root else None


def links(record: Json) -> tuple[str, ...]:
    """Return the URLs that a text or its embed links to, in full, each once."""
    features = (feature for facet in objects_of(record, "facets") for feature in objects_of(facet, "features"))
    uris = [text_of(feature, "uri") for feature in features]
    uris += [text_of(object_of(embed, "external"), "uri") for embed in _embeds(record)]
    return tuple(dict.fromkeys(uri for uri in uris if 0 < len(uri) <= _MAX_LINK_CHARS))[:_MAX_LINKS]


def _mentions(record: Json) -> tuple[tuple[str, str], ...]:
    """Return the accounts that a reader sees named: the marked words, an @ and a handle, and the DID.

    This follows how Bluesky's own app shows facets: in order of their starts, the first of overlapping ones, and of
    each facet the first mention.
    """
    said = text_of(record, "text").encode(errors="replace")
    found: list[tuple[str, str]] = []
    shown_until = 0
    for start, end, facet in sorted(map(_placed, objects_of(record, "facets")), key=lambda placed: placed[0]):
        if not shown_until <= start < end <= len(said):
            continue
        shown_until = end
        words = visible_text(said[start:end].decode(errors="replace"))
        features = (one for one in objects_of(facet, "features") if text_of(one, "$type") == _MENTION)
        did = text_of(next(features, {}), "did")
        if did and is_mention(words):
            found.append((words, did))
    return tuple(dict.fromkeys(found))


def _placed(facet: Json) -> tuple[int, int, Json]:
    index = object_of(facet, "index")
    return count_of(index, "byteStart"), count_of(index, "byteEnd"), facet


def _tags(record: Json) -> tuple[str, ...]:
    """Return the hashtags of a post, both in its text and in its list of tags."""
    features = (feature for facet in objects_of(record, "facets") for feature in objects_of(facet, "features"))
    beside = record.get("tags")
    named = [text_of(feature, "tag") for feature in features]
    named += [tag for tag in beside if isinstance(tag, str)] if isinstance(beside, list) else []
    return tuple(dict.fromkeys(tag for tag in named if 0 < len(tag) <= _MAX_NAME_CHARS))[:_MAX_TAGS]


def _labels(view: Json) -> tuple[PostLabel, ...]:
    """Return the labels on a post and on its author."""
    author = object_of(view, "author")
    return (*items_of(view, "labels", _label), *items_of(author, "labels", _label))[:_MAX_LABELS]


def _label(wire: Json) -> PostLabel | None:
    """Return a label; None if it was withdrawn, or has no name or source."""
    name, source = text_of(wire, "val"), text_of(wire, "src")
    return PostLabel(name, source) if name and source and wire.get("neg") is not True else None


def _pictures(record: Json, view: Json) -> tuple[Picture, ...]:
    """Return the pictures on a post, from its record and from the service's view; either may be missing."""
    uploaded, shown = _images(record, _IMAGES), _images(view, f"{_IMAGES}#view")
    nothing: Json = {}
    pairs = itertools.zip_longest(uploaded, shown, fillvalue=nothing)
    found = (_picture(*pair) for pair in pairs)
    return tuple(picture for picture in found if picture.url or picture.cid)[:MOST_PICTURES]


def _picture(uploaded: Json, shown: Json) -> Picture:
    file = blob(object_of(uploaded, "image")) or Blob("", "", 0)
    alt = prose_of(shown, "alt", MAX_ALT_CHARS) or prose_of(uploaded, "alt", MAX_ALT_CHARS)
    return Picture(alt, text_of(shown, "fullsize"), file.cid, file.mime_type, file.size)


def _video_alt(record: Json) -> str:
    alts = (prose_of(embed, "alt", MAX_ALT_CHARS) for embed in _embeds(record) if text_of(embed, "$type") == _VIDEO)
    return next(alts, "")


def _images(source: Json, kind: str) -> list[Json]:
    return next((objects_of(embed, "images") for embed in _embeds(source) if text_of(embed, "$type") == kind), [])


def _digest(embed: Json, *, or_else: str) -> str:
    """Return the SHA-256 of an embed in hex, "" if it is empty; that of `or_else` if it is nested too deeply."""
    try:
        material = json.dumps(embed, sort_keys=True) if embed else ""
    except RecursionError:
        material = or_else
    return hashlib.sha256(material.encode()).hexdigest() if material else ""


def _quoted_uri(embed: Json) -> str:
    """Return the uri of the record that an embed quotes, alone or beside media; "" if it quotes none."""
    quoted = object_of(embed, "record")
    return text_of(quoted, "uri") or text_of(object_of(quoted, "record"), "uri")


def _quoted_view(view: Json) -> Json:
    """Return the service's view of the record that a post quotes, alone or beside media; {} if it quotes none."""
    shown = object_of(object_of(view, "embed"), "record")
    return object_of(shown, "record") or shown


def _quoted(shown: Json, uri: str) -> Post | None:
    """Return the quoted post at `uri`, without what it quotes itself; None if it is gone, blocked or not a post."""
    if not uri or text_of(shown, "uri") != uri or not object_of(shown, "author"):
        return None
    embed = next(iter(objects_of(shown, "embeds")), {})
    # NOTE(self): without the record that it quotes itself, so that chains of quotes are not followed.
    media = {key: value for key, value in (object_of(embed, "media") or embed).items() if key != "record"}
    quoted = post({**shown, "record": object_of(shown, "value"), "embed": media})
    return quoted if quoted and quoted.uri.startswith(f"at://{quoted.author.did}/") else None


def _card(record: Json) -> Card | None:
    """Return the page shown under a post, as its author's program described it; None without a title."""
    shown = next((card for embed in _embeds(record) if (card := object_of(embed, "external"))), {})
    return _described(shown, text_of(shown, "uri"), ("title",))


def _card_of_record(shown: Json) -> Card | None:
    """Return the feed, list or starter pack that a post quotes, as a card; None if it quotes none of these."""
    named = shown if text_of(shown, "name") or text_of(shown, "displayName") else object_of(shown, "record")
    return _described(named, text_of(shown, "uri"), ("displayName", "name")) if "author" not in shown else None


def _described(shown: Json, uri: str, titles: Iterable[str]) -> Card | None:
    title = next((said for key in titles if (said := prose_of(shown, key, MAX_CARD_TITLE_CHARS))), "")
    return Card(uri, title, prose_of(shown, "description", MAX_CARD_CHARS)) if title else None


def _embeds(record: Json) -> tuple[Json, Json]:
    """Return what is attached: the embed itself, and the media beside a quote."""
    embed = object_of(record, "embed")
    return embed, object_of(embed, "media")


def objects_of(source: Json, key: str) -> list[Json]:
    """Return the objects in a list field; none if it is not a list."""
    value = source.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count_of(source: Json, key: str) -> int:
    """Return a whole number; 0 if it is not one, or larger than any count."""
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_COUNT else 0


MESSAGE_MAX_BYTES = 10_000

_DEFS = "chat.bsky.convo.defs#"
_OF_A_PAIR = 2
_MOST_MEMBERS = 100
_EVENTS: dict[str, MessageEventKind] = {
    "logBeginConvo": "began",
    "logAcceptConvo": "accepted",
    "logLeaveConvo": "left",
    "logCreateMessage": "message",
    "logDeleteMessage": "deleted",
    "logReadMessage": "read",
    "logReadConvo": "read",
}


def message(view: Json) -> DirectMessage | None:
    """Return a message; None without id, revision, sender or readable time, as for the service's own messages."""
    sender, sent_at = text_of(object_of(view, "sender"), "did"), text_of(view, "sentAt")
    if not text_of(view, "id") or not text_of(view, "rev") or not sender or parse_iso_or_none(sent_at) is None:
        return None
    return DirectMessage(
        id=text_of(view, "id"),
        rev=text_of(view, "rev"),
        sender_did=sender,
        sent_at=sent_at,
        text=prose_of(view, "text", MESSAGE_MAX_BYTES),
        links=links(view),
        is_deleted=_name(view) == "deletedMessageView",
    )


def is_unreadable(item: object) -> bool:
    """Return whether an item of a list should be a message but is none; messages of the service itself do not count."""
    return not isinstance(item, dict) or (_name(item) != "systemMessageView" and message(item) is None)


def conversation(view: Json) -> Conversation | None:
    """Return a conversation; None without id or revision."""
    if not text_of(view, "id") or not text_of(view, "rev"):
        return None
    members = items_of(view, "members", actor)[:_MOST_MEMBERS]
    return Conversation(
        id=text_of(view, "id"),
        rev=text_of(view, "rev"),
        members=members,
        status="request" if text_of(view, "status") == "request" else "accepted",
        unread_count=count_of(view, "unreadCount"),
        is_muted=view.get("muted") is True,
        is_group=_name(object_of(view, "kind")) == "groupConvo" or len(members) > _OF_A_PAIR,
    )


def event(view: Json) -> MessageEvent | None:
    """Return an event; None without conversation or revision. Unknown kinds become `other`."""
    if not text_of(view, "convoId") or not text_of(view, "rev"):
        return None
    kind = _EVENTS.get(_name(view), "other")
    return MessageEvent(kind, text_of(view, "convoId"), text_of(view, "rev"), message(object_of(view, "message")))


def _name(view: Json) -> str:
    """Return the name of a view among the definitions of conversations; "" if it is not one of them."""
    kind = text_of(view, "$type")
    return kind.removeprefix(_DEFS) if kind.startswith(_DEFS) else ""
