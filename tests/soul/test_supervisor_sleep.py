"""Proves which ends a supervisor counts as failures, and that a home that is in use is woken later."""

import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from common.clock import FakeClock, SystemClock
from soul.exit_codes import ASLEEP, ExitCode
from soul.supervisor import SupervisedProcess, Supervisor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="several SOULs under one supervisor need Linux")


def lives(
    ends: list[int],
    folder: Path,
    *,
    name: str = "rowan",
    called: bytes = b"0\n",
    longest_s: float = 3600.0,
    watches: bool = True,
    fork: Callable[[], int] = os.fork,
) -> int:
    """Return how many lives with the exit codes `ends` a supervisor runs; each sleep writes `called`, 0 is the last."""
    calls, caller = os.pipe()
    counted = folder / "lives"
    counted.write_text("0")

    def life() -> int:
        number = int(counted.read_text())
        counted.write_text(str(number + 1))
        if ends[number] == ASLEEP:
            os.write(caller, called)
        return ends[number]

    def watch() -> int:
        time.sleep(60 if watches else 0)
        return 1

    rowan = SupervisedProcess(name, life)
    watcher = SupervisedProcess("watch", watch, keeps_all=False)
    try:
        Supervisor(
            [rowan, watcher], SystemClock(), restart_s=0, longest_s=longest_s, calls=calls, watcher=watcher, fork=fork
        ).run()
    finally:
        os.close(calls)
        os.close(caller)
    return int(counted.read_text())


def test_who_slept_often_is_started_again_after_a_crash(tmp_path: Path) -> None:
    assert lives([*[ASLEEP] * 6, 1, 0], tmp_path) == 8


def test_who_cannot_be_started_for_the_moment_is_tried_again(tmp_path: Path) -> None:
    failures = [OSError(errno.EAGAIN, "no more processes")] * 6

    def scarce() -> int:
        if failures:
            raise failures.pop()
        return os.fork()

    assert lives([1, 0], tmp_path, fork=scarce) == 2
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_who_slept_wakes_later_where_its_home_is_in_use(tmp_path: Path) -> None:
    assert lives([ASLEEP, *[ExitCode.IN_USE] * 7, 0], tmp_path) == 9


def test_a_home_in_use_from_the_first_is_left_alone(tmp_path: Path) -> None:
    assert lives([ExitCode.IN_USE, 0], tmp_path) == 1


def test_who_is_called_by_nobody_wakes_all_the_same(tmp_path: Path) -> None:
    assert lives([ASLEEP, ASLEEP, 0], tmp_path, called=b"7\n", longest_s=0.05) == 3


def test_nobody_sleeps_where_the_watcher_was_left_alone(tmp_path: Path) -> None:
    assert lives([ASLEEP, 0], tmp_path, called=b"7\n", watches=False) == 2


def test_who_lives_in_a_folder_with_an_odd_name_is_woken(tmp_path: Path) -> None:
    assert lives([ASLEEP, 0], tmp_path, name="a\nb\u2028c") == 2


def test_of_many_that_are_due_at_once_one_starts_and_who_was_woken_is_the_first(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def life() -> int:
        os.kill(os.getppid(), signal.SIGTERM)
        return 0

    calls, caller = os.pipe()
    os.write(caller, b"3\n")
    members = [SupervisedProcess(name, life, is_asleep=name == "woken") for name in ("rowan", "wren", "ada", "woken")]
    try:
        Supervisor(members, FakeClock(), calls=calls).run()
    finally:
        os.close(calls)
        os.close(caller)
    told = capfd.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in told if ": process" in line] == ["woken"], "the clock stands still"
