"""Ends this process once its parent has ended for any reason. Run as a module, it is a resident of the demo.

The parent holds the writing end of a pipe and writes nothing into it. When the parent ends, even by kill -9, the system
closes the pipe, on Linux and macOS alike, so no polling is needed.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

_GRACE_S = 10.0


def end_with(pipe: int, *, grace_s: float = _GRACE_S) -> None:
    """Send SIGTERM to this process once the other end of `pipe` is closed; exit by force `grace_s` seconds later."""
    threading.Thread(target=_watch, args=(pipe, grace_s), name="parent watch", daemon=True).start()


def _watch(pipe: int, grace_s: float) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_s)
    os._exit(1)


def main() -> None:
    """Watch the pipe, the first argument, and run the SOUL of the home, the second."""
    pipe, home = int(sys.argv[1]), Path(sys.argv[2])
    # NOTE(self): the pipe stays inheritable: a life that restarts, to forget somebody, replaces this program and
    # watches the pipe again. Processes that a life starts inherit nothing.
    end_with(pipe)
    from soul import cli  # noqa: PLC0415 - the watch begins before the long imports

    sys.argv = ["soul", "run", "--home", str(home)]
    cli.main()


if __name__ == "__main__":
    main()
