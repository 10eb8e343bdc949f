"""`soul schedule`: lists and removes what the SOUL does or reminds of at set times; the SOUL may be awake."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from common.clock import SystemClock, iso
from common.errors import UsageError
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.services.schedules.policy import Schedule, schedule_number
from modules.services.schedules.schedules import Schedules, schedules_in
from modules.services.work.table import WorkTable
from soul.commands.at_hand import at_hand
from soul.terminal.output import printable, write_answer, write_lines

_NONE = "Nothing is scheduled. Say for example: remind me on Friday at nine to water the plants"


def run_schedule(
    root: Path,
    *,
    remove: Annotated[str, typer.Option("--remove", metavar="NUMBER", help="Remove this schedule.")] = "",
    as_json: bool,
) -> None:
    """Print the schedules, the one that is due next first, or remove one.

    Raises `UsageError` if there is none to remove, and `SoulError` before the first life.
    """
    settings, home = at_hand(root)
    if remove:
        write_lines(asyncio.run(_removed(home.database, settings.soul_timezone, remove)))
        return
    with reading(home.database) as connection:
        found = schedules_in(connection)
    write_answer([fields(one) for one in found], schedule_lines(found, settings.soul_timezone), as_json=as_json)


def schedule_lines(found: Sequence[Schedule], timezone: str) -> list[str]:
    """Return a line for each schedule."""
    return [printable(one.told_owner(timezone)) for one in found] or [_NONE]


def fields(one: Schedule) -> dict[str, Any]:
    """Return a schedule for programs; `at` is local, `due` and `last` are ISO-8601 UTC."""
    last = iso(one.last) if one.last else None
    return {**asdict(one), "at": one.at.isoformat(timespec="minutes"), "due": iso(one.due), "last": last}


async def remove_schedule(schedules: Schedules, number: str) -> str:
    """Remove a schedule; return a line on it. Raises `UsageError` if there is none with this number."""
    removed = await schedules.remove(schedule_number(number))
    if removed is None:
        raise UsageError(f"There is no schedule {number}", remedy="`soul schedule` lists them.")
    return f"Removed: {printable(removed.told_owner(schedules.timezone))}"


async def _removed(database: Path, timezone: str, number: str) -> str:
    async with await Database.beside(database) as opened:
        clock = SystemClock()
        return await remove_schedule(Schedules(WorkTable(opened, clock), clock, timezone), number)
