"""Carries intents to Bluesky, each under the record key that it was born with."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from adapters.atproto.client import Atproto
from adapters.atproto.types import Card, PostImage, ReplyRefs, StrongRef
from common.clock import parse_iso
from common.result import ApiResult, Err, Ok, answering
from modules.services.outbox.bodies import (
    AttachedPicture,
    FollowBody,
    IntentKind,
    LikeBody,
    OpaqueBody,
    PostBody,
    ReplyBody,
    RepostBody,
    ThreadgateBody,
)
from modules.services.outbox.senders.cards import LinkCards
from modules.services.outbox.types import Intent, Sent

UNREADABLE = "its stored body cannot be read, so nothing is sent"
_LONG_WAIT = timedelta(minutes=5)
"""A reply that waited longer than that leaves only after a look at the post that it answers."""

COLLECTIONS: dict[IntentKind, str] = {
    "post": "app.bsky.feed.post",
    "reply": "app.bsky.feed.post",
    "like": "app.bsky.feed.like",
    "repost": "app.bsky.feed.repost",
    "follow": "app.bsky.graph.follow",
    "threadgate": "app.bsky.feed.threadgate",
}


def record_uri(did: str, intent: Intent) -> str:
    """Where the intent's record stands, or will stand."""
    rkey = intent.target.rpartition("/")[2] if intent.kind == "threadgate" else intent.rkey
    return f"at://{did}/{COLLECTIONS[intent.kind]}/{rkey}"


class PictureKeeper(Protocol):
    """Keeps the files of pictures that wait, and records those that were shown."""

    async def load(self, picture: AttachedPicture) -> ApiResult[bytes]:
        """The file of a picture; `Err` of kind `invalid` if it is gone or is another."""
        ...

    async def posted(self, intent: Intent, sent: Sent) -> None:
        """Record that the pictures of an intent stand on the network. The same intent again changes nothing."""
        ...


class BlueskySender:
    """Sends posts, replies, likes, reposts, follows, deletions, and who may reply in a thread of ours.

    Pictures are uploaded when their post leaves, at each try: the same bytes are the same file there. Without
    `cards`, posts have no cards.
    """

    def __init__(self, atproto: Atproto, pictures: PictureKeeper, cards: LinkCards | None = None) -> None:
        self._atproto = atproto
        self._cards = cards
        self._pictures = pictures

    @answering
    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Write the record. The same intent writes the same record, never a second one."""
        if isinstance(intent.body, OpaqueBody):
            return Err(UNREADABLE, "invalid")
        if isinstance(intent.body, ThreadgateBody):
            return Ok(await self._limit_replies(intent, intent.body))
        if intent.kind == "delete":
            (await self._atproto.delete_post(intent.target)).or_raise()
            return Ok(Sent())
        if isinstance(intent.body, ReplyBody) and await self._waited_in_vain(intent, intent.body.parent.uri):
            return Err(f"the post that it answers is gone: {intent.body.parent.uri}", "not_found")
        written = (await self._write(intent)).or_raise()
        return Ok(await self._arrived(intent, Sent(written.uri, "record", written.cid)))

    @answering
    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Whether the record is there (for a deletion: whether it is gone)."""
        if isinstance(intent.body, ThreadgateBody):
            stands = (await self._atproto.allowed_replies(intent.body.uri)).or_raise()
            return Ok(_gated(self._atproto.did, intent) if stands == intent.body.replies else None)
        deletion = intent.kind == "delete"
        found = (
            await self._atproto.get_record(intent.target if deletion else record_uri(self._atproto.did, intent))
        ).or_raise()
        if deletion:
            return Ok(None if found else Sent())
        return Ok(await self._arrived(intent, Sent(found.uri, "record", found.cid)) if found else None)

    async def _limit_replies(self, intent: Intent, body: ThreadgateBody) -> Sent:
        if (await self._atproto.get_record(body.uri)).or_raise() is None:
            return Err(f"the post is gone: {body.uri}", "not_found").or_raise()
        created_at = parse_iso(intent.first_sent_at or intent.created_at)
        (await self._atproto.allow_replies(body.uri, body.replies, created_at=created_at)).or_raise()
        return _gated(self._atproto.did, intent)

    async def _waited_in_vain(self, intent: Intent, parent_uri: str) -> bool:
        """Whether a post of somebody else was deleted while our reply to it waited; no, where nobody can say."""
        waited = parse_iso(intent.sent_at or intent.created_at) - parse_iso(intent.created_at)
        if waited < _LONG_WAIT or parent_uri.startswith(f"at://{self._atproto.did}/"):
            return False
        parent = await self._atproto.get_post_thread(parent_uri, depth=0, parent_height=0)
        return isinstance(parent, Err) and parent.kind == "not_found"

    async def _arrived(self, intent: Intent, sent: Sent) -> Sent:
        if isinstance(intent.body, PostBody | ReplyBody) and intent.body.pictures:
            await self._pictures.posted(intent, sent)
        return sent

    async def _write(self, intent: Intent) -> ApiResult[StrongRef]:
        created_at = parse_iso(intent.first_sent_at or intent.created_at)
        match intent.body:
            case PostBody() | ReplyBody() as body:
                return await self._atproto.create_post(
                    body.text,
                    _refs(body),
                    await self._uploaded(body.pictures),
                    card=await self._card(body),
                    replies=body.replies if isinstance(body, PostBody) else None,
                    may_be_quoted=body.may_be_quoted if isinstance(body, PostBody) else True,
                    rkey=intent.rkey,
                    created_at=created_at,
                )
            case LikeBody(uri=uri, cid=cid):
                return await self._atproto.like_post(uri, cid, rkey=intent.rkey, created_at=created_at)
            case RepostBody(uri=uri, cid=cid):
                return await self._atproto.repost(uri, cid, rkey=intent.rkey, created_at=created_at)
            case FollowBody(did=did):
                return await self._atproto.follow_user(did, rkey=intent.rkey, created_at=created_at)
            case _:
                return Err(f"an intent of kind {intent.kind} with such a body cannot go to Bluesky", "invalid")

    async def _card(self, body: PostBody | ReplyBody) -> Card | None:
        if self._cards is None or isinstance(body, ReplyBody) or body.pictures:
            return None
        return await self._cards.card_for(body.text)

    async def _uploaded(self, pictures: tuple[AttachedPicture, ...]) -> list[PostImage]:
        """The pictures as the service took them. An upload without an answer is done again: it is not public yet."""
        images: list[PostImage] = []
        for picture in pictures:
            data = (await self._pictures.load(picture)).or_raise()
            blob = (await self._atproto.upload_blob(data, picture.mime_type)).or_raise()
            images.append(PostImage(blob, picture.alt, picture.width, picture.height))
        return images


def _gated(did: str, intent: Intent) -> Sent:
    return Sent(record_uri(did, intent))


def _refs(body: PostBody | ReplyBody) -> ReplyRefs | None:
    if isinstance(body, PostBody):
        return None
    return ReplyRefs(StrongRef(body.parent.uri, body.parent.cid), StrongRef(body.root.uri, body.root.cid))
