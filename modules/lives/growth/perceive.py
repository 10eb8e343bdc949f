"""Adds a row of work when a reflection is due; the rows are numbered within the local day."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from common.clock import Clock, local, parse_iso
from modules.lives.growth.policy import INTERVAL, KIND, Earlier, ReflectionMoment, why_due
from modules.runtime.journal.rows import newest_reason
from modules.runtime.scheduler.policy import is_quiet, not_at_night
from modules.services.experiences import newest_open
from modules.services.work.table import WorkTable
from modules.services.work.types import NewWork, WorkItem

_UNREPORTED = "unreported"
"""The payload field that marks a reflection whose end the owner must be told."""
_MOST_ENDS = 5


@dataclass(frozen=True, slots=True)
class ReflectionPerceiver:
    """Checks whether a reflection is due. `events` counts the significant events since SELF.md last changed.

    `began` returns when this life began, or None.
    """

    table: WorkTable
    events: Callable[[], int]
    began: Callable[[], Awaitable[datetime | None]]
    clock: Clock
    timezone: str = ""

    async def perceive(self) -> None:
        """Add a row if one is due and none waits."""
        newest = await self.table.newest(KIND, 1)
        last = newest[0] if newest else None
        if last is not None and last.state == "pending":
            return
        now = self.clock.now()
        moment = ReflectionMoment(
            local(now, self.timezone),
            await self.table.database.run(newest_open),
            self.events(),
            _earlier(last) if last else None,
            is_quiet=is_quiet(now, self.timezone, keeps_hours=self.clock.keeps_hours),
            began=await self.began() if last is None else None,
            since=self.clock.since,
        )
        if why := why_due(moment):
            await add_reflection(self.table, self.clock, self.timezone, why, events=moment.events)

    async def due(self) -> datetime | None:
        """Return when a reflection is due if nothing more happens; None for never, or if one waits already."""
        newest = await self.table.newest(KIND, 1)
        last = newest[0] if newest else None
        seen = _earlier(last).seen if last else 0
        if (last is not None and last.state == "pending") or await self.table.database.run(newest_open) <= seen:
            return None
        begin = parse_iso(last.created_at) if last else await self.began()
        if begin is None:
            return None
        moment = max(begin + self.clock.real(INTERVAL), self.clock.now())
        return not_at_night(moment, self.timezone, keeps_hours=self.clock.keeps_hours)


async def add_reflection(
    table: WorkTable, clock: Clock, timezone: str, why: str, *, events: int = 0, forced: bool = False
) -> str:
    """Add a row for the next slot of the local day; return the key of the row that waits.

    If a row waits already, add none; with `forced` (the owner ordered it) that row becomes due at once.
    """
    newest = await table.newest(KIND, 1)
    if newest and newest[0].state == "pending":
        if forced:
            await table.retry(newest[0], {**newest[0].payload, "forced": True})
        return newest[0].key
    day = f"{local(clock.now(), timezone):%Y-%m-%d}"
    key = f"{day}/{len(await table.newest(KIND, 1_000, key_prefix=f'{day}/')) + 1}"
    seen = await table.database.run(newest_open)
    payload = {"why": why, "seen": seen, "events": events, "forced": forced}
    await table.add(NewWork(KIND, key, payload, importance="owner" if forced else "own"))
    return key


async def unreported_ends(table: WorkTable) -> Sequence[tuple[str, str]]:
    """Return the ended reflections that the owner ordered and for which no command waited: key and reason of each.

    The reason contains the SOUL's closing words.
    """
    ended = [
        one for one in await table.newest(KIND, _MOST_ENDS) if one.payload.get(_UNREPORTED) and one.state != "pending"
    ]
    return [(one.key, await table.database.run(partial(newest_reason, uri=one.cause_id))) for one in ended]


async def leave_unreported(table: WorkTable, key: str) -> None:
    """Note that no command waits for the end of an ordered reflection, so that the owner is told about it."""
    if item := await table.get(KIND, key):
        await table.note(item, **{_UNREPORTED: True})


def _earlier(item: WorkItem) -> Earlier:
    return Earlier(parse_iso(item.created_at), int(item.payload.get("seen", 0)), int(item.payload.get("events", 0)))
