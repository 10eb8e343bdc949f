"""`soul reflect` (`/reflect`) starts a reflection at any hour; `soul friction` lists what goes wrong repeatedly."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from common.clock import Clock, SystemClock, local, parse_iso
from common.wording import counted
from modules.lives.growth.perceive import add_reflection, leave_unreported
from modules.lives.growth.policy import KIND
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.home import Home, lock_holder
from modules.runtime.journal.rows import newest_reason
from modules.services.craft.friction import Friction
from modules.services.craft.proposals import friction_stands, in_words, proposal_stands, proposals, rests_on
from modules.services.craft.record import frictions, view
from modules.services.work.table import WorkTable
from soul.commands.at_hand import at_hand
from soul.terminal.output import printable, visible, write_answer, write_lines

_WHY = "the owner asked for it"
_OUTCOMES = {
    "changed": "SELF.md is changed; `soul self diff` shows how, and `soul self log` why",
    "held": "A change of SELF.md waits for your approval: `soul drafts show SELF.md`",
    "refused": "SELF.md was not changed",
    "unchanged": "SELF.md is as it was",
}


def run_reflect(root: Path) -> None:
    """Queue a reflection for the SOUL, and print when it begins. Raises `ConfigError` before the first life."""
    settings, home = at_hand(root)
    asyncio.run(_leave(home, settings.soul_timezone))
    is_awake = lock_holder(home) is not None
    write_lines("It looks back within a minute" if is_awake else "It looks back when it wakes")


async def reflect_now(table: WorkTable, clock: Clock, timezone: str) -> str:
    """Queue a reflection as a work item; return its key."""
    return await add_reflection(table, clock, timezone, _WHY, forced=True)


async def outcome_lines(table: WorkTable, key: str) -> Sequence[str]:
    """Return what became of a reflection and why; if it is not over, have the owner told of it later."""
    item = await table.get(KIND, key)
    if item is None or item.state == "pending":
        await leave_unreported(table, key)
        if item is None or not item.outcome:
            return ["It is busy, and reflects after that. A direct message then tells you what it learned."]
        return ["It has not reflected yet, and tries again within half an hour. The journal says why."]
    words = await table.database.run(partial(newest_reason, uri=item.cause_id))
    return [_OUTCOMES.get(item.outcome, f"It looked back: {item.outcome}"), *([words] if words else [])]


async def _leave(home: Home, timezone: str) -> None:
    async with await Database.beside(home.database) as database:
        clock = SystemClock()
        table = WorkTable(database, clock)
        await leave_unreported(table, await reflect_now(table, clock, timezone))


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
