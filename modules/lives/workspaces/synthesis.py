"""Makes a plan from the open issues of a workspace that no plan names, and adds to a plan what the owner asked for.

The intent contains the tasks, not a body: they are added to the plan as it is when they are sent, whatever others
changed in it meanwhile. If others add tasks while the model judges what is missing, it judges again.

The watch list says when a workspace was last looked at. The plan is an intent with a key that names the newest plan
before it, so neither a crash nor an outdated list of issues can create a second plan; and its issues, so that the
owner's no to it ends no planning of others.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo, Repository
from common.clock import Clock, parse_iso
from common.result import GONE, Err
from common.text.github_text import without_mentions
from common.text.markdown import without_links
from common.text.strings import normalized_title
from common.text.untrusted import one_line
from common.wording import counted
from modules.lives.workspaces.health import HealthCheck
from modules.lives.workspaces.perceive import MOST_ISSUES
from modules.lives.workspaces.plan_upkeep import Closing, is_said_in
from modules.lives.workspaces.policy import (
    MOST_OPEN_PLANS,
    get_workspaces_needing_plan_synthesis,
    happened_after,
    is_tried_in_vain,
    is_work,
    unplanned,
)
from modules.lives.workspaces.types import CycleStep, Place, Poll, PolledWorkspace, StepResult
from modules.lives.workspaces.wanted import WantedIssues
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.scheduler import Attention
from modules.services.commitments.acts import complete_plan, issue_of_plan
from modules.services.outbox.github_bodies import IssueUpdateBody
from modules.services.outbox.github_writer import GitHubWriter, for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.plans.compose import (
    MissingTask,
    PlanComposer,
    PlanGaps,
    SourceIssue,
    fitting,
    issues_taken_up,
    plan_words,
)
from modules.services.plans.plan_text import add_tasks_to_plan_body, parse_plan
from modules.services.plans.repository import repository_view
from modules.services.plans.types import PLAN_LABEL, Plan, Task, plan_labels, with_docs_updates
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces, is_workspace_name

MOST_JUDGED = 3
"""How often the model judges what is missing, if others add tasks in the meantime."""

_PART = "plan-extended"
_ABOUT_CHARS = 200

ExtensionCode = Literal["added", "covered", "closed", "theirs", "full", "unread", "refused", "held", "waits", "failed"]


@dataclass(frozen=True, slots=True)
class ExtensionRequest:
    """What was asked for (`wanted`, in the owner's words), and who asked, as fields of the proposed action."""

    wanted: str
    cause_id: str
    by_owner: bool = False
    hold: str = ""


@dataclass(frozen=True, slots=True)
class Extension:
    """The result of a request.

    `added`: the plan has more tasks now; `words` are the parts of the request that ask for them. `covered`: nothing is
    missing. `closed`: no plan is open there. `theirs`: nobody whose words count wrote it, or we may not write there.
    `full`: the body takes no more. `unread`: GitHub could not be read. `held` waits for approval, `waits` was
    not sent yet, `refused` and `failed` will not be sent; `reason` says why.
    """

    code: ExtensionCode
    words: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlanExtender:
    """Extends plans. `gaps` judges what is missing, `trust` says whose plans are worked on."""

    github: GitHub
    outbox: Outbox
    trust: WorkspaceTrust
    gaps: PlanGaps

    async def extend(self, repo: Repo, number: int, request: ExtensionRequest) -> Extension:
        """Add what is missing to the plan in issue `number`.

        Raises:
            SoulError: as the model does, or if it cannot be read who may push there.

        """
        cause = hashlib.sha256(request.cause_id.encode()).hexdigest()[:16]
        target = f"{_PART}:{repo.full_name.lower()}#{number}:{cause}"
        # NOTE(self): the same request may have been carried out before the program ended.
        if earlier := (await self.outbox.standing("issue_update", target)).active:
            return await self._outcome(earlier, ())
        read = await self._read(repo, number)
        for _ in range(MOST_JUDGED):
            if isinstance(read, Extension):
                return read
            issue, plan = read
            missing = await self.gaps.find(repo, plan, request.wanted)
            read = await self._read(repo, number)
            if isinstance(read, tuple) and _titles(read[1]) == _titles(plan):
                return await self._add(repo, issue, missing, target, request)
        return read if isinstance(read, Extension) else Extension("failed", reason="others kept adding tasks")

    async def _read(self, repo: Repo, number: int) -> tuple[Issue, Plan] | Extension:
        """Return the plan as it is now if it is open, by somebody whose words count, and we may write it."""
        found = await self.github.get_issue(repo, number)
        if isinstance(found, Err):
            return Extension("unread", reason=found.error)
        issue = found.data
        plan = parse_plan(issue.body, issue.title) if issue.state == "open" else None
        if plan is None or plan.status == "complete":
            return Extension("closed")
        trusted = await self.trust.whole(repo)
        may_write = trusted.lets_close(issue.account)
        is_ours = trusted.covers(issue.account) and may_write
        return (issue, plan) if is_ours else Extension("theirs", reason=issue.html_url)

    async def _add(
        self, repo: Repo, issue: Issue, missing: Sequence[MissingTask], target: str, request: ExtensionRequest
    ) -> Extension:
        if not missing:
            return Extension("covered")
        tasks = tuple(_plain(one.task) for one in missing)
        if add_tasks_to_plan_body(issue.body, issue.title, tasks) is None:
            return Extension("full", reason="its issue holds no more characters")
        words = tuple(one.asked for one in missing)
        about = one_line(f"{repo.full_name}#{issue.number}: more tasks: {'; '.join(words)}", _ABOUT_CHARS)
        update = IssueUpdateBody(
            **for_workspace(repo),
            number=issue.number,
            tasks=tasks,
            about=about,
        )
        submitted = await self.outbox.submit(
            ProposedAction(update, target, cause_id=request.cause_id, by_owner=request.by_owner, hold=request.hold)
        )
        if not submitted.accepted:
            return Extension("refused", reason=submitted.reason)
        return await self._outcome(submitted.intent, words)

    async def _outcome(self, intent: Intent, words: tuple[str, ...]) -> Extension:
        settled = await self.outbox.settled(intent.id)
        if settled is None or settled.state in {"pending", "sending"}:
            return Extension("waits")
        if settled.state == "held":
            return Extension("held", reason=settled.error or "")
        if settled.state == "done":
            return Extension("added", words)
        return Extension("failed", reason=settled.error or settled.state)


def _titles(plan: Plan) -> list[str]:
    return [task.title for task in plan.tasks]


def _plain(task: Task) -> Task:
    """Return the task with texts that mention nobody."""
    return replace(task, title=without_mentions(task.title), description=without_mentions(task.description))


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
            if not _has_something(one) or is_tried_in_vain(watched, one.digest, self.clock.since):
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
                note = await self._plan(one, work, plans)
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
        if found is None or not found.can_push or await self._is_left(found):
            return None
        listed = await self.github.list_issues(repo, state="all", labels=(PLAN_LABEL,), limit=_MOST_PLANS)
        plans = [issue for issue in listed.or_else(()) if not issue.is_pull_request]
        return plans if listed.success and sum(issue.state == "open" for issue in plans) < MOST_OPEN_PLANS else None

    async def _is_left(self, found: Repository) -> bool:
        """Stop watching a workspace that is archived, where nobody can write, until the owner orders it anew."""
        if found.archived and self.workspaces.unwatch(found.repo):
            summary = f"{found.full_name} is no longer watched: it is archived"
            await self.journal.record(Entry("life", "workspaces", summary, line="info", reason=found.html_url))
        return found.archived

    async def _plan(self, one: PolledWorkspace, work: Sequence[Issue], plans: Sequence[Issue]) -> str:
        """Propose a plan of those issues that may go into one; return what was recorded, or "" if none is made."""
        repo = one.repo
        accounts = await self.trust.accounts(repo)
        wanted = await self.wanted.of(repo, work, accounts)
        if not wanted.success or not wanted.data:
            none = f"No plan of the open issues in {repo.full_name} ({len(work)})"
            why = wanted.error if isinstance(wanted, Err) else ""
            return await self._in_vain(one, none, "nobody whose words count asked for work on them", unread=why)
        beginning = f"{_key(repo)}#{max((each.number for each in plans), default=0)}:"
        key = f"{beginning}{_digest(wanted.data)}"
        outbox = self.writer.outbox
        if await outbox.is_accepted("issue", beginning) or (await outbox.standing("issue", key)).is_decided:
            return ""
        sources = fitting([await self._source(repo, each, accounts) for each in wanted.data])
        stands = await repository_view(self.github, repo, with_issues=False)
        async with self.attention.take(SYNTHESIS):
            made = await self.composer.compose_from_issues(repo, sources, stands=stands)
        if made is None:
            return await self._in_vain(one, f"No plan for {repo.full_name}", "the model made none that names an issue")
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
        body = one.body
        comments = (await self.github.list_comments(repo, one.number)).or_else((), *GONE) if one.comments else ()
        if is_said_in(comments, _OUTSIDE, accounts):
            said = [f"@{each.author}: {each.body}" for each in comments if accounts.covers(each.account)]
            body = "\n\n".join([body, *said[-_MOST_SAID:]])
        return SourceIssue(one.number, one.title, one.author, one.html_url, body, one.labels)

    async def _in_vain(self, one: PolledWorkspace, summary: str, reason: str, *, unread: str = "") -> str:
        """Record a try that led to nothing, once for the same issues, or what could not be read; return ""."""
        is_told = bool(unread) or self.workspaces.note_in_vain(one.repo, one.digest)
        return await self._tell(summary, unread or reason) if is_told else ""

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
