"""When this life runs; nothing else. Each loop is a name, an interval, and one call."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from adapters.atproto.client import Atproto
from adapters.atproto.types import Notification
from common.clock import Clock, local, parse_iso
from common.constants import (
    AWARENESS_INTERVAL_MS,
    FEED_FETCH_LIMIT,
    NOTIFICATION_MAX_AGE_MS,
    PENDING_MAX_ATTEMPTS,
    RESPONSE_BATCH,
    SESSION_EXPIRY_MARGIN_S,
    SESSION_REFRESH_INTERVAL_MS,
    TIMER_JITTER_PERCENT,
)
from common.errors import BudgetExceeded, Fatal, Transient
from common.pace import Pace
from common.result import ApiResult, Err, Ok
from modules.lives.bluesky.act import Responder
from modules.lives.bluesky.expression import Expression
from modules.lives.bluesky.lines import COUNTED_AS, LINES, LINES_OF_HELD, WHO_WAITS
from modules.lives.bluesky.perceive import Perceived, Perceiver
from modules.lives.bluesky.policy import triage
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.state import PendingPosts
from modules.lives.bluesky.turns import PersonTurns
from modules.lives.bluesky.types import Disposition, Pending
from modules.runtime.control import Standing
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import Importance
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.policy import awareness_skip_probability
from modules.runtime.scheduler.types import Outcome
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.rules import TURNS_PER_PERSON
from modules.services.peers.accounts import Relationships

_LONGEST_PUT_OFF_S = 1800.0
_LONGEST_ECONOMY_S = 3600.0


def _at_once() -> bool:
    return True


@dataclass(slots=True)
class AwarenessLoop:
    """Looks at notifications and meets what waits. Uses no model unless a post needs judgement.

    Reading takes no attention; each post that is met does, one after the other. What arrives while one is being met
    is read by `NotificationLoop`.

    While the SOUL may not act in public, or may not think for want of budget, what is new is taken in, and waits.
    `on_replied` hears of each post that was answered, with the intent of the answer.
    """

    pace: Pace
    perceiver: Perceiver
    responder: Responder
    pending: PendingPosts
    relationships: Relationships
    publisher: Publisher
    journal: Journal
    clock: Clock
    rng: random.Random
    owner_did: str
    standing: Callable[[], Standing] = Standing
    on_replied: Callable[[Pending, str], Awaitable[object]] | None = None
    attention: Attention = field(default_factory=Attention)
    name: str = "awareness"
    jitter: float = TIMER_JITTER_PERCENT
    needs_idle: bool = False
    social_only: bool = True
    at_start: bool = True
    _errors: int = field(default=0, init=False)
    _put_offs: dict[str, int] = field(default_factory=dict, init=False)
    _later: dict[str, float] = field(default_factory=dict, init=False)
    _told_to_wait: set[str] = field(default_factory=set, init=False)
    _economy: dict[Importance, float] = field(default_factory=dict, init=False)
    _turns: PersonTurns = field(init=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _meeting: bool = field(default=False, init=False)
    _first: ApiResult[Perceived] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        speed = AWARENESS_INTERVAL_MS / self.pace.awareness_ms
        self._turns = PersonTurns(TURNS_PER_PERSON, self.clock, speed, journal=self.journal, loop=self.name)

    @property
    def interval_ms(self) -> float:
        return self.pace.awareness_ms

    async def run(self) -> Outcome:
        if self.rng.random() < awareness_skip_probability(self._errors):
            return Outcome(ran=False, reason=f"backing off after {self._errors} failures")
        first, self._first = self._first, None
        perceived = first if isinstance(first, Ok) else await self._read()
        await self._turns.recall()
        waiting = triage(
            await self.pending.waiting(),
            owner_did=self.owner_did,
            relationships=self.relationships,
            agent_did=self.responder.own_did,
            turns=self._turns.counts(),
        )
        self._meeting = True
        try:
            met = await self._meet_batch(waiting)
        finally:
            self._meeting = False
        if isinstance(perceived, Err):
            return Outcome(ran=False, reason=perceived.error)
        still = "" if (standing := self.standing()).may_act else f", {len(waiting) - met} wait: {standing}"
        return Outcome(ran=True, reason=f"{_read_words(perceived.data.new)}, {met} dealt with{still}")

    async def read_first(self) -> None:
        """Read notifications before all else that a start asks of the network; the first `run` meets what is new."""
        self._first = await self._read()

    async def read_meanwhile(self) -> Outcome:
        """Read notifications while posts are being met; otherwise `run` reads them itself."""
        if not self._meeting:
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
            if isinstance(perceived, Err):
                summary = f"Notifications could not be read: {perceived.error}"
                await self.journal.record(Entry("error", self.name, summary, line="warn"))
            else:
                self._errors = 0
            return perceived

    async def _meet_batch(self, waiting: list[Pending]) -> int:
        """The next few of those whose time has come; returns how many were met."""
        met = 0
        for item in [item for item in waiting if self._due(item)][:RESPONSE_BATCH]:
            if not self.standing().may_act:
                break
            if not self._due(item):
                continue
            try:
                async with self.attention.take(self.name):
                    if not self.standing().may_act:
                        break
                    met += await self._meet(item)
            except BudgetExceeded as error:
                await self._economize(item, error)
            except Transient as error:
                await self._put_off(item, error)
                break
        return met

    def _due(self, item: Pending) -> bool:
        importance = self.responder.importance_of(item.notification)
        not_before = max(self._later.get(item.notification.uri, 0), self._economy.get(importance, 0))
        return not_before <= self.clock.monotonic()

    async def _meet(self, item: Pending) -> bool:
        notification = item.notification
        age_s = (self.clock.now() - parse_iso(notification.indexed_at)).total_seconds()
        if age_s * 1000 > NOTIFICATION_MAX_AGE_MS:
            handled = Disposition("dropped", f"it has waited {age_s / 3600:.0f} hours; an answer would come too late")
        else:
            handled = await self._turn_to_come(notification) or await self._respond(item)
        if handled.act == "later":
            await self._let_wait(item, handled)
            return False
        if handled.act == "undecided":
            tries = await self.pending.failed_once(notification.uri)
            if tries < PENDING_MAX_ATTEMPTS:
                await self._tell(item, handled)
                return False
            left = await self.publisher.like(notification.ref, cause_id=notification.uri)
            act, reason = ("silent", f"; {left.reason}") if left.status == "blocked" else ("liked", "")
            handled = Disposition(
                act, f"{handled.reason}, {tries} times{reason}", left.intent_id or None, held=left.status == "held"
            )
        uris = [notification.uri, *(earlier.uri for earlier in item.earlier)]
        for met in uris:
            self._later.pop(met, None)
            self._put_offs.pop(met, None)
            self._told_to_wait.discard(met)
        await self.pending.settle(uris, "dropped" if handled.act == "dropped" else "handled", handled.act)
        await self._tell(item, handled)
        if self.on_replied and handled.act == "replied" and handled.intent_id:
            await self.on_replied(item, handled.intent_id)
        return True

    async def _turn_to_come(self, notification: Notification) -> Disposition | None:
        """A stranger who had enough turns for now waits; else this is their next one."""
        did = notification.author.did
        if self.responder.importance_of(notification) != "stranger":
            return None
        if wait_s := self._turns.wait_s(did):
            reason = f"{TURNS_PER_PERSON.name}: {TURNS_PER_PERSON.limit:g} turns are enough for now"
            return Disposition("later", reason, retry_in_s=wait_s)
        await self._turns.note(did, notification.author.handle)
        return None

    async def _respond(self, item: Pending) -> Disposition:
        """One post that the model rejects, or that trips over a bug of ours, must not stop the others for good."""
        try:
            return await self.responder.respond(item)
        except (BudgetExceeded, Fatal, Transient):
            raise
        except Exception as error:
            await self._trouble(item, error)
            return Disposition("undecided", f"{type(error).__name__}: {error}")

    async def _let_wait(self, item: Pending, handled: Disposition) -> None:
        """It is not its turn yet: that is no failure, and is told once, however often it is looked at."""
        uri = item.notification.uri
        self._later[uri] = self.clock.monotonic() + handled.retry_in_s
        if uri not in self._told_to_wait:
            self._told_to_wait.add(uri)
            await self._tell(item, handled)

    async def _economize(self, item: Pending, error: BudgetExceeded) -> None:
        """No more thinking for anybody like them, for a good while; the wall itself tells the rest."""
        importance = self.responder.importance_of(item.notification)
        pause_s = min(error.retry_after or _LONGEST_ECONOMY_S, _LONGEST_ECONOMY_S)
        self._economy[importance] = self.clock.monotonic() + pause_s
        summary = f"{WHO_WAITS[importance]} to wait, for at least {max(1, round(pause_s / 60))} min: {error}"
        uri, handle = item.notification.uri, item.notification.author.handle
        await self.journal.record(
            Entry("error", self.name, summary, line="warn", reason="budget", trigger_uri=uri, author=handle)
        )

    async def _put_off(self, item: Pending, error: Transient) -> None:
        """The world is briefly unable, for this post or for all: the next run begins with another."""
        uri = item.notification.uri
        self._put_offs[uri] = self._put_offs.get(uri, 0) + 1
        pause_s = min(self.pace.awareness_ms / 1000 * 2 ** self._put_offs[uri], _LONGEST_PUT_OFF_S)
        self._later[uri] = self.clock.monotonic() + max(pause_s, error.retry_after or 0)
        await self._trouble(item, error)

    async def _trouble(self, item: Pending, error: Exception) -> None:
        notification = item.notification
        await self.journal.record(
            Entry(
                "error",
                self.name,
                f"@{notification.author.handle} has to wait: {error}",
                line="warn",
                trigger_uri=notification.uri,
                author=notification.author.handle,
                data={"trace": "".join(traceback.format_exception(error))[-4000:]},
            )
        )

    async def _tell(self, item: Pending, handled: Disposition) -> None:
        author = item.notification.author.handle
        lines = LINES | LINES_OF_HELD if handled.held else LINES
        await self.journal.record(
            Entry(
                "decision",
                self.name,
                lines.get(handled.act, "Met @{}").format(author),
                line="social",
                reason=handled.reason,
                trigger_uri=item.notification.uri,
                author=author,
                intent_id=handled.intent_id,
                data={"act": COUNTED_AS.get(handled.act, handled.act)},
            )
        )


@dataclass(slots=True)
class NotificationLoop:
    """Reads notifications while a slow model keeps `AwarenessLoop` busy: reading never waits for thinking."""

    awareness: AwarenessLoop
    name: str = "notifications"
    jitter: float = TIMER_JITTER_PERCENT
    needs_idle: bool = False
    social_only: bool = True
    at_start: bool = False

    @property
    def interval_ms(self) -> float:
        return self.awareness.interval_ms

    async def run(self) -> Outcome:
        return await self.awareness.read_meanwhile()


@dataclass(slots=True)
class ExpressionLoop:
    """Looks whether a thought is due, once `ready` says that it is known when the last one was."""

    pace: Pace
    expression: Expression
    ready: Callable[[], bool] = _at_once
    name: str = "expression-check"
    jitter: float = TIMER_JITTER_PERCENT
    needs_idle: bool = True
    social_only: bool = True
    at_start: bool = False

    @property
    def interval_ms(self) -> float:
        return self.pace.expression_check_ms

    async def run(self) -> Outcome:
        if not self.ready():
            wait_s = self.pace.atproto_spacing_ms / 1000
            return Outcome(ran=False, reason="its own feed is still to be read", next_in_s=wait_s)
        return await self.expression.run_if_due()


@dataclass(slots=True)
class SessionLoop:
    """Keeps the session fresh, well before it runs out; the adapter also recovers on its own."""

    atproto: Atproto
    journal: Journal
    name: str = "session-refresh"
    interval_ms: float = SESSION_REFRESH_INTERVAL_MS
    jitter: float = TIMER_JITTER_PERCENT
    needs_idle: bool = False
    social_only: bool = True
    at_start: bool = False

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
class OutboxLoop:
    """Lets out what is due, once `ready` says that it is known whether anything may; woken by each new intent."""

    pace: Pace
    outbox: Outbox
    ready: Callable[[], bool] = _at_once
    name: str = "outbox"
    jitter: float = 0.0
    needs_idle: bool = False
    social_only: bool = True
    at_start: bool = False

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
    *, atproto: Atproto, outbox: Outbox, expression: Expression, journal: Journal, timezone: str = ""
) -> None:
    """One look at our own feed before anything starts: what we already said, and when we last spoke."""
    feed = await atproto.get_author_feed(atproto.did, limit=FEED_FETCH_LIMIT)
    if isinstance(feed, Err):
        await journal.record(Entry("life", "start", f"Own feed could not be read: {feed.error}", line="warn"))
        await expression.schedule()
        return
    own = [item.post for item in feed.data.items if item.reposted_by is None and item.post.author.did == atproto.did]
    await outbox.warm_up_from_feed((post.uri, post.text) for post in own)
    top_level = [post.created_at for post in own if post.reply is None]
    due = await expression.schedule(max(top_level, default=None))
    summary = (
        f"Read the {len(own)} newest posts of its own; it thinks of a next one at {local(due, timezone):%Y-%m-%d %H:%M}"
    )
    await journal.record(Entry("life", "start", summary, line="mem"))


def _read_words(new: int) -> str:
    return f"{new} new notification{'' if new == 1 else 's'} read"
