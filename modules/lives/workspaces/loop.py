"""When this life runs; nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapters.github.client import GitHub
from common.clock import Clock
from modules.lives.workspaces.perceive import PlanPerceiver
from modules.lives.workspaces.policy import summary_of
from modules.lives.workspaces.tell import ProgressTeller
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.workspaces.watched import WatchedWorkspaces

PLAN_AWARENESS = "plan-awareness"
PLAN_AWARENESS_INTERVAL_MS = 180_000


@dataclass(slots=True)
class PlanAwarenessLoop(Loop):
    """Looks how far the plans of the watched workspaces are, and tells the room. It uses no model.

    What changed since the last look is told to the owner in one line; so is what cannot be read.
    """

    name = PLAN_AWARENESS
    social_only = False

    perceiver: PlanPerceiver
    teller: ProgressTeller
    workspaces: WatchedWorkspaces
    github: GitHub
    journal: Journal
    clock: Clock
    speed: float = 1.0
    _told: str = field(default="", init=False)
    _unread: tuple[str, ...] = field(default=(), init=False)

    @property
    def interval_ms(self) -> float:
        return PLAN_AWARENESS_INTERVAL_MS / self.speed

    async def run(self) -> Outcome:
        if not self.workspaces.all():
            return Outcome(ran=False, reason="no workspace is watched")
        if not self.github.enough_for_loops:
            return Outcome(ran=False, reason=f"{self.github.rate.remaining} requests to GitHub are left in this hour")
        perceived = await self.perceiver.look()
        await self.teller.tell(perceived.plans)
        await self._tell_unread(perceived.unread)
        summary = summary_of(perceived.plans)
        if perceived.unread and not perceived.plans:
            return Outcome(ran=False, reason=perceived.unread[0])
        if summary != self._told:
            self._told = summary
            urls = ", ".join(one.url for one in self.workspaces.all())
            await self.journal.record(Entry("life", self.name, summary, line="info", reason=urls))
        return Outcome(ran=True, reason=summary)

    async def _tell_unread(self, unread: tuple[str, ...]) -> None:
        """Told once for as long as it is the same."""
        for line in unread:
            if line not in self._unread:
                summary = f"Plans could not be read: {line}"
                await self.journal.record(Entry("error", self.name, summary, line="warn"))
        self._unread = unread
