"""Which tasks are taken, held or left alone: rows in `soul.db` and events that workspaces, tasks and the owner share.

A lease is written before its first request is sent and deleted after all of it is undone, so that `kill -9` between two
requests leaves nothing unknown behind. The view is written after the database, and never read.

The gate stops acts for a task unless the task is ours, and those for one that was offered while it is to be left alone.
It is asked each time before such an act leaves, so that an act that was proposed under a claim that is over never
leaves.
"""

import json
import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from adapters.github.types import Repo
from common.clock import Clock, iso, parse_iso
from common.errors import SoulError
from common.files import save_state
from modules.runtime.database.database import Database
from modules.runtime.events import Event, Publish
from modules.services.claims.policy import Lease, after_start
from modules.services.outbox.github_bodies import OfTask
from modules.services.outbox.types import Intent, Wait
from modules.services.work.table import WorkTable, get
from modules.services.work.types import NewWork, WorkItem

TASKS, PLAN_AWARENESS = "tasks", "plan-awareness"
"""The names of the loops that do tasks and that look at plans."""
TASK = "task"
"""The kind of the rows of tasks."""
ABANDONED = "abandoned"
"""The outcome of a row that waits for the owner because its task failed too often."""

ASKS = "asks"
"""The outcome of a row that waits for an answer: a SOUL asked on the plan what the task means."""

_MOST_ROWS = 500
_NAMED = re.compile(r"(?:(?P<owner>[\w.-]+)/(?P<repo>[\w.-]+)#(?P<issue>\d{1,9})/)?(?:task-)?(?P<number>\d{1,6})")


@dataclass(frozen=True, slots=True)
class TaskOffered(Event):
    """A row of a task is due."""


@dataclass(frozen=True, slots=True)
class TaskEnded(Event):
    """The work on a task has ended, and its plan has changed."""


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """The place of a task: task `number` of the plan in `issue` of `repo`; its `title` for the owner, if known."""

    repo: Repo
    issue: int
    number: int
    title: str = field(default="", compare=False)

    @property
    def row(self) -> NewWork:
        """The row of the task, with the key `owner/repo#12/3`."""
        payload: dict[str, Any] = {"owner": self.repo.owner, "repo": self.repo.name}
        payload |= {"issue": self.issue, "number": self.number, **({"title": self.title} if self.title else {})}
        key = f"{self.repo.full_name}#{self.issue}/{self.number}"
        return NewWork(TASK, key, payload, importance="commitment")


@dataclass(frozen=True, slots=True)
class TaskStanding:
    """The state of a task on its plan when it was last read: its holder, and `since` when, if known.

    `status` is "" if it was never read; `is_open` is whether the plan is open, else it was closed in this state.
    """

    status: str = ""
    holder: str = ""
    is_open: bool = True
    since: str = field(default="", compare=False)


def standing_of(item: WorkItem) -> TaskStanding:
    """Return the state of the task of a row on its plan."""
    told = item.payload.get("standing")
    return TaskStanding(**told) if isinstance(told, dict) else TaskStanding()


def place_of(item: WorkItem) -> TaskPlace:
    """Return the place of the task of a row. Raises `KeyError` for a row of another kind."""
    told = item.payload
    return TaskPlace(Repo(told["owner"], told["repo"]), told["issue"], told["number"], told.get("title", ""))


@dataclass(frozen=True, slots=True)
class TaskOrders:
    """The owner's orders for one task: take it now, or leave it alone. Stored in its row, also across restarts."""

    table: WorkTable
    publish: Publish

    async def take(self, place: TaskPlace) -> None:
        """Order that a task be taken before all others, even if it was to be left alone."""
        await self._keep(place, leave=False)
        self.publish(TaskOffered())

    async def leave(self, place: TaskPlace) -> None:
        """Order that a task be left alone: work on it ends, the claim is released, and it is not taken again."""
        await self._keep(place, leave=True)
        self.publish(TaskOffered())

    async def is_left(self, place: TaskPlace) -> bool:
        """Return whether a task is to be left alone."""
        row = await self.table.get(TASK, place.row.key)
        return row is not None and is_left(row)

    async def follow(self, repo: Repo, new: Repo) -> None:
        """Leave the tasks alone under the new name of their repository that were to be left alone under `repo`."""
        for row in await self.table.newest(TASK, _MOST_ROWS, key_prefix=f"{repo.full_name}#"):
            if is_left(row):
                await self.leave(replace(place_of(row), repo=new))

    async def meant(self, words: str, repo: Repo | None = None) -> TaskPlace:
        """Return the place of the task that `3`, `owner/repo#12/3` or `owner/repo#12/task-3` names.

        A bare number is looked for in `repo`, or everywhere. Raises `SoulError` for any other text, and for a bare
        number if several plans, or none, are known there.
        """
        found = _NAMED.fullmatch(words.strip())
        if found is None:
            raise SoulError(f"{words!r} names no task", remedy="Write its number, or owner/repo#12/3.")
        if found["owner"]:
            return TaskPlace(Repo(found["owner"], found["repo"]), int(found["issue"]), int(found["number"]))
        known = [place_of(row) for row in await self.table.newest(TASK, _MOST_ROWS)]
        if repo:
            known = [one for one in known if one.repo.full_name.lower() == repo.full_name.lower()]
        plans = {(one.repo, one.issue): one for one in known}
        of_number = {one.row.key: one for one in known if one.number == int(found["number"])}
        if len(of_number) != 1 and len(plans) != 1:
            where = f" in {repo.full_name}" if repo else ""
            listed = ", ".join(sorted(of_number) or sorted(f"{there.full_name}#{issue}" for there, issue in plans))
            raise SoulError(
                f"There is not just one task {found['number']}{where}" + (f": {listed}" if listed else ""),
                remedy="Write it as owner/repo#12/3.",
            )
        if of_number:
            return next(iter(of_number.values()))
        ((there, issue),) = plans
        return TaskPlace(there, issue, int(found["number"]))

    async def _keep(self, place: TaskPlace, *, leave: bool) -> None:
        known = await self.table.get(TASK, place.row.key)
        payload = {**(known.payload if known else {}), **place.row.payload, "left": leave}
        if not await self.table.offer(replace(place.row, importance="owner", payload=payload)) and known:
            await self.table.retry(known, payload)


def is_ordered(row: WorkItem) -> bool:
    """Return whether the owner ordered that the task of a row be taken."""
    return row.payload.get("left") is False


def question_of(row: WorkItem) -> str:
    """Return the question that must be answered before the task of a row continues; "" if there is none."""
    return str(row.payload.get("question") or "") if row.state == "pending" and row.outcome == ASKS else ""


def waits_for_people(row: WorkItem) -> bool:
    """Return whether the task of a row waited for an answer or a reset when it was last looked at."""
    return row.outcome in {ASKS, ABANDONED}


def is_left_alone(connection: sqlite3.Connection, task: str) -> bool:
    """Return whether the owner ordered that the task `owner/repo#12/task-3` be left alone."""
    row = get(connection, TASK, task.replace("/task-", "/"))
    return row is not None and is_left(row)


def is_left(row: WorkItem) -> bool:
    """Return whether the owner ordered that the task of a row be left alone."""
    return bool(row.payload.get("left"))


FILE = "claimed_tasks.json"

_KEPT = timedelta(days=7)
_COLUMNS = "owner, repo, issue, number, soul, stage, epoch, has_lock, since, renewed_at, until, comment_id"
_PUT = f"INSERT OR REPLACE INTO task_leases (key, {_COLUMNS}) VALUES ({', '.join('?' * 13)})"  # noqa: S608 - our names
_FORGET = "DELETE FROM seen_locks WHERE first_seen < ? AND branch NOT IN (SELECT value FROM json_each(?))"
_ADD = _PUT.replace("OR REPLACE", "OR IGNORE")


class TaskLeases:
    """The store of leases. Each method is one transaction, and raises `StorageError` if it fails."""

    def __init__(self, database: Database, folder: Path, clock: Clock) -> None:
        self._database = database
        self._path = folder / FILE
        self._clock = clock

    async def load(self) -> list[Lease]:
        """Return the leases of the previous process: those that continue, and those to be undone (`ending`)."""
        now = self._clock.now()

        def step(connection: sqlite3.Connection) -> list[Lease]:
            leases = [after_start(lease, now) for lease in _all(connection)]
            connection.executemany(_PUT, [_row(lease) for lease in leases])
            return leases

        leases = await self._database.run(step)
        self._write_view(leases)
        return leases

    async def all(self) -> list[Lease]:
        """Return the leases, oldest first."""
        return await self._database.read(_all)

    async def begin(self, lease: Lease) -> bool:
        """Store a lease that is to be claimed. Return False, and change nothing, if the task is ours already."""

        def step(connection: sqlite3.Connection) -> tuple[bool, list[Lease]]:
            return connection.execute(_ADD, _row(lease)).rowcount > 0, _all(connection)

        is_new, leases = await self._database.run(step)
        self._write_view(leases)
        return is_new

    async def put(self, lease: Lease) -> None:
        """Store the current state of a lease."""

        def step(connection: sqlite3.Connection) -> list[Lease]:
            connection.execute(_PUT, _row(lease))
            return _all(connection)

        self._write_view(await self._database.run(step))

    async def end(self, lease: Lease) -> None:
        """Delete a lease that is done or fully undone; the task can be claimed again."""

        def step(connection: sqlite3.Connection) -> list[Lease]:
            connection.execute("DELETE FROM task_leases WHERE key = ?", (lease.key,))
            return _all(connection)

        self._write_view(await self._database.run(step))

    async def first_seen(self, branches: Iterable[str]) -> dict[str, datetime]:
        """Return when each lock branch, `owner/repo:branch`, was first seen; for a new one that is now.

        A branch that is no longer asked for is forgotten after seven days.
        """
        now, asked = self._clock.now(), list(branches)

        def step(connection: sqlite3.Connection) -> dict[str, datetime]:
            connection.execute(_FORGET, (iso(now - _KEPT), json.dumps(asked)))
            connection.executemany("INSERT OR IGNORE INTO seen_locks VALUES (?, ?)", [(one, iso(now)) for one in asked])
            known = dict(connection.execute("SELECT branch, first_seen FROM seen_locks"))
            return {one: parse_iso(known[one]) for one in asked}

        return await self._database.run(step)

    def _write_view(self, leases: Iterable[Lease]) -> None:
        save_state(self._path, {lease.key: int(lease.since.timestamp() * 1000) for lease in leases})


def held_tasks(connection: sqlite3.Connection) -> list[str]:
    """Return the tasks that are claimed or held, `owner/repo#12/task-3`, oldest claim first."""
    return [lease.key for lease in _all(connection) if lease.stage != "ending"]


def _row(lease: Lease) -> tuple[object, ...]:
    moments = (iso(lease.since), iso(lease.renewed_at), iso(lease.until))
    place = (lease.owner, lease.repo, lease.issue, lease.number)
    return (lease.key, *place, lease.soul, lease.stage, lease.epoch, lease.has_lock, *moments, lease.comment_id)


def _all(connection: sqlite3.Connection) -> list[Lease]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM task_leases ORDER BY since, key")  # noqa: S608 - our names
    return [_lease(row) for row in rows]


def _lease(row: tuple[Any, ...]) -> Lease:
    owner, repo, issue, number, soul, stage, epoch, has_lock, since, renewed_at, until, comment_id = row
    return Lease(
        owner=owner,
        repo=repo,
        issue=issue,
        number=number,
        soul=soul,
        stage=stage,
        epoch=epoch,
        has_lock=bool(has_lock),
        since=parse_iso(since),
        renewed_at=parse_iso(renewed_at),
        until=parse_iso(until),
        comment_id=comment_id,
    )


_ASK_AGAIN_S = 60.0
_HELD = "SELECT 1 FROM task_leases WHERE key = ? AND epoch = ? AND stage = 'held' AND until > ?"


def lease_gate(connection: sqlite3.Connection, intent: Intent, now: datetime, /) -> Wait | None:
    """Return why an act for a task may not leave: its claim is over, or the owner wants the task left alone; else None.

    An act that was sent once may have arrived already, and is not stopped.
    """
    body = intent.body
    if not isinstance(body, OfTask) or not body.task or intent.first_sent_at is not None:
        return None
    if not body.epoch:
        is_left = is_left_alone(connection, body.task)
        return Wait("you said to leave its task alone", _ASK_AGAIN_S, ends=False) if is_left else None
    if connection.execute(_HELD, (body.task, body.epoch, iso(now))).fetchone():
        return None
    return Wait("the task that it is for is not ours any more", _ASK_AGAIN_S)
