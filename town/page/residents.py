"""What each resident is doing now, read from the status file that its process writes; nobody is asked.

A file that is absent, unreadable, old, or whose process is gone means: not awake.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from adapters.space.wire_json import parse_json
from common.clock import parse_iso

STALE_AFTER = timedelta(minutes=3)
_SHOWN: Mapping[str, type] = {
    "mode": str,
    "startedAt": str,
    "updatedAt": str,
    "loops": list,
    "lastDecision": dict,
    "decisions": list,
    "counts": dict,
    "waits": dict,
    "rituals": list,
    "nextExpressionAt": str,
    "troubles": list,
    "budget": dict,
    "modelBudget": dict,
    "standing": dict,
    "drafts": list,
    "growth": dict,
}
"""The fields of a status file that people may see, and what each must be; entries of lists are objects."""


@dataclass(frozen=True, slots=True)
class ResidentStatus:
    """A resident as the page shows it; `life` holds the fields of the status file that people may see.

    `getting_up`: its home is there, and its process has not yet written a status. `elsewhere`: it has no home here, so
    whoever lives as this account tells nothing of how it is.
    """

    handle: str
    awake: bool
    life: Mapping[str, Any] = field(default_factory=dict)
    getting_up: bool = False
    elsewhere: bool = False


def read_status(handle: str, path: Path, now: datetime) -> ResidentStatus:
    """What the status file at `path` says at `now`. Never raises for what is in it."""
    try:
        raw: Any = parse_json(path.read_bytes())
        updated = parse_iso(str(raw["updatedAt"]))
        alive = raw["state"] == "running" and now - updated < STALE_AFTER and _is_running(int(raw["pid"]))
    except FileNotFoundError:
        is_here = path.parent.parent.is_dir()
        return ResidentStatus(handle, awake=False, getting_up=is_here, elsewhere=not is_here)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return ResidentStatus(handle, awake=False)
    life = {key: _entries(raw[key]) for key, kind in _SHOWN.items() if isinstance(raw.get(key), kind)}
    return ResidentStatus(handle, alive, life)


def _entries(value: Any) -> Any:  # noqa: ANN401 - JSON
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else value


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
