"""Attacks on the burn-in: strangers who want a good version put back, and copies that were tampered with."""

import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from modules.runtime.journal.figures import figures_around, newest_entry
from modules.runtime.journal.types import Entry
from modules.runtime.program import ProgramVersion
from modules.services.burn_in import note_lived, problem_of, take_over
from modules.services.craft.record import FrictionRecord
from tests.project import ROOT
from tests.running_town import RunningSoul, RunningTown, awake, replying

OLD, NEW = (ProgramVersion(one, one * 64, 37) for one in "ab")
ATTACKERS = 12


async def mention_and_delete(town: RunningTown, life: RunningSoul) -> None:
    """Have strangers mention a SOUL, each once, and delete what they wrote before it answers."""
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
        for number in range(3):
            for who in (*[f"m{n}" for n in range(ATTACKERS)], "kit"):
                uri = f"at://{running_town.account(who)}/app.bsky.feed.post/{number}"
                data = {"act": "replied", "code": "answer", "kind": "post"}
                await services.journal.record(Entry("decision", "work", "x", trigger_uri=uri, data=data))
            life.passes(86_400)

        def begins(connection: sqlite3.Connection) -> int:
            note_lived(connection, OLD, is_settled=True)
            assert take_over(connection, NEW)
            return newest_entry(connection)

        since = await services.database.run(begins)
        await mention_and_delete(running_town, life)
        figures = await services.database.read(lambda rows: figures_around(rows, since))
        problem = await services.database.read(problem_of)
    assert figures[0].answered.people == ATTACKERS + 1
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


KEEPING = """
import sys
from modules.runtime.program import ProgramVersion, keep, this_program
me = this_program()
keep(me, ProgramVersion("before", sys.argv[1], 0))
print(me.fingerprint)
"""
GOING_ON = """
import sys
from pathlib import Path
from modules.runtime.program import ProgramVersion, become, kept
if kept(before := ProgramVersion("before", sys.argv[1], 0)):
    become(before, Path("before").resolve(), ["--help"])
print("NO COPY")
"""
PLANT = "import sys; sys.stderr.write('PLANTED CODE RUNS\\n'); raise SystemExit(7)\n"


def runs(code: str, state: Path, word: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    line = [sys.executable, "-B", "-P", "-c", code, word]
    return subprocess.run(line, env=env, cwd=state, capture_output=True, text=True, check=False)


def plants_file(copy: Path) -> None:
    """Add a file that Python runs when it starts."""
    with zipfile.ZipFile(copy, "a") as archive:
        archive.writestr("sitecustomize.py", PLANT)


def plants_link(copy: Path) -> None:
    """Replace the copy with a link to a copy that was tampered with."""
    copy.replace(copy.with_name("elsewhere"))
    plants_file(copy.with_name("elsewhere"))
    copy.symlink_to("elsewhere")


PLANTED: dict[str, Callable[[Path], object]] = {
    "a file": plants_file,
    "a link": plants_link,
    "nothing": lambda copy: copy.write_bytes(b""),
    "half": lambda copy: copy.write_bytes(copy.read_bytes()[:-1]),
}


@pytest.mark.slow
def test_a_copy_that_is_not_what_it_was_is_not_used_and_is_made_anew(tmp_path: Path) -> None:
    fingerprint = runs(KEEPING, tmp_path, "none").stdout.strip()
    for what, plant in PLANTED.items():
        (tmp_path / "before").mkdir(exist_ok=True)
        (tmp_path / "before/sitecustomize.py").write_text(PLANT)
        used = runs(GOING_ON, tmp_path, fingerprint)
        assert "soul" in used.stdout, used
        assert "PLANTED" not in used.stderr
        plant(tmp_path / "soul/programs" / fingerprint)
        refused = runs(GOING_ON, tmp_path, fingerprint)
        assert (refused.stdout, refused.stderr) == ("NO COPY\n", ""), what
        runs(KEEPING, tmp_path, "none")
