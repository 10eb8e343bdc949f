"""`soul backup`, `soul restore` and `soul move`: save a home in one file, restore it, and retire the original."""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from common.clock import SystemClock
from common.constants import TEXT_MAX_BYTES
from common.errors import UsageError
from common.files import read_bounded, write_atomic
from common.settings import Settings
from common.text.strings import as_typed
from common.wording import counted
from modules.runtime.backup.restoring import GIB, restore_backup, write_backup
from modules.runtime.home import MOVED, Home, HomeLock
from soul.commands.at_hand import at_hand
from soul.commands.waking import COMPLETED
from soul.terminal.output import write_lines

_MIB = 1024 * 1024


_Passphrase = Annotated[
    Path | None,
    typer.Option("--passphrase-file", metavar="FILE", help="A file whose first line is the passphrase of the backup."),
]
_Backup = Annotated[Path, typer.Argument(metavar="FILE", help="The backup file.")]


def run_backup(root: Path, target: _Backup, passphrase_file: _Passphrase = None) -> None:
    """Write the backup, also while the SOUL runs. Raises the same errors as `write_backup`."""
    settings, home = at_hand(root)
    write_lines(*_write(settings, home, target, passphrase_file, ends=False))


def run_move(root: Path, target: _Backup, passphrase_file: _Passphrase = None) -> None:
    """Write the backup and retire this home. Raises as `write_backup` does, and `HomeLocked` while the SOUL runs."""
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


def run_restore(
    root: Path,
    source: _Backup,
    passphrase_file: _Passphrase = None,
    *,
    most_gib: Annotated[int, typer.Option("--max-gib", min=1, help="Refuse a backup that holds more.")] = 16,
) -> None:
    """Restore the home into `root`. Raises the same errors as `restore_backup`."""
    root = root.resolve()
    restored = restore_backup(source, root, _passphrase(passphrase_file), most_bytes=most_gib * GIB)
    told = [f"Restored {restored.files} files in {root}"]
    if restored.completed:
        told = [f"{COMPLETED} in {root}; {source} was not read"]
    if restored.left_memory_dir:
        told.append("MEMORY_DIR is commented out in its .env: what it knows lies in .memory now")
    start = f"Start it here with `soul run --home {shlex.quote(str(root))}`."
    if not restored.is_moved:
        start += " If the original is still running, add --take-over: the original then stops permanently."
    write_lines(*told, start)


def _write(settings: Settings, home: Home, target: Path, passphrase_file: Path | None, *, ends: bool) -> Iterator[str]:
    passphrase = _passphrase(passphrase_file)
    count = write_backup(home, target, passphrase, ends=ends)
    sealed = "sealed with your passphrase" if passphrase else "not sealed: whoever has it has the passwords of .env too"
    size = target.stat().st_size
    told = f"{size / _MIB:.1f} MiB" if size >= _MIB else f"{size / 1024:.0f} KiB"
    yield f"Wrote {target}: {counted(count, 'file')}, {told}, {sealed}"
    if not home.env.is_file():
        yield f"Your settings are not in it: {home.env} is no regular file. Keep a copy of them, secrets included"
    if settings.storage_url:
        yield "What lies at STORAGE_URL stays there and is not in it"


def _passphrase(path: Path | None) -> str:
    """Return the first line of a file or a pipe, without invisible characters and outer spaces; "" without a file."""
    if path is None:
        return ""
    try:
        content = path.read_bytes() if path.is_fifo() else read_bounded(path, TEXT_MAX_BYTES)
        first = content.decode().split("\n", 1)[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", remedy="Name a text file with one line.") from None
    plain = unicodedata.normalize("NFC", as_typed(first)).strip()
    if not plain:
        raise UsageError(f"{path} holds no passphrase", remedy="Write it into the first line.")
    return plain
