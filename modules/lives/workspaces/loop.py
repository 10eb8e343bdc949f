"""When this life runs; nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapters.github.client import GitHub
from common.clock import Clock
from modules.lives.workspaces.cycle import Cycle
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.policy import line_of
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.claims.offers import PLAN_AWARENESS
from modules.services.workspaces.own import OwnWorkspace
from modules.services.workspaces.requested import RequestedRepositories
from modules.services.workspaces.watched import WatchedWorkspaces

PLAN_AWARENESS_INTERVAL_MS = 180_000


@dataclass(slots=True)
class PlanAwarenessLoop(Loop):
    """Looks at the watched workspaces and runs the steps of a cycle.

    How far the plans are is told where that changed; what cannot be read is told once.
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
        return self.clock.real(PLAN_AWARENESS_INTERVAL_MS)

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
        """Tell it where it is another than before."""
        if line == self._told:
            return
        self._told = line
        urls = ", ".join(one.url for one in self.workspaces.all())
        await self.journal.record(Entry("life", self.name, line, line="info", reason=urls))

    async def _tell_unread(self, unread: tuple[str, ...]) -> None:
        """Told once for as long as it is the same."""
        for line in unread:
            if line not in self._unread:
                summary = f"Plans could not be read: {line}"
                await self.journal.record(Entry("error", self.name, summary, line="warn"))
        self._unread = unread
