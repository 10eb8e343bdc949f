"""Quiet hours: the night of the SOUL. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from common.clock import local

QUIET_HOURS_START = 23
QUIET_HOURS_END = 7


def is_quiet_hours(hour: int, start: int = QUIET_HOURS_START, end: int = QUIET_HOURS_END) -> bool:
    """Return whether the local `hour` (0-23) is in `start <= hour < end`, over midnight if need be; never if equal."""
    if start > end:
        return hour >= start or hour < end
    return start <= hour < end


def is_quiet(moment: datetime, timezone: str, *, keeps_hours: bool) -> bool:
    """Return whether a moment is in the quiet hours of a time zone; `keeps_hours` is off where days are shortened."""
    return keeps_hours and is_quiet_hours(local(moment, timezone).hour)


def not_at_night(moment: datetime, timezone: str, *, keeps_hours: bool) -> datetime:
    """Return the moment; if it is in the quiet hours, return their end."""
    if not is_quiet(moment, timezone, keeps_hours=keeps_hours):
        return moment
    wall = local(moment, timezone)
    end = wall.replace(hour=QUIET_HOURS_END, minute=0, second=0, microsecond=0, fold=0)
    return end if end > wall else end + timedelta(days=1)
