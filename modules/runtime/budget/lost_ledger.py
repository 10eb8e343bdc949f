"""What a lost database knew, as far as other files in the home still tell it.

A cap on a day's tokens or dollars must not be forgotten because `soul.db` was: what the status file and the log of
usage say of today is counted again, once, before anything is asked. A kill in between costs nothing: a database that
bears no calls yet is looked at again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.clock import Clock, iso, parse_iso_or_none
from common.json_lines import split_lines
from common.wording import number
from modules.runtime.budget.ledger import UNKNOWN
from modules.runtime.budget.policy import day_of
from modules.runtime.budget.types import MICRO
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.home import Home

_PURPOSE = "before the database was lost"
_COUNT_MAX = 10**12
_READ_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class KnownUse:
    """What is still known of today: tokens, dollars if they are known, and the acts that had not left."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    waiting: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


async def count_again(database: Database, home: Home, clock: Clock, *, model: str, timezone: str) -> str:
    """Count what a lost database had counted today; a line for the owner on what is not coming back, "" if nothing.

    Raises:
        StorageError: it could not be counted.

    """
    day = day_of(clock.now(), timezone)
    if not await database.run(_is_new):
        return ""
    known = read_known(home, day, timezone)
    if known.tokens:
        await database.run(lambda connection: _count(connection, known, day=day, at=iso(clock.now()), model=model))
    if not database.notice:
        return ""
    waiting = f", among it {known.waiting} acts that had not left" if known.waiting else ""
    spent = "today's use of the model, too"
    if known.tokens:
        spent = f"{number(known.tokens)} tokens used today are counted again"
    return f"Not brought back with {home.database.name}: the journal, open talks and the outbox{waiting}; {spent}"


def read_known(home: Home, day: str, timezone: str) -> KnownUse:
    """What the status file and the log of usage tell of `day`; what cannot be read tells nothing."""
    inputs, outputs, usd = 0, 0, 0.0
    priced = False
    for line in _lines(home.usage_log):
        moment = parse_iso_or_none(line.get("ts"))
        if moment is None or day_of(moment, timezone) != day:
            continue
        inputs += _amount(line.get("input"))
        outputs += _amount(line.get("output"))
        if isinstance(cost := line.get("usd"), float) and cost >= 0:
            usd, priced = usd + cost, True
    status = _object(_text(home.status))
    waiting = _amount(status.get("pendingIntents"))
    written = parse_iso_or_none(status.get("updatedAt"))
    if written is not None and day_of(written, timezone) == day:
        spent = status.get("modelBudget")
        used = spent if isinstance(spent, dict) else {}
        inputs += max(_used(used.get("tokens")) - inputs - outputs, 0)
        dollars = used.get("usd")
        if isinstance(dollars, dict) and isinstance(dollars.get("used"), float):
            usd, priced = max(usd, dollars["used"]), True
    return KnownUse(inputs, outputs, usd if priced else None, waiting)


def _is_new(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM model_calls LIMIT 1").fetchone() is None and not marks.get(
        connection, "recovery"
    )


def _count(connection: sqlite3.Connection, known: KnownUse, *, day: str, at: str, model: str) -> None:
    cost = UNKNOWN if known.usd is None else round(known.usd * MICRO)
    connection.execute(
        "INSERT OR IGNORE INTO model_calls (id, day, at, purpose, importance, model, state, input_tokens,"
        " output_tokens, cost_micro_usd) VALUES (?, ?, ?, ?, 'own', ?, 'settled', ?, ?, ?)",
        (f"lost-{day}", day, at, _PURPOSE, model, known.input_tokens, known.output_tokens, cost),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for each in (path.with_name(f"{path.name}.1"), path):
        yield from map(_object, split_lines(_text(each)))


def _text(path: Path) -> str:
    """The end of a file; "" when it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _READ_MAX))
            return file.read(_READ_MAX).decode("utf-8", "replace")
    except OSError:
        return ""


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _used(amount: object) -> int:
    return _amount(amount.get("used")) if isinstance(amount, dict) else 0


def _amount(value: object) -> int:
    """A count that may be believed."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < _COUNT_MAX else 0
