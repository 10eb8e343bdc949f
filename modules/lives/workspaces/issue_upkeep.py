"""Looks after the issues and free tasks of a workspace, closes idle issues, and tells of an edit that was lost.

One task at a time is offered to the tasks life; issues that are not plans are passed to the GitHub life. The owner is
told about tasks that the SOUL cannot do.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.history import LostEdit
from adapters.github.types import Issue, Repo
from common.clock import Clock, iso
from common.result import GONE, ApiResult, Ok
from common.wording import counted
from modules.lives.workspaces.plan_upkeep import Closing, is_said_in
from modules.lives.workspaces.policy import (
    HANDLED_AFTER,
    LastWord,
    is_workable,
    may_rest,
    plans_to_claim_in,
    resting_code,
    rests_for,
    stale_after,
    tasks_to_claim,
)
from modules.lives.workspaces.types import CycleStep, Place, Poll, PolledWorkspace, StepResult
from modules.runtime.events import Event, Publish
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.lease_store import (
    TASK,
    TaskOffered,
    TaskPlace,
    TaskStanding,
    place_of,
    standing_of,
    waits_for_people,
)
from modules.services.github_threads import NewThread, ThreadInbox
from modules.services.outbox.github_writer import GitHubWriter, act_key
from modules.services.plans.plan_text import parse_plan
from modules.services.plans.types import FoundPlan, PlanKey, Task
from modules.services.voice_phrases import Phrase
from modules.services.work.table import WorkTable
from modules.services.work.types import WorkItem
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces


@dataclass(frozen=True, slots=True)
class EditWasLost(Event):
    """An edit by somebody else is now only in the edit history."""

    lost: LostEdit


@dataclass(frozen=True, slots=True)
class LostEditNotice:
    """Comments once on the issue or pull request, and records it for the owner."""

    writer: GitHubWriter
    journal: Journal
    phrase: Phrase

    async def tell(self, event: EditWasLost) -> None:
        """Report one lost edit."""
        repo, number, edit = event.lost.repo, event.lost.number, event.lost.edit
        summary = f"Replaced an edit by @{edit.editor} on {repo.full_name}#{number}"
        reason = "it was made at the same moment as mine and could not be restored; it is in the edit history there"
        await self.journal.record(Entry("error", "github", summary, line="warn", reason=reason))
        key = act_key(repo, number, f"lost-edit:{edit.editor}:{edit.at}")
        words = self.phrase("github.edit_lost", editor=edit.editor, at=edit.at)
        await self.writer.comment(repo, number, key, words)


_MOST_ROWS = 100
CanDo = Callable[[Task], bool]
"""Returns whether some work of this SOUL can do a task."""


@dataclass(frozen=True, slots=True)
class OfferStep(CycleStep):
    """Adds the row of the task to do next, unless one is due that waits for no person."""

    can_do: CanDo
    table: WorkTable
    trust: WorkspaceTrust
    publish: Publish
    name = "offer"
    place = Place.CLAIM
    acts = False

    async def run(self, poll: Poll) -> StepResult:
        """Offer the first task that may be claimed."""
        if not all(map(waits_for_people, await self.table.due((TASK,)))):
            return StepResult()
        for found in plans_to_claim_in(poll.plans):
            if await self._offer_of(found):
                self.publish(TaskOffered())
                break
        return StepResult()

    async def _offer_of(self, found: FoundPlan) -> bool:
        """Offer a task of a plan whose author's words count; return whether there was one."""
        tasks = [task for task in tasks_to_claim(found.plan) if self.can_do(task)]
        if not tasks or not (await self.trust.accounts(found.repo)).covers(found.issue.account):
            return False
        for task in tasks:
            if await self.table.offer(TaskPlace(found.repo, found.number, task.number, task.title).row):
                return True
        return False


@dataclass(frozen=True, slots=True)
class TaskStandings(CycleStep):
    """Stores in the row of each task its status on the plan, for the owner; a closed plan is read once.

    A task that is no longer there, or whose plan is deleted, keeps the status that it had.
    """

    github: GitHub
    table: WorkTable
    name = "task-standings"
    place = Place.STUCK_TASKS
    acts = False
    sees_finished = True

    async def run(self, poll: Poll) -> StepResult:
        """Store what changed."""
        plans = {plan.key: plan.plan for plan in poll.plans}
        repos = {one.repo for one in poll.workspaces}
        closed: dict[PlanKey, ApiResult[Issue]] = {}
        for row in await self.table.newest(TASK, _MOST_ROWS):
            place = place_of(row)
            key = (place.repo.full_name.lower(), place.issue)
            plan, before = plans.get(key), standing_of(row)
            if plan is None:
                if place.repo not in repos or not before.is_open:
                    continue
                if key not in closed:
                    closed[key] = await self.github.get_issue(place.repo, place.issue)
                if isinstance(read := closed[key], Ok):
                    plan = parse_plan(read.data.body, read.data.title)
                elif read.kind not in GONE:
                    continue
            task, is_open = plan.task(place.number) if plan else None, key in plans
            standing = TaskStanding(task.status, task.assignee or "") if task else before
            await self._note(row, replace(standing, is_open=is_open), poll)
        return StepResult()

    async def _note(self, row: WorkItem, standing: TaskStanding, poll: Poll) -> None:
        if standing != standing_of(row):
            await self.table.note(row, standing=asdict(replace(standing, since=iso(poll.at))))


@dataclass(frozen=True, slots=True)
class UndoableTasks(CycleStep):
    """Tells the owner once about each plan with unassigned tasks that this SOUL cannot do.

    The watch list says about which plans the owner was told.
    """

    can_do: CanDo
    workspaces: WatchedWorkspaces
    trust: WorkspaceTrust
    journal: Journal
    name = "undoable-tasks"
    place = Place.CLAIM
    acts = False

    async def run(self, poll: Poll) -> StepResult:
        """Tell the owner about each such plan whose author's words count."""
        for found in poll.plans:
            watched, tasks = self.workspaces.get(found.repo), self._undoable(found)
            if watched is None or not tasks or found.number in watched.undoable_told:
                continue
            if not (await self.trust.accounts(found.repo)).covers(found.issue.account):
                continue
            await self._tell(found, tasks)
            self.workspaces.note(found.repo, undoable_told=(*watched.undoable_told, found.number))
        return StepResult()

    def _undoable(self, found: FoundPlan) -> list[Task]:
        left = (task for task in found.plan.tasks if task.assignee is None and task.status != "completed")
        return [task for task in left if not task.unclear and not self.can_do(task)]

    async def _tell(self, found: FoundPlan, tasks: Sequence[Task]) -> None:
        names = ", ".join(task.name for task in tasks)
        summary = (
            f"{names} of {found.repo.full_name}#{found.number}: this SOUL does no tasks, somebody else has to:"
            " SOUL_CODING is off, or bubblewrap is not installed"
        )
        reason = "; ".join(task.title for task in tasks)
        uri = found.issue.html_url
        await self.journal.record(Entry("decision", self.name, summary, line="warn", reason=reason, trigger_uri=uri))


MOST_LED_TO = 30
"""How many issues of a workspace are passed on, those that changed last."""
MOST_READ = 10
"""For how many issues of a workspace comments are read in one cycle."""

_CLOSING = "resting"


@dataclass(slots=True)
class OpenIssues(CycleStep):
    """Passes the open issues of a workspace to the GitHub life: each waits in a row until it is handled there.

    An issue without an assignee is assigned to its author, if the author is trusted.
    """

    name = "open-issues"
    place = Place.OPEN_ISSUES

    writer: GitHubWriter
    trust: WorkspaceTrust
    acting: ActingTurns
    threads: ThreadInbox

    async def run(self, poll: Poll) -> StepResult:
        count = 0
        for workspace in poll.workspaces:
            workable = (one for one in workspace.issues if is_workable(one, self.trust.github.login, poll.at))
            found = sorted(workable, key=lambda one: one.updated_at, reverse=True)[:MOST_LED_TO]
            rows = [_leading_to(workspace.repo, one) for one in found]
            count += await self.threads.take_in(rows)
            for one in found:
                if not one.assignees:
                    await self._assign(workspace.repo, one)
        return StepResult(note=f"{counted(count, 'issue')} to look at" if count else "")

    async def _assign(self, repo: Repo, issue: Issue) -> None:
        trusted = await self.trust.accounts(repo)
        key = f"{repo.full_name.lower()}#{issue.number}/assign"
        if not trusted.covers(issue.account) or not self.acting.ask_for_turn(key):
            return
        await self.writer.assign(repo, issue.number, act_key(repo, issue.number, "assign"), issue.author)


def _leading_to(repo: Repo, issue: Issue) -> NewThread:
    return NewThread(
        repo=repo.full_name, number=issue.number, kind="issue", source="workspace_issue", at=issue.updated_at
    )


@dataclass(slots=True)
class RestingIssues(CycleStep):
    """Closes issues in which nothing happens: answered by us a day ago, or still for a week (a memo: three days).

    The closing is announced first, and done if nobody answers. These issues stay open: by the owner, with a person who
    waits for an answer, named by an open plan, not closable by us on GitHub, and all in a requested repository. The
    comments of an issue are read again only when it changed.
    """

    name = "resting-issues"
    place = Place.HOUSEKEEPING

    closing: Closing
    github: GitHub
    trust: WorkspaceTrust
    acting: ActingTurns
    phrase: Phrase
    clock: Clock
    _last_words: dict[str, LastWord] = field(default_factory=dict, init=False)

    async def run(self, poll: Poll) -> StepResult:
        closed = 0
        before, self._last_words = self._last_words, {}
        for workspace in poll.workspaces:
            if workspace.watched.requested:
                continue
            reads_left = MOST_READ
            trusted = await self.trust.accounts(workspace.repo)
            for issue in workspace.issues:
                if not await self._is_looked_at(workspace, issue, trusted, poll.at):
                    continue
                last = before.get(_name(workspace.repo, issue))
                if last is None or last.version != issue.version:
                    if not reads_left or not self.github.enough_for_loops:
                        continue
                    reads_left -= 1
                    last = await self._last_word(workspace.repo, issue)
                if last:
                    self._last_words[_name(workspace.repo, issue)] = last
                    closed += await self._settle(workspace.repo, issue, last, trusted, poll.at)
        return StepResult(note=f"{counted(closed, 'resting issue')} closed" if closed else "")

    async def _is_looked_at(
        self, workspace: PolledWorkspace, issue: Issue, trusted: TrustedAccounts, now: datetime
    ) -> bool:
        """Return whether an issue may be closed and rests; or its closing was announced and is still to be done."""
        if not may_rest(issue, trusted, workspace.plans):
            return False
        is_quiet = self.clock.lived(rests_for(issue, now)) >= HANDLED_AFTER
        if await self.closing.was_said(workspace.repo, issue.number, _CLOSING):
            return not await self.closing.is_closed(workspace.repo, issue.number, _CLOSING)
        return is_quiet

    async def _last_word(self, repo: Repo, issue: Issue) -> LastWord | None:
        if (comments := (await self.github.list_comments(repo, issue.number)).or_else(None)) is None:
            return None
        last = comments[-1] if comments else None
        return LastWord(issue.version, last.account if last else issue.account, is_comment=last is not None)

    async def _settle(self, repo: Repo, issue: Issue, last: LastWord, trusted: TrustedAccounts, now: datetime) -> bool:
        """Announce the closing, or close the issue if that is its last comment; return whether it is being closed.

        GitHub gives times in whole seconds, so the last word is read again before anything is done.
        """
        if await self.closing.was_said(repo, issue.number, _CLOSING):
            comments = (await self.github.list_comments(repo, issue.number)).or_else(())
            why = "nothing came back after it was announced"
            return is_said_in(comments[-1:], _CLOSING, trusted) and await self.closing.close(
                repo, issue, _CLOSING, why, last_comment=comments[-1].id
            )
        code = self._code(repo, issue, last, trusted, now)
        fresh = await self._last_word(repo, issue) if code else None
        if fresh is None or self._code(repo, issue, fresh, trusted, now) != code:
            return False
        if not trusted.lets_close(issue.account):
            return False
        words = (
            self.phrase("github.issue_handled_closed")
            if code == "handled"
            else self.phrase("github.issue_stale_closed", days=stale_after(issue).days)
        )
        await self.closing.said(repo, issue.number, _CLOSING, words, trusted)
        return False

    def _code(
        self, repo: Repo, issue: Issue, last: LastWord, trusted: TrustedAccounts, now: datetime
    ) -> Literal["handled", "stale"] | None:
        """Return why we close an issue, or None; only one SOUL closes a stale issue."""
        code = resting_code(issue, last, trusted, self.clock.lived(rests_for(issue, now)))
        return code if code != "stale" or self.acting.ask_for_turn(f"{_name(repo, issue)}/stale") else None


def _name(repo: Repo, issue: Issue) -> str:
    return f"{repo.full_name.lower()}#{issue.number}"
