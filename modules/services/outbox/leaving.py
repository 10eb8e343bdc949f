"""When an act that the owner approved leaves, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from common.clock import local, parse_iso
from modules.runtime.control import Standing
from modules.services.outbox.act_words import act_of
from modules.services.outbox.types import Intent
from modules.services.outbox.waiting import Departure, told


def leaving(
    approved: Sequence[Intent],
    standing: Standing,
    timezone: str,
    *,
    is_awake: bool,
    now: datetime,
    expected: Mapping[str, Departure] | None = None,
) -> str:
    """Return when what was approved leaves; `expected` is what the running SOUL expects, by id, where it is asked."""
    later = [one.scheduled_for for one in approved if one.waits_for_its_moment and one.scheduled_for]
    if later and standing.may_act:
        return f"It leaves by itself on {local(parse_iso(max(later)), timezone):%Y-%m-%d %H:%M}"
    if standing.writes_blocked and not standing.paused and not standing.safe_mode:
        return f"It leaves once nothing keeps this process from it any more: {standing}"
    if not standing.may_act:
        return f"It leaves after `soul resume`: {standing}"
    if not is_awake:
        return "Nobody is awake: it leaves after the next `soul run`, unless it has lost its sense by then"
    waits = [(one, expected[one.id]) for one in approved if expected and one.id in expected]
    if waits:
        return "; ".join(f"{act_of(one)} {told(departure, now, timezone)}" for one, departure in waits)
    return "It leaves within a minute, unless a limit is reached; `soul why ID` tells how it went"
