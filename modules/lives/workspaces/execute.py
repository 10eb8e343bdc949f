"""Has a claimed task worked on, keeps the claim alive meanwhile, and reports how it ended."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from common.clock import Clock
from common.errors import Auth, BudgetExceeded, Fatal, Transient
from modules.lives.workspaces.task_comments import TaskComments
from modules.lives.workspaces.types import (
    Blocked,
    Deferred,
    Failed,
    FoundPlan,
    HeldTask,
    Lost,
    Opened,
    StepResult,
    TaskWork,
    WorkResult,
)
from modules.runtime.console import LineKind
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.claim_requests import repo_of
from modules.services.claims.claimer import Claimer, Ending
from modules.services.claims.claims import RENEWED_AFTER
from modules.services.claims.leases import Lease
from modules.services.outbox.rules.waits import Waits
from modules.services.plans.events import TaskEvent, TaskEventName
from modules.services.plans.naming import claim_key
from modules.services.plans.types import Task
from modules.services.voice_phrases.store import Phrase

MOST_DETAILS_CHARS = 2_000
WORK_LIMIT_S = 1_800.0
"""How long the work on one task may last."""
PAUSE_S = 180.0
"""So long nothing is claimed after a task was put off, and twice as long not that task, so that others have a turn.

What is put off again waits twice as long as before, up to half an hour.
"""
_LONGEST_PAUSE_S = 3_600.0
_EVERY_TASK = ""
_ENDINGS: dict[type[WorkResult], tuple[str, TaskEventName, Ending]] = {
    Opened: ("github.task_opened", "opened", "opened"),
    Blocked: ("github.task_blocked", "blocked", "blocked"),
    Failed: ("github.task_failed", "failed", "blocked"),
}


class Execution:
    """Works on one task at a time. What is told of it on the plan leaves through the outbox, once for each claim.

    Attributes:
        is_working: a task is worked on at this moment.

    """

    def __init__(
        self,
        *,
        claimer: Claimer,
        comments: TaskComments,
        phrase: Phrase,
        journal: Journal,
        clock: Clock,
        speed: float,
    ) -> None:
        self._claimer = claimer
        self._comments = comments
        self._phrase = phrase
        self._journal = journal
        self._clock = clock
        self._pause_s = PAUSE_S / speed
        self._waits = Waits(clock, self._pause_s)
        self.is_working = False

    def may_begin(self, key: str) -> bool:
        """Return whether a task, by its `claim_key`, may be claimed after what was put off of late."""
        return all(self._waits.is_due(one, "commitment") for one in (_EVERY_TASK, key))

    async def run(self, lease: Lease, found: FoundPlan, task: Task, work: TaskWork) -> StepResult:
        """Do a task that is ours, and give it back as it is then. Raises `Fatal` as the work does."""
        if await self._comments.was_said(cause_of(lease)):
            # NOTE(self): it ended before the program did; its pull request, if there is one, is found by `release`.
            await self._claimer.release(lease, "pending")
            return StepResult()
        result = await self._work_on(lease, found, task, work)
        summary = f"{task.name} of {found.repo.full_name}#{found.number}: {type(result).__name__.lower()}"
        told = self._told(result)
        reason = f"{told} ({_why(result)})" if isinstance(result, Blocked | Failed) else told
        line: LineKind = "done" if isinstance(result, Opened) else "warn"
        await self._journal.record(Entry("life", "task", summary, line=line, reason=reason))
        if isinstance(result, Deferred):
            self._put_off(lease, result)
        if isinstance(result, Lost | Deferred):
            await self._claimer.release(lease, "pending")
            return StepResult(note=summary)
        phrase, event, ending = _ENDINGS[type(result)]
        await self._report(lease, task, phrase, event, told)
        await self._claimer.release(lease, ending)
        return StepResult(runs_again=True, note=summary)

    def _told(self, result: WorkResult) -> str:
        """What anybody may be told of it, in words: what is wrong, with which file, and what that lacks."""
        if not isinstance(result, Blocked | Failed):
            return _why(result)
        words = [self._phrase(f"task_problem.{result.problem}")]
        words += [self._phrase(f"document_problem.{result.lacks}")] if result.lacks else []
        return f"{f'`{result.about}`: ' if result.about else ''}{' '.join(words)}"

    def _put_off(self, lease: Lease, result: Deferred) -> None:
        key = claim_key(lease.owner, lease.repo, lease.issue, lease.number)
        self._waits.let_wait(_EVERY_TASK, max(self._pause_s, min(result.retry_after or 0.0, _LONGEST_PAUSE_S)))
        self._waits.put_off(key, Transient(result.reason))

    async def _work_on(self, lease: Lease, found: FoundPlan, task: Task, work: TaskWork) -> WorkResult:
        if not await self._claimer.start_work(lease):
            return Lost()
        self.is_working = True
        kept = [lease]
        held = HeldTask(found, task, lease.epoch, lambda: self._is_ours(kept))
        doing = asyncio.create_task(_done(work, held, self._clock), name="task-work")
        keeping = asyncio.create_task(self._keep(kept), name="task-lease")
        try:
            await asyncio.wait({doing, keeping}, return_when=asyncio.FIRST_COMPLETED)
            return await doing if doing.done() else Lost()
        finally:
            self.is_working = False
            for one in (doing, keeping):
                one.cancel()
                with suppress(asyncio.CancelledError):
                    await one

    async def _keep(self, kept: list[Lease]) -> None:
        """Renew the claim until it is lost."""
        while True:
            await self._clock.sleep(RENEWED_AFTER.total_seconds())
            if not await self._is_ours(kept):
                return

    async def _is_ours(self, kept: list[Lease]) -> bool:
        checked = await self._claimer.check(kept[0])
        kept[0] = checked or kept[0]
        return checked is not None

    async def _report(self, lease: Lease, task: Task, phrase: str, event: TaskEventName, details: str) -> None:
        await self._comments.say(
            repo_of(lease),
            lease.issue,
            phrase,
            TaskEvent(task.number, event, max(lease.epoch, 1)),
            cause_of(lease),
            title=task.title,
            details=details[:MOST_DETAILS_CHARS],
        )


async def _done(work: TaskWork, held: HeldTask, clock: Clock) -> WorkResult:
    try:
        async with clock.timeout(WORK_LIMIT_S):
            return await work.do(held)
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


def cause_of(lease: Lease) -> str:
    """Return the name of the end of one claim, for the outbox."""
    return f"task-end:{claim_key(lease.owner, lease.repo, lease.issue, lease.number)}:{lease.epoch}"


def _why(result: WorkResult) -> str:
    """What the owner is told."""
    match result:
        case Opened(url=url, summary=summary):
            return f"{summary}\n{url}".strip()
        case Blocked(problem=problem, detail=detail) | Failed(problem=problem, detail=detail):
            return f"{problem}: {detail}" if detail else problem
        case Deferred(reason=reason):
            return reason
        case Lost():
            return "somebody else has it, or it was given back"
