"""Writes to Bluesky: posts, likes, reposts, follows, deletions and our own records.

Every record is written by `putRecord` under a key that we choose, a timestamp identifier (TID). With the same key,
content and time it is the same record, so a write whose outcome is unknown can be repeated safely.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from adapters.atproto import convert, records
from adapters.atproto.reads import Reader
from adapters.atproto.richtext import detect_mentions, detect_urls, parse_bsky_post_url
from adapters.atproto.types import Blob, Card, PostImage, ReplyRefs, StrongRef
from common.clock import Clock, iso
from common.result import GONE, ApiResult, Err, Ok, answering

if TYPE_CHECKING:
    from adapters.atproto.xrpc import Xrpc


_ALPHABET = "234567abcdefghijklmnopqrstuvwxyz"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK_BITS = 10
_TIME_BITS = 53
_LENGTH = 13
_TID = re.compile(r"[234567a-j][234567a-z]{12}")


def tid_for(created_at: datetime, intent_id: str) -> str:
    """Return the 13-character key of an intent: its microsecond, and a clock id hashed from the intent's id.

    Raises:
        ValueError: `created_at` is before 1970, or too late for the format.

    """
    digest = hashlib.sha256(intent_id.encode()).digest()
    return _encode(_microseconds(created_at), int.from_bytes(digest[:2]) % (1 << _CLOCK_BITS))


def is_tid(text: str) -> bool:
    """Return whether `text` is a well-formed TID."""
    return _TID.fullmatch(text) is not None


def tid_time(text: str) -> datetime | None:
    """Return the time that a key encodes; None if it is not a TID."""
    if not is_tid(text):
        return None
    number = sum(_ALPHABET.index(letter) << 5 * place for place, letter in enumerate(reversed(text)))
    return _EPOCH + timedelta(microseconds=number >> _CLOCK_BITS)


class TidSource:
    """New keys for writes that have no intent: always rising, even if the clock stands still or is set back."""

    def __init__(self) -> None:
        self._last = -1
        self._clock_id = secrets.randbelow(1 << _CLOCK_BITS)

    def next(self, now: datetime) -> str:
        self._last = max(_microseconds(now), self._last + 1)
        return _encode(self._last, self._clock_id)


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _encode(microseconds: int, clock_id: int) -> str:
    if not 0 <= microseconds < 1 << _TIME_BITS:
        message = f"{microseconds} microseconds since 1970 do not fit a TID"
        raise ValueError(message)
    number = microseconds << _CLOCK_BITS | clock_id
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in reversed(range(_LENGTH)))


# NOTE(self): each handle costs a spaced request; if a post mentions more accounts, only the first ones are linked.
_MAX_MENTIONS_RESOLVED = 10


class Writer(Reader):
    """The writing calls. `rkey` and `created_at` make an act repeatable; without them, each call is a new act."""

    def __init__(self, xrpc: Xrpc, clock: Clock, languages: tuple[str, ...]) -> None:
        super().__init__(xrpc, clock)
        self._languages = languages
        self._tids = TidSource()

    @answering
    async def create_post(
        self,
        text: str,
        reply_to: ReplyRefs | None = None,
        images: Sequence[PostImage] = (),
        *,
        card: Card | None = None,
        replies: Sequence[str] | None = None,
        may_be_quoted: bool = True,
        rkey: str | None = None,
        created_at: datetime | None = None,
    ) -> ApiResult[StrongRef]:
        """Post, or reply. Links, mentions and tags are found in the text; a link to a post becomes a quote.

        A `card` is shown if there are neither images nor a quote. `replies` are the names of `records.REPLY_RULES` by
        which others may reply, or the uris of lists, written together with the post; None: everybody. A text that is
        too long is refused here (kind `invalid`), with the count. Nothing is posted while a mention cannot be resolved.
        """
        if problem := records.post_problem(text, images):
            return Err(problem, kind="invalid")
        moment = created_at or self._clock.now()
        record = records.post_record(
            text,
            created_at=moment,
            languages=self._languages,
            did_map=await self._mentioned_dids(text),
            reply=reply_to,
            images=images,
            quote=await self._quoted(text),
            card=card,
        )
        if replies is None and may_be_quoted:
            return await self._put(records.POST, record, rkey)
        key = rkey or self._tids.next(moment)
        uri = f"at://{self.did}/{records.POST}/{key}"
        gates = [] if replies is None else [(records.THREADGATE, records.threadgate_record(uri, replies, moment))]
        gates += [] if may_be_quoted else [(records.POSTGATE, records.postgate_record(uri, moment))]
        return await self._create_gated(record, gates, key)

    @answering
    async def allow_replies(
        self, post_uri: str, replies: Sequence[str] | None, *, created_at: datetime | None = None
    ) -> ApiResult[None]:
        """Set who may reply in the thread that begins with our post; `replies` as in `create_post`.

        Replies that were hidden there stay hidden. Repeating it changes nothing.
        """
        gate = _gate_of(post_uri)
        if not gate or gate.repo != self.did:
            return Err(f"not a post of ours: {post_uri}", kind="invalid")
        uri = f"at://{gate.repo}/{gate.collection}/{gate.rkey}"
        before = (await self.get_record(uri)).or_raise()
        hidden = before.value.get("hiddenReplies") if before else None
        if replies is None and not hidden:
            return await self.delete_post(uri)
        record = records.threadgate_record(post_uri, replies, created_at or self._clock.now())
        record |= {"hiddenReplies": hidden} if hidden else {}
        (await self._put(records.THREADGATE, record, gate.rkey)).or_raise()
        return Ok(None)

    @answering
    async def allowed_replies(self, post_uri: str) -> ApiResult[tuple[str, ...] | None]:
        """Return who may reply in the thread that begins with our post, in the form of `allow_replies`."""
        gate = _gate_of(post_uri)
        if not gate:
            return Err(f"not a post of ours: {post_uri}", kind="invalid")
        found = (await self.get_record(f"at://{gate.repo}/{gate.collection}/{gate.rkey}")).or_raise()
        return Ok(records.replies_allowed_by(found.value) if found else None)

    @answering
    async def _create_gated(
        self, record: records.WireRecord, gates: Sequence[tuple[str, records.WireRecord]], rkey: str
    ) -> ApiResult[StrongRef]:
        """Write a post and its gates in one step. If the post exists already the outcome is unknown: look first."""
        writes = [
            {"$type": "com.atproto.repo.applyWrites#create", "collection": collection, "rkey": rkey, "value": value}
            for collection, value in ((records.POST, record), *gates)
        ]
        body = {"repo": self.did, "writes": writes}
        answer = (await self._xrpc.procedure("com.atproto.repo.applyWrites", body, write=True)).or_raise()
        results = answer.get("results")
        ref = convert.strong_ref(results[0]) if isinstance(results, list) and results else None
        return Ok(ref) if ref else Err("the write's answer lacks uri and cid", kind="unknown_outcome")

    async def like_post(
        self, uri: str, cid: str, *, rkey: str | None = None, created_at: datetime | None = None
    ) -> ApiResult[StrongRef]:
        """Like a post."""
        return await self._put_subject(records.LIKE, StrongRef(uri, cid), rkey, created_at)

    async def repost(
        self, uri: str, cid: str, *, rkey: str | None = None, created_at: datetime | None = None
    ) -> ApiResult[StrongRef]:
        """Repost a post."""
        return await self._put_subject(records.REPOST, StrongRef(uri, cid), rkey, created_at)

    async def follow_user(
        self, did: str, *, rkey: str | None = None, created_at: datetime | None = None
    ) -> ApiResult[StrongRef]:
        """Follow an account, by DID."""
        return await self._put(records.FOLLOW, records.follow_record(did, created_at or self._clock.now()), rkey)

    async def delete_post(self, uri: str) -> ApiResult[None]:
        """Delete a record of ours; it is no error if it is already gone."""
        at = records.parse_at_uri(uri)
        if not at or at.repo not in {self.did, self.handle}:
            return Err(f"not a record of ours: {uri}", kind="invalid")
        body = {"repo": self.did, "collection": at.collection, "rkey": at.rkey}
        answer = await self._xrpc.procedure("com.atproto.repo.deleteRecord", body, write=True)
        return answer if isinstance(answer, Err) else Ok(None)

    async def put_own_record(
        self, collection: str, record: records.WireRecord, *, swap: str | None, is_public: bool = True
    ) -> ApiResult[StrongRef]:
        """Replace our record `self` of `collection` if its cid is still `swap` (None: there is none).

        If it is not, the `Err` is a `ServiceErr` named `InvalidSwap`. A record that is not `is_public` is not meant for
        people, and is never blocked.
        """
        body = {
            "repo": self.did,
            "collection": collection,
            "rkey": "self",
            "record": {"$type": collection, **record},
            "swapRecord": swap,
        }
        return await self._put_body(body, is_public=is_public)

    @answering
    async def upload_blob(self, data: bytes, mime: str) -> ApiResult[Blob]:
        """Upload a file; the server keeps it only if a record refers to it within minutes."""
        answer = (await self._xrpc.upload("com.atproto.repo.uploadBlob", data, mime)).or_raise()
        blob = convert.blob(convert.object_of(answer, "blob"))
        return Ok(blob) if blob else Err("the upload's answer lacks the content hash", kind="transient")

    async def update_seen_notifications(self) -> ApiResult[None]:
        """Mark all notifications up to now as seen."""
        body = {"seenAt": iso(self._clock.now())}
        answer = await self._xrpc.procedure("app.bsky.notification.updateSeen", body, write=False)
        return answer if isinstance(answer, Err) else Ok(None)

    async def _put_subject(
        self, collection: str, subject: StrongRef, rkey: str | None, created_at: datetime | None
    ) -> ApiResult[StrongRef]:
        if not subject.uri.startswith("at://") or not subject.cid:
            return Err(f"not a post's uri and cid: {subject.uri} {subject.cid}", kind="invalid")
        record = records.subject_record(collection, subject, created_at or self._clock.now())
        return await self._put(collection, record, rkey)

    async def _put(self, collection: str, record: records.WireRecord, rkey: str | None) -> ApiResult[StrongRef]:
        key = rkey or self._tids.next(self._clock.now())
        return await self._put_body({"repo": self.did, "collection": collection, "rkey": key, "record": record})

    @answering
    async def _put_body(self, body: records.WireRecord, *, is_public: bool = True) -> ApiResult[StrongRef]:
        answer = (
            await self._xrpc.procedure("com.atproto.repo.putRecord", body, write=True, is_public=is_public)
        ).or_raise()
        ref = convert.strong_ref(answer)
        return Ok(ref) if ref else Err("the write's answer lacks uri and cid", kind="unknown_outcome")

    async def _mentioned_dids(self, text: str) -> dict[str, str]:
        handles = list(dict.fromkeys(span.value for span in detect_mentions(text)))[:_MAX_MENTIONS_RESOLVED]
        resolved = [(handle, (await self.resolve_handle(handle)).or_else("", *GONE)) for handle in handles]
        return {handle: did for handle, did in resolved if did}

    async def _quoted(self, text: str) -> StrongRef | None:
        """Return the first linked post that can be found; None if there is none."""
        for span in detect_urls(text):
            link = parse_bsky_post_url(span.value)
            did = await self._did_of(link[0]) if link else None
            if link and did:
                found = await self.get_record(f"at://{did}/{records.POST}/{link[1]}")
                if not isinstance(found, Err) and found.data and found.data.cid:
                    return StrongRef(found.data.uri, found.data.cid)
        return None

    async def _did_of(self, actor: str) -> str | None:
        if actor.startswith("did:"):
            return actor
        found = await self.resolve_handle(actor)
        return None if isinstance(found, Err) else found.data


def _gate_of(post_uri: str) -> records.AtUri | None:
    """Return the uri of the record of who may reply to a post; None if it is not a post."""
    post = records.parse_at_uri(post_uri)
    return records.AtUri(post.repo, records.THREADGATE, post.rkey) if post and post.collection == records.POST else None
