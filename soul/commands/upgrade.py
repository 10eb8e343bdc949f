"""`soul upgrade`: converts a home of an earlier version for the installed one.

The home is copied, and the copy is woken as `soul run` would, up to the login. Only then is the home itself changed, in
one transaction; if anything ends this before, the home stays as it was, for the earlier version.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
from contextlib import closing
from pathlib import Path

from common.clock import SystemClock
from common.errors import SoulError
from common.files import storage_error
from common.redact import Redactor
from common.settings import Settings
from common.version import __version__
from modules.runtime.backup.restoring import restore_backup, write_backup
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.file import open_existing, schema_of
from modules.runtime.database.schema import MIGRATIONS, OLDEST_SCHEMA
from modules.runtime.home import Home, HomeLock
from modules.runtime.program import kept as trial_kept
from modules.runtime.program import this_program
from modules.services.burn_in.burn_in import take_over
from modules.services.burn_in.policy import BURN_IN_S
from soul.app import open_soul
from soul.commands.at_hand import settings_to_run
from soul.commands.waking import refuse_moved
from soul.terminal.output import visible, write_lines

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
