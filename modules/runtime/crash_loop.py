"""A SOUL that starts again and again is in trouble, or makes some: the third start within a minute only listens.

The starts are kept in `.memory/starts.json`, written before anything else of this life is touched.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from common.clock import Clock, iso, parse_iso_or_none
from common.files import storage_error
from common.state import load_state, save_state
from modules.runtime.control import Control

STARTS = 3
WINDOW_S = 60.0


class Start(NamedTuple):
    """Whether a life must begin in safe mode, and a line for the owner if the earlier starts could not be read."""

    safe_mode: bool
    notice: str


def note_start(memory: Path, control: Control, clock: Clock) -> Start:
    """Remember this start, and judge it by those before.

    Raises:
        StorageError: it cannot be remembered.

    """
    path = _path(memory)
    loaded = load_state(path, {})
    stored = loaded.data.get("starts")
    earlier = [parse_iso_or_none(text) for text in stored] if isinstance(stored, list) else []
    now = clock.now()
    since = now - timedelta(seconds=clock.real(WINDOW_S))
    recent = [moment for moment in earlier if moment is not None and since < moment <= now]
    starts = [*recent, now][-STARTS:]
    save_state(path, {"starts": [iso(moment) for moment in starts]})
    if len(starts) < STARTS:
        control.leave_safe_mode()
        return Start(safe_mode=False, notice=loaded.notice)
    took_s = (now - starts[0]).total_seconds()
    control.enter_safe_mode(f"{STARTS} starts within {took_s:.0f} s")
    return Start(safe_mode=True, notice=loaded.notice)


def forget_starts(memory: Path) -> None:
    """The owner knows: the next start is the first again. Raises `StorageError`."""
    path = _path(memory)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


def _path(memory: Path) -> Path:
    return memory / "starts.json"
