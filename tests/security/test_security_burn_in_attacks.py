"""Attacks on the burn-in: strangers who make a good version go back, and copies that are not what they were."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from common.clock import SystemClock, iso
from modules.runtime.journal.figures import figures_between
from modules.runtime.journal.types import Entry
from modules.runtime.program import ProgramVersion
from modules.services.burn_in.burn_in import begin, current, note_lived, note_settled, note_start, problem_of
from modules.services.burn_in.policy import BURN_IN_S
from modules.services.craft.record import FrictionRecord
from tests.fresh_database import in_memory
from tests.project import ROOT
from tests.running_town import RunningSoul, RunningTown, awake, replying

OLD, NEW = (ProgramVersion(one, one * 64, 37) for one in "ab")
ATTACKERS = 12


async def mention_and_delete(town: RunningTown, life: RunningSoul) -> None:
    """Let strangers mention a SOUL, each once, and delete what they wrote before it answers."""
    posted = [town.network.post_as(town.account(f"m{n}"), "@rowan.test hello")[0] for n in range(ATTACKERS)]
    await life.app.lives.bluesky.perceiver.look()
    for uri in posted:
        did, collection, rkey = uri.removeprefix("at://").split("/")
        town.network.delete(did, collection, rkey)
    for _ in range(ATTACKERS):
        await life.app.scheduler.run_guarded("awareness")
        await life.app.scheduler.run_guarded("work")
        life.passes(30)


async def test_strangers_who_delete_their_mentions_do_not_put_a_good_version_back(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_SPEED="1")
    running_town.mind.answer = replying("Tin.")
    async with awake(home) as life:
        services = life.app.services
        for who in ("kit", "ada", "bo", "eve"):
            for number in range(3):
                uri = f"at://did:plc:{who}/app.bsky.feed.post/{number}"
                data = {"act": "replied", "code": "answer", "kind": "post"}
                await services.journal.record(Entry("decision", "work", "x", trigger_uri=uri, data=data))
        life.passes(60)

        def take_over(connection: sqlite3.Connection) -> None:
            note_settled(connection, OLD)
            assert begin(connection, NEW, services.clock.now())

        await services.database.run(take_over)
        began = iso(services.clock.now())
        life.passes(1)
        await mention_and_delete(running_town, life)
        now = services.clock.now()
        figures = await services.database.read(lambda rows: figures_between(rows, began, iso(now)))
        problem = await services.database.read(lambda rows: problem_of(rows, now))
    assert problem == "", figures


async def test_strangers_who_delete_their_mentions_do_not_raise_the_figure_by_which_a_fleet_judges_an_image(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = replying("Tin.")
    async with awake(running_town.make_home("rowan", SOUL_SPEED="1")) as life:
        services = life.app.services
        record = FrictionRecord(services.database, services.clock, services.home.memory)
        await mention_and_delete(running_town, life)
        await record.count()
        assert sum(count for _, count in await record.of_the_week()) >= ATTACKERS
        assert await record.own_of_the_week() == 0


CRAFTED: dict[str, dict[str, object]] = {
    "no starts": {"starts": [3]},
    "hours in words": {"lived_s": "x"},
    "more hours than there are": {"lived_s": -1e300},
    "hours without an end": {"lived_s": float("nan")},
    "a beginning that is no time": {"began": "x"},
    "a beginning before all time": {"began": "0001-01-01T00:00:00.000Z"},
    "a beginning after all time": {"began": "9999-12-31T23:59:59.000Z"},
    "a reason that is none": {"bad": 7},
    "a reason without a time": {"bad": "it crashed", "bad_at": "x"},
    "a hash that is none": {"before": {"version": "1", "fingerprint": 7, "schema": 37}},
}


@pytest.mark.parametrize("what", CRAFTED)
def test_a_crafted_mark_is_no_trial_and_keeps_no_soul_from_starting(what: str) -> None:
    told = {"program": asdict(NEW), "before": asdict(OLD), "began": "2026-01-01T00:00:00.000Z"} | CRAFTED[what]
    connection = in_memory()
    connection.execute("INSERT INTO marks (name, value) VALUES ('burn_in', ?)", (json.dumps(told),))
    now = SystemClock().now()
    assert current(connection) is None
    assert problem_of(connection, now) == ""
    assert note_lived(connection, 1.0, "", now) is None
    assert note_start(connection, NEW, now, begins=False) is None


def test_a_version_that_is_put_back_in_its_last_hours_stays_put_back() -> None:
    connection, now = in_memory(), SystemClock().now()
    note_settled(connection, OLD)
    assert begin(connection, NEW, now)
    assert note_lived(connection, 3 * BURN_IN_S, "the heartbeat failed", now)
    known = current(connection)
    assert known
    assert known.bad


def test_a_crafted_mark_of_the_version_before_is_none() -> None:
    connection = in_memory()
    for told in ('{"fingerprint": ["x"]}', "[", "7", '{"fingerprint": 7}'):
        connection.execute("INSERT OR REPLACE INTO marks (name, value) VALUES ('program', ?)", (told,))
        assert begin(connection, NEW, SystemClock().now()) is None


KEEPING = """
import sys
from modules.runtime.program import ProgramVersion, keep, kept, this_program
me = this_program()
keep(me, *(ProgramVersion("before", one, 0) for one in sys.argv[1:]))
print(kept(me))
"""
GOING_ON = """
import sys
from modules.runtime.program import ProgramVersion, become, kept
where = kept(ProgramVersion("before", sys.argv[1], 0))
if where:
    become(where, ["--help"])
print("NO COPY")
"""
PLANT = "import sys; sys.stderr.write('PLANTED CODE RUNS\\n'); raise SystemExit(7)\n"


def runs(code: str, state: Path, *words: str, source: Path = ROOT) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"XDG_STATE_HOME": str(state), "PYTHONPATH": str(source), "COLUMNS": "200"}
    line = [sys.executable, "-B", "-P", "-c", code, *words]
    return subprocess.run(line, env=env, cwd=state, capture_output=True, text=True, check=False)


def copy_of_this_program(state: Path) -> Path:
    return Path(runs(KEEPING, state).stdout.strip())


def plant_compiled(copy: Path) -> None:
    """Put compiled code of something else where Python looks for that of the command."""
    evil, target = copy.parents[2] / "evil.py", Path(importlib.util.cache_from_source(str(copy / "soul" / "cli.py")))
    evil.write_text(PLANT)
    target.parent.mkdir()
    py_compile.compile(str(evil), str(target), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


def plant_link(copy: Path) -> None:
    """Put a link to the same file elsewhere in the place of a file, so that the hash fits."""
    shutil.move(copy / "soul" / "cli.py", copy.parents[2] / "cli.py")
    (copy / "soul" / "cli.py").symlink_to(copy.parents[2] / "cli.py")


def plant_file(copy: Path, name: str) -> None:
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).write_text(PLANT)


PLANTED: dict[str, Callable[[Path], object]] = {
    "a file that Python reads at its start": lambda copy: plant_file(copy, "sitecustomize.py"),
    "a module of the standard library": lambda copy: plant_file(copy, "fcntl.py"),
    "a library": lambda copy: plant_file(copy, "typer/__init__.py"),
    "an empty folder": lambda copy: (copy / "typer").mkdir(),
    "compiled code": plant_compiled,
    "a link": plant_link,
    "a right of others": lambda copy: copy.chmod(0o770),
    "a right of others to all copies": lambda copy: copy.parent.chmod(0o770),
}


@pytest.mark.slow
def test_a_copy_that_is_not_what_it_was_is_not_used_and_is_made_anew(tmp_path: Path) -> None:
    copy = copy_of_this_program(tmp_path)
    for what, plant in PLANTED.items():
        used = runs(GOING_ON, tmp_path, copy.name)
        assert "soul" in used.stdout, used
        assert not list(copy.rglob("__pycache__"))
        plant(copy)
        refused = runs(GOING_ON, tmp_path, copy.name)
        assert (refused.stdout, refused.stderr) == ("NO COPY\n", ""), what
        if copy.parent.stat().st_mode & 0o077:
            told = runs(KEEPING, tmp_path)
            assert "it is no folder of this user alone" in told.stderr
            copy.parent.chmod(0o700)
        assert copy_of_this_program(tmp_path) == copy, what


@pytest.mark.slow
def test_the_version_to_which_a_home_goes_back_is_kept_however_many_follow(tmp_path: Path) -> None:
    source, state = tmp_path / "source", tmp_path / "state"
    state.mkdir()
    for name in ("adapters", "common", "local_tools", "modules", "skills", "soul", "town", "SELF.md", "SOUL.md"):
        path, ignored = ROOT / name, shutil.ignore_patterns("__pycache__")
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=ignored)
        else:
            shutil.copy(path, source / name)
    first = Path(runs(KEEPING, state, source=source).stdout.strip())
    for number in range(5):
        (source / "common" / "one_more.py").write_text(f"NUMBER = {number}\n")
        runs(KEEPING, state, first.name, source=source)
        (state / "soul/programs/.unfinished").mkdir()
    copies = [path for path in first.parent.iterdir() if path.name.isalnum()]
    assert first in copies
    assert len(copies) == 4
