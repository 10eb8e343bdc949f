"""Proves that a control group of its own limits how many processes a run has, whatever user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from modules.runtime.sandbox.cgroup import RunGroup, open_group

FORKS = """
import os, sys, time
sys.stdin.readline()
begun = 0
try:
    while begun < 200:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        begun += 1
except BlockingIOError:
    pass
print(begun, flush=True)
os.killpg(0, 9)
"""


def _places(folder: Path, *, mount: str, groups: str) -> Path:
    proc = folder / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(mount)
    (proc / "cgroup").write_text(groups)
    return proc


def test_what_is_in_it_starts_no_more_processes_than_it_holds() -> None:
    group = open_group(10, 1 << 30)
    if group is None:
        pytest.skip("no control group can be made here")
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        group.add(child.pid)
        assert not group.was_full()
        said, _ = child.communicate("\n", timeout=60)
    assert int(said) == 9
    assert group.was_full()
    group.remove()
    assert not group.pids.exists()


def test_it_is_made_below_the_nearest_group_that_shares_the_limit(tmp_path: Path) -> None:
    root, own = tmp_path / "cg", tmp_path / "cg" / "user" / "soul"
    own.mkdir(parents=True)
    (root / "cgroup.subtree_control").write_text("cpu memory pids\n")
    (root / "user" / "cgroup.subtree_control").write_text("cpu\n")
    mount = f"30 20 0:26 / {root} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
    group = open_group(7, 1 << 30, proc=_places(tmp_path, mount=mount, groups="0::/user/soul\n"))
    assert group is not None
    assert group.pids.parent == root
    assert (group.pids / "pids.max").read_text() == "7"
    assert (group.pids / "memory.max").read_text() == str(1 << 30)
    assert group.memory == group.pids


def test_in_the_older_layout_it_is_made_where_pids_are_counted(tmp_path: Path) -> None:
    (tmp_path / "pids" / "a").mkdir(parents=True)
    (tmp_path / "memory" / "b").mkdir(parents=True)
    mount = (
        f"30 20 0:26 / {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
        f"31 20 0:27 / {tmp_path}/pids rw - cgroup cgroup rw,pids\n"
    )
    group = open_group(7, 1 << 30, proc=_places(tmp_path, mount=mount, groups="8:pids:/a\n4:memory:/b\n0::/\n"))
    assert group is not None
    assert group.pids.parent == tmp_path / "pids" / "a"
    assert group.memory is not None
    assert group.memory.parent == tmp_path / "memory" / "b"
    assert (group.memory / "memory.limit_in_bytes").read_text() == str(1 << 30)


@pytest.mark.parametrize(
    ("mount", "groups"),
    [
        ("", ""),
        ("30 20 0:26 / /nowhere/cgroup rw - cgroup2 cgroup2 rw\n", "0::/\n"),
        ("30 20 0:26 / /nowhere/pids rw - cgroup cgroup rw,pids\n", "8:pids:/\n"),
    ],
)
def test_where_none_can_be_made_there_is_none(tmp_path: Path, mount: str, groups: str) -> None:
    assert open_group(7, 1 << 30, proc=_places(tmp_path, mount=mount, groups=groups)) is None
    assert open_group(7, 1 << 30, proc=tmp_path / "not-there") is None


def test_a_group_that_is_gone_already_is_no_trouble(tmp_path: Path) -> None:
    gone = RunGroup(tmp_path / "gone")
    gone.remove()
    assert not gone.was_full()
