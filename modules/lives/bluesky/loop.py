"""When this life runs; nothing else. Each loop is a name, an interval, and one call."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from adapters.atproto.client import Atproto
from common.clock import local
from common.constants import MINUTE_MS, SESSION_EXPIRY_MARGIN_S
from common.pace import Pace
from common.result import ApiResult, Err, Ok
from modules.lives.bluesky.expression import Expression
from modules.lives.bluesky.handle import Handler
from modules.lives.bluesky.perceive import Perceived, Perceiver
from modules.lives.bluesky.policy import triage
from modules.lives.bluesky.report import Reporter
from modules.lives.bluesky.state import PendingPosts
from modules.lives.bluesky.unread import Unread
from modules.runtime.control import Standing
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import awareness_skip_probability
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.outbox.outbox import Outbox
from modules.services.own_feed.feed import OwnFeed
from modules.services.peers.accounts import Relationships
from modules.services.peers.own_identity import OwnIdentity
from modules.services.work.turns import PersonTurns

SESSION_REFRESH_INTERVAL_MS = 15 * MINUTE_MS

AWARENESS = "awareness"


def _at_once() -> bool:
    return True


@dataclass(slots=True)
class AwarenessLoop(Loop):
    """Looks at notifications, and hands on what waits. Uses no model unless a post needs judgement.

    Reading takes no attention; each post that is handled does, one after the other. What arrives meanwhile is read by
    `NotificationLoop`.

    While the SOUL may not act in public, or may not think for want of budget, what is new is taken in, and waits.
    """

    name = AWARENESS
    at_start = True

    pace: Pace
    perceiver: Perceiver
    unread: Unread
    handler: Handler
    pending: PendingPosts
    turns: PersonTurns
    relationships: Relationships
    reporter: Reporter
    journal: Journal
    rng: random.Random
    owner_did: str
    own_did: Callable[[], str]
    standing: Callable[[], Standing]
    _errors: int = field(default=0, init=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _first: ApiResult[Perceived] | None = field(default=None, init=False)

    @property
    def interval_ms(self) -> float:
        return self.pace.awareness_ms

    async def run(self) -> Outcome:
        if self.rng.random() < awareness_skip_probability(self._errors):
            return Outcome(ran=False, reason=f"backing off after {self._errors} failures")
        first, self._first = self._first, None
        perceived = first if isinstance(first, Ok) else await self._read()
        await self.turns.recall()
        for uri in await self.pending.drop_unreadable():
            await self.reporter.tell_unreadable(uri)
        waiting = triage(
            await self.pending.waiting(),
            owner_did=self.owner_did,
            relationships=self.relationships,
            agent_did=self.own_did(),
            turns=self.turns.counts(),
            may_be_request=self.unread.may_be_request,
        )
        handled = await self.handler.handle_batch(waiting)
        if isinstance(perceived, Err):
            return Outcome(ran=False, reason=perceived.error)
        still = "" if (standing := self.standing()).may_act else f", {len(waiting) - handled} wait: {standing}"
        reason = f"{_read_words(perceived.data.new)}, {handled} dealt with{still}"
        return Outcome(ran=True, reason=reason, next_in_s=self._next_in_s())

    async def read_first(self) -> None:
        """Read notifications before all else that a start asks of the network; the first `run` handles what is new."""
        self._first = await self._read()

    async def read_meanwhile(self) -> Outcome:
        """Read notifications while posts are being handled; otherwise `run` reads them itself."""
        if not self.handler.is_busy:
            return Outcome(ran=False, reason="they are read when it looks for posts to answer")
        if self.rng.random() < awareness_skip_probability(self._errors):
            return Outcome(ran=False, reason=f"backing off after {self._errors} failures")
        perceived = await self._read()
        if isinstance(perceived, Err):
            return Outcome(ran=False, reason=perceived.error)
        return Outcome(ran=True, reason=_read_words(perceived.data.new))

    async def _read(self) -> ApiResult[Perceived]:
        async with self._reading:
            self._errors += 1  # an exception counts as a failure too
            perceived = await self.perceiver.look()
            if isinstance(perceived, Ok):
                self._errors = 0
            elif self._errors == 1:
                summary = f"Notifications could not be read: {perceived.error}"
                await self.journal.record(Entry("error", self.name, summary, line="warn"))
            return perceived

    def _next_in_s(self) -> float | None:
        """Seconds until a post that waits its turn may be handled; None if the next interval is soon enough."""
        soonest = self.handler.next_turn_in_s()
        return soonest if soonest is not None and soonest < self.interval_ms / 1000 else None


@dataclass(slots=True)
class NotificationLoop(Loop):
    """Reads notifications while a slow model keeps `AwarenessLoop` busy: reading never waits for thinking."""

    name = "notifications"

    awareness: AwarenessLoop

    @property
    def interval_ms(self) -> float:
        return self.awareness.interval_ms

    async def run(self) -> Outcome:
        return await self.awareness.read_meanwhile()


@dataclass(slots=True)
class ExpressionLoop(Loop):
    """Looks whether a thought is due, once `ready` says that it is known when the last one was."""

    name = "expression-check"
    needs_idle = True

    pace: Pace
    expression: Expression
    ready: Callable[[], bool] = _at_once

    @property
    def interval_ms(self) -> float:
        return self.pace.expression_check_ms

    async def run(self) -> Outcome:
        if not self.ready():
            wait_s = self.pace.atproto_spacing_ms / 1000
            return Outcome(ran=False, reason="its own feed is still to be read", next_in_s=wait_s)
        return await self.expression.run_if_due()


@dataclass(slots=True)
class SessionLoop(Loop):
    """Keeps the session fresh, well before it runs out; the adapter also recovers on its own."""

    name = "session-refresh"
    interval_ms = SESSION_REFRESH_INTERVAL_MS

    atproto: Atproto
    journal: Journal

    async def run(self) -> Outcome:
        margin = self.interval_ms / 1000 + 2 * SESSION_EXPIRY_MARGIN_S
        result = await self.atproto.ensure_session_or_reauth(margin_s=margin)
        if isinstance(result, Err):
            summary = f"The Bluesky session could not be renewed: {result.error}"
            await self.journal.record(Entry("error", self.name, summary, line="error"))
            return Outcome(ran=False, reason=result.error)
        if result.data != "valid":
            await self.journal.record(Entry("life", self.name, f"Bluesky session {result.data}", line="done"))
        return Outcome(ran=True, reason=result.data)


@dataclass(slots=True)
class OutboxLoop(Loop):
    """Lets out what is due, once `ready` says that it is known whether anything may; woken by each new intent."""

    name = "outbox"
    jitter = 0.0

    pace: Pace
    outbox: Outbox
    ready: Callable[[], bool] = _at_once

    @property
    def interval_ms(self) -> float:
        return self.pace.outbox_drain_ms

    async def run(self) -> Outcome:
        if not self.ready():
            return Outcome(ran=False, reason="whether it may act is still to be seen")
        report = await self.outbox.deliver_due()
        reason = f"{report.done} sent, {report.failed} failed, {report.expired} expired, {report.put_off} put off"
        return Outcome(ran=True, reason=reason, next_in_s=report.next_in_s)


async def warm_up(
    *, feed: OwnFeed, identity: OwnIdentity, expression: Expression, journal: Journal, timezone: str = ""
) -> None:
    """One look at our own feed before anything starts.

    It tells what we already said, whether our identity post stands, when we last spoke, and what repeats an older post.
    """
    read = await feed.read()
    if isinstance(read, Err):
        await journal.record(Entry("life", "start", f"Own feed could not be read: {read.error}", line="warn"))
        await expression.schedule()
        return
    own = read.data
    await identity.note_feed(own)
    top_level = [post.created_at for post in own if post.reply is None]
    due = await expression.schedule(max(top_level, default=None))
    summary = (
        f"Read the {len(own)} newest posts of its own; it thinks of a next one at {local(due, timezone):%Y-%m-%d %H:%M}"
    )
    await journal.record(Entry("life", "start", summary, line="mem"))
    if pruned := await feed.pruner.prune(own):
        summary = f"Takes back {pruned} of its posts that only repeat older ones"
        await journal.record(Entry("life", "start", summary, line="info"))


def _read_words(new: int) -> str:
    return f"{new} new notification{'' if new == 1 else 's'} read"
