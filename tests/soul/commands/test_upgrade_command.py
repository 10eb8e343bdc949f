"""A newer version takes over a home only after it woke in a copy of it; otherwise the home stays as it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.database.schema_steps import POSTS_AS_WORK
from modules.runtime.home import Home
from tests.program import one_clear_line, soul, started, until
from tests.running_town import RunningTown, write_home

OLDER = MIGRATIONS.index(POSTS_AS_WORK)
"""The schema of the older version: the next step takes a column away."""
OWNER = {"SOUL_SPEED": "1", "OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner"}


def schema(home: Home) -> int:
    with closing(sqlite3.connect(home.database)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def files(home: Home) -> dict[str, bytes]:
    """All that a home holds, but the lock."""
    found = (path for path in home.root.rglob("*") if path.is_file() and path != home.lock)
    return {str(path.relative_to(home.root)): path.read_bytes() for path in found}


async def an_older_home(root: Path) -> Home:
    home = write_home(root, "rowan", **OWNER)
    await (await Database.open(home.database, MIGRATIONS[:OLDER])).close()
    return home


@pytest.mark.slow
async def test_an_upgrade_changes_the_home_and_keeps_a_copy_that_can_be_restored(tmp_path: Path) -> None:
    home = await an_older_home(tmp_path / "rowan")
    at = ("--home", str(home.root))
    assert any("soul upgrade" in remedy for remedy in (await soul("today", *at)).remedies)
    done = await soul("upgrade", *at)
    assert done.code == 0, done.output
    assert schema(home) == len(MIGRATIONS)
    (copy,) = home.root.glob("before-*.soul")
    assert copy.stat().st_mode & 0o077 == 0
    assert not (home.root / ".upgrade").exists()
    assert (await soul("restore", str(copy), "--home", str(tmp_path / "back"))).code == 0
    assert schema(Home.at(tmp_path / "back")) == OLDER
    before = files(home)
    again = await soul("upgrade", *at)
    assert again.code == 0, again.output
    assert files(home) == before


@pytest.mark.slow
async def test_a_version_that_does_not_wake_leaves_the_home_as_it_was(tmp_path: Path) -> None:
    home = await an_older_home(tmp_path / "rowan")
    home.self_md.write_bytes(b"\xff\xfe no text")
    before = files(home)
    one_clear_line(await soul("upgrade", "--home", str(home.root)), "does not wake", "SELF.md")
    assert files(home) == before
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("ALTER TABLE pending_notifications DROP COLUMN attempts")
        connection.commit()
    home.self_md.unlink()
    before = files(home)
    one_clear_line(await soul("upgrade", "--home", str(home.root)), "does not wake")
    assert files(home) == before


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
