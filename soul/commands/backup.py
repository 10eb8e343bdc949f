"""`soul backup`, `soul restore`, `soul move`, `soul upgrade`: a home in one file, elsewhere, or of an earlier version.

They save a home, restore it, retire the original, and convert a home for the installed version.
"""

import asyncio
import random
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from common.clock import SystemClock
from common.constants import TEXT_MAX_BYTES
from common.errors import SoulError, UsageError
from common.files import read_bounded, storage_error, write_atomic
from common.redact import Redactor
from common.settings import Settings
from common.text.strings import as_typed
from common.version import __version__
from common.wording import counted
from modules.runtime.backup import GIB, restore_backup, write_backup
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.file import open_existing, schema_of
from modules.runtime.database.schema import MIGRATIONS, OLDEST_SCHEMA
from modules.runtime.home import MOVED, Home, HomeLock
from modules.runtime.program import kept as trial_kept
from modules.runtime.program import this_program
from modules.services.burn_in import BURN_IN_S, take_over
from soul.app import open_soul
from soul.commands.at_hand import at_hand, settings_to_run
from soul.commands.waking import COMPLETED, refuse_moved
from soul.terminal.output import visible, write_lines

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


UNFINISHED = ".upgrade"
"""The folder in the home that holds the copy until it has woken."""
_WAKE_DEADLINE_S = 300.0
_AS_IT_WAS = "The home is as it was: install the version before again, or mend this, and `soul upgrade` once more."
_ONLY_HERE = {"storage_url": "", "boot_context_export": None}
"""Settings for the copy, which must not change anything outside it."""


def run_upgrade(root: Path) -> None:
    """Copy the home, wake the copy, convert the home. Raises `HomeLocked` while the SOUL runs, else `SoulError`."""
    settings = settings_to_run(root)
    home = Home.at(root, settings.memory_dir)
    refuse_moved(home)
    with closing(open_existing(home.database, "rw", oldest=OLDEST_SCHEMA)) as connection:
        before = schema_of(connection)
    now = SystemClock().now()
    with HomeLock(home, agent_name=settings.agent_name, started_at=now):
        unfinished = home.root / UNFINISHED
        try:
            _clear(unfinished)
            unfinished.mkdir(mode=0o700)
            _upgrade(home, settings, before, unfinished, home.root / f"before-{__version__}-{now:%Y%m%d-%H%M%S}.soul")
        except OSError as error:
            raise storage_error(unfinished, error) from error
        finally:
            _clear(unfinished)


def is_earlier(root: Path) -> bool:
    """Return whether the home is of an earlier version. Raises `SoulError` if it cannot be read."""
    home = Home.at(root, settings_to_run(root).memory_dir)
    if not home.database.exists():
        return False
    with closing(open_existing(home.database, "rw", oldest=OLDEST_SCHEMA)) as connection:
        return schema_of(connection) < max(MIGRATIONS)


def _upgrade(home: Home, settings: Settings, before: int, unfinished: Path, kept: Path) -> None:
    backup = unfinished / "copy.soul"
    write_backup(home, backup)
    trial = Home.at(unfinished / "trial")
    copied = restore_backup(backup, trial.root, "", most_bytes=sys.maxsize)
    write_lines(f"Copied {copied.files} files")
    for line in _wakes(trial, settings):
        write_lines(f"◆ {line}")
    write_lines(f"Version {__version__} wakes in the copy")
    _begin_burn_in(home)
    if before == max(MIGRATIONS):
        write_lines("The home needs no change: `soul run` goes on")
        return
    backup.rename(kept)
    write_lines(f"Kept the copy as {kept}: it holds the passwords of .env too; delete it when you no longer need it")
    asyncio.run(_migrate(home))
    write_lines(f"The home is of version {__version__} now, and no earlier one can read it: `soul run` goes on")


def _wakes(trial: Home, settings: Settings) -> list[str]:
    """Wake the copy as far as that needs no network; return the warnings and errors it shows. Raises `SoulError`."""
    console = SilentConsole()
    clean = Redactor(settings.secrets).text
    try:
        asyncio.run(_wake(trial, settings.model_copy(update=_ONLY_HERE), console))
    except Exception as error:
        why = visible(str(error) if isinstance(error, SoulError) else f"{type(error).__name__}: {error}")
        told = clean(why).replace(str(trial.root), "the copy")
        problem = f"Version {__version__} does not wake in a copy of this home: {told}"
        raise SoulError(problem, remedy=_AS_IT_WAS) from error
    return [clean(visible(f"{told} {why}")) for kind, told, why in console.lines if kind in {"warn", "error"}]


async def _wake(trial: Home, settings: Settings, console: SilentConsole) -> None:
    async with (
        asyncio.timeout(_WAKE_DEADLINE_S),
        open_soul(settings, trial, console=console, clock=SystemClock(), rng=random.Random()) as app,
    ):
        if lost := app.services.notice:
            raise SoulError(lost)
        await app.make_ready()


def _begin_burn_in(home: Home) -> None:
    """Put this version on trial before the home changes: after a kill in between, both versions can still run."""
    with closing(open_existing(home.database, "rw", oldest=OLDEST_SCHEMA)) as connection:
        trial = take_over(connection, this_program())
    if trial and trial.before:
        back = f"version {trial.before.version} comes back{'' if trial_kept(trial.before) else ' once you install it'}"
        write_lines(f"On trial for {BURN_IN_S / 3600:.0f} hours of its life: if it goes wrong, {back}")


async def _migrate(home: Home) -> None:
    database = await Database.open(home.database, MIGRATIONS, signs=home.signs_of_life())
    await database.close()


def _clear(folder: Path) -> None:
    """Delete the folder, with what a killed upgrade left in it."""
    if folder.exists():
        shutil.rmtree(folder)
