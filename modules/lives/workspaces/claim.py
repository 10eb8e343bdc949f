"""Claims at most one task in a cycle, of those that this SOUL can do, and tells the owner of those that it cannot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from common.result import Err
from modules.lives.workspaces.claim_door import ClaimDoor
from modules.lives.workspaces.execute import Execution
from modules.lives.workspaces.policy import plans_to_claim_in, tasks_to_claim
from modules.lives.workspaces.task_comments import TaskComments
from modules.lives.workspaces.types import FoundPlan, Place, Poll, StepResult, TaskWork
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.claim_requests import repo_of
from modules.services.claims.claim_types import LoseCode
from modules.services.claims.claimer import Claimer
from modules.services.claims.leases import Lease
from modules.services.claims.plan_reading import PlanReader
from modules.services.plans.events import MAX_TASK_RETRIES, TaskEvent
from modules.services.plans.naming import claim_key
from modules.services.plans.types import Task
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

_LOST: frozenset[LoseCode | None] = frozenset({"contest", "earlier_claim"})
"""How a claim ends that another one was made beside."""


class ClaimStep:
    """Goes on with what was claimed before, else claims.

    `why_paused` returns why no work may be done now, and `why_no_budget` why none may be thought of.
    """

    name, place = "claim", Place.CLAIM
    acts, sees_finished = True, False

    def __init__(
        self,
        *,
        claimer: Claimer,
        reader: PlanReader,
        trust: WorkspaceTrust,
        works: Sequence[TaskWork],
        execution: Execution,
        comments: TaskComments,
        acting: ActingTurns,
        journal: Journal,
        door: ClaimDoor,
        why_paused: Callable[[], str],
        why_no_budget: Callable[[], Awaitable[str]],
    ) -> None:
        self._claimer = claimer
        self._reader = reader
        self._trust = trust
        self._works = works
        self._execution = execution
        self._comments = comments
        self._acting = acting
        self._journal = journal
        self._door = door
        self._why_paused = why_paused
        self._why_no_budget = why_no_budget

    async def run(self, poll: Poll) -> StepResult:
        """Claim and do one task."""
        for lease in await self._claimer.held():
            return StepResult() if self._why_paused() else await self._go_on(lease, poll)
        for found in plans_to_claim_in(poll.plans):
            for task in tasks_to_claim(found.plan):
                work = self._work_for(task)
                if work is None or not await self._may_be_claimed(found, task):
                    continue
                if why := await self._why_no_budget():
                    return StepResult(note=f"no task is claimed: {why}")
                if not await self._door.opens(found, task):
                    break
                outcome = await self._claimer.claim(found.repo, found.number, task.number)
                if outcome.code == "no_room":
                    await self._door.tell_shut(found, task, "no_room", "its issue holds no more characters")
                    break
                if outcome.lease is None:
                    act = "claim-lost" if outcome.code in _LOST else "not-claimed"
                    await self._tell(found, task, f"not claimed: {outcome.code}", act, by=outcome.holder)
                    break
                await self._tell(found, task, "claimed", "claim-won", by=outcome.lease.soul, epoch=outcome.lease.epoch)
                return await self._execution.run(outcome.lease, found, task, work)
        return StepResult()

    async def _go_on(self, lease: Lease, poll: Poll) -> StepResult:
        """Work on a task that was won before the program ended; give it back where that cannot be."""
        key = (repo_of(lease).full_name.lower(), lease.issue)
        found = next((one for one in poll.plans if one.key == key), None)
        task = found.plan.task(lease.number) if found else None
        work = self._work_for(task) if task else None
        if found is None or task is None or work is None:
            await self._claimer.release(lease, "pending")
            return StepResult(note=f"task {lease.number} of #{lease.issue} was given back")
        return await self._execution.run(lease, found, task, work)

    def _work_for(self, task: Task) -> TaskWork | None:
        return next((work for work in self._works if work.can_do(task)), None)

    async def _may_be_claimed(self, found: FoundPlan, task: Task) -> bool:
        """Whether the plan is by one whose words count, and the task was not put off of late, nor failed too often."""
        if not self._execution.may_begin(claim_key(found.repo.owner, found.repo.name, found.number, task.number)):
            return False
        if not (await self._trust.accounts(found.repo)).covers(found.issue.account):
            return False
        reading = await self._reader.read(found.repo, found.number)
        if isinstance(reading, Err):
            return False
        failures = reading.data.failures(task.number)
        if failures >= MAX_TASK_RETRIES and not reading.data.is_abandoned(task.number):
            await self._abandon(found, task, failures)
        return failures < MAX_TASK_RETRIES

    async def _abandon(self, found: FoundPlan, task: Task, failures: int) -> None:
        """Tell on the plan that a task is left alone: one SOUL for all."""
        cause = f"task-abandoned:{claim_key(found.repo.owner, found.repo.name, found.number, task.number)}"
        if self._acting.may_act(cause):
            event = TaskEvent(task.number, "abandoned", failures)
            await self._comments.say(found.repo, found.number, "github.task_abandoned", event, cause, count=failures)

    async def _tell(self, found: FoundPlan, task: Task, what: str, act: str, *, by: str, epoch: int = 0) -> None:
        summary = f"{task.name} of {found.repo.full_name}#{found.number} {what}{f' ({by})' if by else ''}"
        about = f"{claim_key(found.repo.owner, found.repo.name, found.number, task.number)}@{epoch}"
        data = {"act": act, "repo": found.repo.full_name, "about": about, "holder": by}
        await self._journal.record(Entry("life", self.name, summary, line="info", reason=task.title, data=data))


@dataclass(frozen=True, slots=True)
class UndoableTasks:
    """Tells the owner once of each plan with tasks that nobody has and none of `works` can do, such as code.

    The watch list says of which plans that was told.
    """

    works: Sequence[TaskWork]
    workspaces: WatchedWorkspaces
    trust: WorkspaceTrust
    journal: Journal
    name: str = "undoable-tasks"
    place: Place = Place.CLAIM
    acts: bool = False
    sees_finished: bool = False

    async def run(self, poll: Poll) -> StepResult:
        """Tell of each plan whose author's words count."""
        for found in poll.plans:
            watched, tasks = self.workspaces.get(found.repo), self._undoable(found)
            if watched is None or not tasks or found.number in watched.undoable_told:
                continue
            if not (await self.trust.accounts(found.repo)).covers(found.issue.account):
                continue
            await self._tell(found, tasks)
            self.workspaces.note(found.repo, undoable_told=(*watched.undoable_told, found.number))
        return StepResult()

    def _undoable(self, found: FoundPlan) -> list[Task]:
        left = (task for task in found.plan.tasks if task.assignee is None and task.status != "completed")
        return [task for task in left if not task.unclear and not any(work.can_do(task) for work in self.works)]

    async def _tell(self, found: FoundPlan, tasks: Sequence[Task]) -> None:
        names = ", ".join(task.name for task in tasks)
        summary = (
            f"{names} of {found.repo.full_name}#{found.number}: no work of this SOUL can do that, somebody else has to"
        )
        reason = "; ".join(task.title for task in tasks)
        uri = found.issue.html_url
        await self.journal.record(Entry("decision", self.name, summary, line="warn", reason=reason, trigger_uri=uri))
