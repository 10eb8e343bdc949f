"""The third rung: an issue that the owner approves, then the work, then a pull request that waits for a person."""

from __future__ import annotations

from dataclasses import dataclass, replace

from common.result import Err
from modules.lives.craft.issues import IssueMaker
from modules.services.claims.offers import TaskPlace
from modules.services.craft.bounds import PROGRAM
from modules.services.craft.proposals import Proposal, ProposalState, ProposalStep, Rung
from modules.services.work.table import WorkTable

_TASK = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramMaker:
    """Opens the issue by `issues`, adds the row of the work, and looks what people do with the pull request."""

    issues: IssueMaker
    table: WorkTable
    may_code: bool
    rung: Rung = "program"

    def is_ready(self) -> bool:
        """Return whether it may code, and knows where."""
        return self.may_code and self.issues.is_ready()

    async def advance(self, proposal: Proposal) -> ProposalStep:
        """Do what comes next. The work begins once the owner approved the issue."""
        known = await self.issues.identity.check(self.issues.place)
        if isinstance(known, Err):
            return ProposalStep("making", reason=known.error)
        step, told = await self.issues.advance(proposal), await self.issues.told(proposal)
        if step.state != "taken" or told is None:
            return step
        place = TaskPlace(self.issues.place, int(step.made.rpartition("/")[2]), _TASK)
        row = replace(place.row, kind=PROGRAM, importance="own", payload={**place.row.payload, "told": told})
        await self.table.add(row)
        item = await self.table.get(PROGRAM, row.key)
        if item is None or item.state == "pending":
            return ProposalStep("making", step.made, (item and item.outcome) or "it is worked on")
        reason = str(item.payload.get("reason", item.outcome))
        return await self._offered(reason) if item.outcome == "opened" else ProposalStep("failed", step.made, reason)

    async def _offered(self, url: str) -> ProposalStep:
        """Return what people did with the pull request at `url`."""
        pull = await self.issues.identity.github.pulls.get(self.issues.place, int(url.rpartition("/")[2]))
        if isinstance(pull, Err):
            return ProposalStep("waiting", url, pull.error)
        if pull.data.merged:
            return ProposalStep("taken", url, "it was merged: `soul upgrade` takes it over")
        state: ProposalState = "waiting" if pull.data.state == "open" else "left"
        return ProposalStep(state, url, f"the pull request is {pull.data.state}")
