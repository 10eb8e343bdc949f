"""May the SOUL act in public? Three signs say no, each a small file under `.memory/` whose content is the reason.

Besides, one process may be held back while another copy of its home may live; that is kept in memory only.

`PAUSE` is the owner's own, by command or by `touch`; `PAUSE_BY_RECORD` is what was last read in the owner's Bluesky
repo; `SAFE_MODE` was set at a start that followed too soon on others. They are looked at anew each time, so that any
process can give a sign and take it away, at once. A sign that cannot be read counts: when in doubt, nothing leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from common.errors import DiskFull
from common.files import is_machine_trouble, storage_error, write_atomic

PAUSE, PAUSE_BY_RECORD, SAFE_MODE = "PAUSE", "PAUSE_BY_RECORD", "SAFE_MODE"

_MAX_REASON_CHARS = 300
_MEANING = {
    PAUSE: "paused by the owner",
    PAUSE_BY_RECORD: "paused by the owner's record on Bluesky",
    SAFE_MODE: "safe mode",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the SOUL may act in public, and what speaks against it, in words.

    `writes_blocked`: this process may not act at all, also not towards its owner.
    """

    paused: bool = False
    safe_mode: bool = False
    reasons: tuple[str, ...] = ()
    writes_blocked: bool = False

    @property
    def may_act(self) -> bool:
        return not self.paused and not self.safe_mode and not self.writes_blocked

    def fields(self) -> dict[str, object]:
        """Return the same for programs, in the camelCase of the status file."""
        return {"paused": self.paused, "safeMode": self.safe_mode, "reasons": list(self.reasons)}

    def __str__(self) -> str:
        return "; ".join(self.reasons) or "may act"


class Control:
    """The signs of one SOUL. `memory` is its `.memory` folder."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._write_block = ""

    def block_writes(self, reason: str) -> None:
        """Let nothing leave from this process, not even to the owner, as long as there is a reason; "" ends it."""
        self._write_block = reason

    def standing(self) -> Standing:
        """How things stand now."""
        signs = {name: reason for name in _MEANING if (reason := self._sign(name)) is not None}
        reasons = tuple(f"{_MEANING[name]}: {reason}" if reason else _MEANING[name] for name, reason in signs.items())
        return Standing(
            paused=bool({PAUSE, PAUSE_BY_RECORD} & set(signs)),
            safe_mode=SAFE_MODE in signs,
            reasons=(self._write_block, *reasons) if self._write_block else reasons,
            writes_blocked=bool(self._write_block),
        )

    def pause(self, reason: str = "") -> None:
        """Stop every public act from now on. A pause that stands keeps its reason if none is given.

        Raises `StorageError`.
        """
        if _as_stored(reason) or self.pause_reason() is None:
            self._give(PAUSE, reason)

    def pause_reason(self) -> str | None:
        """Return the reason of the owner's pause, "" if none was given, and None without a pause of the owner."""
        return self._sign(PAUSE)

    def resume(self) -> Standing:
        """Take back the pause and end safe mode; returns what still speaks against acting. Raises `StorageError`."""
        self._take(PAUSE)
        self.leave_safe_mode()
        return self.standing()

    def enter_safe_mode(self, reason: str) -> None:
        """Listen only. Raises `StorageError`."""
        self._give(SAFE_MODE, reason)

    def leave_safe_mode(self) -> None:
        """Raises `StorageError`."""
        self._take(SAFE_MODE)

    def heed_record(self, reason: str | None) -> None:
        """What the owner's repo says: the reason of its record, None when there is none. Raises `StorageError`."""
        known = self._sign(PAUSE_BY_RECORD)
        if reason is None:
            self._take(PAUSE_BY_RECORD)
        elif known != _as_stored(reason):
            self._give(PAUSE_BY_RECORD, reason)

    def write_block_reason(self) -> str:
        """Why a write must not leave, or "": the last word, when what was let out waits once more on its way."""
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
        """Give a sign on a full disk, which has room for an empty file."""
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
