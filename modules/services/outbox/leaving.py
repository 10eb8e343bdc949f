"""Tells the owner when an approved act leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from common.clock import local, parse_iso
from modules.runtime.control import Standing
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.departures import Departure, told
from modules.services.outbox.types import Intent


def leaving(
    approved: Sequence[Intent],
    standing: Standing,
    timezone: str,
    *,
    is_awake: bool,
    now: datetime,
    expected: Mapping[str, Departure] | None = None,
) -> str:
    """Return when the approved acts leave, in words; `expected` holds the running SOUL's departures by id, if known."""
    scheduled = [one.scheduled_for for one in approved if one.scheduled_for and one.is_unsent]
    later = [at for at in scheduled if parse_iso(at) > now]
    if later and len(later) == len(approved) and is_awake and standing.may_act:
        moments = (f"{local(parse_iso(one), timezone):%Y-%m-%d %H:%M}" for one in sorted({*later}))
        return f"It leaves by itself on {', '.join(moments)}"
    if standing.writes_blocked and not standing.paused and not standing.safe_mode:
        return f"It leaves once nothing keeps this process from it any more: {standing}"
    if not standing.may_act:
        return f"It leaves after `soul resume`: {standing}"
    if not is_awake:
        return "Nobody is awake: it leaves after the next `soul run`, unless it has lost its sense by then"
    waits = [(one, expected[one.id]) for one in approved if expected and one.id in expected]
    if waits:
        return "; ".join(f"{one.deed} {told(departure, now, timezone)}" for one, departure in waits)
    number = f" {approved[0].id[:SHORT_ID_CHARS]}" if len(approved) == 1 else ""
    return f"It leaves in its turn, mostly within a minute; `soul why{number}` tells when, and how it went"
