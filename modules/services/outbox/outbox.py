"""The outbox, which sends all public acts. An act is first a committed row, then a request; never the other way round.

Every accepted intent survives a crash, with its record key and its state. Each step and its journal entry are one
transaction. `delivery` sends the intents; `OutboxLoop` triggers it when something is due.
"""

import asyncio
import sqlite3
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from adapters.atproto.writes import tid_for
from common.clock import Clock
from common.errors import Fatal, PolicyBlocked
from common.intervals import Pace
from common.text.strings import dedup_key
from modules.runtime.budget.report import zone_of
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome
from modules.services.outbox import approval, audit, people, policy, store
from modules.services.outbox.act_words import act_words, end_of
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.delivery import Delivery, named
from modules.services.outbox.departures import Departure, departure_of
from modules.services.outbox.github_bodies import ReviewBody
from modules.services.outbox.types import (
    ACTIVE_STATES,
    REPEATABLE,
    ActStanding,
    Advice,
    DeliveryReport,
    DepartureRule,
    Gate,
    Inquiry,
    Intent,
    Pacing,
    ProposedAction,
    Rule,
    Sender,
    Submitted,
    Verdict,
    standing_after,
    standing_of,
)

# NOTE(self): longer than the longest wait that a service may demand of its adapter within one call.
SENDER_DEADLINE_S = 420.0
INQUIRY_DEADLINE_S = 80.0
_ASK_AGAIN_S = 300.0
_SETTLED_LOOK_S = 600.0
_SENT_WITHIN_S = 60.0
_KEYS_TRIED = 256


async def _confirmed() -> str:
    return ""


@dataclass(slots=True, kw_only=True)
class Outbox:
    """Admits proposed actions, stores them as intents, and sends each exactly once, at its pace.

    `confirm` is awaited before each departure, and returns why nothing may leave now, "" if it may.
    """

    database: Database
    journal: Journal
    clock: Clock
    senders: Mapping[IntentKind, Sender]
    pacing: Pacing
    inquiries: Sequence[Inquiry] = ()
    rules: Sequence[Rule] = ()
    gates: Sequence[Gate] = ()
    at_departure: Sequence[DepartureRule] = ()
    own_did: Callable[[], str]
    confirm: Callable[[], Awaitable[str]] = _confirmed
    sender_deadline_s: float = SENDER_DEADLINE_S
    _delivery: Delivery = field(init=False)
    _work: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._delivery = Delivery(
            database=self.database,
            journal=self.journal,
            clock=self.clock,
            senders=self.senders,
            pacing=self.pacing,
            gates=self.gates,
            at_departure=self.at_departure,
            confirm=self.confirm,
            sender_deadline_s=self.sender_deadline_s,
        )

    async def submit(self, action: ProposedAction) -> Submitted:
        """Store a proposed action as an intent, and return it with the advice. Never raises for policy."""
        await self._note_if_undone(action)
        action, found = await self._inquire(policy.without_closing_words(action))

        def admit(connection: sqlite3.Connection) -> tuple[Submitted, Entry]:
            now = self.clock.now()
            waited = approval.make_way(connection, action, now)
            older = next(iter(waited), None)
            proposed = replace(action, hold=action.hold or approval.stays_held(older, action))
            said = [*found, *(one for rule in self.rules for one in _asked(rule, connection, proposed, now))]
            before = store.stored_before(connection, proposed, now)
            admission = policy.admit(proposed, said, before, intent_id=_new_id(action, before.created_at), now=now)
            target = action.replaces
            if older and older.state == "pending" and admission.intent.state == "held":
                target, older = older.id, approval.restored(connection, older) or next(iter(waited[1:]), None)
            intent = replace(admission.intent, replaces=older.replaces if older else target)
            is_change = older is not None and intent.state != "blocked"
            if older and not is_change:
                for one in waited:
                    store.update(connection, one)  # it waits as before
                older = None
            if intent.kind == "threadgate" and intent.state != "blocked":
                store.overtake(connection, intent)
            store.insert(connection, intent)
            keeps_number = is_change and action.by_owner  # NOTE(self): else they may approve words they never read
            if older and keeps_number:
                store.pass_number_on(connection, older.id, intent.id)
            store.number_drafts(connection)
            if intent.kind == "delete" and intent.state == "pending":
                store.cancel_unsent(connection, intent.target)
            wait = self._delivery.expected_wait(connection, intent, now)
            number = store.draft_numbers(connection).get(intent.id, 0)
            what = act_words(connection, intent).line if intent.state == "held" else ""
            changed = older if intent.kind in approval.WORDED else None
            entry = audit.admission_entry(admission, what, number, zone_of(connection, ""), changed)
            entry = replace(entry, provenance=action.provenance)
            is_changed = keeps_number and changed is not None
            return Submitted(intent, admission.advice, wait, number, is_changed), entry

        submitted = await self.journal.record_with(admit)
        if submitted.accepted:
            self._work.set()
        return submitted

    async def _note_if_undone(self, action: ProposedAction) -> None:
        """If the owner orders what is done, note it as undone if its record is gone, so that it may be repeated."""
        if not action.by_owner or action.kind not in REPEATABLE:
            return
        kind, target = action.kind, action.target
        done = await self.database.run(lambda connection: store.active_on_target(connection, kind, target))
        if done and done.state == "done" and await self._delivery.is_gone(done):
            await self.note_undone(done.result_uri or "")

    async def _inquire(self, action: ProposedAction) -> tuple[ProposedAction, list[Verdict]]:
        """Return the action, with its body changed by what the inquiries found, and their verdicts."""
        found = [verdict for inquiry in self.inquiries for verdict in await _inquired(inquiry, action)]
        body = next((one.body for one in found if one.body is not None), action.body)
        return replace(action, body=body), found

    async def do_once(
        self, action: ProposedAction, tries: int = 1, again_after: timedelta | None = None
    ) -> ActStanding:
        """Propose an act unless it is done, may still be, or is left alone; return how it stands after that.

        `tries` and `again_after` are those of `standing`. Never raises for policy, and never waits until it is sent.

        Raises:
            ValueError: the act has no target to identify it.

        """
        if not action.target:
            raise ValueError(f"an act that is done once needs a target: {action.kind}")
        before = await self.standing(action.kind, action.target, tries, again_after)
        return standing_after(await self.submit(action), before.tries) if before.code == "free" else before

    async def standing(
        self, kind: IntentKind, target: str, tries: int = 1, again_after: timedelta | None = None
    ) -> ActStanding:
        """Return how an act stands that is done once for its target.

        An act that failed `tries` times is left alone for `again_after` of lived time, or forever if that is None.
        """
        return standing_of(await self.by_target(kind, target), tries, again_after, self.clock.since)

    async def advise(self, action: ProposedAction) -> Advice:
        """Return what admission and the gates would say to an act now, without storing anything.

        It is for acts that are useless if they wait: only an act that may leave at this moment is `admitted`.
        """
        action, found = await self._inquire(action)

        def judge(connection: sqlite3.Connection) -> Advice:
            now = self.clock.now()
            said = [*found, *(one for rule in self.rules for one in _asked(rule, connection, action, now))]
            before = store.stored_before(connection, action, now)
            admission = policy.admit(action, said, before, intent_id=uuid.uuid4().hex, now=now)
            wait = self._delivery.wait_of(connection, admission.intent, now)
            if admission.advice.code != "admitted" or wait is None:
                return admission.advice
            return Advice("later", wait.reason, now + timedelta(seconds=wait.seconds))

        return await self.database.run(judge)

    async def held(self) -> list[Intent]:
        """Return what waits for the owner's approval, oldest first."""
        return await self.database.run(approval.held)

    async def scheduled(self) -> list[Intent]:
        """Return the intents that wait for a scheduled time, even if they need approval first; the latest first."""
        return await self.database.run(store.scheduled)

    async def waiting(self, given: str) -> tuple[Intent, str]:
        """Return a waiting act, named as in `approval.find`, and its number and words, without anybody else's words.

        Raises `NotWaiting`.
        """

        def read(connection: sqlite3.Connection) -> tuple[Intent, str]:
            found = approval.find(connection, given)
            return found, _numbered(connection, found)

        return await self.database.run(read)

    async def draft_number(self, intent_id: str) -> int:
        """Return the number by which the owner knows an act that waits, or waited recently; 0 for none."""
        return (await self.database.run(store.draft_numbers)).get(intent_id, 0)

    async def own_record(self, uri: str) -> tuple[Intent | None, str]:
        """Return the intent whose record is, or would be, at `uri`, or None, and its words as in `waiting`."""

        def read(connection: sqlite3.Connection) -> tuple[Intent | None, str]:
            found = store.at_address(connection, uri)
            return found, _numbered(connection, found) if found else ""

        return await self.database.run(read)

    async def approve(self, *given: str) -> list[Intent]:
        """Approve intents for the owner, named as in `approval.find`, all or none. Raises `NotWaiting`."""
        now = self.clock.now()
        approved = await self.journal.record_all_with(lambda connection: approval.approve(connection, given, now))
        self._work.set()
        return approved

    async def departures(self, intents: Collection[Intent]) -> dict[str, Departure]:
        """Return when these intents leave and why not sooner, by id, without those within a minute or scheduled."""
        now = self.clock.now()
        waits = await self.database.run(lambda connection: self._delivery.expected_waits(connection, now))
        found = {one.id: departure_of(waits[one.id], now) for one in intents if one.id in waits}
        return {of: departure for of, departure in found.items() if departure}

    async def edit(self, intent_id: str, text: str, rules: Sequence[Rule]) -> Intent:
        """Give a draft the owner's words and approve it, as in `approval.edit`."""
        now = self.clock.now()
        intent = await self.journal.record_with(lambda rows: approval.edit(rows, intent_id, text, rules, now))
        self._work.set()
        return intent

    async def reject(self, *given: str, reason: str = "", outcome: approval.Stopped = "rejected") -> list[Intent]:
        """Reject or withdraw intents for the owner, named as in `approval.find`, all or none. Raises `NotWaiting`."""
        now = self.clock.now()
        return await self.journal.record_all_with(lambda rows: approval.reject(rows, given, reason, now, outcome))

    async def withdraw_begun(self, prefix: str, reason: str) -> bool:
        """Withdraw the acts whose target begins with `prefix` and that were not sent; return whether there was one."""
        withdrawn = await self.database.run(lambda rows: store.withdraw_begun(rows, prefix, reason))
        for one in withdrawn:
            await self.journal.record(audit.stopped(one))
        return bool(withdrawn)

    async def deliver_due(self) -> DeliveryReport:
        """Send everything that may leave now, and finish what an earlier process left unfinished.

        The round ends early if a service puts an act off, because the others would not succeed either.

        Raises:
            Fatal: a service refuses the account permanently; the intent is kept.

        """
        return await self._delivery.deliver_due()

    async def wait_for_work(self, timeout_s: float) -> bool:
        """Wait until something was accepted since the last call, at most `timeout_s` seconds; True if so."""
        await self._until(self._work, timeout_s)
        came = self._work.is_set()
        self._work.clear()
        return came

    async def _until(self, event: asyncio.Event, timeout_s: float) -> None:
        """Wait for an event, at most `timeout_s` seconds."""
        waiters = [asyncio.create_task(event.wait()), asyncio.create_task(self.clock.sleep(timeout_s))]
        try:
            await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiters:
                waiter.cancel()
            await asyncio.gather(*waiters, return_exceptions=True)

    async def warm_up_from_feed(self, items: Iterable[tuple[str, str]]) -> int:
        """Remember the words of the SOUL's own feed, given as `(uri, text)`, newest first; return how many were new."""
        own = f"at://{self.own_did()}/"
        keys = [(dedup_key(text), uri) for uri, text in items if uri.startswith(own) and text.strip()]
        now = self.clock.now()
        return await self.database.run(lambda connection: store.remember_words(connection, reversed(keys), now))

    async def get(self, intent_id: str) -> Intent | None:
        """Return an intent by its id, or None."""
        return await self.database.run(lambda connection: store.get(connection, intent_id))

    async def settled(self, intent_id: str, within_s: float = _SENT_WITHIN_S) -> Intent | None:
        """Wait until an intent left or was given up, at most `within_s` seconds, and return it in its new state.

        One that waits for the owner's approval is returned at once; None if the id is unknown.
        """
        end = self.clock.monotonic() + within_s
        while True:
            moved = self._delivery.moved
            intent = await self.get(intent_id)
            if intent is None or intent.state not in {"pending", "sending"} or self.clock.monotonic() >= end:
                return intent
            await self._until(moved, min(_SETTLED_LOOK_S, end - self.clock.monotonic()))

    async def made(self, uri: str) -> Intent | None:
        """Return the intent that made the record at `uri`, or None."""
        return await self.database.run(lambda connection: store.at_result(connection, uri))

    async def opened(self, url: str) -> Intent | None:
        """Return the intent that opened the issue at `url`, or None."""
        return await self.database.run(lambda connection: store.opened_at(connection, url))

    async def note_undone(self, uri: str) -> None:
        """Note that somebody deleted the record at `uri`, so that the act that made it may be repeated."""
        await self.database.run(lambda connection: store.mark_undone(connection, uri))

    async def accepted(self, cause_id: str, *kinds: IntentKind) -> list[Intent]:
        """Return the intents of one cause that are done or may still be, newest first; any kind if none is given."""
        rows = await self.by_cause(cause_id)
        return [one for one in rows if one.state in ACTIVE_STATES and (not kinds or one.kind in kinds)]

    async def done(self, cause_id: str, *kinds: IntentKind) -> list[Intent]:
        """Return the intents of one cause that are done, newest first; any kind if none is given."""
        return [one for one in await self.accepted(cause_id, *kinds) if one.state == "done"]

    async def standing_for(self, cause_id: str, tries: int = 1, again_after: timedelta | None = None) -> ActStanding:
        """Return how an act stands that is done once for its cause, with `tries` and `again_after` as in `standing`."""
        return standing_of(await self.by_cause(cause_id), tries, again_after, self.clock.since)

    async def was_proposed(self, cause_id: str) -> bool:
        """Return whether anything was ever proposed for a cause, whatever became of it."""
        return bool(await self.by_cause(cause_id))

    async def by_cause(self, cause_id: str) -> list[Intent]:
        """Return all intents of one cause, newest first."""
        return await self.database.run(lambda connection: store.by_cause(connection, cause_id))

    async def ends(self, acts: Sequence[Intent]) -> list[str]:
        """Return how each act ended or stands, in a sentence for the owner."""
        return await self.database.run(lambda connection: [end_of(connection, one) for one in acts])

    async def by_target(self, kind: IntentKind, target: str) -> list[Intent]:
        """Return all intents of a kind for one target, newest first."""
        return await self.database.run(lambda connection: store.by_target(connection, kind, target))

    async def is_taken_back(self, intents: Iterable[Intent]) -> bool:
        """Return whether the owner ordered the deletion of what the first done one of these intents created."""
        uri = next((one.result_uri for one in intents if one.state == "done" and one.result_uri), "")
        deletions = await self.by_target("delete", uri) if uri else []
        return any(one.by_owner and one.state in {"pending", "sending", "done"} for one in deletions)

    async def waits(self, kind: IntentKind, prefix: str) -> bool:
        """Return whether an intent of a kind whose target begins with `prefix` was accepted and is not done yet."""
        return await self.database.run(lambda rows: store.is_accepted(rows, kind, prefix, unfinished=True))

    async def is_accepted(self, kind: IntentKind, prefix: str) -> bool:
        """Return whether an intent of a kind whose target begins with `prefix` is done or may still be."""
        return await self.database.run(lambda rows: store.is_accepted(rows, kind, prefix))

    async def with_picture(self, sha256: str) -> Intent | None:
        """Return the newest active post or reply that shows the picture with that hash, or None."""
        return await self.database.run(lambda connection: store.with_picture(connection, sha256))

    async def responds_to(self, did: str, since: datetime) -> bool:
        """Return whether a reply to or a like of a record of this account was accepted since then."""
        return await self.database.run(lambda connection: store.responds_to(connection, did, since))

    async def said_to(self, did: str, *, apart_from: str, most: int) -> list[Intent]:
        """Return the newest replies to an account outside the thread `apart_from` (`people.said_to`), newest first."""
        return await self.database.run(
            lambda connection: people.said_to(connection, did, apart_from=apart_from, most=most)
        )

    async def of_kind(self, kind: IntentKind, limit: int) -> list[Intent]:
        """Return the last `limit` intents of a kind, newest first."""
        return await self.database.run(lambda connection: store.of_kind(connection, kind, limit))

    async def at_place(self, kinds: Collection[IntentKind], place: str, *, since: str = "") -> list[Intent]:
        """Return all intents of these kinds in one place (`store.at_place`), newest first."""
        return await self.database.run(lambda connection: store.at_place(connection, kinds, place, since=since))

    async def standing_verdict(self, review: ReviewBody) -> Intent | None:
        """Return the newest approval, or request for changes, of the same commit if it is the verdict of `review`."""
        rows = await self.at_place((review.kind,), f"{review.repo}#{review.number}".lower())
        given = ((one, one.body) for one in rows if one.state in ACTIVE_STATES and isinstance(one.body, ReviewBody))
        last = next((one for one in given if one[1].event != "COMMENT" and one[1].commit_id == review.commit_id), None)
        return last[0] if last and last[1].event == review.event else None

    async def since(self, kinds: Collection[IntentKind], moment: datetime) -> list[Intent]:
        """Return all intents of these kinds that were accepted at `moment` or later, newest first."""
        return await self.database.run(lambda connection: store.since(connection, kinds, moment))

    async def last_done_or_accepted(self, kind: IntentKind) -> datetime | None:
        """Return when the latest active intent of a kind was accepted or, if that is later, sent; None for none."""
        return await self.database.run(lambda connection: store.last_active(connection, kind))

    async def accepted_since(self, kind: IntentKind, moment: datetime) -> int:
        """Return how many active intents of a kind were accepted at `moment` or later."""
        return await self.database.run(lambda connection: store.active_since(connection, kind, moment))


def _numbered(connection: sqlite3.Connection, intent: Intent) -> str:
    number, words = store.draft_numbers(connection).get(intent.id), act_words(connection, intent).own
    return f"number {number}, {words}" if number else words


def _asked(rule: Rule, connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:
    """Return the verdicts of a rule. One that fails lets nothing pass."""
    try:
        return list(rule(connection, action, now))
    except PolicyBlocked as refusal:
        return [Verdict(named(rule), "block", str(refusal))]
    except Exception as error:
        return [policy.failed_rule(named(rule), error)]


async def _inquired(inquiry: Inquiry, action: ProposedAction) -> Sequence[Verdict]:
    """Return the verdicts of an inquiry. One that fails, or takes too long, lets nothing pass."""
    try:
        async with asyncio.timeout(INQUIRY_DEADLINE_S):
            return list(await inquiry(action))
    except TimeoutError:
        reason = f"no answer within {INQUIRY_DEADLINE_S:g} s"
        return [Verdict(named(inquiry), "block", reason, instead="later", retry_in_s=_ASK_AGAIN_S)]
    except Fatal:
        raise
    except Exception as error:
        return [policy.failed_rule(named(inquiry), error)]


def _new_id(action: ProposedAction, created_at: datetime) -> str:
    """Return an id for a new intent; its record key is derived from it."""
    tried = [uuid.uuid4().hex for _ in range(_KEYS_TRIED if action.key_fits else 1)]
    fits = action.key_fits or bool
    return next((one for one in tried if fits(tid_for(created_at, one))), tried[0])


@dataclass(slots=True)
class OutboxLoop(Loop):
    """Sends what is due, once `ready` returns that it is known whether anything may leave; new intents wake it."""

    name = "outbox"
    jitter = 0.0

    pace: Pace
    outbox: Outbox
    ready: Callable[[], bool]

    @property
    def interval_ms(self) -> float:
        return self.pace.outbox_drain_ms

    async def run(self) -> Outcome:
        if not self.ready():
            return Outcome(ran=False, reason="whether it may act is still to be seen")
        report = await self.outbox.deliver_due()
        reason = f"{report.done} sent, {report.failed} failed, {report.expired} expired, {report.put_off} put off"
        # NOTE(self): an approval by another process is found only at the next look, so no wait exceeds the interval.
        next_in_s = None if report.next_in_s is None else min(report.next_in_s, self.interval_ms / 1000)
        return Outcome(ran=True, reason=reason, next_in_s=next_in_s)
