"""Lives that do nothing but change SELF.md, each a process of its own, to be killed at any moment.

Usage: python -m tests.modules.services.identity.self_keeper_child

Loads everything once, then forks a life for each line on stdin, `HOME CHANGES DIE_AT_STEP` (0: never). Prints
`born PID`, `did N` for each change that was reported as done, and `ended CODE`. Each change adds one to the number.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

from common.clock import SystemClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.services.identity.keeper import SelfKeeper
from tests.crash.lives import live_on_request, say

_STEPS = {"open", "os.rename", "os.remove", "os.mkdir"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def die_at(step: int, home: Home) -> None:
    """Die just before step number `step` of those that make, rename or remove a file of the keeper."""
    numbers = count(1)

    def watch(event: str, args: tuple[object, ...]) -> None:
        paths = [os.fsdecode(arg) for arg in args if isinstance(arg, str | bytes | os.PathLike)]
        ours = any("self-history" in path or "SELF.md" in path for path in paths if path.startswith(str(home.root)))
        writes = event in _STEPS and (event != "open" or bool(int(str(args[2])) & _WRITES))
        if ours and writes and next(numbers) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


async def live(root: str, changes: str, step: str) -> None:
    home = Home.at(Path(root))
    if int(step):
        die_at(int(step), home)
    clock = SystemClock()
    database = await Database.open(home.database, MIGRATIONS)
    journal = Journal(database, SilentConsole(), clock, Redactor())
    keeper = SelfKeeper(home=home, clock=clock, journal=journal, redactor=Redactor())
    await keeper.wake()
    for _ in range(int(changes)):
        number = number_in(home.self_md.read_text()) + 1
        change = await keeper.change(thought(number), reason=f"thought {number}", by="soul")
        assert change.status == "changed"
        say(f"did {number}")
    await database.close()


def thought(number: int) -> str:
    """Return a text of SELF.md with this number."""
    return f"# Rowan\n\n{'The rain again, on the same old roof. ' * 500}\n\nThought number {number}.\n"


def number_in(text: str) -> int:
    """Return the number in a text of SELF.md. Raises `ValueError` if the text is not whole."""
    number = int(text.rsplit(" ", 1)[1].rstrip(".\n"))
    if text != thought(number):
        raise ValueError(f"a torn text: {text[:100]!r}")
    return number


def main() -> None:
    live_on_request(lambda words: live(*words))


if __name__ == "__main__":
    main()
