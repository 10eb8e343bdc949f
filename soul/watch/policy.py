"""How often the watcher looks, and when it has seen nothing for too long. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from common.clock import parse_iso, parse_iso_or_none
from modules.runtime.sleep_note import Figures, SleepNote

LOOKS_PER_S = 3
"""A look takes two requests to a service that allows one address ten a second, also for those that are awake there."""
KEPT_FOR = timedelta(hours=26)
"""Who has slept for so long is woken, whatever else was said."""
_SET_BACK = timedelta(minutes=1)
BLIND_S = 900.0
"""So long a sleeper may go unread while the service answers for others."""


def step_s(sleepers: int, every_s: float) -> float:
    """Return how many seconds lie between two looks for one of so many, that asked for one `every_s`."""
    return max(every_s, sleepers / LOOKS_PER_S)


def used_usd(figures: Iterable[Figures], now: datetime) -> float:
    """Return what these SOULs spent on the model today, each in its own day."""
    today = (one for one in figures if (ends := parse_iso_or_none(one.day_ends)) and ends > now)
    return sum(one.usd for one in today if one.usd > 0)


def is_over(note: SleepNote, now: datetime, *, is_spent: bool = False) -> str:
    """Return why the time of a sleep is over, "" while it is not.

    Where the day's dollars are spent, nobody wakes for what nobody else waits for, except after the longest sleep.
    """
    since, due = parse_iso(note.asleep_since), note.promised_at if is_spent else note.wake_at
    if (due and parse_iso(due) <= now) or now - since > KEPT_FOR:
        return "its time has come"
    return "the clock was set back" if now < since - _SET_BACK else ""


def is_blind(unread_s: float | None, now_s: float, answered_s: float, *, is_alone: bool) -> bool:
    """Return whether a sleeper is woken because it cannot be read.

    While a service is down for all, nothing can come from it, and waking everybody would help nobody.

    Args:
        unread_s: since when it could not be read, None where it could; all three are of one monotonic clock.
        now_s: now.
        answered_s: when the service answered last for any sleeper.
        is_alone: whether nobody else is looked for at the service.

    """
    return unread_s is not None and now_s - unread_s >= BLIND_S and (is_alone or answered_s > unread_s)
