"""Undoes what is left of claims: of our own that ended half-way, and of those whose SOUL is gone."""

from __future__ import annotations

from dataclasses import dataclass

from common.wording import counted
from modules.lives.workspaces.types import CycleStep, Place, Poll, StepResult
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.claimer import Claimer
from modules.services.claims.claims import LEASE
from modules.services.claims.plan_reading import PlanReader
from modules.services.claims.sweeping import (
    DeadClaim,
    delete_dead_locks,
    find_dead_claims,
    find_orphaned_tasks,
    may_hold_dead_claims,
    settle_dead_claim,
)
from modules.services.claims.task_comments import TaskComments
from modules.services.plans.events import TaskEvent
from modules.services.plans.naming import claim_key
from modules.services.plans.types import FoundPlan
from modules.services.voice_phrases.store import Phrase
from modules.services.workspaces.acting import ActingTurns


@dataclass(slots=True, kw_only=True)
class SweepStep(CycleStep):
    """Runs in each cycle, and so also in the first after a start, before anything is claimed."""

    name, place = "sweep", Place.STUCK_TASKS
    acts = False

    claimer: Claimer
    reader: PlanReader
    acting: ActingTurns
    comments: TaskComments
    journal: Journal
    phrase: Phrase

    async def run(self, poll: Poll) -> StepResult:
        """Settle our own claims, then look at the plans on which somebody works."""
        await self.claimer.settle()
        ours = {(f"{one.owner}/{one.repo}".lower(), one.issue, one.number) for one in await self.claimer.held()}
        changed = 0
        for found in poll.plans:
            held = frozenset(number for repo, issue, number in ours if (repo, issue) == found.key)
            if may_hold_dead_claims(found.plan, held):
                changed += await self._sweep(found, held)
        return StepResult(note=f"{counted(changed, 'task')} settled" if changed else "")

    async def _sweep(self, found: FoundPlan, held: frozenset[int]) -> int:
        if (reading := (await self.reader.read(found.repo, found.number)).or_else(None)) is None:
            return 0
        requests, swept = self.claimer.requests, 0
        await delete_dead_locks(requests, reading, found.repo, held)
        orphaned = await find_orphaned_tasks(requests, reading, found.repo, held)
        for dead in [*find_dead_claims(reading, held), *orphaned]:
            place = claim_key(found.repo.owner, found.repo.name, found.number, dead.task.number)
            # NOTE(self): one alone, for each who writes the same line of the plan finds it as it wrote it.
            if not self.acting.ask_for_turn(f"sweep:{place}", of=dead.holder if dead.is_decided else ""):
                continue
            learned = (await self.reader.learned(found.repo, dead.closed)).or_else(None) if dead.closed else ""
            if learned is not None and await settle_dead_claim(requests, reading, found.repo, dead):
                swept += 1
                await self._report(found, dead, place, learned)
        return swept

    async def _report(self, found: FoundPlan, dead: DeadClaim, place: str, learned: str) -> None:
        """Tell it in the journal, and on the plan why a task can be taken again; GitHub shows a merge there itself."""
        number, epoch = dead.task.number, max(dead.epoch, 1)
        if dead.code == "completed":
            await self._record(found, dead, f"its pull request {dead.pull} was merged")
            return
        if dead.closed:
            why, phrase, event = "its pull request was closed", "github.task_failed", "task-closed"
            details = self.phrase("github.pull_closed", url=dead.closed.html_url, learned=learned)
            told, marker = {"details": details}, TaskEvent(number, "failed", epoch)
        else:
            why, phrase, event = f"the claim of {dead.holder} has ended", "github.task_timeout", "task-timeout"
            minutes = str(int(LEASE.total_seconds() // 60))
            told = {"status": dead.task.status, "assignee": dead.holder, "minutes": minutes}
            marker = TaskEvent(number, "timeout", epoch)
        await self._record(found, dead, why)
        cause, title = f"{event}:{place}:{dead.epoch}", dead.task.title
        await self.comments.say(found.repo, found.number, phrase, marker, cause, title=title, **told)

    async def _record(self, found: FoundPlan, dead: DeadClaim, why: str) -> None:
        summary = f"{dead.task.name} of {found.repo.full_name}#{found.number} {dead.code}: {why}"
        await self.journal.record(Entry("life", self.name, summary, line="info"))
