"""Reports a friction in an issue on GitHub that the owner approves, and follows the work on it in our own program.

If an open issue reports the friction already, the SOUL comments there, once, instead of opening another.
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from adapters.github.types import Repo
from common.clock import Clock
from common.provenance import Provenance
from common.result import Err
from common.version import __version__
from common.wording import told_outcome
from modules.services.claims.lease_store import TaskPlace
from modules.services.craft.bounds import PROGRAM
from modules.services.craft.friction import Friction
from modules.services.craft.proposals import OPEN, Proposal, ProposalStep, Rung, decided_in_time
from modules.services.craft.record import FrictionRecord
from modules.services.outbox.github_bodies import GitHubBody, IssueBody, IssueCommentBody, IssueUpdateBody, OnGitHub
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.github import open_issue_with
from modules.services.outbox.types import ACTIVE_STATES, ActStanding, ProposedAction
from modules.services.owner import TellOwner
from modules.services.pinned_names import RepositoryIdentity
from modules.services.skills.skills import Skills
from modules.services.work.table import WorkTable
from modules.services.workspaces.acting import requested_changes
from modules.services.workspaces.trust import WorkspaceTrust

ISSUE_EVERY = timedelta(days=7)
"""Least lived time between two reports in one repository."""
_SKILL = "self-improvement-decision"
_TRIES = 14
"""How often a draft is proposed if nobody decides on it; each waits for a day."""
_CODES = re.compile(r"[\w .-]{1,80}", re.ASCII)
_DAY = len("2026-01-31")


def told_outside(friction: Friction, proposal: Proposal) -> dict[str, str | int] | None:
    """Return what may be published about a friction: codes and figures; None if a code looks like anything else."""
    if not (_CODES.fullmatch(friction.code) and _CODES.fullmatch(friction.loop)):
        return None
    return {
        "loop": friction.loop,
        "code": friction.code,
        "category": friction.category,
        "occurrences": int(proposal.evidence.get("occurrences", 0)),
        "days": int(proposal.evidence.get("days", 0)),
        "total": friction.own,
        "since": friction.first_at[:_DAY],
        "version": __version__,
    }


def kind_mark(rung: Rung, told: Mapping[str, str | int]) -> str:
    """Return the marker, invisible to readers, by which SOULs recognise an issue about the same friction."""
    named = "\n".join(str(told[name]) for name in ("category", "loop", "code"))
    return f"<!-- soul:friction-{rung}={hashlib.sha256(named.encode()).hexdigest()[:16]} -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueMaker:
    """The second rung: an issue in `repository` (`owner/name`). `asks` tells the owner what their approval means.

    Nothing is read there while `identity` finds a different repository under that name.
    """

    repository: str
    friction: FrictionRecord
    identity: RepositoryIdentity
    outbox: Outbox
    skills: Skills
    clock: Clock
    rung: Rung = "issue"
    asks: str = "what it says of itself there needs your approval each time"

    def is_ready(self) -> bool:
        """Return whether a repository for issues and an account are configured."""
        return bool(self.repository) and self.identity.github.configured

    @property
    def place(self) -> Repo:
        """The repository."""
        return Repo(*self.repository.split("/"))

    async def told(self, proposal: Proposal) -> dict[str, str | int] | None:
        """Return what may be published about the friction of a proposal; None if nothing may."""
        friction = await self.friction.get(proposal.friction)
        return told_outside(friction, proposal) if friction else None

    async def advance(self, proposal: Proposal, besides: Collection[str] = ()) -> ProposalStep:
        """Propose an issue or a comment on an open one, or check its state. Reports by `besides` cause no wait."""
        told, name, cause = await self.told(proposal), f"{proposal.cause}:issue", proposal.cause
        if told is None:
            return ProposalStep("failed", reason="it cannot be told in codes, and nothing else is told outside")
        opened = await self.outbox.standing("issue", name, _TRIES)
        if opened.is_decided:
            return _step(opened)
        mark, made, hold = kind_mark(self.rung, told), "", f"{self.asks}; its reason: {proposal.why}"
        known = await self.identity.check(self.place)
        found = known if isinstance(known, Err) else await open_issue_with(self.identity.github, self.place, mark)
        if isinstance(found, Err):
            return ProposalStep("making", reason=found.error)
        if (there := found.data) and self.rung == "program":
            why = "an open issue there tells it already: close it to have it tried"
            return ProposalStep("left", there.html_url, why)
        if there:
            said = self.skills.render(_SKILL, "Comment", **told).strip()
            body: GitHubBody = IssueCommentBody(repo=self.repository, number=there.number, body=said)
            name, made = f"{self.repository}#{there.number}:friction", there.html_url
            hold = f"@{there.author} opened it, and it may say more; {hold}"
        else:
            title = self.skills.render(_SKILL, "Issue Title", **told).strip()
            said = self.skills.render(_SKILL, "Issue", **told, is_program=self.rung == "program").strip()
            body = IssueBody(repo=self.repository, title=title, body=f"{said}\n\n{mark}", only_one=mark)
        standing = await self.outbox.standing(body.kind, name, _TRIES)
        if standing.code == "free" and await self._told_lately({cause, *besides}):
            return ProposalStep("making", reason="it reported something there less than a week ago")
        action = ProposedAction(body, part=name, cause_id=cause, hold=hold)
        return _step(await self.outbox.do_once(action, _TRIES), made)

    async def _told_lately(self, besides: Collection[str]) -> bool:
        """Return whether another proposal was reported in the repository within a week, or may still be."""
        since = self.clock.now() - self.clock.real(ISSUE_EVERY)
        found = await self.outbox.since(("issue", "issue_comment"), since)
        others = (one for one in found if one.cause_id not in besides and one.state in ACTIVE_STATES)
        told = (one for one in others if (one.cause_id or "").startswith("proposal:"))
        return any(isinstance(one.body, OnGitHub) and one.body.repo == self.repository for one in told)


def _step(standing: ActStanding, made: str = "") -> ProposalStep:
    """Return the step that follows from the standing of a report; `made`: the issue that the report comments on."""
    intent = standing.intent
    if standing.code == "done" and intent:
        return ProposalStep("taken", intent.result_uri or made, "it is told there")
    if standing.active:
        return ProposalStep("waiting", made, standing.reason)
    if standing.is_decided:
        return ProposalStep("left", made, standing.reason)
    is_later = standing.advice is not None and standing.advice.code == "later"
    return ProposalStep("making" if is_later else "failed", made, standing.reason)


_TASK, _MOST_BEGUN = 1, 10


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
        newest = await self.table.newest(PROGRAM, _MOST_BEGUN)
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
