"""Decides whether the SOUL may act in public. Three signs forbid it, each a file in `.memory/` that holds the reason.

`PAUSE` is the owner's own, by command or by `touch`; `PAUSE_BY_RECORD` is what was last read in the owner's Bluesky
repo; `SAFE_MODE` is set at the third start within a minute, since a SOUL that restarts so often has a fault. The files
are read each time, so any process can set or remove a sign with immediate effect. A sign that cannot be read counts.
Besides, writes of one process may be blocked in memory while another copy of its home may be alive.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from common.clock import Clock, iso, parse_iso_or_none
from common.errors import DiskFull
from common.files import is_machine_trouble, load_state, save_state, storage_error, write_atomic

PAUSE, PAUSE_BY_RECORD, SAFE_MODE = "PAUSE", "PAUSE_BY_RECORD", "SAFE_MODE"

COLLECTION = "town.soul.control.pause"
EVERY_SOUL = "all"
"""The collection in the owner's repo whose records pause, and the key of a record for all SOULs of the owner."""

_MAX_REASON_CHARS = 300
_MEANING = {
    PAUSE: "paused by the owner",
    PAUSE_BY_RECORD: "paused by the owner's record on Bluesky",
    SAFE_MODE: "safe mode",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the SOUL may act in public, and the reasons against it, in words.

    `writes_blocked`: this process may not act at all, not even towards its owner.
    """

    paused: bool = False
    safe_mode: bool = False
    reasons: tuple[str, ...] = ()
    writes_blocked: bool = False

    @property
    def may_act(self) -> bool:
        return not self.paused and not self.safe_mode and not self.writes_blocked

    def fields(self) -> dict[str, object]:
        """Return the standing for programs, in the camelCase of the status file."""
        return {"paused": self.paused, "safeMode": self.safe_mode, "reasons": list(self.reasons)}

    def __str__(self) -> str:
        return "; ".join(self.reasons) or "may act"


class Control:
    """The signs of one SOUL. `memory` is its `.memory` folder."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._write_block = ""

    def block_writes(self, reason: str) -> None:
        """Block all writes of this process, even to the owner, while there is a reason; "" ends the block."""
        self._write_block = reason

    def standing(self) -> Standing:
        """Return whether the SOUL may act now."""
        signs = {name: reason for name in _MEANING if (reason := self._sign(name)) is not None}
        reasons = tuple(f"{_MEANING[name]}: {reason}" if reason else _MEANING[name] for name, reason in signs.items())
        return Standing(
            paused=bool({PAUSE, PAUSE_BY_RECORD} & set(signs)),
            safe_mode=SAFE_MODE in signs,
            reasons=(self._write_block, *reasons) if self._write_block else reasons,
            writes_blocked=bool(self._write_block),
        )

    def pause(self, reason: str = "") -> None:
        """Stop every public act from now on. An existing pause keeps its reason if none is given.

        Raises `StorageError`.
        """
        if _as_stored(reason) or self.pause_reason() is None:
            self._give(PAUSE, reason)

    def pause_reason(self) -> str | None:
        """Return the reason of the owner's pause, "" if none was given; None without such a pause."""
        return self._sign(PAUSE)

    def resume(self) -> Standing:
        """Remove the pause and end safe mode; return what still speaks against acting. Raises `StorageError`."""
        self._take(PAUSE)
        self.leave_safe_mode()
        return self.standing()

    def enter_safe_mode(self, reason: str) -> None:
        """Start safe mode, in which the SOUL only listens. Raises `StorageError`."""
        self._give(SAFE_MODE, reason)

    def leave_safe_mode(self) -> None:
        """End safe mode. Raises `StorageError`."""
        self._take(SAFE_MODE)

    def heed_record(self, reason: str | None) -> None:
        """Apply what the owner's repo holds: the reason in its record, None without a record. Raises `StorageError`."""
        known = self._sign(PAUSE_BY_RECORD)
        if reason is None:
            self._take(PAUSE_BY_RECORD)
        elif known != _as_stored(reason):
            self._give(PAUSE_BY_RECORD, reason)

    def write_block_reason(self) -> str:
        """Return why a write must not leave, or "". This is the last check, also for a write that waited once more."""
        standing = self.standing()
        return "" if standing.may_act else str(standing)

    def _sign(self, name: str) -> str | None:
        try:
            with (self._memory / name).open(encoding="utf-8", errors="replace") as file:
                return _as_stored(file.read(_MAX_REASON_CHARS))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return f"its file cannot be read now ({error.strerror})" if is_machine_trouble(error) else ""

    def _give(self, name: str, reason: str) -> None:
        try:
            self._memory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(self._memory, error) from error
        try:
            write_atomic(self._memory / name, f"{_as_stored(reason)}\n")
        except DiskFull:
            self._give_without_reason(name)

    def _give_without_reason(self, name: str) -> None:
        """Set a sign on a full disk, which still has room for an empty file."""
        path = self._memory / name
        try:
            path.touch(mode=0o600)
        except OSError as error:
            raise storage_error(path, error) from error

    def _take(self, name: str) -> None:
        path = self._memory / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(path, error) from error


def _as_stored(text: str) -> str:
    return " ".join(text.encode(errors="replace").decode().split())[:_MAX_REASON_CHARS]


STARTS = 3
WINDOW_S = 60.0


class Start(NamedTuple):
    """Whether a life must begin in safe mode, and a line for the owner if the earlier starts could not be read."""

    safe_mode: bool
    notice: str


def note_start(memory: Path, control: Control, clock: Clock) -> Start:
    """Record this start, and decide by the earlier ones whether it must be in safe mode.

    Raises:
        StorageError: it cannot be recorded.

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
    """Forget the earlier starts, as the owner knows: the next one counts as the first. Raises `StorageError`."""
    path = _path(memory)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


def _path(memory: Path) -> Path:
    return memory / "starts.json"
