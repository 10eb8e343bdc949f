"""Whether anybody is there to be spoken to first: a SOUL that runs as a service greets nobody."""

from __future__ import annotations

import os
import stat
from typing import TextIO


def somebody_listens(stdin: TextIO) -> bool:
    """Whether an owner, or a program in their place, can answer: a terminal, a pipe, or a socket."""
    try:
        if stdin.isatty():
            return True
        mode = os.fstat(stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
