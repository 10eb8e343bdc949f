"""The note of a sleeping SOUL, for its watcher and for whoever asks for its state, and the request that wakes it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from common.clock import parse_iso_or_none
from common.constants import STATE_MAX_BYTES
from common.files import read_bounded, storage_error, write_atomic
from common.result import Ok

SLEEP = "sleep"
"""The name of the loop that puts it to sleep; the outcome of its last run says why the SOUL is awake."""
_NOTE, _WAKE, _WATCHER = "sleep.json", "WAKE", "watcher.json"
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Figures:
    """What a SOUL reports to its watcher about itself.

    Attributes:
        usd: the cost of the model today, as far as its prices are known.
        day_ends: when that day ends, ISO-8601; "" if nothing was reported.
        frictions: how often something went wrong within a week.

    """

    usd: float = 0.0
    day_ends: str = ""
    frictions: int = 0


@dataclass(frozen=True, slots=True)
class SleepNote:
    """Since when a SOUL sleeps, until when at the latest, and what is checked for it. It holds nobody's words.

    Attributes:
        asleep_since: ISO-8601, as `wake_at` and `promised_at` are.
        promised_at: when something falls due that somebody else waits for; "" for nothing.
        every_s: seconds between two checks, by service: `bluesky`, `github` and `room`.
        github: the GitHub paths that are requested conditionally, such as "/notifications".
        room: whether to look for a room.
        seen: marks of what was there last, by service; the watcher adds them.
        kept_by: the process that keeps the watcher running, if it is on this machine (`process_mark`); it adds that.

    """

    name: str
    did: str
    asleep_since: str
    wake_at: str
    every_s: Mapping[str, float] = field(default_factory=dict)
    github: Sequence[str] = ()
    room: bool = False
    seen: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kept_by: str = ""
    promised_at: str = ""
    figures: Figures = Figures()


def write_note(memory: Path, note: SleepNote) -> None:
    """Write the note. Raises `StorageError`."""
    write_atomic(memory / _NOTE, json.dumps(asdict(note), indent=2) + "\n", mode=_PRIVATE)


def read_note(memory: Path) -> SleepNote | None:
    """Return the note of a sleeping SOUL; None if it does not sleep, or the note cannot be read."""
    try:
        told = json.loads(read_bounded(memory / _NOTE, STATE_MAX_BYTES).decode())
        note = SleepNote(**{**told, "figures": Figures(**told.get("figures", {}))})
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return note if is_dated(note) else None


def process_mark(pid: int | str) -> str:
    """Return the pid and start time of a process, unique together; "" if it has ended, or this is not Linux."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state == "Z" else f"{pid} {fields[18]}"


def is_dated(note: SleepNote) -> bool:
    """Return whether the times of a note can be read."""
    moments = (note.asleep_since, note.wake_at, *filter(None, [note.promised_at]))
    return all(isinstance(one, str) and parse_iso_or_none(one) for one in moments)


def is_noted(memory: Path) -> bool:
    """Return whether there is a note."""
    return (memory / _NOTE).exists()


def write_watcher(memory: Path, url: str, name: str, token: str) -> None:
    """Store where the watcher answers, and the token that wakes the SOUL there. Raises `StorageError`."""
    told = {"url": url, "name": name, "token": token}
    write_atomic(memory / _WATCHER, json.dumps(told) + "\n", mode=_PRIVATE)


def request_wake(memory: Path) -> bool:
    """Ask a SOUL that sleeps, or is about to, to wake: something was written for it. Raises `StorageError`.

    A watcher on this machine sees it; another is asked. Return False if that one does not answer: it is seen later.
    """
    if not is_noted(memory):
        return True
    try:
        (memory / _WAKE).touch(mode=_PRIVATE)
    except OSError as error:
        raise storage_error(memory / _WAKE, error) from error
    if (note := read_note(memory)) and not note.kept_by:
        # NOTE(self): imported here, so that reading a note does not wait for it.
        import asyncio  # noqa: PLC0415
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

        with ThreadPoolExecutor(1) as thread:  # the caller may run an event loop of its own
            return thread.submit(asyncio.run, _ask_watcher(memory)).result()
    return True


async def _ask_watcher(memory: Path) -> bool:
    from adapters.watch import SleepWatch  # noqa: PLC0415 - takes time to load, and is rarely needed

    try:
        watch = SleepWatch(**json.loads(read_bounded(memory / _WATCHER, STATE_MAX_BYTES).decode()))
    except (OSError, ValueError, TypeError, RecursionError):
        return False  # written by nobody, or by another version
    return isinstance(await watch.wake(), Ok)


def is_wake_requested(memory: Path) -> bool:
    """Return whether somebody asked the SOUL to wake since the last `clear_request`."""
    return (memory / _WAKE).exists()


def clear_request(memory: Path) -> None:
    """Clear the request; call this before looking at what was written. Raises `StorageError`."""
    _delete(memory / _WAKE)


def woke(memory: Path) -> None:
    """Delete the note: the SOUL is awake. Raises `StorageError`."""
    _delete(memory / _NOTE)


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error
