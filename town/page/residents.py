"""What each resident is doing now, read from the status file that its process writes; nobody is asked.

A file that is absent, unreadable, old, or whose process is gone means: not awake.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from common.clock import parse_iso

STALE_AFTER = timedelta(minutes=3)
_SHOWN = (
    "mode",
    "startedAt",
    "updatedAt",
    "loops",
    "lastDecision",
    "decisions",
    "counts",
    "pendingNotifications",
    "pendingIntents",
    "nextExpressionAt",
    "budget",
    "modelBudget",
    "standing",
    "drafts",
)


@dataclass(frozen=True, slots=True)
class ResidentStatus:
    """A resident as the page shows it; `life` holds the fields of the status file that people may see."""

    handle: str
    awake: bool
    life: Mapping[str, Any] = field(default_factory=dict)


def read_status(handle: str, path: Path, now: datetime) -> ResidentStatus:
    """What the status file at `path` says at `now`. Never raises for what is in it."""
    try:
        raw = json.loads(path.read_text("utf-8"))
        updated = parse_iso(str(raw["updatedAt"]))
        alive = raw["state"] == "running" and now - updated < STALE_AFTER and _is_running(int(raw["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ResidentStatus(handle, awake=False)
    return ResidentStatus(handle, alive, {key: raw[key] for key in _SHOWN if key in raw})


def _is_running(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
