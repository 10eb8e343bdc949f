"""Limits how many processes a run may have at once, by a control group of its own.

RLIMIT_NPROC does not bind root, `pids.max` does. Where we may not make a group there is none: an ordinary user is bound
by RLIMIT_NPROC. A group that a killed SOUL left behind is empty, and is removed by a later run.
"""

from __future__ import annotations

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
class PidsGroup:
    """A control group that holds `pids.max`."""

    path: Path

    def add(self, pid: int) -> None:
        """Put a process in, with all that it will start. Raises `OSError`."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def was_full(self) -> bool:
        """Whether the kernel refused to start a process because of the limit."""
        try:
            events = dict(line.split() for line in (self.path / "pids.events").read_text().splitlines())
        except (OSError, ValueError):
            return False
        return events.get("max", "0") != "0"

    def remove(self) -> None:
        """Remove it. What the kernel still buries keeps it for a moment; one that stays is removed by a later run."""
        last = time.monotonic() + _EMPTY_WITHIN_S
        while not _removed(self.path) and time.monotonic() < last:
            time.sleep(_TICK_S)


def open_group(most: int, *, proc: Path = Path("/proc/self")) -> PidsGroup | None:
    """A new group with room for `most` processes and threads, or None where none can be made."""
    for parent in _parents(proc):
        path = parent / f"{_PREFIX}{uuid.uuid4().hex[:12]}"
        try:
            path.mkdir()
        except OSError:
            continue
        try:
            (path / "pids.max").write_text(str(most))
        except OSError:
            _removed(path)
            continue
        _remove_left_behind(parent)
        return PidsGroup(path)
    return None


def _parents(proc: Path) -> Iterator[Path]:
    """Groups in which one with `pids.max` may be made: our own, then those above it."""
    try:
        mounts = [line.split() for line in (proc / "mountinfo").read_text().splitlines()]
        groups = [line.split(":", 2) for line in (proc / "cgroup").read_text().splitlines()]
    except OSError:
        return
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        if kind not in {"cgroup", "cgroup2"} or (kind == "cgroup" and "pids" not in options):
            continue
        own = next((path for _, names, path in groups if _is_of(kind, names.split(","))), "/")
        mount = Path(fields[4])
        here = mount / own.lstrip("/")
        for place in (here, *here.parents):
            if place.is_relative_to(mount) and (kind == "cgroup" or _shares_pids(place)):
                yield place


def _is_of(kind: str, names: list[str]) -> bool:
    return "pids" in names if kind == "cgroup" else names == [""]


def _shares_pids(place: Path) -> bool:
    """Whether groups below `place` have `pids.max` (cgroup v2)."""
    with suppress(OSError):
        return "pids" in (place / "cgroup.subtree_control").read_text().split()
    return False


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
