"""What `soul status` is asked for, read from the arguments without the library that reads those of all commands.

It understands only what that library would understand the same (a test holds them together), and leaves all else to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StatusArguments:
    """Whose status, whether it is for a program, and whether all is told."""

    home: Path
    as_json: bool
    with_loops: bool = False


def read_status_arguments(arguments: list[str]) -> StatusArguments | None:
    """`status [--home DIR] [--json] [--loops]` in any order; None for anything else, also for help."""
    if arguments[:1] != ["status"]:
        return None
    home, as_json, with_loops = Path(), False, False
    rest = iter(arguments[1:])
    for word in rest:
        if word == "--json":
            as_json = True
        elif word == "--loops":
            with_loops = True
        elif word == "--home" and (folder := next(rest, "")) and not folder.startswith(("-", "~")):
            home = Path(folder)
        else:
            return None
    return StatusArguments(home, as_json, with_loops)
