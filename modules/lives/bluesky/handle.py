"""Waiting posts, from their rows to what became of them: read the case, plan by rule, carry the plan out, settle.

A crash at any point leaves the post waiting; an act that had already been accepted is found and not repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Literal

from common.errors import BudgetExceeded, Fatal, Transient
from common.result import Err
from modules.lives.bluesky.case_reader import CaseReader
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.experienced import PostExperiences
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.report import Reporter
from modules.lives.bluesky.respond import Responder
from modules.lives.bluesky.state import PendingPosts
from modules.lives.bluesky.types import ActTerms, Pending
from modules.lives.bluesky.unread import Unread
from modules.runtime.control import Standing
from modules.runtime.scheduler.attention import Attention
from modules.services.identity.identity import Identity
from modules.services.outbox.rules.waits import Waits
from modules.services.work.types import Disposition

PENDING_MAX_ATTEMPTS = 5
RESPONSE_BATCH = 5

_PLANNED: dict[str, str] = {"like": "liked", "conclude": "concluded", "skip": "skipped", "later": "later"}


class Handler:
    """Handles waiting posts, one after the other.

    Args:
        loop: in whose name the SOUL's attention is taken.
        unread: deals with what needs no reading.
        reader: reads the case.
        responder: lets the model choose.
        publisher: likes, and leaves conversations.
        conversations: whether a thread is worth another word.
        identity: the SOUL's own measures.
        pending: the rows.
        waits: which posts are not to be looked at yet.
        reporter: tells what became of each post.
        attention: taken for one post at a time.
        standing: whether the SOUL may act.
        on_replied: called with each post that was answered, and the id of the intent of the answer.
        experiences: keeps what each settled post was to the SOUL.

    """

    def __init__(
        self,
        *,
        loop: str,
        unread: Unread,
        reader: CaseReader,
        responder: Responder,
        publisher: Publisher,
        conversations: Conversations,
        identity: Identity,
        pending: PendingPosts,
        waits: Waits,
        reporter: Reporter,
        attention: Attention,
        standing: Callable[[], Standing],
        on_replied: Callable[[Pending, str], Awaitable[object]],
        experiences: PostExperiences,
    ) -> None:
        self._loop = loop
        self._unread = unread
        self._reader = reader
        self._responder = responder
        self._publisher = publisher
        self._conversations = conversations
        self._identity = identity
        self._pending = pending
        self._waits = waits
        self._reporter = reporter
        self._attention = attention
        self._standing = standing
        self._on_replied = on_replied
        self._experiences = experiences
        self.is_busy = False

    async def handle_batch(self, waiting: Sequence[Pending]) -> int:
        """Handle the next few of those whose time has come; return how many are settled."""
        self.is_busy = True
        try:
            settled = await self._handle_due([item for item in waiting if self._is_due(item)][:RESPONSE_BATCH])
        finally:
            self.is_busy = False
        await self._reporter.tell_batch(settled)
        return len(settled)

    def next_turn_in_s(self) -> float | None:
        """Seconds until the first post that waits its turn may be looked at; None if none does."""
        return self._waits.next_turn_in_s()

    async def _handle_due(self, batch: Sequence[Pending]) -> list[Disposition]:
        settled: list[Disposition] = []
        for item in batch:
            if not self._standing().may_act:
                break
            if not self._is_due(item):
                continue
            try:
                async with self._attention.take(self._loop):
                    if not self._standing().may_act:
                        break
                    disposition = await self.handle_post(item)
            except BudgetExceeded as error:
                importance = self._reader.importance_of(item.notification)
                pause_s = self._waits.economize(importance, error)
                await self._reporter.tell_no_budget(item, importance, pause_s, error)
            except Transient as error:
                self._waits.put_off(item.notification.uri, error)
                await self._reporter.tell_trouble(item, error)
                break
            else:
                settled += [disposition] if disposition.settles else []
        return settled

    def _is_due(self, item: Pending) -> bool:
        notification = item.notification
        return self._waits.is_due(notification.uri, self._reader.importance_of(notification))

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
        if disposition.settles:
            state: Literal["dropped", "handled"] = "dropped" if disposition.act == "dropped" else "handled"
            await self._pending.settle(item.uris, state, disposition.act)
            self._waits.forget(item.uris)
            await self._experiences.note(item, disposition)
        elif disposition.act == "later":
            self._waits.let_wait(item.notification.uri, disposition.retry_in_s)
        await self._reporter.tell_disposition(item, disposition)
        if disposition.act == "replied" and disposition.intent_id:
            await self._on_replied(item, disposition.intent_id)
        return disposition

    async def _disposition_of(self, item: Pending) -> Disposition:
        """One post that the model rejects, or that trips over a bug of ours, must not stop the others for good."""
        try:
            return await self._unread.disposition_of(item) or await self._take_on(item)
        except (BudgetExceeded, Fatal, Transient):
            raise
        except Exception as error:
            await self._reporter.tell_trouble(item, error)
            return Disposition("undecided", "failed", f"{type(error).__name__}: {error}")

    async def _take_on(self, item: Pending) -> Disposition:
        """Read the case, plan by rule, and carry the plan out."""
        read = await self._reader.read_case(item)
        if isinstance(read, Err):
            if read.kind in {"not_found", "invalid"}:
                return Disposition("dropped", "gone", f"the post cannot be read any more: {read.error}")
            raise Transient(f"@{item.notification.author.handle}'s thread: {read.error}", retry_after=read.retry_after)
        post_case = read.data
        plan = self._conversations.plan_case(post_case, self._identity.extract().social_mechanics)
        if plan.code == "answer":
            chosen = await self._responder.respond_to(post_case)
            if chosen.act == "later":
                self._reader.note_shared(item.notification.uri)
            return replace(chosen, reason=chosen.reason or plan.reason)
        disposition = Disposition(_PLANNED[plan.code], plan.code, plan.reason, plan.retry_in_s)
        if not plan.gives_like:
            return disposition
        liked = await self._publisher.like(item.notification.ref, ActTerms(item.notification.uri))
        return replace(disposition, intent_id=liked.intent_id or None, held=liked.status == "held")

    async def _after_failure(self, item: Pending, failed: Disposition) -> Disposition:
        """Leave the post waiting for another try; after enough of them it gets a like instead."""
        notification = item.notification
        tries = await self._pending.failed_once(notification.uri)
        if tries < PENDING_MAX_ATTEMPTS:
            return failed
        liked = await self._publisher.like(notification.ref, ActTerms(notification.uri))
        reason = f"{failed.reason}, {tries} times"
        if liked.status == "blocked":
            return Disposition("silent", failed.code, f"{reason}; {liked.reason}", intent_id=liked.intent_id or None)
        held = liked.status == "held"
        return Disposition("liked", failed.code, reason, intent_id=liked.intent_id or None, held=held)
