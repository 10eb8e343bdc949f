"""Tells the room how far each plan is: when that changed, and once an hour for those who came in since.

A room that was only found is told of public repositories alone: who is in there may not know that the others exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from adapters.github.client import GitHub
from adapters.github.types import Repo
from adapters.space.client import SpaceClient
from adapters.space.types import WorkspaceProgress
from common.clock import Clock
from common.result import Ok
from modules.lives.workspaces.policy import progress_of
from modules.lives.workspaces.types import CycleStep, Place, PlanProgress, Poll, StepResult
from modules.services.plans.types import FoundPlan

AGAIN_S = 3600.0


class ProgressTeller(CycleStep):
    """Sends progress to `room`, unless `mute_reason` returns why nothing may be shown there.

    Args:
        room: where it is told.
        clock: says when.
        mute_reason: returns why nothing may be told now, "" if something may.
        is_trusted_room: returns whether the owner named the room, or it is on this machine.
        github: tells which repositories are public.

    """

    name, place = "plan-progress", Place.PROGRESS
    acts = False

    def __init__(
        self,
        room: SpaceClient,
        clock: Clock,
        mute_reason: Callable[[], str],
        is_trusted_room: Callable[[], bool],
        github: GitHub,
    ) -> None:
        self._room = room
        self._clock = clock
        self._mute_reason = mute_reason
        self._is_trusted_room = is_trusted_room
        self._github = github
        self._sent: dict[tuple[str, int], tuple[PlanProgress, float]] = {}

    async def run(self, poll: Poll) -> StepResult:
        """Send what is new of all open plans."""
        await self.tell(poll.plans)
        return StepResult()

    async def tell(self, plans: Iterable[FoundPlan]) -> None:
        """Send what is new of these plans; the others are forgotten. A member that is in no room sends nothing."""
        now = self._clock.monotonic()
        standing = {(one.repo.full_name, one.number): (one.repo, progress_of(one.plan)) for one in plans}
        self._sent = {key: sent for key, sent in self._sent.items() if key in standing}
        if not self._room.is_active or self._mute_reason():
            return
        for (name, number), (repo, progress) in standing.items():
            before = self._sent.get((name, number))
            is_new = before is None or before[0] != progress
            if before and not is_new and now - before[1] < AGAIN_S:
                continue
            if is_new and _says(self._room.workspace_states().get(name), number, progress):
                self._sent[name, number] = (progress, now)
                continue
            if not await self._may_be_told(repo):
                continue
            sent = await self._room.send_workspace_state(
                name,
                plan_number=number,
                total=progress.total,
                completed=progress.completed,
                blocked=progress.blocked,
                in_progress=progress.active,
            )
            if isinstance(sent, Ok):
                self._sent[name, number] = (progress, now)

    async def _may_be_told(self, repo: Repo) -> bool:
        if self._is_trusted_room():
            return True
        known = await self._github.get_repository(repo)
        return isinstance(known, Ok) and not known.data.private


def _says(heard: WorkspaceProgress | None, number: int, progress: PlanProgress) -> bool:
    """Whether a member told the room the same already."""
    if heard is None:
        return False
    counts = (heard.plan_number, heard.total, heard.completed, heard.blocked, heard.in_progress)
    return counts == (number, progress.total, progress.completed, progress.blocked, progress.active)
