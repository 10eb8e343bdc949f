"""Judges a version by its figures in the burn-in against those of the time before. Pure."""

from __future__ import annotations

from modules.runtime.journal.figures import GoodShare, VersionFigures

BURN_IN_S = 48 * 3600.0
"""The lived seconds of a new version before it is trusted like the one before."""
TICK_S = 60.0
"""Life is counted in ticks of this many lived seconds, so that changes of the clock do not matter."""
SETTLED_TICKS = 10
"""A life of this many ticks is not part of a crash loop."""
CRASHES = 3
_MANY_FAULTS = 5
_LEAST_CASES, _LEAST_PEOPLE = 10, 3
_FALLEN = 0.5


def verdict(before: VersionFigures, now: VersionFigures) -> str:
    """Return in words why a version is worse than the one before; "" if it is not known to be."""
    new = (place for place, count in now.faults.items() if count >= _MANY_FAULTS and not before.faults.get(place))
    if place := next(new, ""):
        return f"{place} failed {now.faults[place]} times by a fault of the program, and never before"
    if _is_fallen(before.answered, now.answered):
        return f"only {now.answered.share:.0%} of what was to be answered was, after {before.answered.share:.0%} before"
    if _is_fallen(before.taken, now.taken):
        return f"{1 - now.taken.share:.0%} of the turns had something sent back, after {1 - before.taken.share:.0%}"
    return ""


def _is_fallen(before: GoodShare, now: GoodShare) -> bool:
    is_known = all(one.cases >= _LEAST_CASES and one.people >= _LEAST_PEOPLE for one in (before, now))
    return is_known and now.share <= before.share * _FALLEN
