"""Takes in who works on plans beside us: the accounts to which a plan is assigned become known as peers."""

from __future__ import annotations

from dataclasses import dataclass, field

from modules.lives.workspaces.types import Place, Poll, StepResult
from modules.services.peers.registry import PeerRegistry
from modules.services.plans.types import FoundPlan, PlanKey
from modules.services.workspaces.trust import WorkspaceTrust

MOST_ASSIGNED = 10
"""How many accounts of one plan are taken in."""


@dataclass(slots=True)
class PlanPeers:
    """Registers whoever is assigned to a plan, or to one of its tasks, where they may push and we did not write it.

    A plan is looked at again when it changed.
    """

    name = "plan-peers"
    place = Place.STUCK_TASKS
    acts = False
    sees_finished = False

    registry: PeerRegistry
    trust: WorkspaceTrust
    _seen: dict[PlanKey, str] = field(default_factory=dict, init=False)

    async def run(self, poll: Poll) -> StepResult:
        for plan in poll.plans:
            if self._seen.get(plan.key) != plan.issue.updated_at:
                await self._take_in(plan)
        self._seen = {plan.key: plan.issue.updated_at for plan in poll.plans}
        return StepResult()

    async def _take_in(self, plan: FoundPlan) -> None:
        trusted = await self.trust.accounts(plan.repo)
        named = (*plan.issue.assignees, *(task.assignee for task in plan.plan.tasks if task.assignee))
        assigned = {login.lower() for login in named}
        for login in [one.login for one in trusted.others() if one.login.lower() in assigned][:MOST_ASSIGNED]:
            context = f"{plan.repo.full_name}#{plan.number}"
            self.registry.register_peer_by_github_username(login, "plan", context)
