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
        if event in {"open", "os.mkdir", "os.rename", "os.remove", "os.utime"} and str(folder) in str(args[0]):
            taken[0] += 1
            if taken[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


@pytest.mark.slow
def test_a_copy_that_was_cut_off_is_none_and_the_next_try_makes_it_whole(programs: Path) -> None:
    me, code, step = this_program(), -signal.SIGKILL, 0
    while code == -signal.SIGKILL:
        step += 1
        pid = os.fork()
        if pid == 0:
            sys.addaudithook(dies_at(step, programs))
            keep(me, me)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0
    assert step > 3
    assert kept(me)


@pytest.mark.slow
def test_the_four_newest_copies_stay(programs: Path) -> None:
    programs.mkdir(parents=True)
    for number in range(5):
        (programs / f"older{number}").touch()
        os.utime(programs / f"older{number}", (number, number))
    me = this_program()
    keep(me, me)
    assert {path.name for path in programs.iterdir()} == {"older2", "older3", "older4", me.fingerprint}
    assert (programs / me.fingerprint).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("named", ["", "../..", "/", ".", "..", "a" * 64, "a" * 5000, "\0"])
def test_a_home_can_name_no_place(programs: Path, named: str) -> None:
    programs.mkdir(parents=True)
    assert not kept(ProgramVersion("9", named, 37))


@pytest.mark.slow
def test_files_that_changed_since_the_start_are_not_kept_as_that_version(programs: Path) -> None:
    keep(ProgramVersion("9", "b" * 64, 37), this_program())
    assert not programs.exists()
