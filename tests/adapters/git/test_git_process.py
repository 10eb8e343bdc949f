"""Runs of the real `git` that go beyond what one may take."""

from __future__ import annotations

import os
from pathlib import Path

from adapters.git.client import GitRun, run_git
from adapters.git.params import environment
from common.result import Err
from tests.town.github_place import needs_git

LONG = 30.0
"""Seconds that no run of these tests comes near."""


async def ran(
    folder: Path, *arguments: str, given: str = "", most_bytes: int = 1_000, deadline_s: float = LONG
) -> GitRun | Err:
    env = environment("", login="", token="", home=str(folder), path=os.environ["PATH"])
    return await run_git(arguments, at=folder, env=env, deadline_s=deadline_s, given=given, most_bytes=most_bytes)


@needs_git
async def test_a_run_that_writes_without_end_is_ended_and_its_beginning_kept(tmp_path: Path) -> None:
    run = await ran(tmp_path, "-c", "alias.endless=!yes", "endless")
    assert isinstance(run, GitRun)
    assert run.is_cut
    assert run.out == "y\n" * 500


@needs_git
async def test_a_run_that_neither_reads_nor_writes_ends_at_its_deadline(tmp_path: Path) -> None:
    run = await ran(tmp_path, "-c", "alias.late=!sleep 60", "late", given="x" * 1_000_000, deadline_s=0.2)
    assert isinstance(run, Err)
    assert run.kind == "unknown_outcome"


@needs_git
async def test_a_run_holds_and_writes_no_more_than_it_may(tmp_path: Path) -> None:
    hungry = 'alias.hungry=!python3 -c "bytearray(400 << 20)"'
    greedy = "alias.greedy=!truncate -s 600M file"
    for alias, name in ((hungry, "hungry"), (greedy, "greedy")):
        run = await ran(tmp_path, "-c", alias, name)
        assert isinstance(run, GitRun)
        assert run.code


@needs_git
async def test_where_there_is_no_git_that_is_said(tmp_path: Path) -> None:
    run = await run_git(("version",), at=tmp_path, env={"PATH": str(tmp_path)}, deadline_s=LONG)
    assert isinstance(run, Err)
    assert "install it" in run.error
