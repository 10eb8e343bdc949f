"""Carries out the requests of a home, and is killed before a file operation, after NUMBER earlier ones.

Usage: python -m tests.crash.forget_child HOME NUMBER
"""

import os
import signal
import sys
from pathlib import Path

from common.settings import load_settings
from modules.runtime.home import Home
from soul.commands.people import carry_out_requests

_TOUCHES = {"os.remove", "os.rename", "sqlite3.connect"}


def main() -> None:
    root, left = Path(sys.argv[1]), int(sys.argv[2])
    settings = load_settings(root)

    def count(event: str, _: tuple[object, ...]) -> None:
        nonlocal left
        if event in _TOUCHES:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    carry_out_requests(settings, Home.at(root, settings.memory_dir))


if __name__ == "__main__":
    main()
