"""`soul tasks`: the tasks of plans that it knows: which are its own, since when, what they cost, where they stand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.github.types import Repo
from common.clock import Clock, SystemClock, iso, local, parse_iso
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.services.claims.lease_store import TaskLeases
from modules.services.claims.leases import Lease
from modules.services.claims.offers import TASK, TaskPlace, is_left, place_of
from modules.services.coding.trajectory import spent
from modules.services.outbox import store
from modules.services.plans.naming import claim_key
from modules.services.work.table import WorkTable
from modules.services.work.types import WorkItem
from soul.commands.at_hand import at_hand
from soul.terminal.output import printable, write_json, write_lines

_MOST = 100
_NONE = "No task of a plan is known; docs/plans.md tells how plans are made"


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task as the owner sees it: `state` is `ours`, `left`, `waiting`, or how its last row ended."""

    task: str
    state: str
    holder: str
    since: str
    tokens: int
    usd: float
    link: str

    def fields(self) -> dict[str, Any]:
        """Return the same for programs."""
        cost = {"tokens": self.tokens, "usd": round(self.usd, 6)}
        return {"task": self.task, "state": self.state, "holder": self.holder, "since": self.since, **cost} | {
            "link": self.link
        }


def run_tasks(root: Path, *, as_json: bool) -> None:
    """Print them, the SOUL's own first."""
    settings, home = at_hand(root)
    found = asyncio.run(_kept(home))
    if as_json:
        write_json([one.fields() for one in found])
    else:
        write_lines(*task_lines(found, settings.soul_timezone))


def task_lines(found: Sequence[TaskLine], timezone: str) -> list[str]:
    """Return a line for each task."""
    return [printable(_line(one, timezone)) for one in found] or [_NONE]


async def tasks_of(database: Database, home: Home, clock: Clock) -> list[TaskLine]:
    """Return what is known of tasks: those that are held first, then the newest."""
    leases = {_key(one): one for one in await TaskLeases(database, home.memory, clock, "").all()}
    rows = await WorkTable(database, clock).newest(TASK, _MOST)
    found = [await _told(database, place_of(row), row, leases) for row in rows]
    return sorted(found, key=lambda one: one.state != "ours")


async def _kept(home: Home) -> list[TaskLine]:
    if not home.database.exists():
        return []
    database = await Database.beside(home.database)
    try:
        return await tasks_of(database, home, SystemClock())
    finally:
        await database.close()


async def _told(database: Database, place: TaskPlace, row: WorkItem, leases: dict[str, Lease]) -> TaskLine:
    key = claim_key(place.repo.owner, place.repo.name, place.issue, place.number)
    lease = leases.get(key)
    tokens, usd = await database.read(lambda connection: spent(connection, key))
    acts = await database.read(lambda connection: store.by_cause(connection, key))
    link = next((one.result_uri for one in acts if one.kind == "pull_request" and one.result_uri), "")
    waits = "left" if is_left(row) else "waiting" if row.state == "pending" else row.outcome or row.state
    return TaskLine(
        task=key,
        state="ours" if lease else waits,
        holder=lease.soul if lease else "",
        since=iso(lease.since) if lease else "",
        tokens=tokens,
        usd=usd,
        link=link or f"{Repo(place.repo.owner, place.repo.name).url}/issues/{place.issue}",
    )


def _key(lease: Lease) -> str:
    return claim_key(lease.owner, lease.repo, lease.issue, lease.number)


def _line(one: TaskLine, timezone: str) -> str:
    held = f"{one.holder} since {local(parse_iso(one.since), timezone):%Y-%m-%d %H:%M}" if one.holder else one.state
    cost = f"{one.tokens:,} tokens" + (f", {one.usd:.4f} dollars" if one.usd else "") if one.tokens else "no cost"
    return f"{one.task}  {held}  {cost}  {one.link}"
