"""Acts that wait for the owner's approval or to leave, in words: one row for each act, the same on every surface."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.clock import iso, local, parse_iso
from common.wording import deed, told_reason
from modules.services.craft.proposals import behind, rests_on
from modules.services.explanation.story import named
from modules.services.outbox import store
from modules.services.outbox.act_words import ActWords, act_words
from modules.services.outbox.departures import Departure, expected, told
from modules.services.outbox.policy import is_expired
from modules.services.outbox.types import Intent


@dataclass(frozen=True, slots=True)
class Draft:
    """A waiting act, its words, and why it waits, in words.

    `number` names it on every surface; it is 0 if it can no longer be stopped. `departure` says when it leaves if that
    is more than a minute ahead; None if it is sooner, scheduled, or not approved. `rests_on` lists what a proposal
    rests on, one line each.
    """

    intent: Intent
    words: ActWords
    reason: str = ""
    number: int = 0
    departure: Departure | None = None
    rests_on: Sequence[str] = ()

    def when(self, now: datetime, timezone: str) -> str:
        """Return until when it waits for the owner's approval, or when it leaves and why not sooner."""
        act = self.intent
        if is_expired(act, now):
            return "expired"
        if act.state != "held":
            return told(self.departure or Departure(act.scheduled_for or iso(now), ""), now, timezone)
        if act.scheduled_for:
            return f"if approved, {told(Departure(act.scheduled_for, ''), now, timezone)}"
        return f"waits until {local(parse_iso(act.expires_at), timezone):%Y-%m-%d %H:%M}"


def in_words(connection: sqlite3.Connection, intents: Iterable[Intent]) -> list[Draft]:
    """Return each act in words; in the reason known handles replace DIDs."""
    numbers, departures = store.draft_numbers(connection), expected(connection)
    return [
        Draft(
            intent,
            act_words(connection, intent),
            named(connection, told_reason(intent.error or "")),
            numbers.get(intent.id, 0),
            departures.get(intent.id) if intent.state == "pending" else None,
            rests_on(connection, behind(connection, intent.cause_id or "")),
        )
        for intent in intents
    ]


def leaving_fields(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the acts that leave in more than a minute, for programs: earliest first, those without a time last."""
    pending = in_words(connection, store.in_state(connection, "pending"))
    late = [
        {"number": one.number, "act": deed(one.intent.kind), "at": one.departure.at, "why": one.departure.reason}
        for one in pending
        if one.departure
    ]
    return sorted(late, key=lambda one: one["at"] or "~")


def draft_fields(draft: Draft, now: datetime) -> dict[str, Any]:
    """Return a draft for programs, in the camelCase of the status file."""
    intent = draft.intent
    return {
        "id": intent.id,
        "number": draft.number,
        "state": intent.state,
        "kind": intent.kind,
        "target": intent.target,
        "act": draft.words.what,
        "answers": {"handle": draft.words.author, "text": draft.words.theirs} if draft.words.theirs else None,
        "cause": intent.cause_id,
        "text": intent.body.preview,
        "why": draft.reason,
        "restsOn": [*draft.rests_on],
        "createdAt": intent.created_at,
        "expiresAt": intent.expires_at,
        "scheduledFor": intent.scheduled_for,
        "expired": is_expired(intent, now),
    }
