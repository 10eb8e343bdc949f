"""The one way out for public acts. An act is first a committed row, then a request; never the other way round.

What survives a crash: every accepted intent, with its record key and its state. Each movement and its journal entry
are one transaction. How intents leave is told in `delivery`.
"""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from adapters.atproto.tid import tid_for
from common.clock import Clock, iso
from common.errors import PolicyBlocked
from common.text.strings import dedup_key
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox import approval, audit, policy, store
from modules.services.outbox.bodies import IntentKind, OpaqueBody
from modules.services.outbox.delivery import Delivery, named
from modules.services.outbox.types import (
    DeliveryReport,
    DepartureRule,
    Gate,
    Intent,
    IntentState,
    Pacing,
    ProposedAction,
    Rule,
    Sender,
    Submitted,
    Verdict,
)

# NOTE(self): longer than the longest wait that a service may ask of its adapter within one call.
SENDER_DEADLINE_S = 420.0


class Outbox:
    """Accepts drafts, keeps them, and lets them out at their pace, each exactly once."""

    def __init__(
        self,
        *,
        database: Database,
        journal: Journal,
        clock: Clock,
        senders: Mapping[IntentKind, Sender],
        pacing: Pacing,
        rules: Sequence[Rule] = (),
        gates: Sequence[Gate] = (),
        at_departure: Sequence[DepartureRule] = (),
        own_did: Callable[[], str],
        sender_deadline_s: float = SENDER_DEADLINE_S,
    ) -> None:
        self._database = database
        self._journal = journal
        self._clock = clock
        self._rules = rules
        self._own_did = own_did
        self._delivery = Delivery(
            database=database,
            journal=journal,
            clock=clock,
            senders=senders,
            pacing=pacing,
            gates=gates,
            at_departure=at_departure,
            sender_deadline_s=sender_deadline_s,
        )
        self._work = asyncio.Event()

    async def submit(self, action: ProposedAction) -> Submitted:
        """Keep a proposed action as an intent, and answer what to do about it. Never raises for policy."""
        submitted = await self._journal.record_with(lambda connection: self._admit(connection, action))
        if submitted.accepted:
            self._work.set()
        return submitted

    async def held(self) -> list[Intent]:
        """What waits for the owner's yes, oldest first."""
        return await self._database.run(approval.held)

    async def approve(self, intent_id: str) -> Intent:
        """The owner said yes; `intent_id` as in `approval.find`. Raises `NotWaiting`."""
        now = self._clock.now()
        intent = await self._journal.record_with(lambda connection: approval.approve(connection, intent_id, now))
        self._work.set()
        return intent

    async def reject(self, intent_id: str, reason: str = "") -> Intent:
        """The owner said no; `intent_id` as in `approval.find`. Raises `NotWaiting`."""
        now = self._clock.now()
        return await self._journal.record_with(lambda connection: approval.reject(connection, intent_id, reason, now))

    async def deliver_due(self) -> DeliveryReport:
        """Let out everything whose turn it is, and look after what an earlier process left unfinished.

        The round ends early when the service puts something off: the rest would fare no better.

        Raises:
            Fatal: a service refuses us for good; the intent is kept.

        """
        return await self._delivery.deliver_due()

    async def wait_for_work(self, timeout_s: float) -> bool:
        """Wait until something was accepted since the last call, at most `timeout_s` seconds; True if so."""
        waiters = [asyncio.create_task(self._work.wait()), asyncio.create_task(self._clock.sleep(timeout_s))]
        try:
            await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiters:
                waiter.cancel()
            await asyncio.gather(*waiters, return_exceptions=True)
        came = self._work.is_set()
        self._work.clear()
        return came

    async def warm_up_from_feed(self, items: Iterable[tuple[str, str]]) -> int:
        """Learn from `(uri, text)` of our own feed, newest first, what was said before; returns how many were new."""
        own = f"at://{self._own_did()}/"
        keys = [(dedup_key(text), uri) for uri, text in items if uri.startswith(own) and text.strip()]
        now = self._clock.now()
        return await self._database.run(lambda connection: store.add_feed_keys(connection, reversed(keys), now))

    async def get(self, intent_id: str) -> Intent | None:
        """One intent."""
        return await self._database.run(lambda connection: store.get(connection, intent_id))

    async def by_cause(self, cause_id: str) -> list[Intent]:
        """All intents of one cause, newest first."""
        return await self._database.run(lambda connection: store.by_cause(connection, cause_id))

    async def by_target(self, kind: IntentKind, target: str) -> list[Intent]:
        """All intents of a kind for one target, newest first."""
        return await self._database.run(lambda connection: store.by_target(connection, kind, target))

    async def recent(self, limit: int) -> list[Intent]:
        """The last `limit` intents, newest first."""
        return await self._database.run(lambda connection: store.recent(connection, limit))

    async def counts(self) -> dict[IntentState, int]:
        """How many intents are in each state; states without any are left out."""
        return await self._database.run(store.counts)

    async def last_done_or_accepted(self, kind: IntentKind) -> datetime | None:
        """When the latest intent of a kind, not given up, was accepted or left."""
        return await self._database.run(lambda connection: store.last_active(connection, kind))

    async def accepted_since(self, kind: IntentKind, moment: datetime) -> int:
        """How many intents of a kind, not given up, were accepted at `moment` or later."""
        return await self._database.run(lambda connection: store.active_since(connection, kind, moment))

    def _admit(self, connection: sqlite3.Connection, action: ProposedAction) -> tuple[Submitted, Entry]:
        now = self._clock.now()
        key = dedup_key(action.text, action.media_id) if action.text.strip() or action.media_id else ""
        verdicts = [verdict for rule in self._rules for verdict in _asked(rule, connection, action, now)]
        verdicts.append(_once(connection, action, key, now))
        # NOTE(self): what another rule says may quote the action, so of a withheld one nobody else is heard.
        withheld = [verdict for verdict in verdicts if verdict.says == "block" and verdict.withhold]
        verdicts = withheld or verdicts
        state, reason = policy.decide(verdicts, action.hold)
        intent_id = uuid.uuid4().hex
        born = store.unique_created_at(connection, now)
        intent = Intent(
            id=intent_id,
            kind=action.kind,
            target=action.target,
            body=action.body,
            body_hash=store.body_hash(action.body),
            dedup_key=key,
            rkey=tid_for(born, intent_id),
            cause_id=action.cause_id,
            created_at=iso(born),
            expires_at=iso(policy.expires_at(action.kind, now)),
            state=state,
            urgent=action.urgent,
            error=reason or None,
            by_owner=action.by_owner,
        )
        if withheld:
            intent = replace(intent, body=OpaqueBody(), target="", body_hash="", dedup_key="")
        store.insert(connection, intent)
        if intent.kind == "delete" and state == "pending":
            store.cancel_unsent(connection, intent.target)
        advice = policy.advise(state, reason, verdicts, now)
        return Submitted(intent, advice), audit.admission_entry(intent, verdicts)


def _asked(rule: Rule, connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:
    """What the rule says. One that fails lets nothing pass."""
    try:
        return list(rule(connection, action, now))
    except PolicyBlocked as refusal:
        return [Verdict(named(rule), "block", str(refusal))]
    except Exception as error:
        return [Verdict(named(rule), "block", f"the rule {named(rule)} failed: {type(error).__name__}: {error}")]


def _once(connection: sqlite3.Connection, action: ProposedAction, key: str, now: datetime) -> Verdict:
    """Nothing twice to one target, and no words twice."""
    reason = ""
    if action.target:
        reason = policy.repeated_reason(action.kind, store.active_on_target(connection, action.kind, action.target))
    if not reason and key:
        twin = store.active_duplicate(connection, key)
        reason = policy.duplicate_reason(twin, now, in_feed=store.in_feed(connection, key))
    return Verdict("once", "block", reason) if reason else Verdict("once")
