"""Proves with the real program that an owner can back up a home and move it.

A newer version takes over a home only after it woke in a copy of it; otherwise the home stays as it was.
"""

import asyncio
import contextlib
import io
import json
import os
import signal
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from modules.runtime.database.schema import MIGRATIONS, OLDEST_SCHEMA
from modules.runtime.home import Home
from soul import cli
from soul.commands.backup import run_backup, run_restore
from tests.fresh_database import lay_database
from tests.program import Ended, one_clear_line, soul, started, until
from tests.running_town import RunningTown, awake, write_home
from tests.versions import Installation


@pytest.mark.slow
async def test_a_moved_home_lives_on_where_it_is_restored_and_refuses_to_wake_where_it_was(
    running_town: RunningTown, tmp_path: Path
) -> None:
    home, file, passphrase = running_town.make_home("rowan"), tmp_path / "rowan.soul", tmp_path / "passphrase"
    passphrase.write_text("slate keeps the rain\n")
    opened, old, new = ("--passphrase-file", str(passphrase)), str(home.root), str(tmp_path / "new")
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder in the rain?")
    async with awake(home) as life:
        await life.look()
        await life.send()
        assert (await soul("backup", str(tmp_path / "beside.soul"), "--home", old)).code == 0
        one_clear_line(await soul("move", str(file), "--home", old, *opened), "already lived in", code=75)
        await life.app.services.lease.give_back()
    moved = await soul("move", str(file), "--home", old, *opened)
    assert moved.code == 0, moved.output
    one_clear_line(await soul("run", "--home", old), "was moved", "--take-over", code=75)
    told = (await soul("status", "--home", old)).output + (await soul("today", "--home", old)).output
    assert "was moved" in told
    assert "`soul run`" not in told
    one_clear_line(await soul("restore", str(file), "--home", new), "sealed with a passphrase", code=2)
    restored = await soul("restore", str(file), "--home", new, *opened)
    assert restored.code == 0, restored.output
    assert "--take-over" not in restored.output
    assert json.loads((await soul("today", "--home", new, "--json")).output)["done"].get("reply") == 1
    async with started("run", "--home", new) as process:
        await until(process, "Awake")
    assert len(running_town.texts("rowan")) == 1


def test_a_passphrase_opens_whatever_an_editor_or_a_keyboard_added_to_it(
    running_town: RunningTown, tmp_path: Path
) -> None:
    home, given = running_town.make_home("rowan"), tmp_path / "passphrase"
    lay_database(home.database)
    given.write_text("\ufeffcaf\u00e9\u00a0noir\r\n")
    run_backup(home.root, tmp_path / "kept.soul", given)
    given.write_text("cafe\u0301 noir")
    run_restore(tmp_path / "new", tmp_path / "kept.soul", given, most_gib=1)
    assert (tmp_path / "new" / "SOUL.md").read_bytes() == home.soul.read_bytes()


def test_a_backup_says_that_settings_from_a_pipe_are_not_in_it(
    running_town: RunningTown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    lay_database(home.database)
    settings = home.env.read_text()
    home.env.unlink()
    os.mkfifo(home.env)

    def fill_whenever_it_is_read() -> None:
        while home.env.exists():
            with suppress(BrokenPipeError, FileNotFoundError):  # the reader closed the pipe, or the test is over
                home.env.write_text(settings)

    threading.Thread(target=fill_whenever_it_is_read, daemon=True).start()
    run_backup(home.root, tmp_path / "kept.soul", None)
    assert "Your settings are not in it" in capsys.readouterr().out


OWNER = {"SOUL_SPEED": "1", "OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner"}
TODAY = max(MIGRATIONS)


async def newer(*arguments: str) -> Ended:
    """Run a command with a version that has one migration more than this one."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as output:
        patch.setitem(MIGRATIONS, TODAY + 1, "ALTER TABLE intents ADD COLUMN next TEXT NOT NULL DEFAULT ''")
        with contextlib.redirect_stderr(output):
            code = await asyncio.to_thread(cli.run, [*arguments])
    return Ended(code, output.getvalue())


def schema(home: Home) -> int:
    with closing(sqlite3.connect(home.database)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def files(home: Home) -> dict[str, bytes]:
    """Return all files of a home except the lock, by path."""
    found = (path for path in home.root.rglob("*") if path.is_file() and path != home.lock)
    return {str(path.relative_to(home.root)): path.read_bytes() for path in found}


def a_home(root: Path) -> Home:
    home = write_home(root, "rowan", **OWNER)
    lay_database(home.database)
    return home


@pytest.mark.slow
async def test_an_upgrade_changes_the_home_and_keeps_a_copy_that_can_be_restored(tmp_path: Path) -> None:
    home = a_home(tmp_path / "rowan")
    at = ("--home", str(home.root))
    assert any("soul upgrade" in remedy for remedy in (await newer("today", *at)).remedies)
    done = await newer("upgrade", *at)
    assert done.code == 0, done.output
    assert schema(home) == TODAY + 1
    (copy,) = home.root.glob("before-*.soul")
    assert copy.stat().st_mode & 0o077 == 0
    assert not (home.root / ".upgrade").exists()
    assert (await soul("restore", str(copy), "--home", str(tmp_path / "back"))).code == 0
    assert schema(Home.at(tmp_path / "back")) == TODAY
    before = files(home)
    again = await newer("upgrade", *at)
    assert again.code == 0, again.output
    assert files(home) == before


@pytest.mark.slow
async def test_a_version_that_does_not_wake_leaves_the_home_as_it_was(tmp_path: Path) -> None:
    home = a_home(tmp_path / "rowan")
    home.self_md.write_bytes(b"\xff\xfe no text")
    before = files(home)
    one_clear_line(await newer("upgrade", "--home", str(home.root)), "does not wake", "SELF.md")
    assert files(home) == before
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("ALTER TABLE intents ADD COLUMN next TEXT")
        connection.commit()
    home.self_md.unlink()
    before = files(home)
    one_clear_line(await newer("upgrade", "--home", str(home.root)), "does not wake")
    assert files(home) == before


@pytest.mark.slow
async def test_a_home_from_before_the_first_schema_is_refused_by_every_command_and_stays_as_it_was(
    tmp_path: Path,
) -> None:
    home = a_home(tmp_path / "rowan")
    with closing(sqlite3.connect(home.database)) as connection:
        connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA user_version = {OLDEST_SCHEMA - 1}")
    before = home.database.read_bytes()
    for command in ("run", "today", "upgrade"):
        one_clear_line(await soul(command, "--home", str(home.root)), "before 0.3", code=78)
    assert home.database.read_bytes() == before


NEXT_STEP = {
    "modules/runtime/database/schema.py": (
        f"{TODAY}: ",
        f"{TODAY + 1}: 'CREATE TABLE next (name TEXT)', {TODAY}: ",
    )
}


@pytest.mark.smoke
async def test_a_start_that_upgrades_first_keeps_one_copy_of_the_home_and_the_next_starts_at_once(
    running_town: RunningTown, tmp_path: Path
) -> None:
    home, program = running_town.make_home("rowan"), Installation(tmp_path)
    lay_database(home.database)
    program.install("0.4.0", NEXT_STEP)
    for _ in range(2):
        async with program.started(home, "run", "--upgrade") as process:
            await until(process, "Awake")
            process.send_signal(signal.SIGINT)
            output, _ = await process.communicate()
            assert process.returncode == 0, output.decode()
        assert schema(home) == TODAY + 1
        assert len([*home.root.glob("before-*.soul")]) == 1


@pytest.mark.slow
async def test_a_home_is_not_upgraded_while_somebody_lives_in_it_or_before_anybody_did(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    at = ("--home", str(home.root))
    one_clear_line(await soul("upgrade", *at), "soul run", code=78)
    async with started("run", *at) as process:
        await until(process, "Awake")
        one_clear_line(await soul("upgrade", *at), "already lived in", code=75)
    assert not [*home.root.glob("before-*")]
