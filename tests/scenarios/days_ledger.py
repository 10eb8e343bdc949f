"""What each call of the model took, as the ledger of a home has it, and what strangers had of a day."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ModelCall:
    """One call: its day, for whom it was, and its tokens in and out together."""

    id: str
    at: str
    day: str
    importance: str
    tokens: int


def read_ledger(connection: sqlite3.Connection) -> list[ModelCall]:
    """All calls that are in the ledger."""
    rows = connection.execute("SELECT id, at, day, importance, input_tokens + output_tokens FROM model_calls")
    return [ModelCall(*row) for row in rows]


def strangers_day(calls: Iterable[ModelCall], *, without_last: bool = False) -> int:
    """The most tokens that strangers together had of a day; `without_last` leaves out the last call of each day."""
    by_day: defaultdict[str, list[ModelCall]] = defaultdict(list)
    for call in sorted(calls, key=lambda one: one.at):
        if call.importance == "stranger":
            by_day[call.day].append(call)
    days = ([call.tokens for call in day] for day in by_day.values())
    return max((sum(tokens[:-1] if without_last else tokens) for tokens in days), default=0)
