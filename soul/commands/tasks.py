"""`soul tasks`: lists the known tasks of plans: which are the SOUL's own, since when, their cost and their state."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common.clock import Clock, SystemClock, iso
from common.git_names import github_address
from common.settings import Settings
from common.text.untrusted import one_line
from common.wording import told_outcome
from modules.lives.tasks.merge.perceive import MERGE
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.services.claims.lease_store import (
    ABANDONED,
    ASKS,
    TASK,
    TaskLeases,
    TaskPlace,
    is_left,
    place_of,
    question_of,
    standing_of,
)
from modules.services.claims.policy import Lease
from modules.services.coding.trajectory import spent
from modules.services.day.situation import takes_no_tasks
from modules.services.outbox import store
from modules.services.outbox.github_bodies import PullRequestBody
from modules.services.outbox.types import Intent
from modules.services.plans.types import claim_key
from modules.services.work.table import WorkTable
from modules.services.work.types import WorkItem
from soul.commands.at_hand import at_hand
from soul.terminal.output import printable, write_answer
from soul.terminal.wording import moment

_MOST, _TITLE_CHARS, _QUESTION_CHARS, _REASON_CHARS = 100, 80, 300, 200
_STATES = {
    ABANDONED: "failed too often, waits for you",
    ASKS: "waits for an answer on its plan, or `/task`",
    "left": "left alone",
    "ours": "in work",
    "in_progress": "in work",
    "opened": "in review",
}
_FREE = frozenset({"pending", "blocked"})
"""The states on its plan of a task that may wait in a row of ours."""
_NONE = "No task of a plan is known; docs/plans.md tells how plans are made"


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task as the owner sees it.

    `state` is `ours`, `left`, `waiting`, `abandoned` (it failed too often), `asks` (the `question` must be answered on
    its plan), `opened` or `merged` (our pull request), or the state on its plan: `pending`, `claimed`, `in_progress`,
    `blocked` or `completed`; if the plan was never read, how its last row ended. `since` is when that began, "" if not
    known. `waits` is why our pull request is not merged yet, "" if not known.
    """

    task: str
    title: str
    state: str
    holder: str
    since: str
    waits: str
    tokens: int
    usd: float
    link: str
    question: str = ""

    def fields(self) -> dict[str, Any]:
        """Return the fields for programs."""
        return {**asdict(self), "usd": round(self.usd, 6)}


def run_tasks(root: Path, *, as_json: bool) -> None:
    """Print the tasks, the SOUL's own first."""
    settings, home = at_hand(root)
    found = asyncio.run(_kept(home, github_address(str(settings.github_api_url))))
    write_answer([one.fields() for one in found], task_lines(found, settings), as_json=as_json)


def task_lines(found: Sequence[TaskLine], settings: Settings) -> list[str]:
    """Return a line for each task, and one if the settings let it take none."""
    lines = [_line(one, settings.soul_timezone) for one in found] or [_NONE]
    return [*lines, *filter(None, [takes_no_tasks(settings)])]


async def tasks_of(database: Database, home: Home, clock: Clock, address: str) -> list[TaskLine]:
    """Return the known tasks: those that are held first, then the newest. `address` is that of GitHub's pages."""
    leases = {one.key: one for one in await TaskLeases(database, home.memory, clock).all()}
    rows = await WorkTable(database, clock).newest(TASK, _MOST)
    found = [await _told(database, row, leases, address) for row in rows]
    return sorted(found, key=lambda one: one.state != "ours")


async def _kept(home: Home, address: str) -> list[TaskLine]:
    if not home.database.exists():
        return []
    async with await Database.beside(home.database) as database:
        return await tasks_of(database, home, SystemClock(), address)


async def _told(database: Database, row: WorkItem, leases: dict[str, Lease], address: str) -> TaskLine:
    place = place_of(row)
    key = claim_key(place.repo.owner, place.repo.name, place.issue, place.number)
    lease = leases.get(key)
    tokens, usd = await database.read(lambda connection: spent(connection, key))
    acts = await database.read(lambda connection: store.by_cause(connection, key))
    pull = next((one for one in acts if isinstance(one.body, PullRequestBody) and one.result_uri), None)
    named = pull.body.title.partition(": ")[2] if pull and isinstance(pull.body, PullRequestBody) else ""
    standing = standing_of(row)
    state, since = _of_row(row)
    waits = ""
    if lease:
        state, since = "ours", iso(lease.since)
    elif standing.status and (row.state != "pending" or standing.status not in _FREE):
        state, since = standing.status, standing.since
    if pull and row.outcome == "opened" and not lease and state != "completed":
        state, since, waits = await _of_pull(database, place, pull) or (state, since, "")
    return TaskLine(
        task=key,
        title=one_line(place.title or named, _TITLE_CHARS),
        state=state,
        holder=lease.soul if lease else standing.holder if state == standing.status else "",
        since=since,
        waits=one_line(waits, _REASON_CHARS),
        tokens=tokens,
        usd=usd,
        link=(pull.result_uri if pull else "") or f"{address}/{place.repo.full_name}/issues/{place.issue}",
        question=one_line(question_of(row), _QUESTION_CHARS) if state == ASKS else "",
    )


def _of_row(row: WorkItem) -> tuple[str, str]:
    """Return the state that the row of a task says, if the task is not held, and since when."""
    if is_left(row):
        return "left", row.created_at
    if row.state == "pending":
        return row.outcome if row.outcome in {ABANDONED, ASKS} else "waiting", row.created_at
    return row.outcome or row.state, row.created_at


async def _of_pull(database: Database, place: TaskPlace, pull: Intent) -> tuple[str, str, str] | None:
    """Return whether a task's pull request is open or merged, since when, and why it waits; None if it was closed."""
    row = await WorkTable(database, SystemClock()).get(MERGE, f"{place.repo.full_name}#{pull.issue_number}")
    if row is None or row.state == "pending":
        return "opened", pull.sent_at or "", str(row.payload.get("waits", "")) if row else ""
    if row.outcome != "merged":
        return None
    acts = await database.read(lambda connection: store.by_cause(connection, row.cause_id))
    merged_at = next((one.sent_at for one in acts if one.kind == "merge" and one.made("commit")), "")
    return "merged", merged_at or "", ""


def _line(one: TaskLine, timezone: str) -> str:
    since = f" since {moment(one.since, timezone)}" if one.since else ""
    cost = f"{one.tokens:,} tokens" + (f", {one.usd:.4f} dollars" if one.usd else "") if one.tokens else "no cost"
    who = f" by {one.holder}" if one.holder else ""
    state = f"{_STATES.get(one.state) or told_outcome(one.state)}{who}{since}"
    told = (
        one.task,
        one.title,
        f"{state}: {one.waits}" if one.waits else state,
        cost,
        one.link,
        one.question,
    )
    return "  ".join(filter(None, map(printable, told)))
