"""A resident of the demo as a process: `soul run` that ends when whoever opened the town has ended, in whatever way.

usage: python -m soul.demo_child FD HOME
"""

from __future__ import annotations

import sys
from pathlib import Path

from soul.parent_watch import end_with


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
