"""Limits the processes and the memory of a run as a whole, by a control group for that run.

RLIMIT_NPROC does not bind root, `pids.max` does; no rlimit counts the memory of several processes together. Where no
group can be made, an ordinary user is bound by RLIMIT_NPROC, and `Watch` sums up the memory. A group that a killed SOUL
left behind is empty, and is removed by a later run.
"""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "soul-run-"
_LEFT_BEHIND_S = 3600.0
_EMPTY_WITHIN_S = 2.0
_TICK_S = 0.01


@dataclass(frozen=True, slots=True)
class RunGroup:
    """The control group of one run.

    Attributes:
        pids: limits the number of processes and threads.
        memory: limits the memory; the same group in cgroup v2, another one in v1, None where it cannot be limited.

    """

    pids: Path
    memory: Path | None = None

    def add(self, pid: int) -> None:
        """Add a process and all that it will start. Raises `OSError`."""
        for path in self._paths:
            (path / "cgroup.procs").write_text(str(pid))

    def was_full(self) -> bool:
        """Return whether the kernel refused to start a process because of the limit."""
        return _count(self.pids / "pids.events", "max") > 0

    def ran_out_of_memory(self) -> bool:
        """Return whether the kernel ended a process because the run needed more memory than it may have."""
        if self.memory is None:
            return False
        return any(_count(self.memory / name, "oom_kill") > 0 for name in ("memory.events", "memory.oom_control"))

    def remove(self) -> None:
        """Remove the group. Dying processes hold it for a moment; a group that stays is removed by a later run."""
        last = time.monotonic() + _EMPTY_WITHIN_S
        for path in self._paths:
            while not _removed(path) and time.monotonic() < last:
                time.sleep(_TICK_S)

    @property
    def _paths(self) -> list[Path]:
        return list(dict.fromkeys(filter(None, (self.pids, self.memory))))


def open_group(most: int, memory_bytes: int, *, proc: Path = Path("/proc/self")) -> RunGroup | None:
    """Return a new group with room for `most` processes and threads, or None where none can be made.

    It also limits the memory to `memory_bytes`, where the kernel lets us.
    """
    pids = _new_group(proc, "pids", "pids.max", most)
    if pids is None:
        return None
    if not _shares(pids.parent, "memory"):
        return RunGroup(pids, _new_group(proc, "memory", "memory.limit_in_bytes", memory_bytes))
    for name, value in (("memory.max", memory_bytes), ("memory.swap.max", 0), ("memory.oom.group", 1)):
        with suppress(OSError):
            (pids / name).write_text(str(value))
    return RunGroup(pids, pids)


def _new_group(proc: Path, controller: str, file: str, value: int) -> Path | None:
    for parent in _parents(proc, controller):
        path = parent / f"{_PREFIX}{uuid.uuid4().hex[:12]}"
        try:
            path.mkdir()
        except OSError:
            continue
        try:
            (path / file).write_text(str(value))
        except OSError:
            _removed(path)
            continue
        _remove_left_behind(parent)
        return path
    return None


def _parents(proc: Path, controller: str) -> Iterator[Path]:
    """Yield the groups in which a group with a limit of `controller` may be made: our own, then its parents."""
    try:
        mounts = [line.split() for line in (proc / "mountinfo").read_text().splitlines()]
        groups = [line.split(":", 2) for line in (proc / "cgroup").read_text().splitlines()]
    except OSError:
        return
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        if kind not in {"cgroup", "cgroup2"} or (kind == "cgroup" and controller not in options):
            continue
        own = next((path for _, names, path in groups if _is_of(kind, controller, names.split(","))), "/")
        mount = Path(fields[4])
        here = mount / own.lstrip("/")
        for place in (here, *here.parents):
            if place.is_relative_to(mount) and (kind == "cgroup" or _shares(place, controller)):
                yield place


def _is_of(kind: str, controller: str, names: list[str]) -> bool:
    return controller in names if kind == "cgroup" else names == [""]


def _shares(place: Path, controller: str) -> bool:
    """Return whether groups below `place` have the limits of `controller` (cgroup v2)."""
    with suppress(OSError):
        return controller in (place / "cgroup.subtree_control").read_text().split()
    return False


def _count(file: Path, name: str) -> int:
    """Return the value of `name` in a file of counters; 0 if it cannot be read."""
    try:
        return int(dict(line.split() for line in file.read_text().splitlines()).get(name, "0"))
    except (OSError, ValueError):
        return 0


def _remove_left_behind(parent: Path) -> None:
    """Remove old groups; those with a process in them cannot be removed, and stay."""
    with suppress(OSError):
        for path in parent.glob(f"{_PREFIX}*"):
            if time.time() - path.stat().st_mtime > _LEFT_BEHIND_S:
                _removed(path)


def _removed(path: Path) -> bool:
    try:
        os.rmdir(path)  # noqa: PTH106 - a control group is removed with its files in it
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
