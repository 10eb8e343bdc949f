"""What a SOUL leaves behind when it falls asleep: a file for whoever asks how it is, and the mark that wakes it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from common.clock import parse_iso_or_none
from common.constants import STATE_MAX_BYTES
from common.files import read_bounded, write_atomic

_NOTE, _WAKE = "sleep.json", "WAKE"


@dataclass(frozen=True, slots=True)
class SleepNote:
    """Since when a SOUL sleeps, and until when at the latest; both ISO-8601. It holds no word of anybody."""

    name: str
    did: str
    asleep_since: str
    wake_at: str


def write_note(memory: Path, note: SleepNote) -> None:
    """Raises `StorageError`."""
    write_atomic(memory / _NOTE, json.dumps(asdict(note), indent=2) + "\n")


def read_note(memory: Path) -> SleepNote | None:
    """Return the note of a SOUL that sleeps; None where it does not, or the note cannot be read."""
    try:
        note = SleepNote(**json.loads(read_bounded(memory / _NOTE, STATE_MAX_BYTES).decode()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return note if parse_iso_or_none(note.wake_at) and parse_iso_or_none(note.asleep_since) else None


def request_wake(memory: Path) -> None:
    """Ask a SOUL that sleeps, or is about to, to wake: something was written for it. Raises `OSError`."""
    if (memory / _NOTE).exists():
        (memory / _WAKE).touch(mode=0o600)


def is_wake_requested(memory: Path) -> bool:
    """Return whether somebody asked for it to wake since the last `clear_request`."""
    return (memory / _WAKE).exists()


def clear_request(memory: Path) -> None:
    """Clear the request, before what was written is looked at."""
    (memory / _WAKE).unlink(missing_ok=True)


def woke(memory: Path) -> None:
    """Delete the note: the SOUL is awake."""
    (memory / _NOTE).unlink(missing_ok=True)
