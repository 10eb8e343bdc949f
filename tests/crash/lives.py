"""Runs a life for each line on stdin, each in a fork of this process, so that nothing is loaded again."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any


def live_on_request(live: Callable[[int, bool], Coroutine[Any, Any, None]]) -> None:
    """Fork a life for each line; print its pid as `born PID` and its exit code as `ended CODE`.

    A line gives the number of the commit at which the life is to die, and `inside` if before that commit. An empty
    line means no death. `live` takes the number, 0 for none, and whether it is inside.
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
    """Write a line to the parent process."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()
