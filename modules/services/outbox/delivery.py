"""Sends intents: chooses the next one, handles failed tries, and finds out what became of acts without an answer.

A row found in `sending` may have arrived or not, so the sender looks first; it is sent again under the same record
key. A service without such keys is given a minute and looked at twice before that, and checked for duplicates later.
One act is sent at a time, and the delivery lock is never held while waiting. Gates are asked before each departure,
also before a repeat; one that fails holds everything back.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from adapters.web.spacing import Urgency, urgency
from common.clock import Clock, iso, parse_iso
from common.errors import Fatal
from common.result import ApiResult, Err, ErrKind, Ok
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox import audit, departures, policy, store
from modules.services.outbox.act_words import act_words
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.types import (
    DeliveryReport,
    DepartureRule,
    Gate,
    Intent,
    IntentState,
    KeylessSender,
    Pacing,
    Sender,
    Sent,
    Verdict,
    Wait,
)


@dataclass(frozen=True, slots=True)
class Rechecks:
    """Looks for duplicates of done intents when a look is due.

    Attributes:
        database: stores the intents.
        journal: records the closed duplicates.
        clock: the time.
        senders: each `KeylessSender` among them is asked.
        ask: calls a sender within the deadline.
        may_leave: returns whether the gates are open for an intent.

    """

    database: Database
    journal: Journal
    clock: Clock
    senders: Mapping[IntentKind, Sender]
    ask: Callable[[Awaitable[ApiResult[int]]], Awaitable[ApiResult[int]]]
    may_leave: Callable[[sqlite3.Connection, Intent, datetime], bool]

    def first_at(self, intent: Intent) -> str | None:
        """Return when a newly done intent must be checked for duplicates, or None."""
        needed = intent.was_repeated and isinstance(self.senders[intent.kind], KeylessSender)
        return self._after(replace(intent, looks=0)) if needed else None

    def next_in_s(self, connection: sqlite3.Connection, now: datetime) -> list[float]:
        """Return the seconds until each look that is due within the hour."""
        horizon = now + timedelta(seconds=max(policy.RECHECKS_S))
        return [
            max(policy.RETRY_BASE_S, policy.retry_in_s(one, now)) for one in store.due_for_recheck(connection, horizon)
        ]

    async def run_due(self) -> None:
        """Make all looks that are due."""
        now = self.clock.now()
        for intent in await self.database.run(lambda connection: self._due(connection, now)):
            sender = self.senders[intent.kind]
            if isinstance(sender, KeylessSender):
                await self._look(intent, await self.ask(sender.close_duplicates(intent)))

    def _due(self, connection: sqlite3.Connection, now: datetime) -> list[Intent]:
        return [one for one in store.due_for_recheck(connection, now) if self.may_leave(connection, one, now)]

    async def _look(self, intent: Intent, closed: ApiResult[int]) -> None:
        if isinstance(closed, Err):
            later = self.clock.now() + timedelta(seconds=policy.LATE_ARRIVAL_S)
            lapsed = later >= parse_iso(intent.expires_at)
            await self._write(replace(intent, not_before=None if lapsed else iso(later)))
            return
        after = replace(intent, looks=intent.looks + 1)
        after = replace(after, not_before=self._after(after))
        await self._write(after, audit.duplicates_closed(after, closed.data) if closed.data else None)

    def _after(self, intent: Intent) -> str | None:
        seconds = policy.recheck_in_s(intent)
        return None if seconds is None else iso(self.clock.now() + timedelta(seconds=seconds))

    async def _write(self, intent: Intent, entry: Entry | None = None) -> None:
        def move(connection: sqlite3.Connection) -> Intent:
            store.update(connection, intent)
            return intent

        if entry is None:
            await self.database.run(move)
        else:
            await self.journal.record_with(lambda connection: (move(connection), entry))


T = TypeVar("T")

BROKEN_GATE_WAIT_S = 60.0


class _Overtaken(Exception):
    """The intent changed between its choice and its departure; for example, it was withdrawn."""

    def __init__(self, intent: Intent) -> None:
        super().__init__(intent.id)
        self.intent = intent


@dataclass(slots=True, kw_only=True)
class Delivery:
    """Moves accepted intents forward, one step at a time. Each step sets the event `moved` and replaces it."""

    database: Database
    journal: Journal
    clock: Clock
    senders: Mapping[IntentKind, Sender]
    pacing: Pacing
    gates: Sequence[Gate]
    at_departure: Sequence[DepartureRule]
    confirm: Callable[[], Awaitable[str]]
    sender_deadline_s: float
    moved: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_unconfirmed: bool = field(default=False, init=False)
    _started: datetime = field(init=False)
    _delivery_lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _kept: dict[str, datetime] = field(default_factory=dict, init=False)  # when a gate last held an intent back
    _untold: list[Entry] = field(default_factory=list, init=False)
    _rechecks: Rechecks = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock.now()
        self._rechecks = Rechecks(
            database=self.database,
            journal=self.journal,
            clock=self.clock,
            senders=self.senders,
            ask=lambda call: self._asked(call, on_bug="invalid"),
            may_leave=lambda connection, intent, now: not self._waits(connection, intent, now),
        )

    async def deliver_due(self) -> DeliveryReport:
        """Send everything that may leave now, and finish what an earlier process left unfinished.

        The round ends early if a service puts an act off, because the others would not succeed either.

        Raises:
            Fatal: a service refuses the account permanently; the intent is kept.

        """
        tally: Counter[IntentState] = Counter()
        put_off = self._is_unconfirmed = False
        while not put_off and (moved := await self._step()) is not None:
            tally[moved.state] += 1
            put_off = moved.state in {"pending", "sending"}
        async with self._delivery_lock:
            await self._rechecks.run_due()
        next_in_s = await self.database.run(self._look_ahead)
        if (put_off or self._is_unconfirmed) and next_in_s is not None:
            next_in_s = max(next_in_s, policy.RETRY_BASE_S)
        return DeliveryReport(tally["done"], tally["failed"], tally["expired"], int(put_off), next_in_s)

    def wait_of(self, connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:
        """Return the longest wait that the gates demand of an intent now; None if they let it leave."""
        return max(self._waits(connection, intent, now), key=lambda wait: wait.seconds, default=None)

    def expected_waits(self, connection: sqlite3.Connection, now: datetime, of: str = "") -> Mapping[str, Wait]:
        """Return how long each act that waits for its turn will wait and why, by id, without scheduled ones.

        With an id in `of`, the gates are asked about that act only.
        """
        acts = store.last_acts(connection, now)
        latest = store.last_departures(connection, now, self.pacing.per_tick)

        def alone(intent: Intent) -> Wait:
            pace = self._pace_wait(connection, intent, acts, now, latest)
            gates = self._waits(connection, intent, now) if of in {"", intent.id} else []
            return max([pace, *gates], key=lambda wait: wait.seconds)

        pending = [one for one in store.in_state(connection, "pending") if not policy.is_for_later(one, now)]
        return policy.expected_waits(pending, alone, self.pacing)

    def expected_wait(self, connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait:
        """Return the expected wait of one intent, even a scheduled one; 0 s if it does not wait."""
        return self.expected_waits(connection, now, intent.id).get(intent.id) or policy.due_wait(intent, now)

    async def _step(self) -> Intent | None:
        async with self._delivery_lock:
            first, _ = await self._picked(self.clock.now())
            if first is None:
                return None
            with urgency(Urgency.AT_ONCE if policy.goes_first(first) else Urgency.AHEAD):
                if await self.confirm():
                    self._is_unconfirmed = True
                    return None
                # NOTE(self): that may have taken long; the gates are asked about the moment of departure.
                now = self.clock.now()
                intent, hold = await self._picked(now)
                return await self._move(intent, now, hold) if intent else None

    async def _picked(self, now: datetime) -> tuple[Intent | None, str]:
        picked = await self.database.run(lambda connection: self._pick(connection, now))
        while self._untold:
            await self.journal.record(self._untold.pop(0))
        return picked

    def _pick(self, connection: sqlite3.Connection, now: datetime) -> tuple[Intent | None, str]:
        """Return the next intent to move, or None, and why it must wait for approval instead of leaving, or ""."""
        for intent in sorted(store.in_state(connection, "sending"), key=policy.due_since):
            is_lost = policy.is_past_finding(intent, now) and policy.due_wait(intent, now).seconds <= 0
            if is_lost or self._pause_s(connection, intent, {}, now) <= 0:
                return intent, ""
        pending = store.in_state(connection, "pending")
        for intent in (*store.in_state(connection, "held"), *pending):
            if policy.is_expired(intent, now):
                return intent, ""
        for intent in pending:
            if intent.first_sent_at is None and (hold := self._hold_reason(intent)):
                return intent, hold
        chosen = self._choose(connection, pending, now).intent
        return chosen, self._hold_reason(chosen) if chosen else ""

    def _choose(self, connection: sqlite3.Connection, pending: list[Intent], now: datetime) -> policy.Choice:
        acts = store.last_acts(connection, now)
        latest = store.last_departures(connection, now, self.pacing.per_tick)
        return policy.choose(
            pending,
            lambda intent: self._pause_s(connection, intent, acts, now, latest),
            lambda intent: policy.is_backlog(intent, self._free_since(intent)),
        )

    def _free_since(self, intent: Intent) -> datetime:
        return self._kept.get(intent.id, self._started)

    def _pause_s(
        self,
        connection: sqlite3.Connection,
        intent: Intent,
        acts: policy.Acts,
        now: datetime,
        latest: Sequence[datetime] = (),
    ) -> float:
        """Return the seconds until `intent` may leave. The gates are asked only if nothing else holds it back."""
        pause = self._pace_wait(connection, intent, acts, now, latest).seconds
        if pause <= 0 and (wait := self._ask_gates(connection, intent, now)) is not None:
            return wait.seconds
        return pause

    def _pace_wait(
        self,
        connection: sqlite3.Connection,
        intent: Intent,
        acts: policy.Acts,
        now: datetime,
        latest: Sequence[datetime],
    ) -> Wait:
        """Return how long `intent` waits for its scheduled time, its pace and its target, and why."""
        waits = [policy.due_wait(intent, now)]
        if intent.state == "pending":
            pace = policy.pace_wait(
                intent,
                acts=acts,
                pacing=self.pacing,
                now=now,
                started=self._free_since(intent),
                departures=latest,
            )
            waits += [pace, _wait_for_target(connection, intent)]
        return max(waits, key=lambda wait: wait.seconds)

    def _ask_gates(self, connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:
        longest = self.wait_of(connection, intent, now)
        if longest is None:
            return None
        if intent.id not in self._kept:
            self._untold.append(audit.kept_in(intent, longest))
        self._kept[intent.id] = now
        return longest

    def _waits(self, connection: sqlite3.Connection, intent: Intent, now: datetime) -> list[Wait]:
        return [wait for gate in self.gates if (wait := _asked_gate(gate, connection, intent, now)) is not None]

    def _look_ahead(self, connection: sqlite3.Connection) -> float | None:
        """Store when each act is expected to leave, and return the seconds until the next may leave.

        Also numbers drafts from an earlier version, and those that were held on their way.
        """
        now = self.clock.now()
        store.number_drafts(connection)
        departures.note(connection, self.expected_waits(connection, now), now)
        waits = [self._pause_s(connection, intent, {}, now) for intent in store.in_state(connection, "sending")]
        waits += self._rechecks.next_in_s(connection, now)
        choice = self._choose(connection, store.in_state(connection, "pending"), now)
        if choice.intent is not None:
            waits.append(0.0)
        elif choice.wait_s is not None:
            waits.append(choice.wait_s)
        return min(waits, default=None)

    async def _move(self, intent: Intent, now: datetime, hold: str) -> Intent:
        """Take one step: look if it may have arrived, expire it, hold it for approval, or send it."""
        expired = policy.is_expired(intent, now)
        if intent.state == "sending" or (expired and intent.deferrals):
            return await self._look_then_send(intent, now)
        if expired:
            return await self._end(intent, "expired", _waited(intent))
        if intent.first_sent_at and (hold or intent.by_owner):
            # NOTE(self): a try that was put off may still have arrived, before or during the wait for approval; then
            # nobody can reject it any more.
            return await self._look_then_send(intent, now)
        return await (self._hold(intent, hold) if hold else self._send(intent, now))

    async def _look_then_send(self, intent: Intent, now: datetime) -> Intent:
        found = await self._asked(self.senders[intent.kind].find(intent), on_bug="invalid")
        if isinstance(found, Err):
            step = policy.after_find(intent, found, now)
            if step.state == "failed" and policy.is_past_finding(intent, now):
                found = replace(found, error=f"whether it arrived is not known: {found.error}")
            return await self._failed(intent, found, step)
        if found.data is not None:
            return await self._arrived(intent, found.data, earlier=True)
        if intent.state == "sending" and isinstance(self.senders[intent.kind], KeylessSender):
            again_in_s = policy.look_again_in_s(intent)
            intent = replace(intent, looks=intent.looks + 1)
            if again_in_s is not None:
                later = replace(intent, not_before=iso(self.clock.now() + timedelta(seconds=again_in_s)))
                return await self._write(later, audit.not_found(later, again_in_s))
        match policy.not_arrived(intent, now):
            case "expired":
                return await self._end(intent, "expired", _waited(intent))
            case "failed":
                return await self._end(intent, "failed", f"gave up after {intent.attempts} tries: {intent.error}")
            case _:
                return await self._send_again(intent, now)

    async def is_gone(self, done: Intent) -> bool:
        """Return whether the service says that what a done intent made is not there any more."""
        found = await self._asked(self.senders[done.kind].find(done), on_bug="invalid")
        return not isinstance(found, Err) and found.data is None

    async def _send_again(self, intent: Intent, now: datetime) -> Intent:
        """Ask the gates again, as the look may have taken long; then send or hold the intent."""
        wait = await self.database.run(lambda connection: self._ask_gates(connection, intent, self.clock.now()))
        if wait:
            return intent
        hold = await self.database.run(lambda _: self._hold_reason(intent))
        return await (self._hold(intent, hold) if hold else self._send(intent, now))

    def _hold_reason(self, intent: Intent) -> str:
        """Return why an admitted intent must now wait for the owner's approval, or ""."""
        verdicts = [_asked_rule(rule, intent) for rule in self.at_departure]
        return policy.decide([verdict for verdict in verdicts if verdict.says == "hold"], "")[1]

    async def _hold(self, intent: Intent, reason: str) -> Intent:
        held = replace(
            intent, state="held", not_before=None, error=f"{reason}; it was accepted before that was set", looks=0
        )
        try:
            what = await self.database.run(lambda connection: act_words(connection, held).line)
            number = (await self.database.run(store.draft_numbers)).get(held.id, 0)
            return await self._write(held, audit.held(held, what, number), was=intent)
        except _Overtaken as overtaken:
            return overtaken.intent

    async def _send(self, intent: Intent, now: datetime) -> Intent:
        first_sent_at = intent.first_sent_at or iso(now)
        out = replace(intent, state="sending", not_before=None, first_sent_at=first_sent_at, sent_at=iso(now), looks=0)
        try:
            await self._write(out, audit.sending(intent), was=intent)
        except _Overtaken as overtaken:
            return overtaken.intent
        result = await self._asked(self.senders[out.kind].send(out), on_bug="unknown_outcome")
        if isinstance(result, Ok):
            return await self._arrived(out, result.data, earlier=False)
        step = policy.after_send(out, result)
        if step.state == "failed" and intent.first_sent_at:
            # NOTE(self): a late request of an earlier try may arrive just before this one, and cause its refusal.
            found = await self._asked(self.senders[out.kind].find(out), on_bug="invalid")
            if isinstance(found, Ok) and found.data is not None:
                return await self._arrived(out, found.data, earlier=True)
        return await self._failed(out, result, step)

    async def _arrived(self, intent: Intent, sent: Sent, *, earlier: bool) -> Intent:
        due = self._rechecks.first_at(intent)
        after = replace(
            intent,
            state="done",
            not_before=due,
            result_uri=sent.uri,
            result_kind=sent.kind,
            result_id=sent.id or None,
            error=None,
            looks=0,
        )
        return await self._write(after, audit.done(after, earlier=earlier))

    async def _failed(self, intent: Intent, error: Err, step: policy.DeliveryStep) -> Intent:
        if step.retry_in_s is None:
            counted = replace(intent, attempts=intent.attempts + step.counts)
            return await self._end(counted, step.state, error.error)
        after = replace(
            intent,
            state=step.state,
            attempts=intent.attempts + step.counts,
            deferrals=intent.deferrals + (not step.counts),
            not_before=iso(self.clock.now() + timedelta(seconds=step.retry_in_s)),
            error=error.error,
        )
        await self._write(after, audit.put_off(after, step.retry_in_s))
        if error.kind == "fatal":
            raise Fatal(error.error, remedy="Look at the account on the network, then start again; nothing was lost.")
        return after

    async def _end(self, intent: Intent, state: IntentState, reason: str) -> Intent:
        after = replace(intent, state=state, not_before=None, error=reason)
        return await self._write(after, audit.ended(after))

    async def _write(self, intent: Intent, entry: Entry, *, was: Intent | None = None) -> Intent:
        self._kept.pop(intent.id, None)

        def move(connection: sqlite3.Connection) -> tuple[Intent, Entry]:
            if was is not None and (found := store.get(connection, was.id)) is not None and found.state != was.state:
                raise _Overtaken(found)
            store.update(connection, intent)
            if intent.state == "done" and intent.kind == "delete":
                store.mark_undone(connection, intent.target)
                store.forget_words(connection, intent.target)
            if intent.state == "done" and intent.dedup_key:
                pair = (intent.dedup_key, intent.result_uri or "")
                store.remember_words(connection, [pair], self.clock.now())
            return intent, entry

        after = await self.journal.record_with(move)
        self.moved.set()
        self.moved = asyncio.Event()
        return after

    async def _asked(self, call: Awaitable[ApiResult[T]], *, on_bug: ErrKind) -> ApiResult[T]:
        """Return the sender's answer within the deadline; an unexpected exception becomes an `Err` of kind `on_bug`."""
        try:
            async with asyncio.timeout(self.sender_deadline_s):
                return await call
        except TimeoutError:
            return Err(f"no answer within {self.sender_deadline_s:g} s", "unknown_outcome")
        except Fatal:
            raise
        except Exception as error:
            return Err(f"{type(error).__name__}: {error}", on_bug)


def _waited(intent: Intent) -> str:
    why = f"; last: {intent.error}" if intent.error else ""
    return f"waited from {intent.created_at} until {intent.expires_at}{why}"


def _wait_for_target(connection: sqlite3.Connection, intent: Intent) -> Wait:
    """Return how long an intent waits for the one that it depends on, which could otherwise arrive after it."""
    waits = store.waits_for_another(connection, intent)
    return Wait("what it is about has not left yet", policy.RETRY_BASE_S) if waits else policy.NO_WAIT


def _asked_gate(gate: Gate, connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:
    try:
        return gate(connection, intent, now)
    except Exception as error:
        return Wait(f"the gate {named(gate)} failed: {type(error).__name__}: {error}", BROKEN_GATE_WAIT_S)


def _asked_rule(rule: DepartureRule, intent: Intent) -> Verdict:
    try:
        return rule(intent)
    except Exception as error:
        return policy.failed_rule(named(rule), error, "hold")


def named(asked: object) -> str:
    """Return the name of a rule or gate for the owner: that of the function, or of its class."""
    return getattr(asked, "__name__", type(asked).__name__)
