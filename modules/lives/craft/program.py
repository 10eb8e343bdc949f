"""The third rung: an issue that the owner approves, then the work, then a pull request that waits for a person."""

from __future__ import annotations

from dataclasses import dataclass, replace

from common.provenance import Provenance
from common.result import Err
from common.wording import told_outcome
from modules.lives.craft.issues import IssueMaker
from modules.services.claims.offers import TaskPlace
from modules.services.craft.bounds import PROGRAM
from modules.services.craft.proposals import OPEN, Proposal, ProposalStep, Rung, decided_in_time
from modules.services.outbox.github_bodies import IssueCommentBody, IssueUpdateBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.types import ProposedAction
from modules.services.owner.notices import TellOwner
from modules.services.work.table import WorkTable
from modules.services.workspaces.reviewers import requested_changes
from modules.services.workspaces.trust import WorkspaceTrust

_SKILL, _TASK, _TRIES = "self-improvement-decision", 1, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramMaker:
    """Opens the issue through `issues`, adds the work item, and checks what people do with the pull request."""

    issues: IssueMaker
    table: WorkTable
    trust: WorkspaceTrust
    tell: TellOwner
    may_code: bool
    rung: Rung = "program"

    def is_ready(self) -> bool:
        """Return whether the SOUL may code, and a repository is configured."""
        return self.may_code and self.issues.is_ready()

    async def advance(self, proposal: Proposal) -> ProposalStep:
        """Do the next step. The work begins once the owner approved the issue."""
        known = await self.issues.identity.check(self.issues.place)
        if isinstance(known, Err):
            return ProposalStep("making", reason=known.error)
        newest = await self.table.newest(PROGRAM, _TRIES)
        unbegun = {f"proposal:{one.payload['proposal']}" for one in newest if one.payload.get("why")}
        step, told = await self.issues.advance(proposal, besides=unbegun), await self.issues.told(proposal)
        if step.state != "taken" or told is None:
            return step
        place = TaskPlace(self.issues.place, int(step.made.rpartition("/")[2]), _TASK)
        payload = {**place.row.payload, "told": told, "proposal": proposal.id}
        row = replace(place.row, kind=PROGRAM, importance="own", payload=payload)
        await self.table.add(row)
        item = await self.table.get(PROGRAM, row.key)
        if item is None or item.state == "pending":
            end = ProposalStep("making", step.made, (item and item.outcome) or "it is worked on")
        elif item.outcome == "opened":
            end = await self._offered(str(item.payload["reason"]))
        else:
            # NOTE(self): what others wrote about its end is told to the owner only.
            end = ProposalStep("failed", step.made, str(item.payload.get("why") or told_outcome(item.outcome)))
        end = decided_in_time(proposal, end, self.issues.clock)
        if end.state not in OPEN:
            await self._close(proposal, place.issue, end.reason)
        return end

    async def _close(self, proposal: Proposal, issue: int, why: str) -> None:
        """Comment on its own issue how the proposal ended, and close it: an open issue would block the next try."""
        at, cause = for_workspace(self.issues.place), f"proposal:{proposal.id}"
        said = self.issues.skills.render(_SKILL, "Issue End", why=why).strip()
        closes = IssueUpdateBody(**at, number=issue, state="closed")
        for body in (IssueCommentBody(**at, number=issue, body=said), closes):
            action = ProposedAction(body, part=f"{cause}:end:{body.kind}", cause_id=cause)
            await self.issues.outbox.do_once(action)

    async def _offered(self, url: str) -> ProposalStep:
        """Return what people did with the pull request at `url`."""
        github, place = self.issues.identity.github, self.issues.place
        pull = await github.pulls.get(place, int(url.rpartition("/")[2]))
        if isinstance(pull, Err):
            return ProposalStep("waiting", url, pull.error)
        if pull.data.merged:
            return ProposalStep("taken", url, "it was merged: `soul upgrade` takes it over")
        if pull.data.state != "open":
            return ProposalStep("left", url, f"the pull request is {pull.data.state}")
        reviews = (await github.pulls.reviews(place, pull.data.number)).or_else(())
        for one in requested_changes(pull.data.head.sha, reviews, await self.trust.accounts(place)):
            told = f"@{one.author} asks for changes, which only people make: {one.html_url}"
            await self.tell(one.html_url, "On a change of its own program", told, Provenance.SELF, at_once=False)
            return ProposalStep("waiting", url, told)
        return ProposalStep("waiting", url, "the pull request is open")
