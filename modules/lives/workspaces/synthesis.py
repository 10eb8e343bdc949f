"""Makes a plan from the open issues of a workspace that no plan names. They stay open until it is complete.

The watch list says when a workspace was last looked at. The plan is an intent with a key that names the newest plan
before it, so neither a crash nor an outdated list of issues can create a second plan; and its issues, so that the
owner's no to it ends no planning of others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.clock import Clock, parse_iso
from common.result import GONE
from common.text.markdown import without_links
from common.text.strings import normalized_title
from common.wording import counted
from modules.lives.workspaces.health import HealthCheck
from modules.lives.workspaces.perceive import MOST_ISSUES
from modules.lives.workspaces.plan_upkeep import Closing, is_said_in
from modules.lives.workspaces.policy import happened_after, is_work, unplanned
from modules.lives.workspaces.types import CycleStep, Place, Poll, PolledWorkspace, StepResult
from modules.lives.workspaces.wanted import WantedIssues
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.scheduler import Attention
from modules.services.commitments.acts import complete_plan, issue_of_plan
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.plans.compose import PlanComposer, SourceIssue, fitting, issues_taken_up, plan_words
from modules.services.plans.plan_text import parse_plan
from modules.services.plans.repository import repository_view
from modules.services.plans.types import PLAN_LABEL, plan_labels, with_docs_updates
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.due import MOST_OPEN_PLANS, get_workspaces_needing_plan_synthesis
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces, is_workspace_name

SYNTHESIS = "plan-synthesis"

_MOST_PLANS, _MOST_SAID = 30, 10
_OUTSIDE = "outside-purpose"
"""The reason of the comment on an issue that is outside the purpose of its workspace."""


@dataclass(frozen=True, slots=True)
class SynthesisStep(CycleStep):
    """Plans one workspace per cycle, the one that was looked at longest ago; those without work are judged besides."""

    github: GitHub
    workspaces: WatchedWorkspaces
    writer: GitHubWriter
    trust: WorkspaceTrust
    closing: Closing
    wanted: WantedIssues
    turns: ActingTurns
    composer: PlanComposer
    health: HealthCheck
    attention: Attention
    journal: Journal
    clock: Clock
    name = SYNTHESIS
    place = Place.SYNTHESIS

    async def run(self, poll: Poll) -> StepResult:
        """Make at most one plan. Raises `SoulError` as the model does; the workspace is then left alone for an hour."""
        polled = {one.repo.full_name.lower(): one for one in poll.workspaces}
        known = [found for one in poll.workspaces if (found := self.workspaces.get(one.repo))]
        notes: list[str] = []
        for watched in get_workspaces_needing_plan_synthesis(known, self.clock.since):
            one = polled[f"{watched.owner}/{watched.repo}".lower()]
            if not self.attention.free:
                break
            if not _has_something(one):
                continue
            if not self.turns.ask_for_turn(_key(one.repo)) or await self.writer.outbox.waits(
                "issue", f"{_key(one.repo)}#"
            ):
                continue
            self.workspaces.note(one.repo, last_plan_synthesis_attempt=poll.at)
            plans = await self._plans(one.repo)
            if plans is None:
                continue
            issues = await self._with_hidden(one)
            if issues is None:
                continue
            work = unplanned(issues, plans)
            if any(happened_after(issue, watched.no_work_before) for issue in work):
                note = await self._plan(one.repo, work, plans)
                return StepResult(ends_cycle=bool(note), note="; ".join([*notes, note] if note else notes))
            if watched.requested or any(issue.state == "open" for issue in plans) or any(map(is_work, issues)):
                continue
            note = await self.health.look(one, plans, poll.at)
            notes += [note] if note else []
        return StepResult(note="; ".join(notes))

    async def _with_hidden(self, one: PolledWorkspace) -> Sequence[Issue] | None:
        """Return the open issues that were read and, if there are more, those that somebody who counts asked for.

        Return None if that cannot be read now.
        """
        if len(one.issues) < MOST_ISSUES:
            return one.issues
        accounts = await self.trust.accounts(one.repo)
        if (touched := (await self.wanted.touched(one.repo, accounts)).or_else(None)) is None:
            return None
        known = {issue.number for issue in one.issues}
        return [*one.issues, *(issue for issue in touched if issue.number not in known)]

    async def _plans(self, repo: Repo) -> list[Issue] | None:
        """Return the newest plans; None if enough of them are open, or if we may not push there."""
        found = (await self.github.get_repository(repo)).or_else(None)
        if found is None or not found.can_push or found.archived:
            return None
        listed = await self.github.list_issues(repo, state="all", labels=(PLAN_LABEL,), limit=_MOST_PLANS)
        plans = [issue for issue in listed.or_else(()) if not issue.is_pull_request]
        return plans if listed.success and sum(issue.state == "open" for issue in plans) < MOST_OPEN_PLANS else None

    async def _plan(self, repo: Repo, work: Sequence[Issue], plans: Sequence[Issue]) -> str:
        """Propose a plan of those issues that may go into one; return what was recorded, or "" if none is made."""
        accounts = await self.trust.accounts(repo)
        wanted = await self.wanted.of(repo, work, accounts)
        if not wanted.success or not wanted.data:
            reason = "nobody whose words count asked for work on them" if wanted.success else wanted.error
            return await self._tell(f"No plan of the open issues in {repo.full_name} ({len(work)})", reason)
        beginning = f"{_key(repo)}#{max((one.number for one in plans), default=0)}:"
        key = f"{beginning}{_digest(wanted.data)}"
        outbox = self.writer.outbox
        if await outbox.is_accepted("issue", beginning) or (await outbox.standing("issue", key)).is_decided:
            return ""
        sources = fitting([await self._source(repo, one, accounts) for one in wanted.data])
        stands = await repository_view(self.github, repo, with_issues=False)
        async with self.attention.take(SYNTHESIS):
            made = await self.composer.compose_from_issues(repo, sources, stands=stands)
        if made is None:
            return await self._tell(f"No plan for {repo.full_name}", "the model made none that names an issue")
        plan = made.plan
        for number, answer in made.outside.items():
            if not await self.closing.was_said(repo, number, _OUTSIDE):
                await self.closing.said(repo, number, _OUTSIDE, without_links(answer), accounts)
                await self._tell(f"{repo.full_name}#{number} lies outside the purpose of the workspace", answer)
        if not plan.tasks:
            self.workspaces.note(repo, no_work_before=max(parse_iso(issue.updated_at) for issue in work))
            return await self._tell(f"No plan for {repo.full_name}", "its open issues ask for no change of a file")
        skills = self.composer.skills
        opened = [found for one in plans if one.state == "open" and (found := parse_plan(one.body, one.title))]
        plan = await complete_plan(plan, repo, self.github, skills, beside=opened)
        if is_workspace_name(repo.name):
            plan = with_docs_updates(plan, plan_words(skills, repo.full_name).updates)
        numbers = issues_taken_up(plan, skills)
        named = ", ".join(f"#{number}" for number in numbers)
        if normalized_title(plan.title) in {normalized_title(one.title) for one in opened}:
            # NOTE(self): an open issue of ours with the same title counts as the one that is to be opened.
            plan = replace(plan, title=f"{plan.title} ({named})")
        issue = issue_of_plan(plan)
        labels = plan_labels((), "active")
        if not (await self.writer.open_issue(repo, key, issue["title"], issue["body"], labels=labels)).is_decided:
            return ""
        told = f"{repo.full_name} gets a plan of {counted(len(numbers), 'issue')}"
        await self._tell(told, named)
        return told

    async def _source(self, repo: Repo, one: Issue, accounts: TrustedAccounts) -> SourceIssue:
        """Return an issue, with the comments that count if one of them asked whether it fits the purpose."""
        body, is_untouched = one.body, one.updated_at == one.created_at
        comments = () if is_untouched else (await self.github.list_comments(repo, one.number)).or_else((), *GONE)
        if is_said_in(comments, _OUTSIDE, accounts):
            said = [f"@{each.author}: {each.body}" for each in comments if accounts.covers(each.account)]
            body = "\n\n".join([body, *said[-_MOST_SAID:]])
        return SourceIssue(one.number, one.title, one.author, one.html_url, body, one.labels)

    async def _tell(self, summary: str, reason: str) -> str:
        """Record what happened; return "", which adds nothing to the line that ends the cycle."""
        await self.journal.record(Entry("decision", self.name, summary, line="info", reason=reason))
        return ""


def _key(repo: Repo) -> str:
    return f"{SYNTHESIS}:{repo.full_name.lower()}"


def _digest(issues: Sequence[Issue]) -> str:
    """Return a digest of the numbers of issues, in any order."""
    numbers = sorted(one.number for one in issues)
    return hashlib.sha256(repr(numbers).encode()).hexdigest()[:16]


def _has_something(one: PolledWorkspace) -> bool:
    """Return whether a workspace as it was read needs a look: no plan is open, or some issue is in none of them."""
    return not one.plans or bool(unplanned(one.issues, [plan.issue for plan in one.plans]))
