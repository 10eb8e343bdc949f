"""What waits for the owner's approval, or for its moment, in words: the same ones on every surface."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from common.wording import told_reason
from modules.services.explanation.story import named
from modules.services.outbox import store
from modules.services.outbox.act_words import ActWords, act_words
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
