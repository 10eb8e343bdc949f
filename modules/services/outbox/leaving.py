"""When an act that the owner approved leaves, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from common.clock import local, parse_iso
from modules.runtime.control import Standing
from modules.services.outbox.types import Intent


def leaving(approved: Sequence[Intent], standing: Standing, timezone: str, *, is_awake: bool) -> str:
    """Return when what was approved leaves."""
    later = [one.scheduled_for for one in approved if one.waits_for_its_moment and one.scheduled_for]
    if later and standing.may_act:
        return f"It leaves by itself on {local(parse_iso(max(later)), timezone):%Y-%m-%d %H:%M}"
    if standing.writes_blocked and not standing.paused and not standing.safe_mode:
        return f"It leaves once nothing keeps this process from it any more: {standing}"
    if not standing.may_act:
        return f"It leaves after `soul resume`: {standing}"
    if not is_awake:
        return "Nobody is awake: it leaves after the next `soul run`, unless it has lost its sense by then"
    return "It leaves in its turn, mostly within a minute; `soul why ID` tells how it went"
