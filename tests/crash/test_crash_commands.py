"""A command in a direct message, killed at each of its transactions, is done at most once and answered once.

`soul upgrade` killed before any of its steps leaves a whole home with the old or the new schema, which runs on. So does
a start that puts a version back: the earlier version runs on with the home as it is, and its owner is told once.
"""

import asyncio
import hashlib
import io
import json
import signal
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from modules.runtime.database import marks
from modules.runtime.home import Home
from modules.runtime.program import ProgramVersion, this_program
from modules.services.burn_in import CRASHES, HomeProgram
from tests.children import child_of
from tests.crash.crash_rig import Nursery, nursing
from tests.crash.upgrade_child import NEXT
from tests.fresh_database import lay_database
from tests.patience import HANG_S
from tests.running_town import write_home

KILLS = 16
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
            assert not (home.root / ".upgrade").exists()
    assert found == {NEXT - 1, NEXT}


def an_old_home(root: Path) -> Home:
    """Create a home of the version before the next, with acts in four states."""
    home = write_home(root, "rowan", SOUL_SPEED="1", OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:owner")
    lay_database(home.database)
    with closing(sqlite3.connect(home.database)) as connection:
        for number, state in enumerate(STATES):
            connection.execute(
                "INSERT INTO intents (id, kind, target, body, body_hash, dedup_key, rkey, created_at, expires_at,"
                " state, attempts, deferrals, urgent) VALUES (?1, 'like', ?1, '{}', ?1, ?1, ?1, ?2, ?2, ?1, 0, 0, 0)",
                (state, f"2126-01-05T12:00:0{number}.000Z"),
            )
        connection.commit()
    return home


@pytest.mark.slow
async def test_a_version_that_is_put_back_goes_back_once_wherever_it_is_killed_on_the_way(tmp_path: Path) -> None:
    home = an_old_home(tmp_path / "home")
    before = ProgramVersion("0.4.0", keeps_version_before(tmp_path / "state"), NEXT - 1)
    crashed = json.dumps(asdict(HomeProgram(this_program(), before, starts=CRASHES)))
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("INSERT INTO marks (name, value) VALUES (?, ?)", (marks.PROGRAM, crashed))
        connection.commit()
    found, went_on, at = [], home.root / "went-on", 0
    async with child_of("tests.crash.upgrade_child") as child:
        while not went_on.exists():
            at += 1
            code, _ = await upgrade(child, home, at, "run")
            assert code == (0 if went_on.exists() else -signal.SIGKILL), at
            assert shape(home) == NEXT - 1
            assert intents(home) == [*STATES], at
            bad, alarms = put_back(home)
            assert alarms == bool(bad), at
            found.append(bad)
        assert (await upgrade(child, home, 0, "run"))[0] == 0
    assert at > 10
    assert found == sorted(found)
    assert set(found) == {"", "it crashed 3 times in a row"}
    assert put_back(home) == ("it crashed 3 times in a row", 1)
    assert went_on.read_text() == "xx"


def keeps_version_before(state: Path) -> str:
    """Store a version that only records that it runs, as the present one stores itself; return its hash."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        told = "from pathlib import Path\nPath(__file__).parents[2].joinpath('went-on').open('a').write('x')\n"
        archive.writestr("soul/__init__.py", "")
        archive.writestr("soul/cli.py", told)
    fingerprint = hashlib.sha256(packed.getvalue()).hexdigest()
    (state / "soul/programs").mkdir(parents=True)
    (state / "soul/programs" / fingerprint).write_bytes(packed.getvalue())
    return fingerprint


def put_back(home: Home) -> tuple[str, int]:
    """Return why a version is put back, and how often the owner is told."""
    with closing(sqlite3.connect(home.database)) as connection:
        told = connection.execute("SELECT value FROM marks WHERE name = ?", (marks.PROGRAM,)).fetchone()[0]
        alarms = connection.execute("SELECT count(*) FROM work WHERE payload LIKE '%is put back%'").fetchone()[0]
    return str(json.loads(told)["bad"]), int(alarms)


def shape(home: Home) -> int:
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def intents(home: Home) -> list[str]:
    with closing(sqlite3.connect(home.database)) as connection:
        return [row[0] for row in connection.execute("SELECT state FROM intents ORDER BY rowid")]


async def upgrade(child: asyncio.subprocess.Process, home: Home, at: int, what: str = "upgrade") -> tuple[int, int]:
    """Return the exit code and the number of steps, 0 if it was killed or another program took over."""
    assert child.stdin
    assert child.stdout
    child.stdin.write(f"{what} {home.root} {at}\n".encode())
    async with asyncio.timeout(HANG_S):
        told = (await child.stdout.readline()).decode().split()
    if told[:-1]:
        assert len(told) == 2, told
    return int(told[-1]), int(told[0]) if told[:-1] else 0


KILLED, WELL = f"ended -{signal.SIGKILL}", "ended 0"
MOST_TRANSACTIONS = 20


@pytest.mark.slow
async def test_a_command_killed_at_any_transaction_is_done_at_most_once_and_answered_once(tmp_path: Path) -> None:
    counts, answers = [], []
    async with nursing("tests.crash.command_child", str(tmp_path)) as nursery:
        for number in range(1, MOST_TRANSACTIONS):
            ends = [await killed_and_revived(nursery, f"{where}-{number}.db", number, where) for where in WHERE]
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


async def killed_and_revived(nursery: Nursery, name: str, number: int, where: str) -> str:
    """Kill a life at a transaction and let another one finish; return how the first one ended."""
    first = await life(nursery, f"{name} {number} {where}")
    assert first in {KILLED, WELL}
    assert await life(nursery, f"{name} 0 after") == WELL
    return first


async def life(nursery: Nursery, line: str) -> str:
    await nursery.birth(line)
    return await nursery.receive()


def done(path: Path) -> int:
    counts = path.with_suffix(".done")
    return len(counts.read_text().splitlines()) if counts.exists() else 0


def answered(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [json.loads(row[0])["text"] for row in connection.execute("SELECT body FROM intents")]
