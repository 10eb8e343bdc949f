"""Makes a plan of the open issues of a workspace in which no plan is open, and says so on the issues that are in it.

The stamps in the watch list say when a workspace was last looked at. The plan is an intent with a key that names the
newest plan before it, so neither a crash nor a list that shows what was makes a second one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.clock import Clock, parse_iso_or_none
from common.result import ApiResult, Err, Ok
from modules.lives.workspaces.health import HealthCheck
from modules.lives.workspaces.types import FoundPlan, Place, Poll, PolledWorkspace, StepResult
from modules.lives.workspaces.writing import WorkspaceWriter
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.attention import Attention
from modules.services.commitments.plans import complete_plan, issue_of_plan
from modules.services.outbox.github_bodies import IssueBody
from modules.services.outbox.types import Intent
from modules.services.plans.compose import PlanComposer, SourceIssue, fitting, issues_in
from modules.services.plans.docs_tasks import with_docs_updates
from modules.services.plans.tasks import PLAN_LABEL, plan_labels
from modules.services.plans.words import plan_words
from modules.services.voice_phrases.store import Phrase
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.due import get_workspaces_needing_plan_synthesis
from modules.services.workspaces.sentinel import FINISHED_LABEL
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

SYNTHESIS = "plan-synthesis"
ROLLED_UP_WITHIN = timedelta(hours=24)
"""How long after a plan was made the issues that are in it are closed."""

_NO_WORK = frozenset({PLAN_LABEL, "discussion", FINISHED_LABEL})
_MOST_PLANS = 30
_MOST_STRANGERS = 10


@dataclass(frozen=True, slots=True)
class SynthesisStep:
    """Looks at one workspace in a cycle, the one that was looked at longest ago; those without an issue besides."""

    github: GitHub
    workspaces: WatchedWorkspaces
    writer: WorkspaceWriter
    trust: WorkspaceTrust
    turns: ActingTurns
    composer: PlanComposer
    health: HealthCheck
    attention: Attention
    journal: Journal
    speed: float = 1.0
    name: str = SYNTHESIS
    place: Place = Place.SYNTHESIS
    acts: bool = True
    sees_finished: bool = False

    async def run(self, poll: Poll) -> StepResult:
        """Make at most one plan. Raises `SoulError` as the model does; the workspace is then left alone for an hour."""
        polled = {one.repo.full_name.lower(): one for one in poll.workspaces}
        known = [found for one in poll.workspaces if (found := self.workspaces.get(one.repo))]
        notes: list[str] = []
        for watched in get_workspaces_needing_plan_synthesis(known, poll.at, speed=self.speed):
            one = polled[f"{watched.owner}/{watched.repo}".lower()]
            if not self.attention.free:
                break
            if not self.turns.may_act(_key(one.repo)) or await self.writer.unsent("issue", f"{_key(one.repo)}#"):
                continue
            self.workspaces.note(one.repo, last_plan_synthesis_attempt=poll.at)
            plans = await self._plans(one.repo)
            if plans is None:
                continue
            work = [issue for issue in one.issues if _is_work(issue)]
            if work:
                note = await self._plan(one.repo, work, plans)
                return StepResult(ends_cycle=bool(note), note="; ".join([*notes, note] if note else notes))
            note = await self.health.look(one, plans, poll.at)
            notes += [note] if note else []
        return StepResult(note="; ".join(notes))

    async def _plans(self, repo: Repo) -> list[Issue] | None:
        """The newest plans, all of them closed; None where one is open, or where we have no say."""
        found = await self.github.get_repository(repo)
        if isinstance(found, Err) or not found.data.can_push or found.data.archived:
            return None
        listed = await self.github.list_issues(repo, state="all", labels=(PLAN_LABEL,), limit=_MOST_PLANS)
        if isinstance(listed, Err):
            return None
        plans = [issue for issue in listed.data if not issue.is_pull_request]
        return None if any(issue.state == "open" for issue in plans) else plans

    async def _plan(self, repo: Repo, work: Sequence[Issue], plans: Sequence[Issue]) -> str:
        """Propose a plan of those issues whose words count; what is told of it, "" where none is made."""
        trusted = await self._trusted(repo, work)
        if isinstance(trusted, Err) or not trusted.data:
            reason = trusted.error if isinstance(trusted, Err) else "nobody whose words count wrote in one of them"
            return await self._tell(f"No plan of {len(work)} open issues in {repo.full_name}", reason)
        sources = fitting(
            SourceIssue(one.number, one.title, one.author, one.html_url, one.body, one.labels) for one in trusted.data
        )
        async with self.attention.take(SYNTHESIS):
            plan = await self.composer.compose_from_issues(repo, sources)
        if plan is None:
            return await self._tell(f"No plan for {repo.full_name}", "the model made none that names an issue")
        skills = self.composer.skills
        plan = await complete_plan(plan, repo, self.github, skills)
        plan = with_docs_updates(plan, plan_words(skills, repo.full_name).updates)
        numbers = issues_in(plan, {one.number for one in sources})
        made, last = issue_of_plan(plan), max((one.number for one in plans), default=0)
        key = f"{_key(repo)}#{last}"
        if not await self.writer.open_issue(
            repo, key, made["title"], made["body"], labels=plan_labels((), "active"), rolls_up=numbers
        ):
            return ""
        told = f"{repo.full_name} gets a plan of {len(numbers)} issue{'' if len(numbers) == 1 else 's'}"
        await self._tell(told, ", ".join(f"#{number}" for number in numbers))
        return told

    async def _trusted(self, repo: Repo, work: Sequence[Issue]) -> ApiResult[list[Issue]]:
        """The issues of those whose words count, and those of strangers on which one of them commented."""
        accounts = await self.trust.accounts(repo)
        found = [one for one in work if accounts.covers(one.author)]
        strangers = [one for one in work if not accounts.covers(one.author)]
        for one in strangers[:_MOST_STRANGERS]:
            said = await self.github.list_comments(repo, one.number)
            if isinstance(said, Err):
                return said
            if accounts.covers(*(comment.author for comment in said.data)):
                found.append(one)
        return Ok(found)

    async def _tell(self, summary: str, reason: str) -> str:
        """Record it; nothing for the line that ends the cycle."""
        await self.journal.record(Entry("decision", self.name, summary, line="info", reason=reason))
        return ""


@dataclass(frozen=True, slots=True)
class RollUpStep:
    """Comments on the issues that are in a plan of ours with its link, and closes them. Costs no request of its own."""

    writer: WorkspaceWriter
    phrase: Phrase
    journal: Journal
    clock: Clock
    name: str = "rolled-up-issues"
    place: Place = Place.SYNTHESIS
    acts: bool = True
    sees_finished: bool = False

    async def run(self, poll: Poll) -> StepResult:
        """Propose what was not proposed yet, for plans that stand open as they were made."""
        rolled = 0
        for intent in await self.writer.done(f"{SYNTHESIS}:"):
            body = intent.body
            if not isinstance(body, IssueBody) or not self._is_recent(intent):
                continue
            for one in poll.workspaces:
                if one.repo.full_name.lower() == body.repo.lower():
                    found = next((plan for plan in one.plans if str(plan.number) == intent.result_cid), None)
                    rolled += await self._roll_up(one, found, body.rolls_up) if found else 0
        return StepResult(note=f"{rolled} issue{'' if rolled == 1 else 's'} closed for a plan" if rolled else "")

    async def _roll_up(self, one: PolledWorkspace, found: FoundPlan, numbers: Collection[int]) -> int:
        """Return how many issues are closed now: those that the plan names as it stands on GitHub."""
        named, rolled = issues_in(found.plan, numbers), 0
        for issue in one.issues:
            key = f"{one.repo.full_name.lower()}#{issue.number}:{found.number}"
            if issue.number not in named or not _is_work(issue):
                continue
            if await self.writer.settled("issue_update", f"close-rolled-up:{key}"):
                continue
            words = self.phrase("github.issue_rolled_up", url=found.issue.html_url)
            if await self.writer.comment(one.repo, issue.number, f"rolled-up:{key}", words):
                closes = f"close-rolled-up:{key}"
                rolled += await self.writer.set_state(one.repo, issue.number, closes, "closed")
        if rolled:
            issues = f"{rolled} issue{'' if rolled == 1 else 's'}"
            summary = f"{issues} of {one.repo.full_name} continued in the plan #{found.number}"
            await self.journal.record(Entry("decision", self.name, summary, line="info", reason=found.issue.html_url))
        return rolled

    def _is_recent(self, intent: Intent) -> bool:
        sent_at = parse_iso_or_none(intent.first_sent_at)
        return sent_at is not None and self.clock.now() - sent_at < ROLLED_UP_WITHIN


def _key(repo: Repo) -> str:
    return f"{SYNTHESIS}:{repo.full_name.lower()}"


def _is_work(issue: Issue) -> bool:
    """Whether an issue tells of work that may go into a plan."""
    return not issue.is_pull_request and _NO_WORK.isdisjoint(label.lower() for label in issue.labels)
