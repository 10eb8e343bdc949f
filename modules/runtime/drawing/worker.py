"""The process that redraws one picture: it limits itself, reads the file, and writes a JSON line and the picture.

It is started by `apart.py` and knows nothing of the SOUL: no environment, no file of the home, no connection.
"""

from __future__ import annotations

import json
import os
import resource
import sys

from common.result import Ok
from modules.runtime.drawing.draw import FOR

MEMORY_MAX_BYTES = 512 * 1024 * 1024
"""Limits the address space, so whatever a decoder asks for; Python and its libraries take some 100 MB of it."""
CPU_MAX_S = 10
_NICE = 5


def main() -> None:
    """Redraw the picture on standard input for the purpose that the command line names."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    os.nice(_NICE)
    (draw,) = (draw for purpose, draw in FOR.items() if purpose == sys.argv[1])
    drawn = draw(sys.stdin.buffer.read())
    if isinstance(drawn, Ok):
        told = {"mime": drawn.data.mime, "width": drawn.data.width, "height": drawn.data.height}
        sys.stdout.buffer.write(json.dumps(told).encode() + b"\n" + drawn.data.data)
    else:
        sys.stdout.buffer.write(json.dumps({"error": drawn.error}).encode() + b"\n")


if __name__ == "__main__":
    main()
