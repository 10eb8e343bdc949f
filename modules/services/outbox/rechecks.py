"""Later looks at what was sent more than once to a service that takes no key of ours.

The first request may arrive after the second one was answered. So the sender looks again for a while, and closes what
it finds twice. When the next look is due stands in the row of the intent, and survives a crash.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from common.clock import Clock, iso, parse_iso
from common.result import ApiResult, Err
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox import audit, policy, store
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.types import Intent, KeylessSender, Sender


@dataclass(frozen=True, slots=True)
class Rechecks:
    """Looks for duplicates when it is time.

    Attributes:
        database: where intents are kept.
        journal: told what was closed.
        clock: the time.
        senders: those that are `KeylessSender` are asked.
        ask: calls a sender within the deadline.
        may_leave: whether the gates are open for an intent.

    """

    database: Database
    journal: Journal
    clock: Clock
    senders: Mapping[IntentKind, Sender]
    ask: Callable[[Awaitable[ApiResult[int]]], Awaitable[ApiResult[int]]]
    may_leave: Callable[[sqlite3.Connection, Intent, datetime], bool]

    def first_at(self, intent: Intent) -> str | None:
        """When an intent that is now done must be looked at again, or None."""
        needed = intent.was_repeated and isinstance(self.senders[intent.kind], KeylessSender)
        return self._after(replace(intent, looks=0)) if needed else None

    def next_in_s(self, connection: sqlite3.Connection, now: datetime) -> list[float]:
        """Seconds until each look that is to be made within the hour."""
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
