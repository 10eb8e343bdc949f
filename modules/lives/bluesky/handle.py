"""One waiting post, from its row to what became of it: read the case, plan by rule, carry the plan out, settle the row.

A crash at any point leaves the post waiting; an act that had already been accepted is found and not repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Literal

from adapters.atproto.types import Notification
from common.clock import Clock
from common.errors import BudgetExceeded, Fatal, Transient
from common.result import Err
from modules.lives.bluesky.case import CaseReader
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.perceive import NOTIFICATION_MAX_AGE_MS, OWNER_MAX_AGE_MS
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.report import Reporter
from modules.lives.bluesky.respond import Responder
from modules.lives.bluesky.state import PendingPosts
from modules.lives.bluesky.types import Act, Disposition, Pending
from modules.runtime.llm.types import Importance
from modules.services.agent.identity.identity import Identity
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.policy import full
from modules.services.outbox.rules.rules import TURNS_OF_PEERS, TURNS_OF_STRANGERS
from modules.services.outbox.rules.waits import PersonTurns
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import ACTIVE_STATES
from modules.services.rights.answering import PersonRequests
from modules.services.rights.types import Addressed

PENDING_MAX_ATTEMPTS = 5

_PLANNED: dict[str, Act] = {"like": "liked", "conclude": "concluded", "skip": "skipped", "later": "later"}
_REQUESTED: dict[str, Act] = {"later": "later", "silent": "skipped"}
_DONE_BEFORE: dict[str, Act] = {"reply": "replied", "like": "liked"}


class Handler:
    """Handles one waiting post at a time.

    Args:
        reader: reads the case.
        responder: lets the model choose.
        publisher: likes, and leaves conversations.
        conversations: whether a thread is worth another word.
        identity: the SOUL's own measures.
        outbox: what was accepted before.
        pending: the rows.
        turns: how many turns each account had of late.
        requests: carries out what people ask about their own data.
        reporter: tells what became of each post.
        clock: the time.
        others_first_ms: how long others who are addressed in the same post go first, in ms.
        on_replied: called with each post that was answered, and the id of the intent of the answer.

    """

    def __init__(
        self,
        *,
        reader: CaseReader,
        responder: Responder,
        publisher: Publisher,
        conversations: Conversations,
        identity: Identity,
        outbox: Outbox,
        pending: PendingPosts,
        turns: PersonTurns,
        requests: PersonRequests,
        reporter: Reporter,
        clock: Clock,
        others_first_ms: Callable[[Pending], float],
        on_replied: Callable[[Pending, str], Awaitable[object]] | None = None,
    ) -> None:
        self._reader = reader
        self._responder = responder
        self._publisher = publisher
        self._conversations = conversations
        self._identity = identity
        self._outbox = outbox
        self._pending = pending
        self._turns = turns
        self._requests = requests
        self._reporter = reporter
        self._clock = clock
        self._others_first_ms = others_first_ms
        self._on_replied = on_replied

    def may_be_request(self, uri: str, text: str) -> bool:
        """Return whether a post may be a request about its author's own data, as far as is known of it."""
        return self._requests.may_be_request(uri, text)

    async def handle_post(self, item: Pending) -> Disposition:
        """Handle a post, and settle its row unless it goes on waiting.

        Raises:
            BudgetExceeded: there is no budget for whoever wrote it.
            Fatal: nothing can be done any more.
            Transient: the network or the model is briefly unable; the post goes on waiting.

        """
        disposition = await self._disposition_of(item)
        if disposition.act == "undecided":
            disposition = await self._after_failure(item, disposition)
        if disposition.act in {"later", "undecided"}:
            await self._reporter.tell_disposition(item, disposition)
            return disposition
        state: Literal["dropped", "handled"] = "dropped" if disposition.act == "dropped" else "handled"
        await self._pending.settle(item.uris, state, disposition.act)
        await self._reporter.tell_disposition(item, disposition)
        if self._on_replied and disposition.act == "replied" and disposition.intent_id:
            await self._on_replied(item, disposition.intent_id)
        return disposition

    async def _disposition_of(self, item: Pending) -> Disposition:
        """One post that the model rejects, or that trips over a bug of ours, must not stop the others for good."""
        try:
            return await self._before_reading(item) or await self._read_and_respond(item)
        except (BudgetExceeded, Fatal, Transient):
            raise
        except Exception as error:
            await self._reporter.tell_trouble(item, error)
            return Disposition("undecided", f"{type(error).__name__}: {error}")

    async def _before_reading(self, item: Pending) -> Disposition | None:
        """What becomes of a post without a look at its thread; None if it is to be read now."""
        notification = item.notification
        done = await self._outbox.by_cause(notification.uri)
        # NOTE(self): the reply that reached a conversation's limit was followed by a like; the reply is the answer.
        for intent in sorted(done, key=lambda one: one.kind != "reply"):
            if intent.state in ACTIVE_STATES and intent.kind in _DONE_BEFORE:
                if intent.kind == "reply":
                    reply_uri = record_uri(self._reader.own_did, intent)
                    self._conversations.record_our_reply(notification.root.uri, reply_uri)
                act, held = _DONE_BEFORE[intent.kind], intent.state == "held"
                return Disposition(act, "done before the last restart", intent.id, held=held)
        importance = self._reader.importance_of(notification)
        return await self._carry_out_request(notification, importance) or await self._not_now(item, importance)

    async def _carry_out_request(self, post: Notification, importance: Importance) -> Disposition | None:
        """What becomes of a post in which its author asks about their own data, or asked for no reply before."""
        parent_uri = post.reply.parent.uri if post.reply else ""
        did, handle = post.author.did, post.author.handle
        outcome = await self._requests.carry_out(Addressed(post.uri, did, handle, post.text, importance, parent_uri))
        if outcome is None:
            return None
        if outcome.code != "answer":
            return Disposition(_REQUESTED[outcome.code], outcome.reason, retry_in_s=outcome.retry_in_s)
        answered = await self._publisher.answer_request(outcome.text, post, ends=outcome.ends)
        if answered.status == "blocked":
            return Disposition("silent", f"{outcome.reason}; {answered.reason}", answered.intent_id or None)
        return Disposition("answered", outcome.reason, answered.intent_id, held=answered.status == "held")

    async def _not_now(self, item: Pending, importance: Importance) -> Disposition | None:
        """What becomes of a post that is too old, or whose turn it is not; None if it is to be read now."""
        now = self._clock.now()
        age = now - item.indexed
        longest_ms = OWNER_MAX_AGE_MS if importance == "owner" else NOTIFICATION_MAX_AGE_MS
        if age > timedelta(milliseconds=longest_ms):
            return await self._give_up(item, age)
        others_first = timedelta(milliseconds=self._others_first_ms(item))
        if (others_first_s := (item.received + others_first - now).total_seconds()) > 0:
            return Disposition("later", "others are addressed too and go first", retry_in_s=others_first_s)
        if importance == "owner":
            return None
        author, limits = item.notification.author, TURNS_OF_STRANGERS if importance == "stranger" else TURNS_OF_PEERS
        if wait := self._turns.wait(author.did, limits):
            return Disposition("later", full(wait[0]), retry_in_s=wait[1])
        return None

    async def _give_up(self, item: Pending, age: timedelta) -> Disposition:
        """Too late for an answer: a like tells somebody who was not responded to since then that we read it."""
        notification = item.notification
        reason = f"it has waited {age / timedelta(hours=1):.0f} hours; an answer would come too late"
        if await self._outbox.responds_to(notification.author.did, item.received):
            return Disposition("dropped", f"{reason}; its author got a reply or a like since it came")
        liked = await self._publisher.like(notification.ref, cause_id=notification.uri)
        if liked.status == "blocked":
            return Disposition("dropped", f"{reason}; no like: {liked.reason}", liked.intent_id or None)
        return Disposition("liked", reason, liked.intent_id or None, held=liked.status == "held")

    async def _read_and_respond(self, item: Pending) -> Disposition:
        """Read the case, plan by rule, and carry the plan out."""
        if self._reader.importance_of(item.notification) != "owner":
            await self._turns.begin_turn(item.notification.author)
        read = await self._reader.read_case(item)
        if isinstance(read, Err):
            if read.kind in {"not_found", "invalid"}:
                return Disposition("dropped", f"the post cannot be read any more: {read.error}")
            raise Transient(f"@{item.notification.author.handle}'s thread: {read.error}", retry_after=read.retry_after)
        post_case = read.data
        plan = self._conversations.plan_case(post_case, self._identity.extract().social_mechanics)
        if plan.code == "answer":
            chosen = await self._responder.respond_to(post_case)
            return replace(chosen, reason=chosen.reason or plan.reason)
        disposition = Disposition(_PLANNED[plan.code], plan.reason, retry_in_s=plan.retry_in_s)
        if not plan.gives_like:
            return disposition
        liked = await self._publisher.like(item.notification.ref, cause_id=item.notification.uri)
        return replace(disposition, intent_id=liked.intent_id or None, held=liked.status == "held")

    async def _after_failure(self, item: Pending, failed: Disposition) -> Disposition:
        """Leave the post waiting for another try; after enough of them it gets a like instead."""
        notification = item.notification
        tries = await self._pending.failed_once(notification.uri)
        if tries < PENDING_MAX_ATTEMPTS:
            return failed
        liked = await self._publisher.like(notification.ref, cause_id=notification.uri)
        reason = f"{failed.reason}, {tries} times"
        if liked.status == "blocked":
            return Disposition("silent", f"{reason}; {liked.reason}", liked.intent_id or None)
        return Disposition("liked", reason, liked.intent_id or None, held=liked.status == "held")
