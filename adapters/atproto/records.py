"""Builds the records that we write: pure functions from values to records. The same input makes the same record."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from adapters.atproto.richtext import build_facets
from adapters.atproto.types import Card, PostImage, ReplyRefs, StrongRef
from common.clock import iso
from common.constants import PORTABLE_MAX_GRAPHEMES, POST_MAX_BYTES
from common.text.graphemes import grapheme_len

MAX_IMAGES_PER_POST = 4
MAX_POST_LANGS = 3

POST = "app.bsky.feed.post"
LIKE = "app.bsky.feed.like"
REPOST = "app.bsky.feed.repost"
FOLLOW = "app.bsky.graph.follow"
THREADGATE = "app.bsky.feed.threadgate"
POSTGATE = "app.bsky.feed.postgate"
PROFILE = "app.bsky.actor.profile"
GENERATOR = "app.bsky.feed.generator"
LIST = "app.bsky.graph.list"
LIST_ITEM = "app.bsky.graph.listitem"
STARTER_PACK = "app.bsky.graph.starterpack"

REPLY_RULES: Mapping[str, str] = {
    "mentioned": f"{THREADGATE}#mentionRule",
    "followers": f"{THREADGATE}#followerRule",
    "following": f"{THREADGATE}#followingRule",
}
"""Rules about who may reply in a thread: our names for them, and the network's."""

_LIST_RULE = f"{THREADGATE}#listRule"

WireRecord = dict[str, Any]

_CURATED_PATHS = {"feed": GENERATOR, "lists": LIST, "starter-pack": STARTER_PACK, "start": STARTER_PACK}
# NOTE(self): a feed or list has a path under its maker's profile, a starter pack has its own path.
_CURATED_URL = re.compile(
    r"(?:(?:https?://)?(?:www\.)?bsky\.app)?/"
    r"(?:profile/([^/\s]+)/(feed|lists)|(starter-pack|start)/([^/\s]+))/([^/?#\s]+)/?"
)
_AT_URI = re.compile(r"at://([^/\s]+)/([^/\s]+)/([^/?#\s]+)")


class AtUri(NamedTuple):
    """The parts of `at://repo/collection/rkey`."""

    repo: str
    collection: str
    rkey: str

    @property
    def uri(self) -> str:
        return f"at://{self.repo}/{self.collection}/{self.rkey}"


def parse_at_uri(uri: str) -> AtUri | None:
    """Return the parts of the uri of a record; None if it is not one."""
    match = _AT_URI.fullmatch(uri)
    return AtUri(*match.groups()) if match else None


def parse_curated(address: str) -> AtUri | None:
    """Return the feed, list or starter pack that an `at://` uri or a link of bsky.app names; None for anything else."""
    if match := _CURATED_URL.fullmatch(address):
        owner, kind, pack, pack_owner, rkey = match.groups()
        return AtUri(owner or pack_owner, _CURATED_PATHS[kind or pack], rkey)
    at = parse_at_uri(address)
    return at if at and at.collection in _CURATED_PATHS.values() else None


def web_url(uri: str) -> str:
    """Return the bsky.app URL of the post with this uri; "" if it is not a post."""
    post = parse_at_uri(uri)
    return f"https://bsky.app/profile/{post.repo}/post/{post.rkey}" if post and post.collection == POST else ""


def post_problem(text: str, images: Sequence[PostImage]) -> str | None:
    """Return why the network would refuse this post, with the amount over the limit; None if it would not."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "the text holds half of a character pair (a lone surrogate)"
    if not text.strip() and not images:
        return "there is nothing to post"
    if (length := grapheme_len(text)) > PORTABLE_MAX_GRAPHEMES:
        return f"the text has {length} characters, {length - PORTABLE_MAX_GRAPHEMES} over {PORTABLE_MAX_GRAPHEMES}"
    if size > POST_MAX_BYTES:
        return f"the text has {size} bytes, {size - POST_MAX_BYTES} over {POST_MAX_BYTES}"
    if len(images) > MAX_IMAGES_PER_POST:
        return f"there are {len(images)} images, the limit is {MAX_IMAGES_PER_POST}"
    return None


def post_record(
    text: str,
    *,
    created_at: datetime,
    languages: Sequence[str],
    did_map: Mapping[str, str],
    reply: ReplyRefs | None = None,
    images: Sequence[PostImage] = (),
    quote: StrongRef | None = None,
    card: Card | None = None,
) -> WireRecord:
    """Return the record of a post. `did_map` resolves the handles in the text; images or a quote replace the card."""
    record: WireRecord = {"$type": POST, "text": text, "createdAt": iso(created_at)}
    if languages:
        record["langs"] = list(languages[:MAX_POST_LANGS])
    if reply:
        record["reply"] = {"root": _ref(reply.root), "parent": _ref(reply.parent)}
    if facets := build_facets(text, did_map):
        record["facets"] = facets
    if embed := _embed(images, quote) or (_card(card) if card else None):
        record["embed"] = embed
    return record


def subject_record(collection: str, subject: StrongRef, created_at: datetime) -> WireRecord:
    """Return the record of a like or a repost."""
    return {"$type": collection, "subject": _ref(subject), "createdAt": iso(created_at)}


def follow_record(did: str, created_at: datetime) -> WireRecord:
    """Return the record of a follow."""
    return {"$type": FOLLOW, "subject": did, "createdAt": iso(created_at)}


def threadgate_record(post_uri: str, replies: Sequence[str] | None, created_at: datetime) -> WireRecord:
    """Return the record of who may reply in the thread that begins with a post: the rules of `REPLY_RULES` by name.

    An `at://` uri among the names is a list and allows its members. None allows everybody.
    """
    gate: WireRecord = {"$type": THREADGATE, "post": post_uri, "createdAt": iso(created_at)}
    if replies is not None:
        rules = [_list_rule(name) if name.startswith("at://") else {"$type": REPLY_RULES[name]} for name in replies]
        gate["allow"] = rules
    return gate


def postgate_record(post_uri: str, created_at: datetime) -> WireRecord:
    """Return the record that forbids quotes of a post."""
    rules = [{"$type": f"{POSTGATE}#disableRule"}]
    return {"$type": POSTGATE, "post": post_uri, "embeddingRules": rules, "createdAt": iso(created_at)}


def replies_allowed_by(gate: WireRecord) -> tuple[str, ...] | None:
    """Return the names of the rules of a thread; None if everybody may reply. Unknown rules keep their wire names."""
    allow = gate.get("allow")
    if not isinstance(allow, list):
        return None
    names = {kind: name for name, kind in REPLY_RULES.items()}
    rules = [rule for rule in allow if isinstance(rule, dict)]
    kinds = [str(rule.get("list") if rule.get("$type") == _LIST_RULE else rule.get("$type")) for rule in rules]
    return tuple(names.get(kind, kind) for kind in kinds)


def _list_rule(uri: str) -> WireRecord:
    return {"$type": _LIST_RULE, "list": uri}


def _embed(images: Sequence[PostImage], quote: StrongRef | None) -> WireRecord | None:
    media = {"$type": "app.bsky.embed.images", "images": [_image(image) for image in images]} if images else None
    record = {"$type": "app.bsky.embed.record", "record": _ref(quote)} if quote else None
    if media and record:
        return {"$type": "app.bsky.embed.recordWithMedia", "record": record, "media": media}
    return media or record


def _card(card: Card) -> WireRecord:
    external = {"uri": card.uri, "title": card.title, "description": card.description}
    return {"$type": "app.bsky.embed.external", "external": external}


def _image(image: PostImage) -> WireRecord:
    blob = image.blob
    wire: WireRecord = {
        "alt": image.alt,
        "image": {"$type": "blob", "ref": {"$link": blob.cid}, "mimeType": blob.mime_type, "size": blob.size},
    }
    if image.width and image.height:
        wire["aspectRatio"] = {"width": image.width, "height": image.height}
    return wire


def _ref(ref: StrongRef) -> WireRecord:
    return {"uri": ref.uri, "cid": ref.cid}
