"""Upgrades and starts of homes, each in its own process, which tests kill before any step that it takes on the disk.

Usage: python -m tests.crash.upgrade_child

Forks a process for each line on stdin (`upgrade HOME DIE_AT_STEP`, or `run`; 0 for no death) and prints how it ended
and, if an upgrade finished, how many steps it took. Copies of versions are kept beside the home. An upgrade knows one
migration more than the current program. A step is a change of files below the home, a lock, or an exec, as reported by
Python's audit hooks.
"""

import os
import signal
import sys
from pathlib import Path

from common.errors import SoulError
from modules.runtime.database.schema import MIGRATIONS
from soul.commands.backup import run_upgrade
from soul.commands.run import run_life

NEXT = max(MIGRATIONS) + 1
"""The schema after the upgrade."""
_STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "sqlite3.connect"}
_OF_NO_PATH = {"fcntl.flock", "os.exec"}


class Steps:
    """Counts the steps of this process below `home`, and kills it before step number `die_at`."""

    def __init__(self, home: Path, die_at: int) -> None:
        self._home = str(home)
        self._die_at = die_at
        self.count = 0

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        is_ours = event in _STEPS and self._home in str(args[0]) and (event != "open" or args[1] != "r")
        if not is_ours and event not in _OF_NO_PATH:
            return
        self.count += 1
        if self.count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    for line in sys.stdin:
        what, home, at = line.split()
        pid = os.fork()
        if pid == 0:
            steps = Steps(Path(home), int(at))
            sys.addaudithook(steps)
            sys.stdout, told = sys.stderr, sys.stdout
            os.environ["XDG_STATE_HOME"] = str(Path(home).parent / "state")
            try:
                if what == "run":
                    run_life(Path(home), social_only=False, flush_all=False)
                MIGRATIONS[NEXT] = "ALTER TABLE intents ADD COLUMN next TEXT NOT NULL DEFAULT ''"
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
