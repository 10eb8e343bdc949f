"""`soul friction`: what goes wrong again and again, and what was proposed about it and became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from common.clock import local, parse_iso
from common.wording import counted
from modules.runtime.database.file import reading
from modules.services.craft.friction import Friction
from modules.services.craft.proposals import Proposal, proposals
from modules.services.craft.record import frictions, view
from soul.commands.at_hand import at_hand
from soul.terminal.output import printable, write_answer

_SHOWN = 10
_NONE = "Nothing went wrong so far, or nothing was counted yet"


def run_friction(root: Path, *, as_json: bool) -> None:
    """Print each friction, the last one first. Raises `SoulError` before the first life."""
    settings, home = at_hand(root)
    with reading(home.database) as connection:
        found, proposed = frictions(connection), proposals(connection)
    about = {one.id: one.description for one in found}
    lines = [*friction_lines(found, settings.soul_timezone), *_proposed(proposed, about)]
    told = {**view(found), "proposals": [asdict(one) for one in proposed]}
    write_answer(told, lines, as_json=as_json)


def friction_lines(found: Sequence[Friction], timezone: str) -> list[str]:
    """Return a line for each friction, and one for why it is in its state."""
    lines: list[str] = []
    for one in found:
        last = f"{local(parse_iso(one.last_at), timezone):%d %b %H:%M}"
        days = counted(len(one.days), "day")
        lines.append(f"{one.state:<8}  {one.occurrences:>4} on {days}, last {last}  {printable(one.description)}")
        if one.reason:
            lines.append(f"          {printable(one.reason)}")
    return lines or [_NONE]


def _proposed(found: Sequence[Proposal], about: Mapping[int, str]) -> list[str]:
    lines: list[str] = []
    for one in found[:_SHOWN]:
        what = ", ".join(filter(None, (one.rung, one.wish or about.get(one.friction or 0, ""), one.made)))
        lines.append(f"  {one.at[:10]}  {one.state:<8}  {printable(f'{what}: {one.reason}')}")
        lines += [f"  {'':<20}  its reason: {printable(one.why)}"] if one.made and one.why else []
    return ["Proposals:", *lines] if lines else []
