"""One post that waits: decide by rule what needs no look at its thread, else read the case, plan, and ask the model.

A crash at any point leaves the post waiting; an act that had been accepted before is found and not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from adapters.atproto.types import Notification
from common.clock import Clock
from common.errors import Transient
from common.importance import Importance
from common.result import Err
from modules.lives.bluesky.case_reader import CaseReader
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.experienced import PostExperiences
from modules.lives.bluesky.others_first import OthersFirst
from modules.lives.bluesky.policy import is_too_late
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.respond import PostResponder
from modules.lives.bluesky.state import PendingPosts
from modules.lives.bluesky.types import HELD_REPLY, POST, ActTerms, Pending, Published
from modules.services.commitments.replies import ReplyCommitments
from modules.services.identity.identity import Identity, Me
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import ACTIVE_STATES, Intent
from modules.services.rights.answering import PersonRequests
from modules.services.rights.types import ASKED, Addressed, Found
from modules.services.work.limits import limits_of
from modules.services.work.table import WorkTable
from modules.services.work.turns import PersonTurns
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem

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
    """Takes in what a reply commits to: at once or, where it waits for the owner's approval, when that was said.

    Its rows are the posts that such a reply answers.
    """

    kind = HELD_REPLY
    tells = True

    pending: PendingPosts
    outbox: Outbox
    table: WorkTable
    commitments: ReplyCommitments
    me: Me

    async def note(self, post: Notification, intent_id: str) -> None:
        """Take in what the reply commits to, or let it wait for the owner."""
        intent = await self.outbox.get(intent_id)
        if intent is not None and intent.state == "held":
            await self.table.add(NewWork(HELD_REPLY, post.uri, {"intent": intent_id}, post.author.did, "commitment"))
        elif intent is not None:
            await self._take_in(post, intent)

    async def handle(self, item: WorkItem) -> Disposition:
        intent, post = await self.outbox.get(item.payload["intent"]), await self.pending.read(item)
        if intent is None or post is None or intent.state not in ACTIVE_STATES:
            return Disposition("silent", "not-said")
        if intent.state == "held":
            return Disposition("later", "needs-owner")
        await self._take_in(post.notification, intent)
        return Disposition("done", "said")

    async def _take_in(self, post: Notification, intent: Intent) -> None:
        await self.commitments.note_reply(
            intent.body.preview,
            to_uri=post.uri,
            conversation=f"@{post.author.handle}: {post.text}",
            done=("post_bluesky",) if await self.outbox.accepted(post.uri, "post") else (),
            to_owner=intent.by_owner and self.me.is_owner(post.author.did),
        )


@dataclass(kw_only=True)
class PostHandler(Handler):
    """Handles posts of one kind. `replies` takes in what the answers to them commit to.

    What has to wait waits for true seconds; the loop is told how many are lived in them.
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
        # NOTE(self): a request that its words do not plainly tell is found by the model that answers the post, then.
        disposition = disposition or self._others_first(post) or await self._no_turn(post, item.importance)
        disposition = disposition or await self._decide(post, item.importance)
        return replace(disposition, retry_in_s=self.clock.lived(disposition.retry_in_s))

    async def _no_turn(self, post: Pending, importance: Importance) -> Disposition | None:
        """How long the post has to wait for a turn; None where one is taken for it, as for each of the owner's."""
        if importance == "owner":
            return None
        wait = await self.turns.take(post.notification.author, limits_of(importance))
        return wait and replace(wait, retry_in_s=self.clock.real(wait.retry_in_s))

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition | None:
        """Return what an earlier life answered, or None where all that it did is no answer."""
        # NOTE(self): the reply that reached a conversation's limit was followed by a like; the reply is the answer.
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
        """What becomes of a post in which its author asks about their own data, or asked for no reply before."""
        parent_uri = post.reply.parent.uri if post.reply else ""
        did, handle = post.author.did, post.author.handle
        asked = Addressed(post.uri, did, handle, post.text, importance, parent_uri)
        outcome = await self.requests.carry_out(asked, found)
        if outcome is None:
            return None
        if outcome.code != "answer":
            return Disposition(_REQUESTED[outcome.code], "rights", outcome.reason, outcome.retry_in_s)
        answered = await self.publisher.answer_request(outcome.text, post, ends=outcome.ends)
        if answered.status == "blocked":
            return _came("silent", "rights", f"{outcome.reason}; {answered.reason}", answered)
        return _came("answered", "rights", outcome.reason, answered)

    async def _too_late(self, post: Pending, importance: Importance) -> Disposition | None:
        """Too late for an answer: a like tells somebody who was not responded to since then that we read it."""
        if not is_too_late(post.indexed, self.clock.now(), by_owner=importance == "owner"):
            return None
        if requested := await self._carry_out_request(post.notification, importance):
            return requested
        hours = (self.clock.now() - post.indexed) / timedelta(hours=1)
        reason = f"it has waited {hours:.0f} hours; an answer would come too late"
        if await self.outbox.responds_to(post.notification.author.did, post.received):
            return Disposition("dropped", "too-late", f"{reason}; its author got a reply or a like since it came")
        liked = await self._like(post)
        if liked.status == "blocked":
            return _came("dropped", "too-late", f"{reason}; no like: {liked.reason}", liked)
        return _came("liked", "too-late", reason, liked)

    def _others_first(self, post: Pending) -> Disposition | None:
        """How long the post has to wait for others whom it names too; None if it need not."""
        others_first = timedelta(milliseconds=self.others.first_ms(post))
        wait_s = (post.received + others_first - self.clock.now()).total_seconds()
        if wait_s <= 0:
            return None
        return Disposition("later", "others-first", "others are addressed too and go first", wait_s)

    async def _decide(self, post: Pending, importance: Importance) -> Disposition:
        """Read the case, plan by rule, and carry the plan out.

        Where no model is to answer now, one reads the post for a request that its words may hold.
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
        if not plan.gives_like:
            return disposition
        liked = await self._like(post)
        return replace(disposition, intent_id=liked.intent_id or None, held=liked.status == "held")

    async def _like(self, post: Pending) -> Published:
        return await self.publisher.like(post.notification.ref, ActTerms(post.notification.uri))

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Settle the posts themselves; keep what they were to us, and what an answer commits to.

        Earlier posts of somebody who took back the newest one were not looked at: the next look takes them up.
        """
        state: Literal["dropped", "handled"] = "dropped" if disposition.act == "dropped" else "handled"
        earlier = () if disposition.code == "gone" else item.payload.get("earlier", ())
        await self.pending.settle([item.key, *earlier], state, disposition.act)
        if post := await self.pending.read(item):
            await self.experiences.note(post, item.importance, disposition)
            if disposition.act == "replied" and disposition.intent_id:
                await self.replies.note(post.notification, disposition.intent_id)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        summaries = _SUMMARIES | (
            _SUMMARIES_OF_HELD if disposition.held else _SUMMARIES_OF_CHOSEN if disposition.is_chosen else {}
        )
        return summaries[disposition.act].format(item.payload.get("handle", "somebody"))


def _came(act: str, code: str, reason: str, published: Published) -> Disposition:
    """Return a disposition of which an act of ours came, or was blocked."""
    held = published.status == "held"
    return Disposition(act, code, reason, intent_id=published.intent_id or None, held=held)
