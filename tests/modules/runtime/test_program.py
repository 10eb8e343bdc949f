"""Copies of versions that lived well: each is whole or not there, also after a kill, and names no place."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from modules.runtime.program import ProgramVersion, keep, kept, this_program


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "soul/programs"


def dies_at(step: int, folder: Path) -> Callable[[str, tuple[object, ...]], None]:
    """Kill this process before that step below the folder."""
    taken = [0]

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event in {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"} and str(folder) in str(args[0]):
            taken[0] += 1
            if taken[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


@pytest.mark.slow
def test_a_copy_that_was_cut_off_is_none_and_the_next_try_makes_it_whole(programs: Path) -> None:
    me = this_program()
    for step in (1, 2, 3, 9, 200, 1500, 2500):
        pid = os.fork()
        if pid == 0:
            sys.addaudithook(dies_at(step, programs))
            keep(me)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        found = kept(me)
        assert found is None or code == 0 or step > 1500
        assert code in {0, -signal.SIGKILL}
    keep(me)
    assert kept(me) == programs / me.fingerprint
    assert programs.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_a_copy_that_was_changed_counts_as_none_and_the_newest_four_stay(programs: Path) -> None:
    me = this_program()
    keep(me)
    for number in range(5):
        (programs / f"older{number}").mkdir()
        os.utime(programs / f"older{number}", (number, number))
    keep(me)
    assert sorted(path.name[:6] for path in programs.iterdir() if path.is_dir()) == sorted(
        ["older2", "older3", "older4", me.fingerprint[:6]]
    )
    (programs / me.fingerprint / "soul/cli.py").write_text("import os\n")
    assert kept(me) is None


@pytest.mark.parametrize("named", ["", "../..", "/", ".", "a" * 64])
def test_a_home_can_name_no_place(programs: Path, named: str) -> None:
    assert kept(ProgramVersion("9", named, 37)) is None


@pytest.mark.slow
def test_files_that_changed_since_the_start_are_not_kept_as_that_version(programs: Path) -> None:
    keep(ProgramVersion("9", "b" * 64, 37))
    assert [path for path in programs.iterdir() if path.is_dir() and path.name != ".unfinished"] == []
