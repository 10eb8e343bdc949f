"""Watches a run for what the kernel does not count: processes, memory and disk of the run as a whole.

No rlimit sums up over processes, and the kernel only refuses what goes beyond `pids.max` (`cgroup`). So the tree is
looked at, fifty times a second, by a thread of its own that no busy event loop can hold up. Whoever goes too far is
ended through the first process of its pid namespace: with that one the kernel kills all others at once, however fast
they multiply.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from modules.runtime.sandbox.types import MIB, Ended, Limits

TICK_S = 0.02
_DISK_EVERY_S = 0.25
_DISK_SHARE = 5  # looking takes at most one part in so many
_RESERVE_BYTES = 256 * MIB
_BLOCK = 512
_LEAST_BYTES = 4096
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """One run. Build it before the run starts: growth of the work folder is measured from there.

    What is in `tmp`, where there is such a folder, counts in full, also what earlier runs left there.
    """

    def __init__(self, work_dir: Path, limits: Limits, tmp: Path | None = None) -> None:
        self._work_dir = work_dir
        self._folders = (work_dir, *([tmp] if tmp else []))
        self._limits = limits
        began = time.monotonic()
        self._most_bytes = used_bytes(work_dir) + limits.disk_bytes
        self._least_free = min(_RESERVE_BYTES, _free_bytes(work_dir) // 2)
        self._next_disk = self._after_look(began)

    def over(self, root: int) -> Ended | None:
        """What the processes from `root` down have too much of, if anything."""
        pids = descendants(root, most=self._limits.processes)
        if len(pids) > self._limits.processes:
            return "processes"
        if _memory_bytes(pids) > self._limits.memory_bytes:
            return "memory"
        if (began := time.monotonic()) >= self._next_disk:
            if sum(map(used_bytes, self._folders)) > self._most_bytes or _free_bytes(self._work_dir) < self._least_free:
                return "disk"
            self._next_disk = self._after_look(began)
        return None

    @staticmethod
    def _after_look(began: float) -> float:
        now = time.monotonic()
        return now + max(_DISK_EVERY_S, _DISK_SHARE * (now - began))


def descendants(root: int, *, most: int) -> list[int]:
    """`root` and the processes below it; stops counting beyond `most`."""
    found, at = [root], 0
    while at < len(found) <= most:
        try:
            for thread in Path(f"/proc/{found[at]}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
        except OSError:
            pass  # it has ended meanwhile
        at += 1
    return found


def used_bytes(folder: Path) -> int:
    """What the files below `folder` take on disk, and 4 KiB for each that takes none. Follows no links.

    A folder that cannot be listed counts as empty; what is hidden in one still cannot fill the disk, since a run ends
    when little of that is left.
    """
    total, folders = 0, [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    try:
                        total += max(entry.stat(follow_symlinks=False).st_blocks * _BLOCK, _LEAST_BYTES)
                    except OSError:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
    return total


def _memory_bytes(pids: list[int]) -> int:
    return sum(map(_own_bytes, pids))


def _own_bytes(pid: int) -> int:
    """What a process holds in memory beyond files and shared pages."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE


def _free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
