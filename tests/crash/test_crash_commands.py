"""A command in a direct message, killed at each of its transactions: done at most once, and answered once.

`soul upgrade` killed before any of its steps: the home is whole, with the old schema or the new, and goes on; the new
version is on trial.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from modules.runtime.home import Home
from tests.children import child_of
from tests.crash.upgrade_child import NEXT
from tests.fresh_database import lay_database
from tests.patience import HANG_S
from tests.running_town import write_home

KILLS = 16
BEFORE = "a" * 64
"""The version before, by the hash of its files."""
STATES = ("pending", "sending", "done", "failed")


@pytest.mark.slow
async def test_an_upgrade_killed_at_any_step_loses_nothing_and_is_taken_up_again(tmp_path: Path) -> None:
    async with child_of("tests.crash.upgrade_child") as child:
        code, steps = await upgrade(child, an_old_home(tmp_path / "whole"), 0)
        assert code == 0
        assert steps > KILLS
        found = {shape(Home.at(tmp_path / "whole"))}
        for kill in range(KILLS):
            home = an_old_home(tmp_path / f"home-{kill}")
            at = 1 + round(kill * (steps - 1) / (KILLS - 1))
            code, _ = await upgrade(child, home, at)
            assert code == -signal.SIGKILL, at
            found.add(shape(home))
            assert intents(home) == [*STATES], at
            assert (await upgrade(child, home, 0))[0] == 0, at
            assert shape(home) == NEXT
            assert intents(home) == [*STATES], at
            assert trial(home)["before"]["fingerprint"] == BEFORE, at
            assert not (home.root / ".upgrade").exists()
    assert found == {NEXT - 1, NEXT}


def an_old_home(root: Path) -> Home:
    """A home of the version before the next, with an act in four states."""
    home = write_home(root, "rowan", SOUL_SPEED="1", OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:owner")
    lay_database(home.database)
    with closing(sqlite3.connect(home.database)) as connection:
        for number, state in enumerate(STATES):
            connection.execute(
                "INSERT INTO intents (id, kind, target, body, body_hash, dedup_key, rkey, created_at, expires_at,"
                " state, attempts, deferrals, urgent) VALUES (?1, 'like', ?1, '{}', ?1, ?1, ?1, ?2, ?2, ?1, 0, 0, 0)",
                (state, f"2126-01-05T12:00:0{number}.000Z"),
            )
        lived_here = {"version": "0.1", "fingerprint": BEFORE, "schema": NEXT - 1}
        connection.execute("INSERT INTO marks (name, value) VALUES ('program', ?)", (json.dumps(lived_here),))
        connection.commit()
    return home


def trial(home: Home) -> dict[str, Any]:
    with closing(sqlite3.connect(home.database)) as connection:
        found = connection.execute("SELECT value FROM marks WHERE name = 'burn_in'").fetchone()
    return dict(json.loads(found[0]))


def shape(home: Home) -> int:
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def intents(home: Home) -> list[str]:
    with closing(sqlite3.connect(home.database)) as connection:
        return [row[0] for row in connection.execute("SELECT state FROM intents ORDER BY rowid")]


async def upgrade(child: asyncio.subprocess.Process, home: Home, at: int) -> tuple[int, int]:
    """How it ended, and how many steps it took; 0 where it was killed."""
    assert child.stdin
    assert child.stdout
    child.stdin.write(f"{home.root} {at}\n".encode())
    async with asyncio.timeout(HANG_S):
        told = (await child.stdout.readline()).decode().split()
    if told[:-1]:
        assert len(told) == 2, told
    return int(told[-1]), int(told[0]) if told[:-1] else 0


KILLED, WELL = str(-signal.SIGKILL), "0"
MOST_TRANSACTIONS = 20


@pytest.mark.slow
async def test_a_command_killed_at_any_transaction_is_done_at_most_once_and_answered_once(tmp_path: Path) -> None:
    counts, answers = [], []
    async with child_of("tests.crash.command_child", str(tmp_path)) as child:
        for number in range(1, MOST_TRANSACTIONS):
            ends = [await killed_and_revived(child, f"{where}-{number}.db", number, where) for where in WHERE]
            names = [f"{where}-{number}.db" for where in WHERE]
            counts += [done(tmp_path / name) for name in names]
            answers += [answered(tmp_path / name) for name in names]
            if ends == [WELL, WELL]:
                break
    assert ends == [WELL, WELL]
    assert max(counts) == 1
    assert all(len(said) == 1 for said in answers)
    for count, (said,) in zip(counts, answers, strict=True):
        assert said == "It is published." or "it is not known how far it came: /publish the figures" in said
        assert count == 1 or said != "It is published."


WHERE = ("inside", "after")


async def killed_and_revived(child: asyncio.subprocess.Process, name: str, number: int, where: str) -> str:
    """How the first life ended; the second lives on."""
    first = await life(child, f"{name} {number} {where}")
    assert first in {KILLED, WELL}
    assert await life(child, f"{name} 0 after") == WELL
    return first


async def life(child: asyncio.subprocess.Process, line: str) -> str:
    assert child.stdin
    assert child.stdout
    child.stdin.write(f"{line}\n".encode())
    async with asyncio.timeout(HANG_S):
        return (await child.stdout.readline()).decode().strip()


def done(path: Path) -> int:
    counts = path.with_suffix(".done")
    return len(counts.read_text().splitlines()) if counts.exists() else 0


def answered(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [json.loads(row[0])["text"] for row in connection.execute("SELECT body FROM intents")]
