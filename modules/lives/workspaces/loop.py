"""The loop of the workspaces life: it reads the workspaces, and runs a cycle of steps over what it read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adapters.github.client import GitHub
from common.clock import Clock
from common.errors import Fatal, Transient
from common.intervals import PLANS_INTERVAL_MS
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.policy import line_of
from modules.lives.workspaces.types import CycleStep, Poll, StepResult
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome
from modules.services.claims.lease_store import PLAN_AWARENESS
from modules.services.workspaces.watched import OwnWorkspace, RequestedRepositories, WatchedWorkspaces


@dataclass(frozen=True, slots=True)
class CycleReport:
    """The result of a cycle: the poll as its steps left it, and their notes."""

    poll: Poll
    notes: tuple[str, ...] = ()


class Cycle:
    """Runs the steps in their order. A step that acts is left out while the SOUL does something else (`is_idle`)."""

    def __init__(self, steps: Sequence[CycleStep], is_idle: Callable[[], bool], journal: Journal) -> None:
        self._steps = sorted(steps, key=lambda step: step.place)
        self._is_idle = is_idle
        self._journal = journal

    async def run(self, poll: Poll) -> CycleReport:
        """Run each step once, until one ends the cycle. Raises `Fatal` and `Transient` as the steps do."""
        notes: list[str] = []
        for step in self._steps:
            if step.acts and not self._is_idle():
                continue
            result = await self._run_step(step, poll if step.sees_finished else poll.unfinished)
            poll = poll.without(result.closed)
            notes += [result.note] if result.note else []
            if result.ends_cycle:
                break
        return CycleReport(poll, tuple(notes))

    async def _run_step(self, step: CycleStep, poll: Poll) -> StepResult:
        """Run a step; an error ends only this step, and is recorded."""
        try:
            return await step.run(poll)
        except (Fatal, Transient):
            raise
        except Exception as error:
            summary = f"{step.name} failed: {type(error).__name__}: {error}"
            await self._journal.record(Entry("error", step.name, summary, line="error"))
            return StepResult()


@dataclass(slots=True)
class PlanAwarenessLoop(Loop):
    """Looks at the watched workspaces and runs the steps of a cycle.

    The progress of plans is recorded when it changed; what cannot be read is recorded once.
    """

    name = PLAN_AWARENESS
    social_only = False

    perceiver: WorkspacePerceiver
    cycle: Cycle
    workspaces: WatchedWorkspaces
    own: OwnWorkspace
    requested: RequestedRepositories
    github: GitHub
    journal: Journal
    clock: Clock
    _told: str = field(default="", init=False)
    _unread: tuple[str, ...] = field(default=(), init=False)

    @property
    def interval_ms(self) -> float:
        return self.clock.real(PLANS_INTERVAL_MS)

    async def run(self) -> Outcome:
        if not self.github.enough_for_loops:
            return Outcome(ran=False, reason=f"{self.github.rate.remaining} requests to GitHub are left in this hour")
        await self.own.watch_existing()
        await self.requested.catch_up()
        if not self.workspaces.all():
            return Outcome(ran=False, reason="no workspace is watched")
        poll = await self.perceiver.look()
        await self._tell_unread(poll.unread)
        report = await self.cycle.run(poll)
        if poll.unread and not poll.workspaces:
            return Outcome(ran=False, reason=poll.unread[0])
        line = line_of(report.poll, report.notes)
        await self._tell(line)
        return Outcome(ran=True, reason=line)

    async def _tell(self, line: str) -> None:
        """Record a line if it differs from the last one."""
        if line == self._told:
            return
        self._told = line
        urls = ", ".join(one.url for one in self.workspaces.all())
        await self.journal.record(Entry("life", self.name, line, line="info", reason=urls))

    async def _tell_unread(self, unread: tuple[str, ...]) -> None:
        """Record what could not be read, once as long as it stays the same."""
        for line in unread:
            if line not in self._unread:
                summary = f"Plans could not be read: {line}"
                await self.journal.record(Entry("error", self.name, summary, line="warn"))
        self._unread = unread
