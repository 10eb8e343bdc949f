"""Decides whether a SOUL may sleep, and until when. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from common.constants import SECOND_MS
from common.intervals import GITHUB_INTERVAL_MS, NOTIFICATIONS_INTERVAL_MS

LEAST = timedelta(minutes=10)
"""In lived time; a shorter sleep is not worth the restart."""
_LOOKS_MS = {"bluesky": NOTIFICATIONS_INTERVAL_MS, "github": GITHUB_INTERVAL_MS, "room": NOTIFICATIONS_INTERVAL_MS}
LOOKS_S = {service: interval_ms / SECOND_MS for service, interval_ms in _LOOKS_MS.items()}
"""Lived seconds between two looks of the watcher: as often as the SOUL itself looks while it is awake."""
WORKSPACES = timedelta(hours=1)
"""The time for which a SOUL leaves its workspaces alone: claims lapse and plans fall due there without any act."""
LONGEST = timedelta(hours=20)
"""Daily work such as copies waits no longer than until the next day."""


@dataclass(frozen=True, slots=True)
class AwaitedNext:
    """The wait of one part of a SOUL.

    Attributes:
        awake: why it may not sleep; "" if it may.
        due: when it must wake.
        is_own: whether nobody else waits for what is due then.

    """

    awake: str = ""
    due: datetime | None = None
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """The decision whether a SOUL may sleep: the `reasons` why not (empty if it may), and when it wakes at the latest.

    `promised_at` is when something is due that somebody else waits for.
    """

    reasons: tuple[str, ...]
    wake_at: datetime
    promised_at: datetime | None


def judge(
    pending: Mapping[str, AwaitedNext], now: datetime, *, least: timedelta = LEAST, longest: timedelta = LONGEST
) -> Rest:
    """Return whether a SOUL may sleep whose parts, by name, wait for this."""
    parts = pending.values()
    wake_at = min((one.due for one in parts if one.due is not None), default=now + longest)
    reasons = [one.awake for one in parts if one.awake]
    if soon := [name for name, one in pending.items() if one.due and one.due - now < least]:
        reasons.append(f"something is due soon: {', '.join(soon)}")
    promised_at = min((one.due for one in parts if one.due and not one.is_own), default=None)
    return Rest(tuple(dict.fromkeys(reasons)), min(wake_at, now + longest), promised_at)
