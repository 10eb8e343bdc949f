"""Handles one waiting post: decides by rule if its thread need not be read, else reads it and asks the model.

A crash at any point leaves the post waiting; an act that was accepted before is found and not repeated. Others who are
named in a post go first: for a moment in a conversation, and with shared work until they answer.
"""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

from cachetools import TTLCache

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor, Notification, Post
from common.clock import Clock
from common.errors import Transient
from common.intervals import Pace
from common.provenance import Importance, Provenance, Trust
from common.result import ApiResult, Err, Ok, answering
from common.text.closings import asks
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.policy import UNKNOWN_CHOICES, is_too_late
from modules.lives.bluesky.publish import Conversations, PendingPosts, Publisher
from modules.lives.bluesky.respond import PostResponder
from modules.lives.bluesky.thread import (
    ThreadAnalysis,
    UnsentReply,
    analyze_thread_view,
    beside_request,
    is_said_by,
    said_line,
)
from modules.lives.bluesky.types import (
    HELD_REPLY,
    POST,
    UNSENT_REPLY,
    ActTerms,
    Incoming,
    LaterTurn,
    Pending,
    Published,
)
from modules.runtime.scheduler.policy import get_agent_jitter, get_peer_delay, peers_before
from modules.services.commitments.writer import ReplyCommitments, contains_promise
from modules.services.experiences import IMPRESSED, DraftExperiences, ExperienceType, NewExperience, Source
from modules.services.identity.identity import Identity, Me
from modules.services.inbox import received
from modules.services.moderation import Moderation
from modules.services.outbox.bodies import ReplyBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import ACTIVE_STATES, Intent
from modules.services.peers.registry import PeerDiscovery
from modules.services.relationships import Relationships
from modules.services.rights.answering import PersonRequests
from modules.services.rights.policy import ASKED, Addressed, Found, may_stand_in_prompt
from modules.services.rights.preferences import Preferences
from modules.services.rituals.rituals import RitualRuns, Rituals
from modules.services.work.limits import PersonTurns, limits_of
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem
from modules.services.workspaces.addresses import linked_repository
from modules.services.workspaces.watched import WatchedWorkspaces

_MOST_SHARED, _SHARED_S = 1_000, 86_400.0
WORK_STEPS = 30
"""How many times as long as in a conversation each of the others goes first with shared work: ten minutes."""


@dataclass(frozen=True, slots=True)
class OthersFirst:
    """Computes the order among those whom a post names; `etiquette` knows which of them are peers."""

    me: Me
    pace: Pace
    clock: Clock
    etiquette: Etiquette
    shared: TTLCache[str, bool] = field(default_factory=lambda: TTLCache(_MOST_SHARED, _SHARED_S))

    def note_shared(self, uri: str) -> None:
        """Note that several share the work of a post: it waits without another turn as long as others are awaited."""
        self.shared[uri] = True

    def first_ms(self, item: Pending, importance: Importance) -> float:
        """Return how many ms others who are named in a post go first; 0 if nobody else is named.

        Peers go in the order that all of them compute. Without peers our name decides; posts by the owner do not wait.
        """
        if not item.names_several:
            return 0.0
        pace, name = self.pace, self.me.bluesky_username
        if peers := self._peers(item):
            root_uri = item.notification.root.uri
            return get_peer_delay(name, peers, root_uri, pace.peer_jitter_min_ms, pace.peer_step_ms)
        if importance == "owner":
            return 0.0
        return get_agent_jitter(self.me.agent_name, pace.peer_jitter_min_ms, pace.peer_jitter_span_ms)

    def later(self, item: Pending, answered: Collection[str]) -> LaterTurn | None:
        """Return which peers do the work of a post before us and are still awaited; None if there are none.

        `answered` are the handles of those who replied, in lower case. Each of the others is awaited for ten minutes at
        most, in case it is gone.
        """
        before = peers_before(self.me.bluesky_username, self._peers(item), item.notification.root.uri)
        awaited = tuple(f"@{one}" for one in before if one not in answered)
        limit_s = (self.pace.peer_jitter_min_ms + len(awaited) * WORK_STEPS * self.pace.peer_step_ms) / 1000
        left_s = limit_s - (self.clock.now() - item.received).total_seconds()
        if not awaited or left_s <= 0:
            return None
        return LaterTurn(awaited, min(left_s, self.pace.notifications_ms / 1000))

    def _peers(self, item: Pending) -> list[str]:
        others = (handle for handle in item.named if handle.lower() != self.me.bluesky_username.lower())
        return [handle for handle in others if self.etiquette.is_peer(Actor("", handle))]


THREAD_DEPTH = 6


@dataclass(slots=True, kw_only=True)
class CaseReader:
    """Reads what a decision about one post rests on: its thread, its author, and the rules of the outbox."""

    me: Me
    atproto: Atproto
    relationships: Relationships
    etiquette: Etiquette
    preferences: Preferences
    moderation: Moderation
    peers: PeerDiscovery
    workspaces: WatchedWorkspaces
    others: OthersFirst
    rituals: Rituals
    outbox: Outbox

    @property
    def own_did(self) -> str:
        return self.atproto.did

    @answering
    async def read_case(self, item: Pending, importance: Importance) -> ApiResult[PostCase]:
        """Read one case with two requests: the post with what is above and below it, and the root.

        What each author allows is read once a day, and so is what our account chose not to see. Accounts in the thread
        that may be other SOULs are noted.
        """
        notification = item.notification
        await self.moderation.refresh()  # first: it says whose labels the thread is read with
        thread = await self._read_thread(notification)
        author_did = notification.author.did
        automated = self.etiquette.is_automated(notification.author)
        incoming = incoming_of(item, thread, is_automated=automated)
        answered = _handles_under(notification, thread)
        trusted = {self.me.owner_did, self.atproto.did}
        is_owner = importance == "owner"
        beside = beside_request(thread, trusted) if is_owner else ()
        alone = is_owner and all(is_said_by(trusted, post) for post in thread.posts if post not in beside)
        quoted = tuple(post.quoted for post in (*thread.posts, *thread.focal_path) if post.quoted)
        present = {author_did, *(post.author.did for post in (*thread.posts, *quoted))}
        muted = await self.preferences.muted(present)
        left_out = muted | (await self.preferences.forgotten(present) - {author_did})
        preferences = await self.preferences.of((present - left_out) | {author_did})
        self.moderation.note(*(post.author for post in (*thread.posts, *quoted)))
        unseen = {post.uri: why for post in (*thread.posts, *quoted) if (why := self.moderation.why_unseen(post))}

        def may_be_shown(post: Post) -> bool:
            who = post.author.did
            return post.uri not in unseen and who not in left_out and may_stand_in_prompt(preferences.get(who))

        def alone_where_unseen(post: Post) -> Post:
            return replace(post, quoted=None) if post.quoted and not may_be_shown(post.quoted) else post

        thread = replace(thread, focal_path=tuple(map(alone_where_unseen, thread.focal_path)))
        shown = tuple(alone_where_unseen(post) for post in thread.posts if may_be_shown(post))
        self.peers.note_posts(shown, self.atproto.did)
        peers = {post.author.did for post in shown if self.etiquette.is_peer(post.author)} - {author_did, *trusted}
        named = (handle for handle in item.named if handle.lower() != self.me.bluesky_username.lower())
        with_peers = bool(peers) or any(self.etiquette.is_peer(Actor("", handle)) for handle in named)
        beside_uris = {post.uri for post in beside}
        hidden = tuple(post for post in shown if post.uri in beside_uris) if alone else ()
        return Ok(
            PostCase(
                item=item,
                thread=replace(thread, posts=tuple(post for post in shown if post not in hidden)),
                own_did=self.atproto.did,
                importance=importance,
                provenance=Provenance.OWNER if alone else Provenance.STRANGER,
                incoming=incoming,
                relationship=await self.relationships.get(notification.author.did),
                advice=await self.etiquette.before_reply(notification, thread.posts),
                preference=preferences.get(author_did),
                unseen=unseen.get(notification.uri, "") if self.moderation.is_known else None,
                is_muted=author_did in muted,
                is_peer=self.etiquette.is_peer(notification.author),
                names_workspace=self.workspaces.is_thread_of_one(notification.root.uri),
                peers=frozenset(peers),
                hidden=hidden,
                among_others=replace(thread, posts=shown) if hidden else None,
                answered=tuple(f"@{one}" for one in item.named if one.lower() in answered),
                github_username=self.me.github_username,
                peers_since=self._peers_since if with_peers else None,
                later=self.others.later(item, answered) if is_owner else None,
                shares_work=notification.uri in self.others.shared,
                ritual=await self.rituals.thread_of(notification),
                unsent=await self._unsent_in(notification.root.uri),
            )
        )

    async def _unsent_in(self, root_uri: str) -> tuple[UnsentReply, ...]:
        """Return our replies in a thread that were not sent yet, oldest first."""
        ours = await self.outbox.at_place(["reply"], root_uri)
        waiting = [one for one in reversed(ours) if one.state in ACTIVE_STATES and one.state != "done"]
        return tuple(UnsentReply(one.target, one.body.public_text) for one in waiting)

    async def _peers_since(self, uri: str) -> list[Post]:
        """Return what peers wrote directly under a post until now; an empty list if that cannot be read."""
        if (read := (await self.atproto.get_post_thread(uri, 1, 0)).or_else(None)) is None:
            return []
        below = [reply.post for reply in read.replies if reply.post.author.did != self.atproto.did]
        by_peers = [post for post in below if self.etiquette.is_peer(post.author)]
        allowed = await self.preferences.readable({post.author.did for post in by_peers})
        seen = (post for post in by_peers if not self.moderation.why_unseen(post))
        return [post for post in seen if post.author.did in allowed]

    async def _read_thread(self, notification: Notification) -> ThreadAnalysis:
        focal = (await self.atproto.get_post_thread(notification.uri, THREAD_DEPTH)).or_raise()
        root_node = None
        if notification.root.uri != notification.uri:
            root_node = (await self.atproto.get_post_thread(notification.root.uri, THREAD_DEPTH, 0)).or_else(None)
        return analyze_thread_view(focal, self.atproto.did, root_node)


def _handles_under(notification: Notification, thread: ThreadAnalysis) -> set[str]:
    """Return the handles of those who replied directly to a post, in lower case."""
    replies = (post for post in thread.posts if post.reply and post.reply.parent.uri == notification.uri)
    return {post.author.handle.lower() for post in replies}


def incoming_of(item: Pending, thread: ThreadAnalysis | None, *, is_automated: bool) -> Incoming:
    """Return a post in the form for a conversation; `thread` is its thread, if that was read."""
    author = item.notification.author
    theirs = {one.uri for one in (*item.earlier, item.notification)}
    before = [post.text for post in thread.focal_path if post.uri not in theirs] if thread else []
    return Incoming(
        did=author.did,
        handle=author.handle,
        display_name=author.display_name,
        text=item.notification.text,
        at=item.indexed,
        depth=thread.depth if thread else 0,
        recent_texts=tuple(before),
        is_automated=is_automated or author.is_bot,
        earlier=tuple(one.text for one in item.earlier),
    )


_GUIDANCE_CHARS, _CONTACT_CHARS, _QUOTE_CHARS = 10, 20, 30


@dataclass(frozen=True, slots=True)
class PostExperiences:
    """Records experiences with posts in `log`."""

    log: DraftExperiences
    relationships: Relationships
    outbox: Outbox
    runs: RitualRuns

    async def note(self, item: Pending, importance: Importance, disposition: Disposition) -> None:
        """Record the experience of a settled post; if the reply waits for the owner's approval, once it was sent."""
        post = item.notification
        if importance == "owner":
            if len(post.text) > _GUIDANCE_CHARS:
                await self.log.record(NewExperience("owner_guidance", "bluesky", post.uri, post.text, trust="owner"))
            return
        kind = await self._type_of(item, disposition)
        if kind is None:
            return
        intent = await self.outbox.get(disposition.intent_id) if disposition.intent_id else None
        said = disposition.reason if kind == "chose_silence" else intent.body.public_text if intent else ""
        source: Source = "ritual" if await self.runs.of_thread(post.root.uri) else "bluesky"
        trust: Trust = "stranger" if importance == "stranger" else "peer"
        author = post.author
        new = NewExperience(kind, source, post.uri, said, author.did, f"@{author.handle}", post.uri, trust)
        await self.log.record(new, disposition.intent_id if disposition.held else None)

    async def _type_of(self, item: Pending, disposition: Disposition) -> ExperienceType | None:
        post = item.notification
        if disposition.act == "left" or (disposition.act == "silent" and not disposition.intent_id):
            # NOTE(self): silence because a rule blocked an act is no choice.
            return "chose_silence"
        if disposition.act != "replied":
            return None
        if kind := IMPRESSED.get(disposition.impression):
            return kind
        known = await self.relationships.get(post.author.did)
        if len(post.text) > _CONTACT_CHARS and (known is None or known.times_written <= 1):
            return "connection_formed"
        if post.kind == "quote" and len(post.text) > _QUOTE_CHARS:
            return "idea_resonated"
        return "helped_someone" if asks(post.text) else "saw_perspective"


_PLANNED = {"like": "liked", "conclude": "concluded", "skip": "skipped", "later": "later"}
_REQUESTED = {"later": "later", "silent": "skipped"}
_DONE_BEFORE = {"reply": "replied", "like": "liked"}
_SUMMARIES = {
    "replied": "Replying to @{}",
    "answered": "Answering what @{} asked about their own data",
    "liked": "Liking instead of replying to @{}",
    "left": "Leaving the conversation with @{}",
    "silent": "Staying silent with @{}",
    "concluded": "No reply to @{}",
    "skipped": "No reply to @{}",
    "dropped": "Giving up on @{}",
    "undecided": "Undecided about @{}",
    "later": "@{} has to wait",
}
_SUMMARIES_OF_CHOSEN = {"liked": "Liking the post of @{}"}
_SUMMARIES_OF_HELD = {
    "replied": "Reply to @{} is waiting for your approval",
    "liked": "Like for @{} is waiting for your approval",
}


@dataclass(kw_only=True)
class ReplyHandler(Handler):
    """Records the commitments in a reply once it was sent. Its rows are the posts that an unsent reply answers."""

    kind: str = HELD_REPLY
    tells = True

    pending: PendingPosts
    outbox: Outbox
    table: WorkTable
    commitments: ReplyCommitments
    reader: CaseReader
    me: Me

    async def note(self, item: Pending, intent_id: str) -> None:
        """Add a row for the reply to a post."""
        if intent := await self.outbox.get(intent_id):
            post, kind = item.notification, HELD_REPLY if intent.state == "held" else UNSENT_REPLY
            payload = {"intent": intent_id, "earlier": [one.uri for one in item.earlier]}
            await self.table.add(NewWork(kind, post.uri, payload, post.author.did, "commitment"))

    async def handle(self, item: WorkItem) -> Disposition:
        intent, post = await self.outbox.get(item.payload["intent"]), await self.pending.read(item)
        if intent is None or post is None or intent.state not in ACTIVE_STATES:
            return Disposition("silent", "not-said")
        if intent.state != "done":
            return Disposition("later", "needs-owner" if intent.state == "held" else "waits")
        await self._take_in(post, intent)
        return Disposition("done", "said")

    async def _take_in(self, item: Pending, intent: Intent) -> None:
        body, post = intent.body, item.notification
        noted, to_uri = (body.promise, body.parent.uri) if isinstance(body, ReplyBody) else ("", post.uri)
        if not (noted or contains_promise(body.preview)):
            return
        heard = await self._heard(item, to_uri)
        await self.commitments.note_reply(
            body.preview,
            to_uri=to_uri,
            noted=noted,
            conversation="\n".join(map(said_line, heard)),
            repo=linked_repository(heard),
            done=("post_bluesky",) if await self.outbox.accepted(post.uri, "post") else (),
            to_owner=intent.by_owner and self.me.is_owner(post.author.did),
        )

    async def _heard(self, item: Pending, to_uri: str) -> Sequence[Post | Notification]:
        """Return what the reply follows, as its thread may be read now; if it is gone, only the stored posts."""
        read = await self.reader.read_case(item, "commitment")
        if isinstance(read, Ok):
            return read.data.heard_before(to_uri)
        if read.kind not in {"not_found", "invalid"}:
            raise Transient(read.error, retry_after=read.retry_after)
        return (*item.earlier, item.notification)


@dataclass(kw_only=True)
class PostHandler(Handler):
    """Handles posts of one kind. `replies` records the commitments in the answers to them.

    Waits are in true seconds here; `handle` converts them to lived seconds for the loop.
    """

    kind: str = POST
    line = "social"

    pending: PendingPosts
    reader: CaseReader
    responder: PostResponder
    publisher: Publisher
    conversations: Conversations
    identity: Identity
    outbox: Outbox
    turns: PersonTurns
    requests: PersonRequests
    others: OthersFirst
    experiences: PostExperiences
    replies: ReplyHandler
    clock: Clock

    async def handle(self, item: WorkItem) -> Disposition:
        post = await self.pending.read(item)
        if post is None:
            return Disposition("dropped", "unreadable", "what was stored of it cannot be read")
        if not post.waits:
            return Disposition("dropped", "settled", "it does not wait any more")
        disposition = await self._carry_out_request(
            post.notification, item.importance, "first"
        ) or await self._too_late(post, item.importance)
        disposition = disposition or self._others_first(post, item.importance)
        # NOTE(self): a request about the author's own data does not wait until the limits of the hour allow a turn.
        if disposition is None and (wait := await self._no_turn(item, post)):
            disposition = await self._carry_out_request(post.notification, item.importance) or wait
        disposition = disposition or await self._decide(post, item.importance)
        return replace(disposition, retry_in_s=self.clock.lived(disposition.retry_in_s))

    async def _no_turn(self, item: WorkItem, post: Pending) -> Disposition | None:
        """Return how long the post has to wait for a turn; None if it need not, like every post of the owner's.

        A post that waits for a rule of the outbox already is not read again before that rule allows an answer.
        """
        if item.importance == "owner":
            return None
        if wait := await self.turns.must_wait(post.notification.author, limits_of(item.importance)):
            return replace(wait, retry_in_s=self.clock.real(wait.retry_in_s))
        if item.outcome != "later":
            return None
        advice = await self.reader.etiquette.before_reply(post.notification, ())
        if advice.act != "later":
            return None
        return Disposition("later", item.outcome, advice.reason, advice.retry_in_s)

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition | None:
        """Return the disposition of an answer from before a crash; None if no accepted intent is an answer."""
        # NOTE(self): a reply that reached a conversation's limit is followed by a like; the reply is the answer.
        intent = next((one for kind in _DONE_BEFORE for one in accepted if one.kind == kind), None)
        if intent is None:
            return None
        post = await self.pending.read(item)
        if post and intent.kind == "reply":
            uri = record_uri(self.reader.own_did, intent)
            self.conversations.record_our_reply(post.notification.root.uri, uri)
        done = await super().finish(item, [intent])
        return done and replace(done, act=_DONE_BEFORE[intent.kind])

    async def _carry_out_request(
        self, post: Notification, importance: Importance, found: Found = "possible"
    ) -> Disposition | None:
        """Carry out a request about the author's own data, or an earlier one for no replies; None if there is none."""
        parent_uri = post.reply.parent.uri if post.reply else ""
        did, handle = post.author.did, post.author.handle
        asked = Addressed(post.uri, did, handle, post.text, importance, parent_uri)
        outcome = await self.requests.carry_out(asked, found)
        if outcome is None:
            return None
        if outcome.code != "answer":
            return Disposition(_REQUESTED[outcome.code], "rights", outcome.reason, outcome.retry_in_s)
        answered = await self.publisher.answer_request(
            outcome.text, post, ends=outcome.ends, forgets="forget" in outcome.kinds
        )
        if answered.status == "blocked":
            return answered.came("silent", f"{outcome.reason}; {answered.reason}", "rights")
        return answered.came("answered", outcome.reason, "rights")

    async def _too_late(self, post: Pending, importance: Importance) -> Disposition | None:
        """Return the disposition of a post that is too old, or None; like it if its author got no response since."""
        if not is_too_late(post.indexed, self.clock.now(), by_owner=importance == "owner"):
            return None
        if requested := await self._carry_out_request(post.notification, importance):
            return requested
        hours = (self.clock.now() - post.indexed) / timedelta(hours=1)
        reason = f"it has waited {hours:.0f} hours; an answer would come too late"
        if await self.outbox.responds_to(post.notification.author.did, post.received):
            return Disposition("dropped", "too-late", f"{reason}; its author got a reply or a like since it came")
        moderation = self.reader.moderation
        await moderation.refresh()
        known = moderation.is_known or importance == "owner"
        if why := moderation.why_unseen(post.notification) if known else UNKNOWN_CHOICES:
            return Disposition("dropped", "too-late", f"{reason}; no like: {why}")
        liked = await self._like(post)
        if liked.status == "blocked":
            return liked.came("dropped", f"{reason}; no like: {liked.reason}", "too-late")
        return liked.came("liked", reason, "too-late")

    def _others_first(self, post: Pending, importance: Importance) -> Disposition | None:
        """Return how long the post has to wait for others whom it names too; None if it need not."""
        others_first = timedelta(milliseconds=self.others.first_ms(post, importance))
        wait_s = (post.received + others_first - self.clock.now()).total_seconds()
        if wait_s <= 0:
            return None
        return Disposition("later", "others-first", "others are addressed too and go first", wait_s)

    async def _decide(self, post: Pending, importance: Importance) -> Disposition:
        """Read the case, plan by rule, and carry the plan out.

        If no model may answer now, a model still checks whether the post contains a request about the author's data.
        """
        uri, read = post.notification.uri, await self.reader.read_case(post, importance)
        if isinstance(read, Err):
            if read.kind not in {"not_found", "invalid"}:
                raise Transient(read.error, retry_after=read.retry_after)
            gone = Disposition("dropped", "gone", f"the post cannot be read any more: {read.error}")
            return await self._carry_out_request(post.notification, importance) or gone
        plan = self.conversations.plan_case(read.data, self.identity.extract().social_mechanics)
        if plan.code == "answer":
            may_ask = (importance != "owner" or self.requests.owner_is_visitor) and not self.requests.asks_nothing(uri)
            async with self.turns.turn(post.notification.author, importance):
                chosen = await self.responder.respond_to(read.data, offers_request=may_ask)
            if chosen.act == ASKED:
                requested = await self._carry_out_request(post.notification, importance, "called")
                chosen = requested or await self.responder.respond_to(read.data, offers_request=False)
            if chosen.act == "later":
                self.others.note_shared(post.notification.uri)
            return replace(chosen, reason=chosen.reason or plan.reason)
        if requested := await self._carry_out_request(post.notification, importance):
            return requested
        disposition = Disposition(_PLANNED[plan.code], plan.code, plan.reason, plan.retry_in_s)
        if not (plan.like or plan.code == "like"):
            return disposition
        liked = await self._like(post)
        return replace(disposition, intent_id=liked.intent_id or None, held=liked.status == "held")

    async def _like(self, post: Pending) -> Published:
        return await self.publisher.like(post.notification.ref, ActTerms(post.notification.uri))

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Record the experience, and the commitments in an answer."""
        if post := await self.pending.read(item):
            await self.experiences.note(post, item.importance, disposition)
            if disposition.act == "replied" and disposition.intent_id:
                await self.replies.note(post, disposition.intent_id)

    def settle(self, connection: sqlite3.Connection, item: WorkItem, disposition: Disposition) -> None:
        """Settle the posts themselves.

        If the newest post was deleted, the earlier ones by its author were not read: the next look queues them.
        """
        state: Literal["dropped", "handled"] = "dropped" if disposition.act == "dropped" else "handled"
        earlier = () if disposition.code == "gone" else item.payload.get("earlier", ())
        received.settle(connection, [item.key, *earlier], state, disposition.act)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        summaries = _SUMMARIES | (
            _SUMMARIES_OF_HELD if disposition.held else _SUMMARIES_OF_CHOSEN if disposition.is_chosen else {}
        )
        return summaries[disposition.act].format(item.payload.get("handle", "somebody"))
