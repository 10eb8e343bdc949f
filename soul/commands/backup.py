"""`soul backup`, `soul restore` and `soul move`: a home as one file, brought back elsewhere, and ended where it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from common.clock import SystemClock
from common.constants import TEXT_MAX_BYTES
from common.errors import HomeLocked, UsageError
from common.files import read_bounded, storage_error, write_atomic
from common.settings import Settings
from modules.runtime.backup.archive import MOVED, write_backup
from modules.runtime.backup.restoring import GIB, complete_restore, restore_backup
from modules.runtime.home import Home, HomeLock
from soul.commands.at_hand import at_hand
from soul.terminal.output import write_lines

_COMPLETED = "A restore that had been cut off is complete now"
_MIB = 1024 * 1024


def run_backup(root: Path, target: Path, passphrase_file: Path | None) -> None:
    """Write the file, also while the SOUL runs. Raises as `write_backup`."""
    settings, home = at_hand(root)
    write_lines(*_write(settings, home, target, passphrase_file, ends=False))


def run_move(root: Path, target: Path, passphrase_file: Path | None) -> None:
    """Write the file and end this home. Raises as `write_backup`, and `HomeLocked` while the SOUL runs."""
    settings, home = at_hand(root)
    now = SystemClock().now()
    with HomeLock(home, agent_name=settings.agent_name, started_at=now):
        told = list(_write(settings, home, target, passphrase_file, ends=True))
        write_atomic(home.memory / MOVED, f"at {now:%Y-%m-%d %H:%M} UTC into {target.resolve()}\n")
    write_lines(
        *told,
        f"{home.root} does not wake any more. Where it is to live: `soul restore {target.name} --home DIR`, then"
        " `soul run --home DIR`",
    )


def run_restore(root: Path, source: Path, passphrase_file: Path | None, *, most_gib: int) -> None:
    """Bring the home back in `root`. Raises as `restore_backup`."""
    root = root.resolve()
    restored = restore_backup(source, root, _passphrase(passphrase_file), most_bytes=most_gib * GIB)
    told = [f"Restored {restored.files} files in {root}"]
    if restored.completed:
        told = [f"{_COMPLETED} in {root}; {source} was not read"]
    if restored.left_memory_dir:
        told.append("MEMORY_DIR is commented out in its .env: what it knows lies in .memory now")
    write_lines(
        *told,
        f"Start it here with `soul run --home {root}`. If the original is still running, add `--take-over`: the"
        " original then stops permanently.",
    )


def complete_cut_off(root: Path) -> None:
    """Complete a restore into `root` that was cut off, and say so. Raises as `complete_restore`."""
    if complete_restore(root):
        write_lines(f"{_COMPLETED} in {root}")


def refuse_moved(home: Home, *, take_over: bool = False) -> None:
    """Raise `HomeLocked` where this home was moved away; `take_over` lets it live again instead of the other."""
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
    """When, and into which file, this home was moved away; "" for one that was not. Raises `StorageError`."""
    path = home.memory / MOVED
    try:
        return read_bounded(path, TEXT_MAX_BYTES).decode(errors="replace").strip() or "away"
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise storage_error(path, error) from error


def _write(settings: Settings, home: Home, target: Path, passphrase_file: Path | None, *, ends: bool) -> Iterator[str]:
    passphrase = _passphrase(passphrase_file)
    count = write_backup(home, target, passphrase, ends=ends)
    sealed = "sealed with your passphrase" if passphrase else "not sealed: whoever has it has the passwords of .env too"
    size = target.stat().st_size
    told = f"{size / _MIB:.1f} MiB" if size >= _MIB else f"{size / 1024:.0f} KiB"
    yield f"Wrote {target}: {count} files, {told}, {sealed}"
    elsewhere = [
        name
        for name, is_set in (
            ("STORAGE_URL", bool(settings.storage_url)),
            ("DATABASE_URL", bool(settings.database_url.get_secret_value())),
        )
        if is_set
    ]
    if elsewhere:
        yield f"What lies at {' and '.join(elsewhere)} stays there and is not in it"


def _passphrase(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        first = read_bounded(path, TEXT_MAX_BYTES).decode().split("\n", 1)[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="Name a text file with one line.") from None
    if not first:
        raise UsageError(f"{path} holds no passphrase", remedy="Write it into the first line.")
    return first
