"""The events and rows by which workspaces, tasks and the owner share which tasks are taken or left alone."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.github.types import Repo
from common.errors import SoulError
from modules.runtime.events import Event, Publish
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

    async def meant(self, words: str) -> TaskPlace:
        """Return the place of the task that `3`, `owner/repo#12/3` or `owner/repo#12/task-3` names.

        Raises `SoulError` for any other text, and for a bare number if several plans, or none, are known.
        """
        found = _NAMED.fullmatch(words.strip())
        if found is None:
            raise SoulError(f"{words!r} names no task", remedy="Write its number, or owner/repo#12/3.")
        if found["owner"]:
            return TaskPlace(Repo(found["owner"], found["repo"]), int(found["issue"]), int(found["number"]))
        known = [place_of(row) for row in await self.table.newest(TASK, _MOST_ROWS)]
        plans = {(one.repo, one.issue): one for one in known}
        of_number = {one.row.key: one for one in known if one.number == int(found["number"])}
        if len(of_number) != 1 and len(plans) != 1:
            listed = ", ".join(sorted(of_number) or sorted(f"{repo.full_name}#{issue}" for repo, issue in plans))
            raise SoulError(
                f"There is not just one task {found['number']}" + (f": {listed}" if listed else ""),
                remedy="Write it as owner/repo#12/3.",
            )
        if of_number:
            return next(iter(of_number.values()))
        ((repo, issue),) = plans
        return TaskPlace(repo, issue, int(found["number"]))

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


def is_left_alone(connection: sqlite3.Connection, task: str) -> bool:
    """Return whether the owner ordered that the task `owner/repo#12/task-3` be left alone."""
    row = get(connection, TASK, task.replace("/task-", "/"))
    return row is not None and is_left(row)


def is_left(row: WorkItem) -> bool:
    """Return whether the owner ordered that the task of a row be left alone."""
    return bool(row.payload.get("left"))
