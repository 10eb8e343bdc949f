"""When a reflection is due, and what a change of SELF.md must rest on. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from common.clock import Since
from common.text.injections import gives_orders
from modules.lives.growth.types import Objection
from modules.runtime.scheduler.policy import is_quiet_hours
from modules.services.experiences.types import Experience

INTERVAL = timedelta(hours=6)
SOONEST = timedelta(hours=1)
SIGNIFICANT_EVENTS = 10
RETRY_S = 1800.0
MOST_TRIES = 3

_OTHERS = frozenset({"stranger", "peer"})
_SOURCES_NEEDED = 2


@dataclass(frozen=True, slots=True)
class Earlier:
    """The last reflection: when it came due, the newest experience and how many significant events there were then."""

    at: datetime
    seen: int
    events: int


@dataclass(frozen=True, slots=True)
class ReflectionMoment:
    """How things stand: the local time, the newest experience that waits, the significant events, the last reflection.

    `keeps_hours` is off where days are shortened: there is no night. `since` tells how much was lived since a moment.
    """

    now: datetime
    newest: int
    events: int
    last: Earlier | None
    keeps_hours: bool
    since: Since


def is_night(now: datetime, *, keeps_hours: bool) -> bool:
    """Return whether it is too late, or too early, to think of oneself."""
    return keeps_hours and is_quiet_hours(now.hour)


def why_due(moment: ReflectionMoment) -> str:
    """Return why a reflection is due; "" if none is."""
    last = moment.last
    is_new = moment.newest > (last.seen if last else 0)
    if not is_new or is_night(moment.now, keeps_hours=moment.keeps_hours):
        return ""
    if last is None:
        return "the first one"
    waited = moment.since(last.at)
    if waited >= INTERVAL:
        return "six hours have passed, and something happened"
    # NOTE(self): the count begins anew when SELF.md changes.
    new_events = moment.events - last.events if moment.events >= last.events else moment.events
    if new_events >= SIGNIFICANT_EVENTS and waited >= SOONEST:
        return f"{new_events} significant events since the last one"
    return ""


def objection(before: str, content: str, cited: Sequence[Experience]) -> Objection | None:
    """Return why a text may not come into SELF.md; None if it may.

    What came from others needs two of them who are independent of each other, or the owner: one account, however often
    it comes, is one, and what the SOUL did on its own beside it makes it no other. That alone needs nobody.
    """
    if not cited:
        return "Needs Experience"
    others = [one for one in cited if one.trust in _OTHERS]
    if others and all(one.trust != "owner" for one in cited):
        people = {one.did for one in others if one.did}
        if len(people) < _SOURCES_NEEDED:
            return "One Source"
    known = set(before.splitlines())
    added = "\n".join(line for line in content.splitlines() if line not in known)
    return "Gives Orders" if gives_orders(added) else None
