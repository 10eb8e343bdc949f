"""A newer version takes over a home only after it woke in a copy of it; otherwise the home stays as it was."""

from __future__ import annotations

import asyncio
import contextlib
import io
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from modules.runtime.database.schema import MIGRATIONS, OLDEST_SCHEMA
from modules.runtime.home import Home
from soul import cli
from tests.fresh_database import lay_database
from tests.program import Ended, one_clear_line, soul, started, until
from tests.running_town import RunningTown, write_home

OWNER = {"SOUL_SPEED": "1", "OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner"}
TODAY = max(MIGRATIONS)


async def newer(*arguments: str) -> Ended:
    """Run a command of a version that knows one migration more than this one does."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as output:
        patch.setitem(MIGRATIONS, TODAY + 1, "ALTER TABLE intents ADD COLUMN next TEXT NOT NULL DEFAULT ''")
        with contextlib.redirect_stderr(output):
            code = await asyncio.to_thread(cli.run, [*arguments])
    return Ended(code, output.getvalue())


def schema(home: Home) -> int:
    with closing(sqlite3.connect(home.database)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def files(home: Home) -> dict[str, bytes]:
    """All that a home holds, but the lock."""
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
