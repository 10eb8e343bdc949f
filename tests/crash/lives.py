"""Lives of a child process: one for each line that it reads, each in a fork of its own, so that none starts cold."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any


def live_on_request(live: Callable[[int, bool], Coroutine[Any, Any, None]]) -> None:
    """For each line live once, and tell the pid as `born PID` and its exit code as `ended CODE`.

    A line says at which commit the life is to die, and `inside` where that is before the commit; an empty one says
    nothing. `live` takes the number, 0 for none, and whether it is inside.
    """
    for line in sys.stdin:
        at, *where = line.split() or ["0"]
        pid = os.fork()
        if pid == 0:
            say(f"born {os.getpid()}")
            asyncio.run(live(int(at), where == ["inside"]))
            os._exit(0)
        say(f"ended {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")


def say(words: str) -> None:
    """Tell the parent a line."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()
