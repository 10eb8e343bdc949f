"""Checks whether a workspace without open work is finished: it gets an issue with what is missing, or a sentinel.

After a plan, its scenarios are checked first (`modules/lives/tasks/scenarios.py`).

What cannot be read decides nothing: only a page that certainly does not exist counts as missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.clock import Clock, parse_iso_or_none
from common.constants import DAY_MS
from common.result import ApiResult, Err, Ok
from modules.lives.workspaces.policy import is_health_check_due
from modules.lives.workspaces.types import PolledWorkspace
from modules.runtime.events import Publish
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.scheduler import Attention
from modules.services.claims.lease_store import TaskOffered
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.plans.plan_text import parse_plan
from modules.services.plans.types import AGENTS_PAGE, SCENARIOS_PAGE, changes_more_than_documents
from modules.services.voice_phrases import Phrase
from modules.services.work.table import WorkTable
from modules.services.workspaces.health import (
    READ_CHARS,
    SCENARIOS,
    SKILL,
    HealthJudge,
    HealthVerdict,
    WorkspaceGaps,
    WorkspacePages,
    failing_in,
    gap_key,
    scenarios_row,
)
from modules.services.workspaces.sentinel import FINISHED_LABEL, SENTINEL_PREFIX, sentinel_in
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

PAGES = ("README.md", AGENTS_PAGE)

_CLOSED_PLANS = 5
_MOST_SENTINELS = 10
_COMPLETE_LABEL = "plan:complete"


@dataclass(frozen=True, slots=True)
class _Last:
    """The numbers of the newest issue of a workspace, and of its newest sentinel (0 without one)."""

    issue: int
    sentinel: int


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """Judges one workspace; the watch list says when it was last judged."""

    github: GitHub
    workspaces: WatchedWorkspaces
    writer: GitHubWriter
    trust: WorkspaceTrust
    judge: HealthJudge
    gaps: WorkspaceGaps
    table: WorkTable
    publish: Publish
    attention: Attention
    phrase: Phrase
    journal: Journal
    clock: Clock

    async def look(self, one: PolledWorkspace, plans: Sequence[Issue], now: datetime) -> str:
        """Do what is due in a workspace that has no open plan and no open issue about work.

        `plans` are its newest plans, all closed. Return what was recorded about it, or "".
        """
        if await self._is_waiting(one):
            return ""
        looked = await self.github.list_issues(one.repo, state="all", labels=(FINISHED_LABEL,), limit=_MOST_SENTINELS)
        listed = looked.or_else(None)
        newest = (await self.github.list_issues(one.repo, state="all", limit=1)).or_else(())
        if listed is None or not newest:
            return ""  # NOTE(self): if nothing was ever begun, nothing is finished
        if newest[0].state == "open" and newest[0].number not in {issue.number for issue in one.issues}:
            return ""  # NOTE(self): somebody opened it since the workspace was read, a plan for example
        if there := sentinel_in(listed):
            self.workspaces.note(one.repo, finished_issue_number=there.number)
            return await self._tell(one.repo, f"is finished, says #{there.number}", f"@{there.author} says so")
        last = _Last(newest[0].number, max((issue.number for issue in listed), default=0))
        return await self._judged(one, plans, now, last)

    async def _is_waiting(self, one: PolledWorkspace) -> bool:
        """Return whether other work is under way: a pull request, or an issue that was proposed but not opened yet."""
        if any(issue.is_pull_request for issue in one.issues):
            return True
        return await self.writer.outbox.waits("issue", gap_key(one.repo)) or await self.writer.outbox.waits(
            "issue", f"{_key(one.repo)}#"
        )

    async def _judged(self, one: PolledWorkspace, plans: Sequence[Issue], now: datetime, last: _Last) -> str:
        """Judge the workspace if that is due, and act on the verdict; return what was recorded."""
        repo, summary = one.repo, self.judge.skills.section(SKILL, "Nothing Open").strip()
        watched = self.workspaces.get(repo)
        if watched is None:
            return ""
        accounts = await self.trust.accounts(repo)
        plan, completed_at = _last_complete([each for each in plans if accounts.covers(each.account)])
        if is_health_check_due(watched, self.clock.since, completed_at):
            failing = await self._scenarios(repo, plan)
            verdict = await self._verdict(one, plans) if failing is not None else None
            if failing is None or verdict is None:
                return ""
            self.workspaces.note(repo, last_health_check_attempt=now)
            if not verdict.complete:
                return await self._open(repo, verdict, last.issue)
            summary = verdict.summary
            if failing:  # NOTE(self): all rounds were used, or the issue was closed by hand
                summary = self.judge.skills.render(SKILL, "Scenarios Fail", count=failing).strip()
        if watched.no_sentinel_before and now < watched.no_sentinel_before:
            return ""  # NOTE(self): this was recorded when the last sentinel ended
        begun = (await self.github.list_issues(repo, limit=1)).or_else(None)
        if begun is None or any(issue.number > last.issue for issue in begun):
            return ""  # NOTE(self): somebody opened an issue while the model judged
        return await self._finish(repo, summary, last.sentinel)

    async def _scenarios(self, repo: Repo, plan: Issue | None) -> int | None:
        """Return how many scenarios fail after the last plan; None while they are still to be checked."""
        if plan is None:
            return 0
        accounts = await self.trust.accounts(repo)
        if (comments := (await self.github.list_comments(repo, plan.number)).or_else(None)) is None:
            return None
        failing = failing_in(one for one in comments if accounts.covers(one.account))
        if failing is not None:
            return failing
        page = await self.github.contents.read(repo, SCENARIOS_PAGE, max_chars=1)
        if isinstance(page, Err):
            return 0 if page.kind == "not_found" else None
        new = scenarios_row(repo, plan.number)
        if await self.table.add(new):
            self.publish(TaskOffered())
        row = await self.table.get(SCENARIOS, new.key)
        if row is None or row.state == "done":
            return 0
        # NOTE(self): if it was dropped, it ended without a result, which says nothing of the scenarios
        await self.table.offer(
            replace(new, not_before=self.clock.now() + timedelta(milliseconds=self.clock.real(DAY_MS)))
        )
        self.workspaces.note(repo, last_plan_synthesis_attempt=None)  # NOTE(self): the next cycle looks again
        return None

    async def _verdict(self, one: PolledWorkspace, plans: Sequence[Issue]) -> HealthVerdict | None:
        """Return the verdict on the pages; None if they cannot be read now, or the model gave no verdict."""
        repo = one.repo
        pages = await self._pages(repo)
        if isinstance(pages, Err):
            await self._tell(repo, "could not be judged", pages.error)
            return None
        if not pages.data:
            return HealthVerdict(complete=True, summary=self.judge.skills.section(SKILL, "Nothing Open").strip())
        accounts = await self.trust.accounts(repo)
        closed = [each.body for each in plans if accounts.covers(each.account)][:_CLOSED_PLANS]
        async with self.attention.take(SKILL):
            verdict = await self.judge.judge(WorkspacePages(repo, pages.data, closed))
        if verdict is None and self.workspaces.note_in_vain(repo, one.digest):
            await self._tell(repo, "could not be judged", "the model gave no verdict that can be used")
        return verdict if verdict is None or verdict.complete else await self._within_rounds(repo, verdict)

    async def _within_rounds(self, repo: Repo, verdict: HealthVerdict) -> HealthVerdict | None:
        """Return the verdict while a round is left since the last finish, else "complete"; None if that is unknown."""
        if (is_left := await self.gaps.has_round_left(repo)) is not False:
            return verdict if is_left else None
        summary = self.judge.skills.render(SKILL, "Rounds Over", summary=verdict.summary).strip()
        await self._tell(repo, "is judged often enough", "; ".join(verdict.remaining))
        return HealthVerdict(complete=True, summary=summary)

    async def _pages(self, repo: Repo) -> ApiResult[dict[str, str]]:
        """Return the pages that exist, by name."""
        found: dict[str, str] = {}
        for name in PAGES:
            read = await self.github.contents.read(repo, name, max_chars=READ_CHARS)
            if isinstance(read, Ok):
                found[name] = read.data.text
            elif read.kind != "not_found":
                return read
        return Ok(found)

    async def _open(self, repo: Repo, verdict: HealthVerdict, last: int) -> str:
        listed = "\n".join(f"- [ ] {line}" for line in verdict.remaining)
        skills = self.judge.skills
        title = skills.render(SKILL, "Issue Title", summary=verdict.summary).strip()
        await self.gaps.open(repo, str(last), title, skills.render(SKILL, "Issue Body", remaining=listed))
        return await self._tell(repo, f"is not finished: {verdict.summary}", "; ".join(verdict.remaining))

    async def _finish(self, repo: Repo, summary: str, last: int) -> str:
        body = self.phrase("github.workspace_finished", summary=summary)
        title = f"{SENTINEL_PREFIX} {summary}"
        await self.writer.open_issue(repo, f"{_key(repo)}#{last}", title, body, labels=(FINISHED_LABEL,))
        return await self._tell(repo, "gets an issue that says that it is finished", summary)

    async def _tell(self, repo: Repo, what: str, reason: str) -> str:
        summary = f"{repo.full_name} {what}"
        await self.journal.record(Entry("decision", SKILL, summary, line="info", reason=reason))
        return summary


def _last_complete(plans: Sequence[Issue]) -> tuple[Issue | None, datetime | None]:
    """Return the last completed plan that changed more than documents, and when it was completed."""
    found: list[tuple[datetime, Issue]] = []
    for one in plans:
        plan = parse_plan(one.body, one.title)
        closed_at = parse_iso_or_none(one.closed_at)
        is_complete = _COMPLETE_LABEL in {label.lower() for label in one.labels}
        if plan and closed_at and is_complete and changes_more_than_documents(plan):
            found.append((closed_at, one))
    last = max(found, key=lambda one: one[0], default=None)
    return (last[1], last[0]) if last else (None, None)


def _key(repo: Repo) -> str:
    return f"sentinel:{repo.full_name.lower()}"
