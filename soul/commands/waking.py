"""Checks whether a home may wake: no restore into it was cut off, and it was not moved away."""

from pathlib import Path

from common.constants import TEXT_MAX_BYTES
from common.errors import HomeLocked
from common.files import read_bounded, storage_error
from modules.runtime.home import MOVED, RESTORED, Home
from soul.terminal.output import write_lines

COMPLETED = "A restore that had been cut off is complete now"


def complete_cut_off(root: Path) -> None:
    """Complete a restore into `root` that was cut off, and print it. Raises the same errors as `complete_restore`."""
    if not (root / RESTORED).is_dir():
        return
    from modules.runtime.backup import complete_restore  # noqa: PLC0415 - rarely needed

    if complete_restore(root):
        write_lines(f"{COMPLETED} in {root}")


def refuse_moved(home: Home, *, take_over: bool = False) -> None:
    """Raise `HomeLocked` if this home was moved away; `take_over` lets it live again instead of the moved one."""
    moved, path = moved_away(home), home.memory / MOVED
    if not moved:
        return
    if take_over:
        try:
            path.unlink()
        except OSError as error:
            raise storage_error(path, error) from error
        return
    raise HomeLocked(
        f"{home.root} was moved {moved}, and does not wake here",
        remedy="Let it live where it was restored; if this one is to live on instead: `soul run --take-over`.",
    )


def moved_away(home: Home) -> str:
    """Return when, and into which file, this home was moved away; "" if it was not. Raises `StorageError`."""
    path = home.memory / MOVED
    try:
        return read_bounded(path, TEXT_MAX_BYTES).decode(errors="replace").strip() or "away"
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise storage_error(path, error) from error
