"""Keeps each request to the model as one row in `model_calls`, and which step was announced on which day.

A row is there before its request leaves. One that is still `reserved` is on its way, or it is `unanswered`: no whole
answer came, and it may have been billed, so it counts in full. One that is both `settled` and `unanswered` counts
nothing: not one byte of an answer came from a service that bills nobody.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable

from common.provenance import Importance
from modules.runtime.budget.policy import MICRO, Amount, Caps, Day, Share, Spent
from modules.runtime.database import marks
from modules.runtime.llm.connection import Reservation

UNKNOWN = -1
"""Stands for a cost if no price was known."""

KEPT_DAYS = 90
_REFUSED = "budget_refused"
_HELD = "held:"
"""The prefix of the id of a row that sets an amount aside for a purpose; it is no call."""
_ON_ITS_WAY = "state = 'reserved' AND NOT unanswered"
_TOTALS = (
    "count(*) FILTER (WHERE id NOT LIKE 'held:%') AS calls,"
    f" coalesce(sum(input_tokens + output_tokens) FILTER (WHERE NOT ({_ON_ITS_WAY})), 0) AS tokens,"
    f" coalesce(sum(input_tokens + output_tokens) FILTER (WHERE {_ON_ITS_WAY}), 0) AS on_its_way,"
    f" coalesce(sum(cost_micro_usd) FILTER (WHERE NOT ({_ON_ITS_WAY})), 0) AS micro, min(cost_micro_usd) AS least"
)
"""Sums over some calls: what is spent, as in `Amount.spent`, and the tokens set aside beside it."""


def spent(connection: sqlite3.Connection, day: str, purpose: str = "", importance: Importance | None = None) -> Spent:
    """Return what the day used, reserved or settled; only for purposes that begin with `purpose`, or one importance."""
    row = connection.execute(
        "SELECT coalesce(sum(input_tokens + output_tokens), 0) AS tokens,"
        " coalesce(sum(max(cost_micro_usd, 0)), 0) AS micro_usd FROM model_calls"
        " WHERE day = ? AND substr(purpose, 1, ?) = ? AND importance = coalesce(?, importance)",
        (day, len(purpose), purpose, importance),
    ).fetchone()
    return Spent(row["tokens"], row["micro_usd"])


def reserve(
    connection: sqlite3.Connection,
    reservation: Reservation,
    *,
    day: str,
    at: str,
    purpose: str,
    importance: Importance,
) -> None:
    """Write the row of a request, counted at its worst case."""
    connection.execute(
        "INSERT INTO model_calls (id, day, at, purpose, importance, model, state, input_tokens, output_tokens,"
        " cost_micro_usd) VALUES (?, ?, ?, ?, ?, ?, 'reserved', ?, ?, ?)",
        (
            reservation.id,
            day,
            at,
            purpose,
            importance,
            str(reservation.request["model"]),
            reservation.input_tokens,
            reservation.output_tokens,
            UNKNOWN if reservation.micro_usd is None else reservation.micro_usd,
        ),
    )


def settle(
    connection: sqlite3.Connection, call_id: str, *, input_tokens: int, output_tokens: int, micro_usd: int | None
) -> None:
    """Replace the worst case by what the call really used, once."""
    connection.execute(
        "UPDATE model_calls SET state = 'settled', input_tokens = ?, output_tokens = ?, cost_micro_usd = ?"
        " WHERE id = ? AND state = 'reserved'",
        (input_tokens, output_tokens, UNKNOWN if micro_usd is None else micro_usd, call_id),
    )


def hold(connection: sqlite3.Connection, purpose: str, *, day: str, at: str, amount: Spent) -> None:
    """Set an amount aside for a purpose, in place of an earlier one; it counts as reserved until `let_go`."""
    let_go(connection, purpose)
    connection.execute(
        "INSERT INTO model_calls (id, day, at, purpose, importance, model, state, input_tokens, output_tokens,"
        " cost_micro_usd) VALUES (?, ?, ?, ?, 'commitment', 'set aside', 'reserved', ?, 0, ?)",
        (_HELD + purpose, day, at, purpose, amount.tokens, amount.micro_usd),
    )


def held(connection: sqlite3.Connection, day: str, purpose: str = "") -> Spent:
    """Return what is set aside for a purpose on this day; without one, for all."""
    row = connection.execute(
        "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(cost_micro_usd), 0) FROM model_calls"
        " WHERE id LIKE 'held:%' AND state = 'reserved' AND day = ? AND ? IN ('', purpose)",
        (day, purpose),
    ).fetchone()
    return Spent(*row)


def take_from_hold(connection: sqlite3.Connection, amount: Spent, purpose: str = "") -> None:
    """Reduce what is set aside for a purpose, because a call for it was reserved; without one, for each purpose."""
    connection.execute(
        "UPDATE model_calls SET input_tokens = max(0, input_tokens - ?), cost_micro_usd = max(0, cost_micro_usd - ?)"
        " WHERE id LIKE 'held:%' AND state = 'reserved' AND ? IN ('', purpose)",
        (amount.tokens, amount.micro_usd, purpose),
    )


def let_go(connection: sqlite3.Connection, purpose: str) -> None:
    """Delete what is set aside for a purpose."""
    connection.execute("DELETE FROM model_calls WHERE id = ?", (_HELD + purpose,))


def note_unanswered(connection: sqlite3.Connection, call_id: str = "") -> None:
    """Mark a call that ended without an answer; without an id, mark all that are on their way."""
    connection.execute(
        "UPDATE model_calls SET unanswered = 1 WHERE state = 'reserved' AND model <> 'set aside' AND ? IN ('', id)",
        (call_id,),
    )


def between(
    connection: sqlite3.Connection, purpose: str, begin: str, end: str
) -> tuple[int | None, int | None, float | None, int | None]:
    """Return the input tokens, output tokens, US dollars (None if one is unpriced) and unanswered tokens of a purpose.

    `begin` and `end` are ISO-8601, both included; all values are None if there was no call.
    """
    query = """
        SELECT sum(input_tokens), sum(output_tokens),
            CASE WHEN min(cost_micro_usd) >= 0 THEN sum(cost_micro_usd) / 1e6 END,
            sum((input_tokens + output_tokens) * unanswered)
        FROM model_calls WHERE purpose = ? AND at BETWEEN ? AND ?
    """
    row = connection.execute(query, (purpose, begin, end)).fetchone()
    return row[0], row[1], row[2], row[3]


def price_unpriced(connection: sqlite3.Connection, day: str, cost: Callable[[str, int, int], int]) -> None:
    """Price the day's rows without a cost by `cost(model, input, output)`, so that a cap on dollars counts them."""
    rows = connection.execute(
        "SELECT id, model, input_tokens, output_tokens FROM model_calls WHERE day = ? AND cost_micro_usd = ?",
        (day, UNKNOWN),
    ).fetchall()
    connection.executemany(
        "UPDATE model_calls SET cost_micro_usd = ? WHERE id = ?",
        [(cost(row["model"], row["input_tokens"], row["output_tokens"]), row["id"]) for row in rows],
    )


def note_refused(connection: sqlite3.Connection, day: str, needs: Spent | None) -> None:
    """Store what an answer to the owner that had no room on this day needs at least; None if one had room."""
    if needs is not None:
        marks.put(connection, {_REFUSED: json.dumps([day, needs.tokens, needs.micro_usd])})
    elif marks.get(connection, _REFUSED):
        marks.remove(connection, _REFUSED)


def refused(connection: sqlite3.Connection, day: str) -> Spent:
    """Return what the answer to the owner that had no room on this day needs at least; zero if none was refused."""
    noted, tokens, micro_usd = json.loads(marks.get(connection, _REFUSED) or '["", 0, 0]')
    return Spent(tokens, micro_usd) if noted == day else Spent()


def told(connection: sqlite3.Connection, day: str) -> tuple[str | None, str | None]:
    """Return the furthest step announced on this day, and on the last known day before it; None if there is none."""
    today = connection.execute("SELECT told_step FROM budget_days WHERE day = ?", (day,)).fetchone()
    before = connection.execute(
        "SELECT told_step FROM budget_days WHERE day < ? ORDER BY day DESC LIMIT 1", (day,)
    ).fetchone()
    return (today and today["told_step"], before and before["told_step"])


def tell(connection: sqlite3.Connection, day: str, step: str) -> None:
    """Store that this step was announced on this day."""
    connection.execute("INSERT OR REPLACE INTO budget_days VALUES (?, ?)", (day, step))


def prune(connection: sqlite3.Connection) -> int:
    """Delete all but the last `KEPT_DAYS` days; return how many calls were deleted.

    Days are counted, not measured from now: a clock that was set years ahead must not wipe out today.
    """
    last = (KEPT_DAYS - 1,)
    connection.execute(
        "DELETE FROM budget_days WHERE day < (SELECT day FROM budget_days ORDER BY day DESC LIMIT 1 OFFSET ?)", last
    )
    return connection.execute(
        "DELETE FROM model_calls WHERE day < (SELECT DISTINCT day FROM model_calls ORDER BY day DESC LIMIT 1 OFFSET ?)",
        last,
    ).rowcount


def amounts(connection: sqlite3.Connection, day: str, caps: Caps) -> tuple[tuple[int, int], Amount, Amount | None]:
    """Return the day's calls with the number of uncounted ones, its tokens, and its dollars (None: unknown price)."""
    row = connection.execute(
        "SELECT count(*) FILTER (WHERE id NOT LIKE 'held:%') AS calls,"
        " count(*) FILTER (WHERE unanswered AND state = 'settled') AS calls_unanswered,"
        " coalesce(min(cost_micro_usd), 0) AS least,"
        " coalesce(sum(input_tokens + output_tokens), 0) AS tokens,"
        " coalesce(sum(input_tokens + output_tokens) FILTER (WHERE state = 'reserved'), 0) AS tokens_reserved,"
        " coalesce(sum(input_tokens + output_tokens) FILTER (WHERE unanswered), 0) AS tokens_unanswered,"
        " coalesce(sum(cost_micro_usd), 0) AS micro,"
        " coalesce(sum(cost_micro_usd) FILTER (WHERE state = 'reserved'), 0) AS micro_reserved,"
        " coalesce(sum(cost_micro_usd) FILTER (WHERE unanswered), 0) AS micro_unanswered"
        " FROM model_calls WHERE day = ?",
        (day,),
    ).fetchone()
    tokens = Amount(
        row["tokens"] - row["tokens_reserved"], row["tokens_reserved"], caps.tokens, row["tokens_unanswered"]
    )
    calls = (row["calls"], row["calls_unanswered"])
    if row["least"] == UNKNOWN:
        return calls, tokens, None
    cap = None if caps.micro_usd is None else caps.micro_usd / MICRO
    settled, reserved = row["micro"] - row["micro_reserved"], row["micro_reserved"]
    usd = Amount(settled / MICRO, reserved / MICRO, cap, row["micro_unanswered"] / MICRO)
    return calls, tokens, usd


def shares(connection: sqlite3.Connection, day: str) -> tuple[tuple[Share, ...], tuple[Share, ...]]:
    """Return the day by purpose and by model, the largest first."""
    return (_shares(connection, day, "purpose"), _shares(connection, day, "model"))


def days(connection: sqlite3.Connection, today: str, count: int) -> list[Day]:
    """Return those of the last `count` days, `today` included, that had calls, newest first."""
    rows = connection.execute(
        f"SELECT day, {_TOTALS}, (SELECT told_step FROM budget_days AS told WHERE told.day = model_calls.day)"  # noqa: S608 - ours
        " AS step FROM model_calls WHERE day > date(?, ?) GROUP BY day ORDER BY day DESC",
        (today, f"-{count} days"),
    )
    return [Day(row["day"], row["calls"], row["tokens"], _usd(row), row["step"] or "") for row in rows]


def _shares(connection: sqlite3.Connection, day: str, column: str) -> tuple[Share, ...]:
    rows: Iterable[sqlite3.Row] = connection.execute(
        f"SELECT {column} AS name, {_TOTALS}"  # noqa: S608 - ours
        f" FROM model_calls WHERE day = ? GROUP BY {column} ORDER BY tokens DESC, name",
        (day,),
    )
    return tuple(Share(row["name"], row["calls"], row["tokens"], _usd(row), row["on_its_way"]) for row in rows)


def _usd(row: sqlite3.Row) -> float | None:
    return None if row["least"] == UNKNOWN else row["micro"] / MICRO
