"""The limits of a run in the sandbox, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EXEC_TIMEOUT_S = 60.0


MIB = 1024 * 1024

Ended = Literal[
    "exited",  # by itself, with the return code that it chose or the signal that it died of
    "timeout",  # the wall time was over
    "memory",  # all processes together held too much
    "processes",  # there were too many
    "disk",  # the work folder grew too much, or the disk was nearly full
]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. Times are in seconds, sizes in bytes."""

    wall_s: float = EXEC_TIMEOUT_S
    cpu_s: int = 120  # of each process
    memory_bytes: int = 2048 * MIB  # of all processes together
    processes: int = 256
    open_files: int = 1024
    file_bytes: int = 256 * MIB  # of each file
    disk_bytes: int = 512 * MIB  # growth of the work folder
    tmp_bytes: int = 128 * MIB  # of the /tmp inside, which is in memory
    output_bytes: int = MIB  # of stdout and of stderr, each


@dataclass(frozen=True, slots=True)
class Shared:
    """A path of this machine that a run sees, in a sandbox as `/shared/<name>`; read-only unless `writable`."""

    name: str
    path: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one run. `returncode` is that of a shell: 128 plus the signal's number if a signal ended it.

    If more was written than is kept, the text has the beginning and the end, with a line that says how much is left
    out. `warning` is for the owner.
    """

    returncode: int
    stdout: str
    stderr: str
    ended: Ended
    seconds: float
    warning: str = ""

    @property
    def success(self) -> bool:
        return self.ended == "exited" and self.returncode == 0
