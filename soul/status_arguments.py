"""Parses the arguments of `soul status` without the library that parses those of all commands.

It accepts only what that library would parse in the same way (a test checks this), and leaves everything else to it.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class StatusArguments:
    """The home, whether to print JSON, and whether to print everything known."""

    home: Path
    as_json: bool
    with_loops: bool = False


def read_status_arguments(arguments: list[str]) -> StatusArguments | None:
    """Parse `status [--home DIR] [--json] [--loops]` in any order; return None for anything else, also for help."""
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
