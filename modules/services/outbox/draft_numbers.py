"""One number for each draft and scheduled act, the same on every surface and for as long as it waits.

Each function is one step of a transaction that its caller opened.
"""

from __future__ import annotations

import json
import sqlite3

from modules.runtime.database import marks

_MARK = "draft_numbers"
_MOST = 999
_WAITING = (
    "SELECT id FROM intents WHERE state = 'held'"
    " OR (state = 'pending' AND scheduled_for IS NOT NULL AND first_sent_at IS NULL) ORDER BY created_at"
)


def keep(connection: sqlite3.Connection) -> None:
    """Give what began to wait the next number, and forget those of what does not wait any more."""
    waiting = [str(row[0]) for row in connection.execute(_WAITING)]
    kept = marks.get(connection, _MARK)
    last, before = _read(kept)
    numbers = {one: before[one] for one in waiting if one in before}
    for one in waiting:
        while one not in numbers:
            last = last % _MOST + 1
            if last not in numbers.values():
                numbers[one] = last
    text = json.dumps({"last": last, "of": numbers})
    if text != kept and (kept or numbers):
        marks.put(connection, {_MARK: text})


def numbers(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of each draft, by its id."""
    return _read(marks.get(connection, _MARK))[1]


def _read(text: str) -> tuple[int, dict[str, int]]:
    """Return the number that was given last, and those that are given."""
    if not text:
        return 0, {}
    stored = json.loads(text)
    return stored["last"], stored["of"]
