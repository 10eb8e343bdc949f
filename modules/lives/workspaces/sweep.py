"""Undoes what is left of claims: of our own that ended half-way, and of those whose SOUL is gone."""

from __future__ import annotations

from common.result import Err
from modules.lives.workspaces.types import FoundPlan, Place, Poll, StepResult
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.plans.claimer import Claimer
from modules.services.plans.plan_reading import PlanReader
from modules.services.plans.sweeping import may_hold_dead_claims, sweep_plan


class SweepStep:
    """Runs in each cycle, and so also in the first after a start, before anything is claimed."""

    name, place = "sweep", Place.STUCK_TASKS
    acts = sees_finished = False

    def __init__(self, claimer: Claimer, reader: PlanReader, journal: Journal) -> None:
        self._claimer = claimer
        self._reader = reader
        self._journal = journal
        self._told = ""

    async def run(self, poll: Poll) -> StepResult:
        """Settle our own claims, then look at the plans on which somebody works."""
        await self._claimer.settle()
        if (notice := self._claimer.notice) and notice != self._told:
            self._told = notice
            await self._journal.record(Entry("error", self.name, notice, line="warn"))
        ours = {(f"{one.owner}/{one.repo}".lower(), one.issue, one.number) for one in await self._claimer.held()}
        changed = 0
        for found in poll.plans:
            held = frozenset(number for repo, issue, number in ours if (repo, issue) == found.key)
            if may_hold_dead_claims(found.plan, held):
                changed += await self._sweep(found, held)
        return StepResult(note=f"{changed} task{'' if changed == 1 else 's'} settled" if changed else "")

    async def _sweep(self, found: FoundPlan, held: frozenset[int]) -> int:
        reading = await self._reader.read(found.repo, found.number)
        if isinstance(reading, Err):
            return 0
        swept = await sweep_plan(self._claimer.requests, reading.data, found.repo, held)
        for one in swept:
            why = "its pull request was merged" if one.code == "completed" else f"the claim of {one.holder} has ended"
            summary = f"Task {one.task} of {found.repo.full_name}#{found.number} {one.code}: {why}"
            await self._journal.record(Entry("life", self.name, summary, line="info"))
        return len(swept)
