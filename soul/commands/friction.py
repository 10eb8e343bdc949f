"""`soul friction`: lists what goes wrong again and again, and the proposals about it with their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from common.clock import local, parse_iso
from common.wording import counted
from modules.runtime.database.file import reading
from modules.services.craft.friction import Friction
from modules.services.craft.proposals import friction_stands, in_words, proposal_stands, proposals, rests_on
from modules.services.craft.record import frictions, view
from soul.commands.at_hand import at_hand
from soul.terminal.output import printable, visible, write_answer

_SHOWN = 10
_NONE = "Nothing has gone wrong yet, or it was not counted yet"


def run_friction(root: Path, *, as_json: bool) -> None:
    """Print the frictions, the last one first, and the newest proposals. Raises `SoulError` before the first life."""
    settings, home = at_hand(root)
    with reading(home.database) as connection:
        found, proposed = frictions(connection), proposals(connection)
        lines = [*friction_lines(found, settings.soul_timezone), *(["Proposals:"] if proposed else [])]
        for one in proposed[:_SHOWN]:
            lines.append(f"  {one.at[:10]}  {printable(proposal_stands(one))}")
            lines += (f"    {visible(line)}" for line in rests_on(connection, one))
    told = {**view(found), "proposals": [asdict(one) for one in proposed]}
    write_answer(told, lines, as_json=as_json)


def friction_lines(found: Sequence[Friction], timezone: str) -> list[str]:
    """Return two lines for each friction: what it is, and how often it occurred and where it stands."""
    lines: list[str] = []
    for one in found:
        last = f"{local(parse_iso(one.last_at), timezone):%d %b %H:%M}"
        times = sum(each for each, _ in one.days.values())
        often = f"{counted(times, 'time')} on {counted(len(one.days), 'day')}, last {last}"
        lines += [printable(in_words(one)), f"  {often}: {printable(friction_stands(one))}"]
    return lines or [_NONE]
