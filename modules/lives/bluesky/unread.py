"""What becomes of a waiting post without a look at its thread: done before, a request, too late, or not its turn."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from adapters.atproto.types import Notification
from common.clock import Clock
from modules.lives.bluesky.case_reader import CaseReader
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.perceive import NOTIFICATION_MAX_AGE_MS, OWNER_MAX_AGE_MS
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.types import ActTerms, Pending
from modules.runtime.llm.types import Importance
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.policy import full
from modules.services.outbox.rules.rules import TURNS_OF_PEERS, TURNS_OF_STRANGERS
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import ACTIVE_STATES
from modules.services.rights.answering import PersonRequests
from modules.services.rights.types import Addressed
from modules.services.work.turns import PersonTurns
from modules.services.work.types import Disposition

_REQUESTED: dict[str, str] = {"later": "later", "silent": "skipped"}
_DONE_BEFORE: dict[str, str] = {"reply": "replied", "like": "liked"}


class Unread:
    """Deals with what needs no reading, and says whose turn it is.

    Args:
        reader: how much an author matters.
        publisher: answers requests, and likes.
        conversations: where a reply that was accepted before is noted.
        outbox: what was accepted before.
        turns: how many turns each account had of late.
        requests: carries out what people ask about their own data.
        clock: the time.
        others_first_ms: how long others who are addressed in the same post go first, in ms.

    """

    def __init__(
        self,
        *,
        reader: CaseReader,
        publisher: Publisher,
        conversations: Conversations,
        outbox: Outbox,
        turns: PersonTurns,
        requests: PersonRequests,
        clock: Clock,
        others_first_ms: Callable[[Pending], float],
    ) -> None:
        self._reader = reader
        self._publisher = publisher
        self._conversations = conversations
        self._outbox = outbox
        self._turns = turns
        self._requests = requests
        self._clock = clock
        self._others_first_ms = others_first_ms

    def may_be_request(self, uri: str, text: str) -> bool:
        """Return whether a post may be a request about its author's own data, as far as is known of it."""
        return self._requests.may_be_request(uri, text)

    async def disposition_of(self, item: Pending) -> Disposition | None:
        """Return what becomes of a post; None if it is to be read now, and then the turn of its author begins.

        Raises:
            BudgetExceeded: there is no budget for whoever wrote it.
            Fatal: nothing can be done any more.
            Transient: the model or the store is briefly unable.

        """
        importance = self._reader.importance_of(item.notification)
        return (
            await self._done_before(item)
            or await self._carry_out_request(item.notification, importance)
            or await self._too_late(item, importance)
            or await self._not_its_turn(item, importance)
        )

    async def _done_before(self, item: Pending) -> Disposition | None:
        """What was accepted for the post before a crash."""
        notification = item.notification
        done = await self._outbox.by_cause(notification.uri)
        # NOTE(self): the reply that reached a conversation's limit was followed by a like; the reply is the answer.
        for intent in sorted(done, key=lambda one: one.kind != "reply"):
            if intent.state in ACTIVE_STATES and intent.kind in _DONE_BEFORE:
                if intent.kind == "reply":
                    reply_uri = record_uri(self._reader.own_did, intent)
                    self._conversations.record_our_reply(notification.root.uri, reply_uri)
                act, held = _DONE_BEFORE[intent.kind], intent.state == "held"
                return Disposition(act, "done-before", "done before the last restart", intent_id=intent.id, held=held)
        return None

    async def _carry_out_request(self, post: Notification, importance: Importance) -> Disposition | None:
        """What becomes of a post in which its author asks about their own data, or asked for no reply before."""
        parent_uri = post.reply.parent.uri if post.reply else ""
        did, handle = post.author.did, post.author.handle
        outcome = await self._requests.carry_out(Addressed(post.uri, did, handle, post.text, importance, parent_uri))
        if outcome is None:
            return None
        if outcome.code != "answer":
            return Disposition(_REQUESTED[outcome.code], "rights", outcome.reason, outcome.retry_in_s)
        answered = await self._publisher.answer_request(outcome.text, post, ends=outcome.ends)
        if answered.status == "blocked":
            reason = f"{outcome.reason}; {answered.reason}"
            return Disposition("silent", "rights", reason, intent_id=answered.intent_id or None)
        held = answered.status == "held"
        return Disposition("answered", "rights", outcome.reason, intent_id=answered.intent_id, held=held)

    async def _too_late(self, item: Pending, importance: Importance) -> Disposition | None:
        """Too late for an answer: a like tells somebody who was not responded to since then that we read it."""
        age = self._clock.now() - item.indexed
        if age <= timedelta(milliseconds=OWNER_MAX_AGE_MS if importance == "owner" else NOTIFICATION_MAX_AGE_MS):
            return None
        notification = item.notification
        reason = f"it has waited {age / timedelta(hours=1):.0f} hours; an answer would come too late"
        if await self._outbox.responds_to(notification.author.did, item.received):
            return Disposition("dropped", "too-late", f"{reason}; its author got a reply or a like since it came")
        liked = await self._publisher.like(notification.ref, ActTerms(notification.uri))
        if liked.status == "blocked":
            reason = f"{reason}; no like: {liked.reason}"
            return Disposition("dropped", "too-late", reason, intent_id=liked.intent_id or None)
        held = liked.status == "held"
        return Disposition("liked", "too-late", reason, intent_id=liked.intent_id or None, held=held)

    async def _not_its_turn(self, item: Pending, importance: Importance) -> Disposition | None:
        """How long the post has to wait for others; None if it need not, and its author's turn began."""
        others_first = timedelta(milliseconds=self._others_first_ms(item))
        if (others_first_s := (item.received + others_first - self._clock.now()).total_seconds()) > 0:
            return Disposition("later", "others-first", "others are addressed too and go first", others_first_s)
        if importance == "owner":
            return None
        author, limits = item.notification.author, TURNS_OF_STRANGERS if importance == "stranger" else TURNS_OF_PEERS
        if wait := self._turns.wait(author.did, limits):
            return Disposition("later", "turn", full(wait[0]), wait[1])
        await self._turns.begin_turn(author)
        return None
