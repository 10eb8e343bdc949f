"""What waits for the owner's approval, or for its moment, in words: the same ones on every surface."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.wording import told_reason
from modules.services.explanation.story import named
from modules.services.outbox import store
from modules.services.outbox.act_words import ActWords, act_words
from modules.services.outbox.policy import is_expired
from modules.services.outbox.types import Intent


@dataclass(frozen=True, slots=True)
class Draft:
    """An act that waits, the act in words, and why it waits, in words.

    `number` names it on every surface, 0 where it has none yet.
    """

    intent: Intent
    words: ActWords
    reason: str = ""
    number: int = 0


def in_words(connection: sqlite3.Connection, intents: Iterable[Intent]) -> list[Draft]:
    """Return each act in words; who is known by handle is named so in the reason."""
    numbers = store.draft_numbers(connection)
    return [
        Draft(
            intent,
            act_words(connection, intent),
            named(connection, told_reason(intent.error or "")),
            numbers.get(intent.id, 0),
        )
        for intent in intents
    ]


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
        "createdAt": intent.created_at,
        "expiresAt": intent.expires_at,
        "scheduledFor": intent.scheduled_for,
        "expired": is_expired(intent, now),
    }
