"""`soul friction`: what goes wrong again and again, and what became of it; the SOUL may be awake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common.clock import local, parse_iso
from common.wording import counted
from modules.runtime.database.file import reading
from modules.services.craft.friction import Friction
from modules.services.craft.record import frictions, view
from soul.commands.at_hand import at_hand
from soul.terminal.output import printable, write_answer

_NONE = "Nothing went wrong so far, or nothing was counted yet"


def run_friction(root: Path, *, as_json: bool) -> None:
    """Print each friction, the last one first. Raises `SoulError` before the first life."""
    settings, home = at_hand(root)
    with reading(home.database) as connection:
        found = frictions(connection)
    write_answer(view(found), friction_lines(found, settings.soul_timezone), as_json=as_json)


def friction_lines(found: Sequence[Friction], timezone: str) -> list[str]:
    """Return a line for each friction, and one for why it is in its state."""
    lines: list[str] = []
    for one in found:
        last = f"{local(parse_iso(one.last_at), timezone):%d %b %H:%M}"
        days = counted(len(one.days), "day")
        lines.append(printable(f"{one.state:<8}  {one.occurrences:>4} on {days}, last {last}  {one.description}"))
        if one.reason:
            lines.append(printable(f"          {one.reason}"))
    return lines or [_NONE]
