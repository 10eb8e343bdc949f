"""Runs the work on a claimed task, keeps the claim alive meanwhile, and reports the result.

The work stops early if the owner says so or if the claim is lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from adapters.github.types import PullRequest, Repo
from common.clock import Clock
from common.errors import Auth, BudgetExceeded, Fatal, Transient
from common.provenance import Provenance
from common.wording import LineKind
from modules.lives.tasks.offering import TaskStopped
from modules.lives.tasks.types import (
    AlreadyDone,
    Blocked,
    Deferred,
    Failed,
    HeldTask,
    Lost,
    Opened,
    Stopped,
    TaskWorker,
    WorkResult,
)
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.claim_requests import PlanReader, PlanReading, repo_of
from modules.services.claims.claimer import Claimer, Ending, TaskComments
from modules.services.claims.lease_store import TaskOrders, TaskPlace
from modules.services.claims.policy import Lease
from modules.services.plans.events import TaskEvent, TaskEventName, parse_task_event_markers, task_digest
from modules.services.plans.types import FoundPlan, Task, parse_task_branch
from modules.services.voice_phrases import Phrase
from modules.services.work.loop import STOP_LOOK_S
from modules.services.workspaces.trust import plan_of

T = TypeVar("T")

LOST_LOOK_S = 20.0
"""Seconds between checks whether long work is still wanted. GitHub does not count requests for unchanged data."""


async def first_of(work: Coroutine[Any, Any, T], *watches: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work, or of the first watch if one ends earlier; the others are cancelled.

    Returns only after all of them have ended, together with what they started.
    """
    tasks = [asyncio.create_task(one) for one in (work, *watches)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return await next(one for one in tasks if one.done())
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until_left(orders: TaskOrders, place: TaskPlace, clock: Clock) -> None:
    """Wait until the owner says to leave a task alone."""
    while not await orders.is_left(place):
        await clock.sleep(STOP_LOOK_S)


async def until_lost(is_ours: Callable[[], Awaitable[bool]], clock: Clock) -> None:
    """Wait until a task is no longer ours, with a check every `LOST_LOOK_S` seconds.

    A plan that cannot be read for the moment does not end the wait. Raises `TaskStopped` if the plan is gone.
    """
    while True:
        await clock.sleep(LOST_LOOK_S)
        try:
            if not await is_ours():
                return
        except TaskStopped as stopped:
            if not isinstance(stopped.result, Deferred):
                raise


def place_of_pull(repo: Repo, pull: PullRequest) -> TaskPlace | None:
    """Return the task that a pull request is for, by its branch and the plan named in its text; None if it has none."""
    issue, number = plan_of(pull.body), parse_task_branch(pull.head.ref)
    return None if issue is None or number is None else TaskPlace(repo, issue, number)


MOST_DETAILS_CHARS = 2_000
WORK_LIMIT_S = 10_800.0
"""How many seconds the work on one task may last."""
_ENDINGS: dict[type[WorkResult], tuple[str, TaskEventName, Ending]] = {
    AlreadyDone: ("github.task_found", "completed", "completed"),
    Blocked: ("github.task_blocked", "blocked", "blocked"),
    Failed: ("github.task_failed", "failed", "blocked"),
}


@dataclass(frozen=True, slots=True)
class Execution:
    """Works on one task at a time. The report on the plan leaves through the outbox, once for each claim."""

    claimer: Claimer
    plans: PlanReader
    comments: TaskComments
    phrase: Phrase
    journal: Journal
    clock: Clock
    orders: TaskOrders

    async def run(
        self, lease: Lease, found: FoundPlan, task: Task, worker: TaskWorker, reading: PlanReading
    ) -> WorkResult | None:
        """Do a claimed task, give it back, and return the result; None if the work had ended on an earlier try.

        Raises `Fatal` as the work does.
        """
        if said := await self.comments.said(cause_of(lease)):
            # NOTE(self): the work ended in an earlier process; `release` finds its pull request, if there is one.
            events = {one.event for one in parse_task_event_markers(said)}
            ending: Ending = "completed" if "completed" in events else "blocked" if "blocked" in events else "pending"
            await self.claimer.release(lease, ending)
            return None
        result = await self._work_on(lease, found, task, worker, reading)
        if isinstance(result, Blocked) and await self._people_wrote_since(lease, reading):
            result = Deferred("people may have written on the plan meanwhile, which may answer what would be asked")
        summary = f"{task.name} of {found.repo.full_name}#{found.number}: {type(result).__name__.lower()}"
        told = self._told(result)
        reason = f"{told} ({_why(result)})" if isinstance(result, Failed) else told
        if isinstance(result, Blocked):
            summary = f"{task.name} of {found.repo.full_name}#{found.number} asks a question"
            reason = f"{told}\nAnswer on {found.issue.html_url}, or `/task {lease.key}` to have it tried as it is"
        if isinstance(result, Lost | Stopped):
            reason = f"{reason}. What was made is kept: soul why {lease.key}"
        line: LineKind = "done" if isinstance(result, Opened | AlreadyDone) else "warn"
        if not isinstance(result, Deferred):
            data = {"act": type(result).__name__.lower(), "code": result.problem if isinstance(result, Failed) else ""}
            whose = Provenance.SELF if found.issue.author.lower() == lease.soul.lower() else Provenance.STRANGER
            entry = Entry("life", "task", summary, line=line, reason=reason, data=data, provenance=whose)
            await self.journal.record(entry)
        if isinstance(result, Stopped):
            return result
        if isinstance(result, Lost | Deferred):
            await self.claimer.release(lease, "pending")
            return result
        if isinstance(result, Opened):
            event = TaskEvent(task.number, "opened", max(lease.epoch, 1))
            note = self.comments.text("github.task_opened", event, title=task.title, details=result.url)
            await self.claimer.release(lease, "opened", note)
            return result
        phrase, name, ending = _ENDINGS[type(result)]
        about = task_digest(found.plan, task) if isinstance(result, Blocked) else ""
        event, cause = TaskEvent(task.number, name, max(lease.epoch, 1), about), cause_of(lease)
        details = told[:MOST_DETAILS_CHARS]
        say = self.comments.say
        await say(repo_of(lease), lease.issue, phrase, event, cause, title=task.title, details=details)
        await self.claimer.release(lease, ending)
        return result

    def _told(self, result: WorkResult) -> str:
        """Return a result in words that anybody may read: the problem, and the file."""
        if not isinstance(result, Failed):
            return _why(result)
        words = self.phrase(f"task_problem.{result.problem}")
        return f"`{result.about}`: {words}" if result.about else words

    async def _work_on(
        self, lease: Lease, found: FoundPlan, task: Task, worker: TaskWorker, reading: PlanReading
    ) -> WorkResult:
        started = await self.claimer.start_work(lease)
        if started.code == "conflict":
            return Lost()
        if started.refusal:
            return Deferred(started.refusal.error)
        kept = [lease]
        tries = (*reading.failed_tries(task.number), *await self.comments.rejections(lease.key))
        left, talk = reading.left.get(task.number), reading.talk(task.number)
        held = HeldTask(found, task, lease.epoch, tries, talk, left)
        place = TaskPlace(repo_of(lease), lease.issue, lease.number)
        watches = (until_left(self.orders, place, self.clock), until_lost(lambda: self._is_ours(kept), self.clock))
        return await first_of(done_in_time(worker, held, self.clock), *map(_lost_after, watches))

    async def _people_wrote_since(self, lease: Lease, reading: PlanReading) -> bool:
        """Return whether people wrote on the plan after `reading`, or may have: it cannot be read now."""
        now = (await self.plans.read(repo_of(lease), lease.issue)).or_else(None)
        return now is None or bool(now.by_people - reading.by_people)

    async def _is_ours(self, kept: list[Lease]) -> bool:
        checked = await self.claimer.check(kept[0])
        kept[0] = checked or kept[0]
        return checked is not None


async def done_in_time(worker: TaskWorker, held: HeldTask, clock: Clock) -> WorkResult:
    """Do the work on a task, and return its result; errors and a timeout become results, only `Fatal` is raised."""
    try:
        async with clock.timeout(WORK_LIMIT_S):
            return await worker.do(held)
    except Fatal:
        raise
    except (Transient, BudgetExceeded) as error:
        return Deferred(str(error), error.retry_after)
    except Auth as error:
        return Deferred(str(error))
    except TimeoutError:
        return Failed("too_slow", f"it was not done within {WORK_LIMIT_S / 60:.0f} minutes")
    except Exception as error:
        return Failed("error", f"{type(error).__name__}: {error}")


async def _lost_after(watch: Awaitable[None]) -> WorkResult:
    await watch
    return Lost()


def cause_of(lease: Lease) -> str:
    """Return the cause under which the outbox knows the comment that ends one claim."""
    return f"task-end:{lease.key}:{lease.epoch}"


def _why(result: WorkResult) -> str:
    """Return what the owner is told of a result."""
    match result:
        case Opened(url=url, summary=summary):
            return f"{summary}\n{url}".strip()
        case AlreadyDone(summary=summary):
            return summary
        case Blocked(question=question):
            return question
        case Failed(problem=problem, detail=detail):
            return f"{problem}: {detail}" if detail else problem
        case Deferred(reason=reason) | Stopped(reason=reason):
            return reason
        case Lost():
            return "somebody else has it, or it was given back"
