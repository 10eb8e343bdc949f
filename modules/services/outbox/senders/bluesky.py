"""Sends intents to Bluesky, posts under the record key of their creation, direct messages at most once.

A post with one link gets a card when it leaves: the title and description that the page itself gives.

Before a second try of a direct message, its words are looked for in the conversation since the newest message that was
known when this one was proposed, without messages that other intents made. One that is found is the one that was sent.
More than one cannot be told apart: then nothing is sent again, and the owner is told.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from adapters.atproto.client import Atproto
from adapters.atproto.richtext import only_link
from adapters.atproto.types import Card, DirectMessage, PostImage, ReplyRefs, StrongRef
from adapters.web.client import WebClient
from common.clock import parse_iso
from common.result import ApiResult, Err, Ok, answering
from common.text.html_text import PageReader
from common.text.untrusted import one_line
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.inbox.messages import message_name
from modules.services.outbox import store
from modules.services.outbox.bodies import (
    AttachedPicture,
    DirectMessageBody,
    FollowBody,
    IntentKind,
    LikeBody,
    OpaqueBody,
    PostBody,
    ReplyBody,
    RepostBody,
    ThreadgateBody,
)
from modules.services.outbox.types import AmbiguousErr, Intent, Sent

CARD_DEADLINE_S = 8.0
CARD_PAGE_MAX_BYTES = 512 * 1024
CARD_TITLE_MAX_CHARS = 300
CARD_DESCRIPTION_MAX_CHARS = 1_000

_HEAD_CHARS = 65_536
_PAGES = ("text/html", "application/xhtml+xml")
_TITLES = ("og:title", "twitter:title", "title")
_DESCRIPTIONS = ("og:description", "twitter:description", "description")


class LinkCards:
    """Makes cards of pages. `redact` removes secrets from the text of a page."""

    def __init__(self, web: WebClient, redact: Callable[[str], str]) -> None:
        self._web = web
        self._redact = redact

    async def card_for(self, text: str) -> Card | None:
        """Return the card of the only link in a text; None if there are none or several, or no page with a title."""
        if not (url := only_link(text)):
            return None
        page = await self._web.fetch(url, kinds=_PAGES, max_bytes=CARD_PAGE_MAX_BYTES, deadline_s=CARD_DEADLINE_S)
        if not page.success:
            return None
        said = said_by_page(page.data.text)
        title = self._shown(said, _TITLES, CARD_TITLE_MAX_CHARS)
        return Card(url, title, self._shown(said, _DESCRIPTIONS, CARD_DESCRIPTION_MAX_CHARS)) if title else None

    def _shown(self, said: dict[str, str], names: tuple[str, ...], most_chars: int) -> str:
        found = (one_line(self._redact(said.get(name, "")), most_chars) for name in names)
        return next((text for text in found if text), "")


def said_by_page(html: str) -> dict[str, str]:
    """Return the `title` and the `meta` elements in the head of a page, by name."""
    reader = _Head()
    reader.feed(html[:_HEAD_CHARS])
    return reader.said


class _Head(PageReader):
    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, str] = {}
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title" and "title" not in self.said
        if tag == "meta":
            given = dict(attrs)
            name, content = given.get("property") or given.get("name"), given.get("content")
            if name and content:
                self.said.setdefault(name.lower(), content)

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.said["title"] = self.said.get("title", "") + data


UNREADABLE = "its stored body cannot be read, so nothing is sent"
_LONG_WAIT = timedelta(minutes=5)
"""A reply that waited for this long leaves only if the other account's post that it answers still takes replies."""

COLLECTIONS: dict[IntentKind, str] = {
    "post": "app.bsky.feed.post",
    "reply": "app.bsky.feed.post",
    "like": "app.bsky.feed.like",
    "repost": "app.bsky.feed.repost",
    "follow": "app.bsky.graph.follow",
    "threadgate": "app.bsky.feed.threadgate",
}


def record_uri(did: str, intent: Intent) -> str:
    """Return the URI that the intent's record has or will have."""
    rkey = intent.target.rpartition("/")[2] if intent.kind == "threadgate" else intent.rkey
    return f"at://{did}/{COLLECTIONS[intent.kind]}/{rkey}"


class PictureKeeper(Protocol):
    """Stores the files of pictures that wait, and records those that were posted."""

    async def load(self, picture: AttachedPicture) -> ApiResult[bytes]:
        """Return the bytes of a picture; an `Err` of kind `invalid` if the file is gone or another."""
        ...

    async def posted(self, intent: Intent, sent: Sent) -> None:
        """Record that the pictures of an intent are on the network. Repeating this changes nothing."""
        ...


def _as_it_is(body: PostBody) -> PostBody:
    return body


class BlueskySender:
    """Sends posts, replies, likes, reposts, follows, deletions, and rules on who may reply in the SOUL's threads.

    Pictures are uploaded when their post leaves, at each try: the same bytes are the same file on the server. Without
    `cards`, posts have no cards. `as_chosen` fills in what a post leaves open.
    """

    def __init__(
        self,
        atproto: Atproto,
        pictures: PictureKeeper,
        cards: LinkCards | None = None,
        as_chosen: Callable[[PostBody], PostBody] = _as_it_is,
    ) -> None:
        self._atproto = atproto
        self._cards = cards
        self._as_chosen = as_chosen
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
        if isinstance(intent.body, ReplyBody) and (refusal := await self._refusal(intent, intent.body.parent.uri)):
            return refusal
        written = (await self._write(intent)).or_raise()
        return Ok(await self._arrived(intent, Sent(written.uri, "record", written.cid)))

    @answering
    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Return the result if the record exists (for a deletion: if it is gone), else `Ok(None)`."""
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

    async def _refusal(self, intent: Intent, parent_uri: str) -> Err | None:
        """Return why another account's post takes no reply any more, after a long wait or an approval.

        Return None if it takes one, or if that is not known.
        """
        waited = parse_iso(intent.sent_at or intent.created_at) - parse_iso(intent.created_at)
        is_fresh = waited < _LONG_WAIT and not intent.by_owner
        if is_fresh or parent_uri.startswith(f"at://{self._atproto.did}/"):
            return None
        parent = await self._atproto.get_post_thread(parent_uri, depth=0, parent_height=0)
        if isinstance(parent, Err):
            return parent if parent.kind == "not_found" else None
        post = parent.data.post
        why = "whoever began the thread does not let us reply in it" if post.is_closed_to_us else ""
        why = "its author blocks us" if post.author.barrier == "blocks us" else why
        return Err(f"{why}: {parent_uri}", "invalid") if why else None

    async def _arrived(self, intent: Intent, sent: Sent) -> Sent:
        if isinstance(intent.body, PostBody | ReplyBody) and intent.body.pictures:
            await self._pictures.posted(intent, sent)
        return sent

    async def _write(self, intent: Intent) -> ApiResult[StrongRef]:
        created_at = parse_iso(intent.first_sent_at or intent.created_at)
        match intent.body:
            case PostBody() | ReplyBody() as body:
                post = self._as_chosen(body) if isinstance(body, PostBody) else None
                return await self._atproto.create_post(
                    body.text,
                    _refs(body),
                    await self._uploaded(body.pictures),
                    card=await self._card(body),
                    replies=post.replies if post else None,
                    may_be_quoted=post.may_be_quoted if post else True,
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
        """Upload the pictures and return them. An upload without an answer is repeated: it is not public yet."""
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


_UNREADABLE = Err("it holds no direct message", "invalid")
_AMBIGUOUS = (
    "{count} messages with these words stand in the conversation, and it is not known which of them this one is"
)


class DirectMessageSender:
    """Sends intents of the kind `direct_message`."""

    def __init__(self, atproto: Atproto, database: Database, journal: Journal, *, owner_did: str) -> None:
        self._atproto = atproto
        self._database = database
        self._journal = journal
        self._owner_did = owner_did
        self._told: set[str] = set()

    @answering
    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Send the message."""
        body = intent.body
        if not isinstance(body, DirectMessageBody):
            return _UNREADABLE
        sent = await self._atproto.send_message(body.conversation_id, body.text, to_owner=body.to == self._owner_did)
        return Ok(_sent(body, sent.or_raise()))

    @answering
    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Return the message of an earlier try that arrived; an `AmbiguousErr` if more than one may be it."""
        found = (await self._standing(intent)).or_raise()
        if len(found) > 1:
            return AmbiguousErr(_AMBIGUOUS.format(count=len(found)), "invalid")
        return Ok(found[0] if found else None)

    @answering
    async def close_duplicates(self, intent: Intent) -> ApiResult[int]:
        """Tell the owner about a message that may have arrived twice; return 0, as no message can be deleted."""
        found = (await self._standing(intent)).or_raise()
        if len(found) > 1 and intent.id not in self._told:
            self._told.add(intent.id)
            reason = _AMBIGUOUS.format(count=len(found))
            summary = "A direct message may have arrived twice"
            await self._journal.record(Entry("error", "outbox", summary, "warn", reason, intent_id=intent.id))
        return Ok(0)

    @answering
    async def _standing(self, intent: Intent) -> ApiResult[tuple[Sent, ...]]:
        body = intent.body
        if not isinstance(body, DirectMessageBody):
            return _UNREADABLE
        found = (await self._atproto.find_sent_messages(body.conversation_id, body.text, body.after_rev)).or_raise()
        others = await self._database.run(
            lambda connection: store.results_in_conversation(connection, body.conversation_id, without=intent.id)
        )
        standing = (_sent(body, message) for message in found)
        return Ok(tuple(sent for sent in standing if sent.uri not in others))


def _sent(body: DirectMessageBody, message: DirectMessage) -> Sent:
    return Sent(message_name(body.conversation_id, message.id), "message", message.rev)
