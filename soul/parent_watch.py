"""Ends this process once its parent has ended, in whatever way. Run as a module it is a resident of the demo.

The parent holds the writing end of a pipe and writes nothing into it. When that process is gone, even by kill -9, the
system closes the pipe, on Linux and macOS alike; nothing needs to be asked again and again.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

_GRACE_S = 10.0


def end_with(pipe: int, *, grace_s: float = _GRACE_S) -> None:
    """Ask this process to end once nobody holds the other end of `pipe`; end it for good `grace_s` seconds later."""
    threading.Thread(target=_watch, args=(pipe, grace_s), name="parent watch", daemon=True).start()


def _watch(pipe: int, grace_s: float) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace_s)
    os._exit(1)


def main() -> None:
    """Watch the pipe and live."""
    pipe, home = int(sys.argv[1]), Path(sys.argv[2])
    # NOTE(self): the pipe stays inheritable: a life that starts anew, to forget somebody, replaces this program and
    # watches it again. What a life starts itself inherits nothing.
    end_with(pipe)
    from soul import cli  # noqa: PLC0415 - the watch begins before the long imports

    sys.argv = ["soul", "run", "--home", str(home)]
    cli.main()


if __name__ == "__main__":
    main()
