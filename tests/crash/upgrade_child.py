"""Upgrades of homes, each a process of its own, to be killed before any step that it takes on the disk.

Usage: python -m tests.crash.upgrade_child

Forks an upgrade for each line on stdin (`HOME DIE_AT_STEP`; 0 dies at none) and says how it ended and, where it came
to its end, how many steps it took. The program knows one migration more than it does today. A step is what changes the
files below the home, as Python tells it of itself.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from common.errors import SoulError
from modules.runtime.database.schema import MIGRATIONS
from soul.commands.upgrade import run_upgrade

NEXT = max(MIGRATIONS) + 1
"""The schema after the upgrade."""
_STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "sqlite3.connect"}


class Steps:
    """Counts the steps of this process below `home`, and kills it before the one with the number `die_at`."""

    def __init__(self, home: Path, die_at: int) -> None:
        self._home = str(home)
        self._die_at = die_at
        self.count = 0

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if event not in _STEPS or self._home not in str(args[0]) or (event == "open" and args[1] == "r"):
            return
        self.count += 1
        if self.count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    MIGRATIONS[NEXT] = "ALTER TABLE intents ADD COLUMN next TEXT NOT NULL DEFAULT ''"
    for line in sys.stdin:
        home, at = line.split()
        pid = os.fork()
        if pid == 0:
            steps = Steps(Path(home), int(at))
            sys.addaudithook(steps)
            sys.stdout, told = sys.stderr, sys.stdout
            try:
                run_upgrade(Path(home))
            except SoulError as error:
                told.write(f"{error} ")
            told.write(f"{steps.count} ")
            told.flush()
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
