"""Decides how often the watcher looks, and when a sleep is over. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from common.clock import parse_iso, parse_iso_or_none
from modules.runtime.sleep_note import Figures, SleepNote

LOOKS_PER_S = 3
"""A look takes two requests to a service that allows an address ten a second, shared with SOULs awake at it."""
KEPT_FOR = timedelta(hours=26)
"""A SOUL that has slept this long is woken in any case."""
_SET_BACK = timedelta(minutes=1)
OWN_TIMES_S = 2.0
"""Seconds between two wakes for what SOULs do at times of their own: those that began together have the same times."""
BLIND_S = 900.0
"""How long a service may be unreadable for one sleeper while it answers for others."""


def step_s(sleepers: int, every_s: float) -> float:
    """Return the seconds between two looks for one of `sleepers`, which asked for a look every `every_s` seconds."""
    return max(every_s, sleepers / LOOKS_PER_S)


def used_usd(figures: Iterable[Figures], now: datetime) -> float:
    """Return the dollars that these SOULs spent on the model today, each in its own day."""
    today = (one for one in figures if (ends := parse_iso_or_none(one.day_ends)) and ends > now)
    return sum(one.usd for one in today if one.usd > 0)


def is_over(note: SleepNote, now: datetime, *, may_wait: bool = False) -> str:
    """Return why a sleep is over by time, "" while it is not.

    A SOUL whose own time `may_wait` wakes only for what others wait for, or after `KEPT_FOR`.
    """
    since, due = parse_iso(note.asleep_since), note.promised_at if may_wait else note.wake_at
    if (due and parse_iso(due) <= now) or now - since > KEPT_FOR:
        return "its time has come"
    return "the clock was set back" if now < since - _SET_BACK else ""


def is_blind(unread_s: float | None, now_s: float, answered_s: float, *, is_alone: bool) -> bool:
    """Return whether to wake a sleeper because a service cannot be read for it.

    While a service is down for all, nothing can come from it, and waking everybody would not help.

    Args:
        unread_s: since when it could not be read, None if it can be; all three times are of one monotonic clock.
        now_s: the current time.
        answered_s: when the service last answered for any sleeper.
        is_alone: whether no other sleeper is looked for at the service.

    """
    return unread_s is not None and now_s - unread_s >= BLIND_S and (is_alone or answered_s > unread_s)
