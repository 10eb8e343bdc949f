"""Carries intents to Bluesky, each under the record key that it was born with."""

from __future__ import annotations

from adapters.atproto.client import Atproto
from adapters.atproto.types import ReplyRefs, StrongRef
from common.clock import parse_iso
from common.result import ApiResult, Err, Ok
from modules.services.outbox.bodies import FollowBody, IntentKind, LikeBody, OpaqueBody, PostBody, ReplyBody, RepostBody
from modules.services.outbox.types import Intent, Sent

UNREADABLE = "its stored body cannot be read, so nothing is sent"

COLLECTIONS: dict[IntentKind, str] = {
    "post": "app.bsky.feed.post",
    "reply": "app.bsky.feed.post",
    "like": "app.bsky.feed.like",
    "repost": "app.bsky.feed.repost",
    "follow": "app.bsky.graph.follow",
}


def record_uri(did: str, intent: Intent) -> str:
    """Where the intent's record stands, or will stand."""
    return f"at://{did}/{COLLECTIONS[intent.kind]}/{intent.rkey}"


class BlueskySender:
    """Sends posts, replies, likes, reposts, follows and deletions."""

    def __init__(self, atproto: Atproto) -> None:
        self._atproto = atproto

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Write the record. The same intent writes the same record, never a second one."""
        if isinstance(intent.body, OpaqueBody):
            return Err(UNREADABLE, "invalid")
        if intent.kind == "delete":
            deleted = await self._atproto.delete_post(intent.target)
            return deleted if isinstance(deleted, Err) else Ok(Sent())
        written = await self._write(intent)
        return written if isinstance(written, Err) else Ok(Sent(written.data.uri, written.data.cid))

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Whether the record is there (for a deletion: whether it is gone)."""
        deletion = intent.kind == "delete"
        found = await self._atproto.get_record(intent.target if deletion else record_uri(self._atproto.did, intent))
        if isinstance(found, Err):
            return found
        if deletion:
            return Ok(None if found.data else Sent())
        return Ok(Sent(found.data.uri, found.data.cid) if found.data else None)

    async def _write(self, intent: Intent) -> ApiResult[StrongRef]:
        created_at = parse_iso(intent.first_sent_at or intent.created_at)
        match intent.body:
            case PostBody(text=text):
                return await self._atproto.create_post(text, rkey=intent.rkey, created_at=created_at)
            case ReplyBody(text=text, parent=parent, root=root):
                refs = ReplyRefs(StrongRef(parent.uri, parent.cid), StrongRef(root.uri, root.cid))
                return await self._atproto.create_post(text, refs, rkey=intent.rkey, created_at=created_at)
            case LikeBody(uri=uri, cid=cid):
                return await self._atproto.like_post(uri, cid, rkey=intent.rkey, created_at=created_at)
            case RepostBody(uri=uri, cid=cid):
                return await self._atproto.repost(uri, cid, rkey=intent.rkey, created_at=created_at)
            case FollowBody(did=did):
                return await self._atproto.follow_user(did, rkey=intent.rkey, created_at=created_at)
            case _:
                return Err(f"an intent of kind {intent.kind} with such a body cannot go to Bluesky", "invalid")
