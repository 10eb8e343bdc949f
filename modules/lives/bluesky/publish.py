"""Proposes every public act of this life to the outbox, once the checks of this life let it pass.

Each accepted reply is recorded with its conversation at once: its address is known before it is sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from adapters.atproto.client import Atproto
from adapters.atproto.types import Notification, StrongRef
from common.constants import PORTABLE_MAX_GRAPHEMES, POST_MAX_BYTES
from common.result import Err
from common.text.closings import only_acknowledges
from common.text.graphemes import grapheme_len, leading_sentences
from common.text.untrusted import clean
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.types import ActTerms, Problem, Published
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.tools.types import Turn
from modules.services.identity.self_mechanics import SocialMechanics
from modules.services.outbox.bodies import (
    AllowedReplies,
    AttachedPicture,
    DeleteBody,
    FollowBody,
    IntentKind,
    LikeBody,
    PostBody,
    RecordRef,
    ReplyBody,
    RepostBody,
)
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import ProposedAction, Submitted
from modules.services.peers.accounts import Relationships

SELF_CHECK = "Self-check: converting low-value reply to like"
LIKE_INSTEAD = "A like instead of a reply"
_ANSWERED_ALREADY = Problem("Answered Already", "the post has a reply of ours")
_NOT_OWN = Problem("Not Your Record", "not a record of ours")


@dataclass(slots=True, kw_only=True)
class Publisher:
    """Turns proposed actions into intents. Blocked and held acts come back with a reason, never as an exception.

    Of a reply, `by_owner` and `hold` are those of `ActTerms`.
    """

    atproto: Atproto
    outbox: Outbox
    conversations: Conversations
    relationships: Relationships
    journal: Journal
    mechanics: Callable[[], SocialMechanics]

    async def post(
        self,
        text: str,
        terms: ActTerms,
        *,
        pictures: Sequence[AttachedPicture] = (),
        replies: AllowedReplies | Literal["as usual"] = "as usual",
        scheduled_for: datetime | None = None,
    ) -> Published:
        """A post of our own, with pictures that were made ready (`Pictures.attach`).

        `replies`: who may reply to it; "as usual" is what our account chose on Bluesky for all its posts. It leaves at
        `scheduled_for`, or else as soon as it may.
        """
        text = clean(text)
        if problem := text_problem(text):
            return refused(problem)
        gate: dict[str, AllowedReplies] = {} if replies == "as usual" else {"replies": replies}
        return await self._submit(
            ProposedAction(
                PostBody(text=text, **_attached(pictures), **gate),
                media_id=_media_id(pictures),
                once=terms.once,
                cause_id=terms.cause_id,
                urgent=terms.urgent,
                by_owner=terms.by_owner,
                own_words=terms.own_words,
                hold=terms.hold,
                scheduled_for=scheduled_for,
            )
        )

    async def reply(
        self,
        text: str,
        parent: StrongRef,
        *,
        root: StrongRef | None,
        pictures: Sequence[AttachedPicture] = (),
        cause_id: str | None,
        urgent: bool = False,
        by_owner: bool = False,
        hold: str = "",
        is_unanswered: bool = False,
    ) -> Published:
        """A reply to `parent`. Empty thanks in a thread where we already spoke become a like, and so does a loop.

        `is_unanswered`: the thread was read for this turn, and no reply of ours stands under `parent`. What was
        accepted and has not left yet is known to the outbox.
        """
        text = clean(text)
        if problem := text_problem(text):
            return refused(problem)
        if not is_unanswered and await self.atproto.has_agent_replied_in_thread(parent.uri):
            return refused(_ANSWERED_ALREADY)
        if root is None:
            found = await self.atproto.get_reply_refs(parent.uri, parent.cid)
            if isinstance(found, Err):
                return Published("blocked", f"the thread could not be read: {found.error}")
            root = found.data.root
        self.conversations.track_conversation(root.uri, cid=root.cid)
        refs = {"parent": RecordRef(uri=parent.uri, cid=parent.cid), "root": RecordRef(uri=root.uri, cid=root.cid)}
        body, media = ReplyBody(text=text, **refs, **_attached(pictures)), _media_id(pictures)
        action = ProposedAction(body, media_id=media, cause_id=cause_id, urgent=urgent, by_owner=by_owner, hold=hold)
        if self.has_spoken(root) and only_acknowledges(text):
            why = "we already spoke in this thread and this reply only closes it"
            return await self._like_instead(SELF_CHECK, action, parent, root, why)
        submitted = await self.outbox.submit(action)
        if submitted.advice.code == "like_instead":
            return await self._like_instead(LIKE_INSTEAD, action, parent, root, submitted.advice.reason)
        published = self.published(submitted)
        if published.status == "accepted":
            self.conversations.record_our_reply(root.uri, published.uri)
            self.relationships.mark_interaction_responded(parent.uri, published.uri)
            await self._leave_if_long(action, parent, root)
        return replace(published, ends=submitted.advice.code == "silence")

    async def answer_request(self, text: str, to: Notification, *, ends: bool) -> Published:
        """A reply to who asked about their own data, sent ahead of the pace: no check of this life holds it back.

        `ends`: the conversation is over with it.
        """
        refs = {"parent": RecordRef(uri=to.uri, cid=to.cid), "root": RecordRef(uri=to.root.uri, cid=to.root.cid)}
        body = ReplyBody(text=clean(text), about_rights=True, **refs)
        once = f"request:{hashlib.sha256(to.uri.encode()).hexdigest()[:16]}"
        published = await self._submit(ProposedAction(body, once=once, cause_id=to.uri, urgent=True))
        if published.status == "accepted":
            self.conversations.track_conversation(to.root.uri, cid=to.root.cid)
            self.conversations.record_our_reply(to.root.uri, published.uri)
        if ends:
            self.conversations.mark_conversation_concluded(to.root.uri, "the author asked for an end")
        if published.status == "accepted":
            self.relationships.mark_interaction_responded(to.uri, published.uri)
        return published

    async def like(self, subject: StrongRef, terms: ActTerms) -> Published:
        """A like."""
        published = await self._act(LikeBody(uri=subject.uri, cid=subject.cid), terms)
        if published.status == "accepted":
            self.relationships.mark_interaction_responded(subject.uri, published.uri)
        return published

    async def repost(self, subject: StrongRef, terms: ActTerms) -> Published:
        """A repost."""
        return await self._act(RepostBody(uri=subject.uri, cid=subject.cid), terms)

    async def follow(self, body: FollowBody, terms: ActTerms) -> Published:
        """A follow."""
        return await self._act(body, terms)

    async def delete(self, body: DeleteBody, terms: ActTerms) -> Published:
        """Take back a record of our own (a post, a follow)."""
        if not body.uri.startswith(f"at://{self.atproto.did}/"):
            return refused(_NOT_OWN)
        return await self._act(body, terms)

    async def _act(self, body: LikeBody | RepostBody | FollowBody | DeleteBody, terms: ActTerms) -> Published:
        return await self._submit(
            ProposedAction(
                body,
                cause_id=terms.cause_id,
                by_owner=terms.by_owner,
                own_words=terms.own_words,
                hold=terms.hold,
            )
        )

    async def made_before(self, kind: IntentKind, turn: Turn) -> bool:
        """Whether an act of this kind came of the owner's request already, before this turn of it: before a restart."""
        if turn.request is None or not turn.cause_id:
            return False
        return any(one.id not in turn.request.made for one in await self.outbox.accepted(turn.cause_id, kind))

    async def conclude(
        self,
        root: StrongRef,
        reason: str,
        *,
        like: StrongRef | None,
        terms: ActTerms,
        must_like: bool = False,
    ) -> Published:
        """Leave a conversation: with a like under these terms, if one is given, then silence. Nobody is ghosted.

        With `must_like` the conversation goes on where the post has no like of ours and may not get one; the answer is
        then `blocked`.
        """
        published = Published("accepted")
        if like:
            published = await self.like(like, terms)
            if must_like and published.status == "blocked":
                if not (await self.outbox.standing("like", like.uri)).active:
                    return published
                published = Published("accepted", published.reason)
        self.conversations.track_conversation(root.uri, cid=root.cid)
        self.conversations.mark_conversation_concluded(root.uri, reason)
        return published

    def has_spoken(self, root: StrongRef) -> bool:
        """Whether we have replied in this thread before."""
        conversation = self.conversations.get_conversation(root.uri)
        return conversation is not None and conversation.our_reply_count > 0

    async def _leave_if_long(self, action: ProposedAction, parent: StrongRef, root: StrongRef) -> None:
        """Like the post that was answered and end the conversation, if the answer to it reached one of its limits.

        Talk with the owner has no limit, and a conversation that somebody takes up again is liked no second time.
        """
        if action.urgent:
            return
        known = self.conversations.get_conversation(root.uri)
        like = parent if known is None or not known.reengagement_count else None
        analysis = self.conversations.analyze_conversation(root.uri, self.atproto.did, self.mechanics())
        if action.cause_id == parent.uri and analysis.cause in {"replies", "depth"}:
            reason = f"auto-concluded after response: {analysis.reason}"
            await self.conclude(root, reason, like=like, terms=ActTerms(action.cause_id, by_owner=action.by_owner))

    async def _like_instead(
        self, summary: str, action: ProposedAction, parent: StrongRef, root: StrongRef, why: str
    ) -> Published:
        terms = ActTerms(action.cause_id, by_owner=action.by_owner, hold=action.hold)
        liked = await self.conclude(root, why, like=parent, terms=terms, must_like=True)
        if liked.status == "blocked":
            return replace(liked, reason=f"{why}; no like: {liked.reason}", ends=True)
        await self.journal.record(
            Entry(
                "decision",
                "outbox",
                summary,
                line="queue",
                reason=why,
                trigger_uri=parent.uri,
                intent_id=liked.intent_id or None,
                data={"draft": action.text[:80], "root": root.uri, "act": "liked"},
            )
        )
        return Published("liked_instead", f"{summary}: {why}", liked.uri, liked.intent_id)

    async def _submit(self, action: ProposedAction) -> Published:
        return self.published(await self.outbox.submit(action))

    def published(self, submitted: Submitted) -> Published:
        """Return what the outbox made of an action, as the tools of a turn take it."""
        intent = submitted.intent
        if not submitted.accepted:
            return Published("blocked", submitted.reason, intent_id=intent.id)
        uri = "" if intent.kind == "delete" else record_uri(self.atproto.did, intent)
        found = Published("accepted", submitted.reason, uri, intent.id, wait=submitted.wait)
        return replace(found, status="held") if submitted.held else found


def _attached(pictures: Sequence[AttachedPicture]) -> dict[str, tuple[AttachedPicture, ...]]:
    """The field of a body; none where there are no pictures, so that the body is stored as it always was."""
    return {"pictures": tuple(pictures)} if pictures else {}


def _media_id(pictures: Sequence[AttachedPicture]) -> str | None:
    return "+".join(picture.sha256 for picture in pictures) or None


def refused(problem: Problem) -> Published:
    """What became of an act that this life refused itself."""
    return Published("blocked", problem.reason, problem=problem)


def text_problem(text: str, most: int = PORTABLE_MAX_GRAPHEMES) -> Problem | None:
    """Return why `text` cannot be a post of at most so many characters, or None if it can."""
    if not text.strip():
        return Problem("Empty Text", "no text")
    length = grapheme_len(text)
    if length <= most:
        size = len(text.encode(errors="replace"))
        if size <= POST_MAX_BYTES:
            return None
        return Problem("Too Many Bytes", f"{size} of {POST_MAX_BYTES} bytes", {"size": size, "most": POST_MAX_BYTES})
    values: dict[str, object] = {"length": length, "most": most}
    reason = f"{length} of {most} characters"
    if fitting := leading_sentences(text, most):
        return Problem("Too Long But This", reason, values | {"fitting": fitting})
    return Problem("Too Long", reason, values)
