"""Proposes every public act of this life to the outbox, once it has passed the checks of this life.

Each accepted reply is recorded with its conversation at once, because its address is known before it is sent. The
conversations (`.memory/bluesky_conversations.json`) and the waiting posts (rows of `soul.db`) are stored here.
"""

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from adapters.atproto.client import Atproto
from adapters.atproto.reads import resolve_reply_refs
from adapters.atproto.types import Notification, StrongRef, ThreadNode
from common.clock import Clock, iso
from common.constants import PORTABLE_MAX_GRAPHEMES, POST_MAX_BYTES
from common.result import Err
from common.session_keys import THREAD_PREFIX
from common.text.closings import only_acknowledges
from common.text.graphemes import grapheme_len, leading_sentences
from common.text.untrusted import clean
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.conversation import (
    ConversationAnalysis,
    FollowedThread,
    judge_incoming,
)
from modules.lives.bluesky.conversation import analyze_conversation as analyze
from modules.lives.bluesky.policy import PostDecision, plan_case
from modules.lives.bluesky.types import (
    CONVERSATION_STALE_RETENTION_MS,
    ActTerms,
    Aged,
    Concluded,
    Disengaged,
    Pending,
    Problem,
    Published,
    Replied,
    ThreadEvent,
    ThreadSeen,
)
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.record_file import RecordFile
from modules.services.agent.tools.types import Turn
from modules.services.identity.identity import Identity
from modules.services.identity.self_mechanics import SocialMechanics
from modules.services.inbox import received
from modules.services.inbox.received import ReceivedPost
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
    TheirPost,
)
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import STANDS, Intent, ProposedAction, Submitted
from modules.services.relationships import Relationships
from modules.services.work.types import WorkItem


class Conversations:
    """Stores conversations. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._file = RecordFile(path, "conversations", FollowedThread)
        self.notice = self._file.notice

    def get_conversation(self, root_uri: str) -> FollowedThread | None:
        """Return the conversation under a thread root, or None."""
        return self._file.records.get(root_uri)

    def is_over(self, session_key: str) -> bool:
        """Return whether a session is that of a thread whose conversation has ended for us."""
        known = self._file.records.get(session_key.removeprefix(THREAD_PREFIX))
        return session_key.startswith(THREAD_PREFIX) and known is not None and known.state in {"concluded", "stale"}

    def counts(self) -> tuple[int, int]:
        """Return how many conversations are open, and how many are concluded; stale ones are neither."""
        states = Counter(one.state for one in self._file.records.values())
        concluded, stale = states["concluded"], states["stale"]
        return states.total() - concluded - stale, concluded

    def track_conversation(self, root_uri: str, cid: str | None = None) -> FollowedThread:
        """Follow a thread, or record that it came up again."""
        return self._apply(root_uri, ThreadSeen(cid))

    def record_our_reply(self, root_uri: str, *reply_uris: str) -> FollowedThread:
        """Record replies of ours in a thread; the same uri twice counts once."""
        now = self._clock.now()
        return self._apply(root_uri, ThreadSeen(), *(Replied(uri, now) for uri in reply_uris))

    def mark_conversation_concluded(self, root_uri: str, reason: str) -> FollowedThread:
        """Conclude the conversation of a thread, which need not have been followed before."""
        return self._apply(root_uri, ThreadSeen(), Concluded(reason))

    def plan_case(self, post_case: PostCase, mechanics: SocialMechanics) -> PostDecision:
        """Plan what to do about a post whose thread was read, and store the conversation with the resulting changes."""
        now = self._clock.now()
        spoken = self._known(post_case.notification.root.uri).after_all(post_case.events, now)
        judged, reopened = judge_incoming(
            spoken,
            post_case.incoming,
            mechanics,
            agent_did=post_case.own_did,
            is_owner=post_case.is_owner,
            now=now,
        )
        plan = plan_case(post_case, judged)
        left = [Concluded(plan.reason)] if plan.code == "conclude" else []
        self._keep(spoken.after_all([*reopened, post_case.seen, *left], now))
        return plan

    def analyze_conversation(self, root_uri: str, agent_did: str, mechanics: SocialMechanics) -> ConversationAnalysis:
        """Return whether a conversation has run its course."""
        return analyze(self._file.records.get(root_uri), mechanics, agent_did, self._clock.now())

    def sweep(self, agent_did: str, mechanics: SocialMechanics) -> list[FollowedThread]:
        """Conclude the conversations that have run their course; return these, so that they can be reported."""
        over = []
        with self._file.one_save():
            for root_uri, conversation in list(self._file.records.items()):
                if conversation.state in {"concluded", "stale"}:
                    continue
                analysis = self.analyze_conversation(root_uri, agent_did, mechanics)
                events: list[ThreadEvent] = [Disengaged(analysis.disengaged_participants)]
                if analysis.should_conclude:
                    events.append(Concluded(analysis.reason, by_silence=analysis.by_silence))
                after = self._apply(root_uri, *events)
                if after.state == "concluded":
                    over.append(after)
        return over

    def cleanup_old_conversations(self) -> None:
        """Mark old conversations as stale and delete the oldest."""
        now = self._clock.now()
        kept = {root_uri: one for root_uri, one in self._file.records.items() if not one.is_expired(now)}
        self._file.records = {root_uri: one.after(Aged(), now) for root_uri, one in kept.items()}
        self._file.rest["lastCleanup"] = iso(now)
        self._file.save()

    def _apply(self, root_uri: str, *events: ThreadEvent) -> FollowedThread:
        """Store the conversation as it is after `events`."""
        return self._keep(self._known(root_uri).after_all(events, self._clock.now()))

    def _known(self, root_uri: str) -> FollowedThread:
        """Return the conversation under a thread root; a new one if there is none."""
        now = self._clock.now()
        return self._file.records.get(root_uri) or FollowedThread(
            root_uri=root_uri, first_seen=now, last_checked=now, source="notification"
        )

    def _keep(self, conversation: FollowedThread) -> FollowedThread:
        if self._file.records.get(conversation.root_uri) != conversation:
            self._file.records[conversation.root_uri] = conversation
            self._file.save()
        return conversation


class PendingPosts:
    """The durable queue of notifications that deserve a look by the model."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def known(self, uris: Sequence[str]) -> set[str]:
        """Return which of these posts were ever stored, whatever became of them."""
        return {one.uri for one in await self._database.run(lambda connection: received.among(connection, uris))}

    async def take_in(
        self, notifications: Sequence[Notification], state: Literal["pending", "dropped"] = "pending"
    ) -> int:
        """Store those that are new; return how many were. Those with the state `dropped` are not handled."""
        now = iso(self._clock.now())
        posts = [
            ReceivedPost(item.uri, item.root.uri, item.author.did, _payload(item), item.indexed_at, now, state)
            for item in notifications
        ]
        return await self._database.run(lambda connection: received.insert(connection, posts)) if posts else 0

    async def has_reached_us(self, uri: str) -> bool:
        """Return whether a post was stored as a notification, and is still kept."""
        return await self._database.run(lambda connection: received.get(connection, uri)) is not None

    async def waiting(self) -> list[Pending]:
        """Return the posts that still wait and can be read, oldest first."""
        rows = await self._database.run(received.waiting)
        read = ((row, _notification(row.payload)) for row in rows)
        return [Pending(post, row.received_at) for row, post in read if post is not None]

    async def read(self, item: WorkItem) -> Pending | None:
        """Return the post of a row of work, with the earlier ones settled with it; None if it cannot be read."""
        uris = [item.key, *item.payload.get("earlier", ())]
        rows = await self._database.run(lambda connection: received.among(connection, uris))
        posts = {row.uri: post for row in rows if (post := _notification(row.payload))}
        if (post := posts.pop(item.key, None)) is None:
            return None
        row = next(row for row in rows if row.uri == item.key)
        return Pending(post, row.received_at, tuple(posts.values()), waits=row.state == "pending")

    async def unreadable(self) -> list[str]:
        """Return the uris of the posts that wait and cannot be read, oldest first."""
        rows = await self._database.run(received.waiting)
        return [row.uri for row in rows if _notification(row.payload) is None]

    async def settle(self, uris: Sequence[str], state: Literal["handled", "dropped"], outcome: str) -> None:
        """Mark posts as handled or dropped; `outcome` says how."""
        await self._database.run(lambda connection: received.settle(connection, uris, state, outcome))

    async def forget_before(self, moment: datetime) -> int:
        """Delete what was handled before `moment`; return the number of deleted rows."""
        return await self._database.run(lambda connection: received.forget_before(connection, moment))


@dataclass(frozen=True, slots=True)
class Tidying:
    """Ends the conversations that are over, and deletes what is no longer needed."""

    conversations: Conversations
    relationships: Relationships
    pending: PendingPosts
    identity: Identity
    journal: Journal
    clock: Clock
    atproto: Atproto

    async def run(self) -> None:
        """Tidy once. Raises `StorageError`, or `Transient` if the database is briefly out of reach."""
        for over in self.conversations.sweep(self.atproto.did, self.identity.extract().social_mechanics):
            summary = f"The conversation with @{over.root_author_handle or 'somebody'} is over"
            reason = over.conclusion_reason or ""
            await self.journal.record(
                Entry("decision", "heartbeat", summary, line="social", reason=reason, trigger_uri=over.root_uri)
            )
        self.conversations.cleanup_old_conversations()
        await self.relationships.prune_stale()
        await self.pending.forget_before(self.clock.now() - timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS))


def _payload(notification: Notification) -> dict[str, Any]:
    """Return the stored form. The key `reason` is older than the field `kind`, and rows of earlier versions have it."""
    data = dataclasses.asdict(notification)
    data["reason"] = data.pop("kind")
    return data


def _notification(stored: dict[str, Any]) -> Notification | None:
    """Return the notification from its stored form; None if a part of it is missing or has a wrong type."""
    try:
        return _notifications().validate_python({**stored, "kind": stored.get("reason")})
    except ValidationError:
        return None


@cache
def _notifications() -> TypeAdapter[Notification]:
    # NOTE(self): building it takes time, and a start must not wait for it.
    return TypeAdapter(Notification)


SELF_CHECK = "Self-check: converting low-value reply to like"
LIKE_INSTEAD = "A like instead of a reply"
_OWN_CHAIN = 6
"""How many replies of ours, each below the one before, are found below a post."""
_NOT_OWN = Problem("Not Your Record", "not a record of ours")


@dataclass(slots=True, kw_only=True)
class Publisher:
    """Turns proposed actions into intents. Blocked and held acts are returned with a reason, never as an exception."""

    atproto: Atproto
    outbox: Outbox
    pending: PendingPosts
    conversations: Conversations
    journal: Journal
    identity: Identity

    async def post(
        self,
        text: str,
        terms: ActTerms,
        *,
        pictures: Sequence[AttachedPicture] = (),
        replies: AllowedReplies | Literal["as usual"] = "as usual",
        scheduled_for: datetime | None = None,
        replaces: Intent | None = None,
    ) -> Published:
        """Propose a post of our own, with prepared pictures (`Pictures.attach`).

        `replies`: who may reply to it; "as usual" is what our account chose on Bluesky for all its posts. It is sent at
        `scheduled_for`, or else as soon as it may be. It takes the place of `replaces`, a waiting post, and keeps its
        pictures and whether it may be quoted.
        """
        text = clean(text, is_ours=True)
        if problem := text_problem(text):
            return refused(problem)
        older = replaces.body if replaces else None
        kept: dict[str, Any] = {} if replies == "as usual" else {"replies": replies}
        if isinstance(older, PostBody):
            pictures, kept = older.pictures, kept | {"may_be_quoted": older.may_be_quoted}
        post = terms.proposed(PostBody(text=text, **_attached(pictures), **kept))
        timed = replace(post, scheduled_for=scheduled_for, replaces=replaces.id if replaces else "")
        return await self._submit(replace(timed, media_id=_media_id(pictures)))

    async def reply(
        self,
        text: str,
        parent: StrongRef,
        terms: ActTerms,
        *,
        root: StrongRef | None,
        pictures: Sequence[AttachedPicture] = (),
        is_unanswered: bool = False,
        adds: bool = False,
        is_asked: bool = False,
        promise: str = "",
    ) -> Published:
        """Propose a reply to `parent`. Empty thanks in a thread where we already spoke become a like; so does a loop.

        `is_unanswered`: the thread was read for this turn, and has no reply of ours under `parent`. The outbox knows
        what was accepted but not sent yet. If there is a reply of ours, one that `adds` to it answers that reply, and
        any other is refused. `is_asked`: the parent asks for something, of which agreement or a sign may be the answer.
        """
        text = clean(text, is_ours=True)
        if problem := text_problem(text):
            return refused(problem)
        if root is None or not is_unanswered:
            read = await self.atproto.get_post_thread(parent.uri, depth=_OWN_CHAIN, parent_height=0)
            if root is None and isinstance(read, Err):
                return Published("blocked", f"the thread could not be read: {read.error}")
            thread = None if isinstance(read, Err) else read.data
            root = root or resolve_reply_refs(parent, thread).root
            answer = self._last_answer(thread)
            parent = answer or parent
            if problem := await self._repeats(text, parent, terms, is_answered=answer is not None, adds=adds):
                return refused(problem)
        self.conversations.track_conversation(root.uri, cid=root.cid)
        refs = {"parent": RecordRef(uri=parent.uri, cid=parent.cid), "root": RecordRef(uri=root.uri, cid=root.cid)}
        body = ReplyBody(text=text, promise=promise, **refs, **await self._their_post(parent), **_attached(pictures))
        action = replace(terms.proposed(body), media_id=_media_id(pictures))
        if not is_asked and self.has_spoken(root) and only_acknowledges(text):
            why = "we already spoke in this thread and this reply only closes it"
            return await self._like_instead(SELF_CHECK, action, parent, root, why)
        submitted = await self.outbox.submit(action)
        if submitted.advice.code == "like_instead":
            return await self._like_instead(LIKE_INSTEAD, action, parent, root, submitted.advice.reason)
        published = self.published(submitted)
        if published.status == "accepted":
            self.conversations.record_our_reply(root.uri, published.uri)
            await self._leave_if_long(action, parent, root)
        return replace(published, ends=submitted.advice.code == "silence")

    async def answer_request(self, text: str, to: Notification, *, ends: bool, forgets: bool) -> Published:
        """Propose a reply to a request about the author's own data, ahead of the pace and without checks of this life.

        `ends`: it ends the conversation, if nobody else is in it; `forgets`: it confirms that the author is forgotten.
        """
        refs = {"parent": RecordRef(uri=to.uri, cid=to.cid), "root": RecordRef(uri=to.root.uri, cid=to.root.cid)}
        last = {"is_last_word": True} if forgets else {}
        body = ReplyBody(text=clean(text), about_rights=True, **last, **refs)
        once = f"request:{hashlib.sha256(to.uri.encode()).hexdigest()[:16]}"
        published = await self._submit(ProposedAction(body, once=once, cause_id=to.uri, urgent=True))
        if published.status == "accepted":
            self.conversations.track_conversation(to.root.uri, cid=to.root.cid)
            self.conversations.record_our_reply(to.root.uri, published.uri)
        if ends and self.is_between(to.root, to.author.did):
            self.conversations.mark_conversation_concluded(to.root.uri, "the author asked for an end")
        return published

    async def like(self, subject: StrongRef, terms: ActTerms) -> Published:
        """Propose a like."""
        body = LikeBody(uri=subject.uri, cid=subject.cid, **await self._their_post(subject))
        return await self._submit(terms.proposed(body))

    async def repost(self, subject: StrongRef, terms: ActTerms) -> Published:
        """Propose a repost."""
        body = RepostBody(uri=subject.uri, cid=subject.cid, **await self._their_post(subject))
        return await self._submit(terms.proposed(body))

    async def follow(self, body: FollowBody, terms: ActTerms) -> Published:
        """Propose a follow."""
        return await self._submit(terms.proposed(body))

    async def delete(self, body: DeleteBody, terms: ActTerms) -> Published:
        """Propose to delete a record of our own (a post, a follow)."""
        if not body.uri.startswith(f"at://{self.atproto.did}/"):
            return refused(_NOT_OWN)
        return await self._submit(terms.proposed(body))

    async def _their_post(self, subject: StrongRef) -> dict[str, TheirPost]:
        """Return the field of a body that shows the owner which post it is about; none for a post that we received.

        If the post cannot be read now, the owner is shown its address instead.
        """
        if await self.pending.has_reached_us(subject.uri):
            return {}
        found = await self.atproto.get_posts([subject.uri])
        if isinstance(found, Err) or not found.data:
            return {}
        return {"theirs": TheirPost(handle=found.data[0].author.handle, text=found.data[0].text)}

    async def made_before(self, kind: IntentKind, turn: Turn) -> str:
        """Return how the act of this kind stands that the turn's cause led to before the turn was begun anew, or ""."""
        if turn.made is None or not turn.cause_id:
            return ""
        accepted = await self.outbox.accepted(turn.cause_id, kind)
        return next((STANDS[one.outcome] for one in accepted if one.id not in turn.made), "")

    async def conclude(
        self,
        root: StrongRef,
        reason: str,
        *,
        like: StrongRef | None,
        terms: ActTerms,
        must_like: bool = False,
    ) -> Published:
        """Leave a conversation with a like under these terms, if one is given, so that nobody is ghosted.

        With `must_like`, the conversation goes on if the post has no like of ours and may not get one; the result is
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

    def _last_answer(self, post: ThreadNode | None) -> StrongRef | None:
        """Return our reply to a post, or the last one in the chain of our replies below it; None if there is none."""
        own = next((one for one in post.replies if one.post.author.did == self.atproto.did), None) if post else None
        return (self._last_answer(own) or own.post.ref) if own else None

    async def _repeats(
        self, text: str, parent: StrongRef, terms: ActTerms, *, is_answered: bool, adds: bool
    ) -> Problem | None:
        """Return why no further reply is allowed under `parent`, which is our own if `is_answered`; None if one is."""
        if not adds:
            about = {"uri": parent.uri}
            return Problem("Answered Already", "the post has a reply of ours", about) if is_answered else None
        for one in await self.outbox.by_target("reply", parent.uri):
            is_same = isinstance(one.body, ReplyBody) and one.body.text == text
            if one.is_unsent and one.cause_id == terms.cause_id and not is_same:
                return Problem("Addition Waits", "what is to stand above it has not left yet")
        return None

    def has_spoken(self, root: StrongRef) -> bool:
        """Return whether we have replied in this thread before."""
        conversation = self.conversations.get_conversation(root.uri)
        return conversation is not None and conversation.our_reply_count > 0

    def is_between(self, root: StrongRef, did: str) -> bool:
        """Return whether we spoke in this thread, and nobody but that account did."""
        known = self.conversations.get_conversation(root.uri)
        return known is not None and self.has_spoken(root) and not known.participants.keys() - {did, self.atproto.did}

    async def _leave_if_long(self, action: ProposedAction, parent: StrongRef, root: StrongRef) -> None:
        """Like the post that was answered and end the conversation, if the answer reached one of its limits.

        Conversations with the owner have no limit, and a reopened conversation gets no second like.
        """
        if action.urgent:
            return
        known = self.conversations.get_conversation(root.uri)
        like = parent if known is None or not known.reengagement_count else None
        mechanics = self.identity.extract().social_mechanics
        analysis = self.conversations.analyze_conversation(root.uri, self.atproto.did, mechanics)
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
        """Return the result of a submission in the form that the tools of a turn use."""
        intent = submitted.intent
        if not submitted.accepted:
            return Published("blocked", submitted.reason, intent_id=intent.id)
        uri = "" if intent.kind == "delete" else record_uri(self.atproto.did, intent)
        found = Published("accepted", submitted.reason, uri, intent.id, wait=submitted.wait, number=submitted.number)
        found = replace(found, is_change=submitted.is_change)
        return replace(found, status="held") if submitted.held else found


def _attached(pictures: Sequence[AttachedPicture]) -> dict[str, tuple[AttachedPicture, ...]]:
    """Return pictures as a field of a body; no field if there are none, so that the stored form stays the same."""
    return {"pictures": tuple(pictures)} if pictures else {}


def _media_id(pictures: Sequence[AttachedPicture]) -> str | None:
    return "+".join(picture.sha256 for picture in pictures) or None


def refused(problem: Problem) -> Published:
    """Return the result of an act that this life itself refused."""
    return Published("blocked", problem.reason, problem=problem)


def text_problem(text: str, most: int = PORTABLE_MAX_GRAPHEMES) -> Problem | None:
    """Return why `text` cannot be a post of at most `most` characters, or None if it can."""
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
