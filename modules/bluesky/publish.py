"""From a wish to an intent: the checks that every public act of this life passes before the outbox sees it.

Each accepted reply is recorded with its conversation at once: its address is known before it is sent.
"""

from __future__ import annotations

from adapters.atproto.client import Atproto
from adapters.atproto.types import StrongRef
from common.constants import PORTABLE_MAX_GRAPHEMES, POST_MAX_BYTES
from common.result import Err
from common.text.closings import is_low_value_closing
from common.text.graphemes import grapheme_len, leading_sentences
from modules.bluesky.conversations import Conversations
from modules.bluesky.courier import record_uri
from modules.bluesky.relationships import Relationships
from modules.bluesky.types import Published
from modules.foreign_text import clean
from modules.journal.journal import Journal
from modules.journal.types import Entry
from modules.outbox.outbox import Outbox
from modules.outbox.types import Draft, Submitted

SELF_CHECK = "Self-check: converting low-value reply to like"


class Publisher:
    """Turns wishes into intents. Blocked acts come back with a reason, never as an exception."""

    def __init__(
        self,
        *,
        atproto: Atproto,
        outbox: Outbox,
        conversations: Conversations,
        relationships: Relationships,
        journal: Journal,
    ) -> None:
        self._atproto = atproto
        self._outbox = outbox
        self._conversations = conversations
        self._relationships = relationships
        self._journal = journal

    async def post(self, text: str, *, cause_id: str, urgent: bool = False) -> Published:
        """A post of our own."""
        text = clean(text)
        if problem := text_problem(text):
            return Published("blocked", problem)
        return self._published(
            await self._outbox.submit(Draft("post", "", {"text": text}, text=text, cause_id=cause_id, urgent=urgent))
        )

    async def reply(
        self, text: str, parent: StrongRef, *, root: StrongRef | None, cause_id: str | None, urgent: bool = False
    ) -> Published:
        """A reply to `parent`. Empty thanks in a thread where we already spoke become a like."""
        text = clean(text)
        if problem := text_problem(text):
            return Published("blocked", problem)
        if await self._answered(parent.uri):
            return Published("blocked", "this post already has a reply of yours; never answer a post twice")
        if root is None:
            refs = await self._atproto.get_reply_refs(parent.uri, parent.cid)
            if isinstance(refs, Err):
                return Published("blocked", f"the thread could not be read: {refs.error}")
            root = refs.data.root
        self._conversations.track_conversation(root.uri, cid=root.cid)
        if self.has_spoken(root) and is_low_value_closing(text):
            return await self._like_instead(text, parent, root, cause_id)
        body = {
            "text": text,
            "parent": {"uri": parent.uri, "cid": parent.cid},
            "root": {"uri": root.uri, "cid": root.cid},
        }
        published = self._published(
            await self._outbox.submit(Draft("reply", parent.uri, body, text=text, cause_id=cause_id, urgent=urgent))
        )
        if published.status == "accepted":
            self._conversations.record_our_reply(root.uri, published.uri)
            self._relationships.mark_interaction_responded(parent.uri, published.uri)
        return published

    async def like(self, subject: StrongRef, *, cause_id: str | None) -> Published:
        """A like."""
        body = {"uri": subject.uri, "cid": subject.cid}
        published = self._published(await self._outbox.submit(Draft("like", subject.uri, body, cause_id=cause_id)))
        if published.status == "accepted":
            self._relationships.mark_interaction_responded(subject.uri, published.uri)
        return published

    async def repost(self, subject: StrongRef, *, cause_id: str | None) -> Published:
        """A repost."""
        body = {"uri": subject.uri, "cid": subject.cid}
        return self._published(await self._outbox.submit(Draft("repost", subject.uri, body, cause_id=cause_id)))

    async def follow(self, did: str, *, cause_id: str | None) -> Published:
        """A follow."""
        return self._published(await self._outbox.submit(Draft("follow", did, {"did": did}, cause_id=cause_id)))

    async def delete(self, uri: str, *, cause_id: str | None) -> Published:
        """Take back a record of our own (a post, a follow)."""
        if not uri.startswith(f"at://{self._atproto.did}/"):
            return Published("blocked", "only a record of your own can be deleted")
        return self._published(await self._outbox.submit(Draft("delete", uri, {"uri": uri}, cause_id=cause_id)))

    async def conclude(
        self, root: StrongRef, reason: str, *, like: StrongRef | None, cause_id: str | None
    ) -> Published:
        """Leave a conversation: with a like, if one is given, then silence. Nobody is ghosted."""
        published = await self.like(like, cause_id=cause_id) if like else Published("accepted")
        self._conversations.track_conversation(root.uri, cid=root.cid)
        self._conversations.mark_conversation_concluded(root.uri, reason)
        return published

    def has_spoken(self, root: StrongRef) -> bool:
        """Whether we have replied in this thread before."""
        conversation = self._conversations.get_conversation(root.uri)
        return conversation is not None and conversation.our_reply_count > 0

    async def _answered(self, uri: str) -> bool:
        standing = await self._outbox.by_target("reply", uri)
        if any(intent.state in {"pending", "sending", "done"} for intent in standing):
            return True
        return await self._atproto.has_agent_replied_in_thread(uri)

    async def _like_instead(self, text: str, parent: StrongRef, root: StrongRef, cause_id: str | None) -> Published:
        liked = await self.conclude(root, "our reply would only have closed politely", like=parent, cause_id=cause_id)
        await self._journal.record(
            Entry(
                "decision",
                "outbox",
                SELF_CHECK,
                line="queue",
                reason="we already spoke in this thread and the draft only closes it",
                trigger_uri=parent.uri,
                intent_id=liked.intent_id or None,
                data={"draft": text[:80], "root": root.uri, "act": "liked"},
            )
        )
        return Published("liked_instead", SELF_CHECK, liked.uri, liked.intent_id)

    def _published(self, submitted: Submitted) -> Published:
        if not submitted.accepted:
            return Published("blocked", submitted.reason, intent_id=submitted.intent.id)
        uri = "" if submitted.intent.kind == "delete" else record_uri(self._atproto.did, submitted.intent)
        return Published("accepted", submitted.reason, uri, submitted.intent.id)


def text_problem(text: str) -> str:
    """Why `text` cannot be a post, in words that help to mend it; "" if it can."""
    if not text.strip():
        return "the text is empty"
    length = grapheme_len(text)
    if length <= PORTABLE_MAX_GRAPHEMES:
        size = len(text.encode(errors="replace"))
        return f"the text takes {size} bytes, at most {POST_MAX_BYTES} fit: shorten it" if size > POST_MAX_BYTES else ""
    fitting = leading_sentences(text, PORTABLE_MAX_GRAPHEMES)
    advice = f'; only this much of it fits: "{fitting}"' if fitting else ""
    return f"the text has {length} characters, at most {PORTABLE_MAX_GRAPHEMES} fit: shorten it{advice}"
