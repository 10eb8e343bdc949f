"""Keeps the plans of a workspace in order: duplicates, labels, claims, completion, and repeated comments of ours.

An issue is closed only once a comment there says why. Claims of a SOUL that is gone, and unfinished ones of ours, are
settled. The accounts to which a plan is assigned are registered as peers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from adapters.github.client import GitHub
from adapters.github.types import Comment, Issue, PullRequest, Repo
from common.clock import parse_iso
from common.result import Err
from common.text.github_text import without_own_marks
from common.wording import counted
from modules.lives.workspaces.policy import (
    Duplicate,
    duplicates_among,
    is_work,
    label_change,
    quoted_lines,
    task_lines,
    unread_mark,
    unread_marks,
)
from modules.lives.workspaces.types import CycleStep, Place, Poll, PolledWorkspace, StepResult
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.claim_requests import (
    DeadClaim,
    PlanReader,
    delete_dead_locks,
    find_dead_claims,
    find_orphaned_tasks,
    may_hold_dead_claims,
    settle_dead_claim,
)
from modules.services.claims.claimer import Claimer, TaskComments
from modules.services.claims.lease_store import TaskOrders, TaskPlace
from modules.services.claims.policy import LEASE
from modules.services.outbox.github_writer import GitHubWriter, act_key
from modules.services.peers.registry import PeerRegistry
from modules.services.plans.compose import issues_taken_up
from modules.services.plans.events import TaskEvent
from modules.services.plans.types import FoundPlan, PlanKey, PlanLabel, claim_key
from modules.services.skills.skills import Skills
from modules.services.voice_phrases import Phrase
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.trust import TrustedAccounts, WorkspaceTrust, plan_of

PLAN_COMPLETE = "plan-complete"
"""The key under which `PlanStanding` says why it closes a plan, and closes it."""


def _mark(what: str) -> str:
    return f"<!-- soul:upkeep={what} -->"


def is_said_in(comments: Iterable[Comment], what: str, trusted: TrustedAccounts) -> bool:
    """Return whether one of these comments, by an account that counts, has the mark of the reason `what`."""
    return any(_mark(what) in one.body and trusted.covers(one.account) for one in comments)


@dataclass(frozen=True, slots=True)
class Closing:
    """Comments why an issue is closed, and closes it; `what` names the reason, `loop` the part that records it."""

    github: GitHub
    writer: GitHubWriter
    journal: Journal
    loop: str

    async def reread(self, repo: Repo, issue: Issue) -> Issue | None:
        """Return an issue as it is now; None if it is closed or cannot be read."""
        found = (await self.github.get_issue(repo, issue.number)).or_else(None)
        return found if found and found.state == "open" else None

    async def said(self, repo: Repo, number: int, what: str, text: str, trusted: TrustedAccounts) -> bool:
        """Comment once; return whether the comment is published, which is the case at a later look at the earliest."""
        key = act_key(repo, number, what)
        ours = await self.writer.outbox.standing("issue_comment", key)
        if ours.active:
            return ours.code == "done"
        if (comments := (await self.github.list_comments(repo, number)).or_else(None)) is None:
            return False
        if is_said_in(comments, what, trusted):
            return True
        await self.writer.comment(repo, number, key, text, _mark(what))
        return False

    async def was_said(self, repo: Repo, number: int, what: str) -> bool:
        """Return whether a comment of ours for this reason was published."""
        return (await self.writer.outbox.standing("issue_comment", act_key(repo, number, what))).code == "done"

    async def is_closed(self, repo: Repo, number: int, what: str) -> bool:
        """Return whether we closed an issue for this reason, or are about to."""
        return (await self.writer.outbox.standing("issue_update", act_key(repo, number, what))).active is not None

    async def close(self, repo: Repo, issue: Issue, what: str, why: str, *, last_comment: int | None = None) -> bool:
        """Close an issue, once for this reason; return whether that was proposed now.

        With `last_comment` it stays open if somebody else comments after that.
        """
        key = act_key(repo, issue.number, what)
        if not (await self.writer.set_state(repo, issue.number, key, "closed", last_comment=last_comment)).is_new:
            return False
        summary = f"Closing {repo.full_name}#{issue.number}"
        await self.journal.record(Entry("decision", self.loop, summary, line="info", reason=why))
        return True

    async def end(self, repo: Repo, number: int, what: str, text: str, trusted: TrustedAccounts, *, why: str) -> bool:
        """Comment on an issue, and close it once the comment is published; return whether nothing is left to do.

        An issue is left alone if GitHub does not let us close it, or if the comment was refused.
        """
        found = await self.github.get_issue(repo, number)
        if isinstance(found, Err):
            return found.kind == "not_found"
        if found.data.state != "open" or not is_work(found.data) or not trusted.lets_close(found.data.account):
            return True
        if await self.said(repo, number, what, text, trusted):
            await self.close(repo, found.data, what, why)
            return True
        comment = await self.writer.outbox.standing("issue_comment", act_key(repo, number, what))
        return comment.code in {"refused", "left_alone"}


_MOST_ASSIGNED = 10
"""How many accounts of one plan are registered as peers."""

MOST_DELETED = 5
"""How many comments are deleted on one plan in one cycle."""
MOST_UNREAD = 20
"""How many unreadable lines one comment lists."""


@dataclass(slots=True)
class DuplicatePlans(CycleStep):
    """Closes plans that another plan makes needless; a comment on the plan that is kept lists their remaining tasks."""

    name = "duplicate-plans"
    place = Place.DUPLICATE_PLANS

    closing: Closing
    trust: WorkspaceTrust
    acting: ActingTurns
    phrase: Phrase
    skills: Skills

    async def run(self, poll: Poll) -> StepResult:
        closed: list[PlanKey] = []
        for workspace in poll.workspaces:
            if len(workspace.plans) > 1:
                closed += await self._tidy(workspace)
        note = f"{counted(len(closed), 'duplicate plan')} closed" if closed else ""
        return StepResult(closed=tuple(closed), note=note)

    async def _tidy(self, workspace: PolledWorkspace) -> list[PlanKey]:
        trusted = await self.trust.accounts(workspace.repo)
        found = duplicates_among(workspace.plans, trusted, lambda plan: issues_taken_up(plan, self.skills))
        return [one.plan.key for one in found if self._is_ours(one, trusted) and await self._supersede(one, trusted)]

    def _is_ours(self, one: Duplicate, trusted: TrustedAccounts) -> bool:
        key = f"{one.plan.repo.full_name.lower()}#{one.plan.number}/superseded"
        return trusted.lets_close(one.plan.issue.account) and self.acting.ask_for_turn(key)

    async def _supersede(self, one: Duplicate, trusted: TrustedAccounts) -> bool:
        """Comment on both plans, and then close the needless one; return whether it is being closed."""
        repo, key = one.plan.repo, f"superseded-by-{one.kept.number}"
        fresh = await self.closing.reread(repo, one.plan.issue)
        if fresh is None or await self.closing.reread(repo, one.kept.issue) is None:
            return False
        url, there = one.kept.issue.html_url, f"carried-over-from-{one.plan.number}"
        is_said = await self.closing.said(
            repo, fresh.number, key, self.phrase("github.plan_superseded", url=url), trusted
        )
        if one.carried:
            left = self.phrase("github.plan_carried_over", url=one.plan.issue.html_url, tasks=task_lines(one.carried))
            is_said &= await self.closing.said(repo, one.kept.number, there, left, trusted)
        if not is_said:
            return False
        if change := label_change(fresh.labels, "superseded"):
            await self.closing.writer.label(repo, fresh.number, act_key(repo, fresh.number, key), change)
        return await self.closing.close(repo, fresh, key, f"plan #{one.kept.number} takes its place")


@dataclass(slots=True)
class PlanStanding(CycleStep):
    """Keeps the label of each plan correct, and closes a plan whose tasks are all completed.

    Nothing is said about its end while a pull request for it is open. The issues that it covers are closed first: as
    long as the plan is open, it shows that this is still to be done.
    """

    name = "plan-standing"
    place = Place.DUPLICATE_COMMENTS

    closing: Closing
    trust: WorkspaceTrust
    acting: ActingTurns
    phrase: Phrase
    skills: Skills

    async def run(self, poll: Poll) -> StepResult:
        closed = [
            plan.key
            for workspace in poll.workspaces
            for plan in workspace.plans
            if self._is_due(plan) and await self._settle(plan, workspace.issues, poll.at)
        ]
        note = f"{counted(len(closed), 'plan')} complete" if closed else ""
        return StepResult(closed=tuple(closed), note=note)

    def _is_due(self, plan: FoundPlan) -> bool:
        status = plan.plan.status
        if status != "complete" and label_change(plan.issue.labels, status) is None:
            return False
        return self.acting.ask_for_turn(f"{plan.repo.full_name.lower()}#{plan.number}/{status}")

    async def _settle(self, plan: FoundPlan, issues: Sequence[Issue], now: datetime) -> bool:
        """Label a plan, and close it once all is merged and it was said to be complete; return whether it is closed."""
        trusted = await self.trust.accounts(plan.repo)
        if not trusted.covers(plan.issue.account) or not trusted.lets_close(plan.issue.account):
            return False
        fresh = await self.closing.reread(plan.repo, plan.issue)
        if fresh is None or fresh.body != plan.issue.body:
            return False
        status: PlanLabel = plan.plan.status
        if change := label_change(fresh.labels, status):
            key = act_key(plan.repo, fresh.number, f"{status}-{fresh.updated_at}")
            await self.closing.writer.label(plan.repo, fresh.number, key, change)
        if status != "complete" or has_open_pull(plan, issues, trusted, now):
            return False
        words = self.phrase("github.plan_complete")
        if not await self.closing.said(plan.repo, fresh.number, PLAN_COMPLETE, words, trusted):
            return False
        if not await self._end_issues(plan, trusted):
            return False
        return await self.closing.close(plan.repo, fresh, PLAN_COMPLETE, "all of its tasks are completed")

    async def _end_issues(self, plan: FoundPlan, trusted: TrustedAccounts) -> bool:
        """Close the issues that a complete plan covers, with its link; return whether that is done for all of them."""
        words = self.phrase("github.issue_done", url=plan.issue.html_url)
        key, why = f"done-by-{plan.number}", f"all tasks of the plan #{plan.number} are completed"
        ended = [
            await self.closing.end(plan.repo, number, key, words, trusted, why=why)
            for number in issues_taken_up(plan.plan, self.skills)
        ]
        return all(ended)


@dataclass(slots=True)
class UnreadPlans(CycleStep):
    """Comments on a plan which lines could not be read, so that nobody can claim them: each line once.

    Marks in the comments show what was said, so that it is said once for all SOULs, also after a restart.
    """

    name = "unread-plans"
    place = Place.DUPLICATE_COMMENTS

    writer: GitHubWriter
    github: GitHub
    trust: WorkspaceTrust
    acting: ActingTurns
    phrase: Phrase
    _told: dict[PlanKey, tuple[str, ...]] = field(default_factory=dict, init=False)

    async def run(self, poll: Poll) -> StepResult:
        self._told = {plan.key: self._told.get(plan.key, ()) for plan in poll.plans}
        told = 0
        for plan in poll.plans:
            if plan.plan.warnings != self._told[plan.key] and self._is_ours(plan):
                told += await self._tell(plan)
        return StepResult(note=f"{counted(told, 'plan')} not read in full" if told else "")

    def _is_ours(self, plan: FoundPlan) -> bool:
        return self.acting.ask_for_turn(f"{plan.repo.full_name.lower()}#{plan.number}/unread")

    async def _tell(self, plan: FoundPlan) -> bool:
        trusted = await self.trust.accounts(plan.repo)
        if not trusted.covers(plan.issue.account):
            return False
        if (comments := (await self.github.list_comments(plan.repo, plan.number)).or_else(None)) is None:
            return False
        told = {mark for one in comments if trusted.covers(one.account) for mark in unread_marks(one.body)}
        lines = {unread_mark(line): line for line in plan.plan.warnings}
        left = [(mark, line) for mark, line in lines.items() if mark not in told][:MOST_UNREAD]
        if not left:
            self._told[plan.key] = plan.plan.warnings
            return False
        text = self.phrase("github.plan_unread", lines=quoted_lines([line for _, line in left]))
        marks = ",".join(mark for mark, _ in left)
        key = act_key(plan.repo, plan.number, f"unread-{unread_mark(marks)}")
        said = await self.writer.comment(plan.repo, plan.number, key, text, f"<!-- soul:unread={marks} -->")
        return said.is_new


@dataclass(slots=True)
class DuplicateComments(CycleStep):
    """Deletes comments that we repeated on a plan within a day. A plan is read again only when it changed."""

    name = "duplicate-comments"
    place = Place.DUPLICATE_COMMENTS

    writer: GitHubWriter
    github: GitHub
    _read: dict[PlanKey, str] = field(default_factory=dict, init=False)

    async def run(self, poll: Poll) -> StepResult:
        deleted = 0
        self._read = {plan.key: self._read.get(plan.key, "") for plan in poll.plans}
        for plan in poll.plans:
            if self._read[plan.key] != plan.issue.version and self.github.enough_for_loops:
                deleted += await self._prune(plan)
        return StepResult(note=f"{counted(deleted, 'duplicate comment')} deleted" if deleted else "")

    async def _prune(self, plan: FoundPlan) -> int:
        if (comments := (await self.github.list_comments(plan.repo, plan.number)).or_else(None)) is None:
            return 0
        repeated = duplicate_comment_ids(comments, self.github.login)
        deleted = 0
        for comment_id in repeated[:MOST_DELETED]:
            key = act_key(plan.repo, plan.number, f"comment-{comment_id}")
            deleted += (await self.writer.delete_comment(plan.repo, plan.number, key, comment_id)).is_new
        if len(repeated) <= MOST_DELETED:
            self._read[plan.key] = plan.issue.version
        return deleted


@dataclass(slots=True)
class PlanPeers(CycleStep):
    """Registers the accounts assigned to a plan or to one of its tasks as peers, if they count and are not ours.

    A plan is looked at again only when it changed.
    """

    name = "plan-peers"
    place = Place.STUCK_TASKS
    acts = False

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
        for login in [one.login for one in trusted.others() if one.login.lower() in assigned][:_MOST_ASSIGNED]:
            context = f"{plan.repo.full_name}#{plan.number}"
            self.registry.register_peer_by_github_username(login, "plan", context)


PULL_WAITED_FOR = timedelta(days=1)
"""How long after its last change an open pull request keeps a complete plan from being closed."""


def has_open_pull(plan: FoundPlan, issues: Iterable[Issue], trusted: TrustedAccounts, now: datetime) -> bool:
    """Return whether work on a plan is still to be merged: a pull request for it by an account that counts is open."""
    return any(
        one.is_pull_request
        and plan_of(one.body) == plan.number
        and trusted.covers(one.account)
        and now - parse_iso(one.updated_at) < PULL_WAITED_FOR
        for one in issues
    )


SAME_WITHIN = timedelta(hours=24)

_CLAIM = "<!-- task-claim"


def duplicate_comment_ids(comments: Iterable[Comment], login: str) -> list[int]:
    """Return the ids of our comments that repeat an older one of ours, word for word, within 24 hours.

    Case and blanks do not matter; mentions, issue numbers, addresses and the markers of task events do, so that two
    attempts at a task are distinguished. The mark of an intent is not compared. Comments with a claim are kept.
    """
    kept: dict[str, datetime] = {}
    repeated: list[int] = []
    own = (one for one in comments if one.author.lower() == login.lower() and _CLAIM not in one.body)
    for one in sorted(own, key=lambda one: (one.created_at, one.id)):
        words, at = " ".join(without_own_marks(one.body).lower().split()), parse_iso(one.created_at)
        if words in kept and at - kept[words] <= SAME_WITHIN:
            repeated.append(one.id)
        else:
            kept[words] = at
    return repeated


@dataclass(slots=True, kw_only=True)
class SweepStep(CycleStep):
    """Settles ended claims in each cycle, and so also in the first one after a start, before anything is claimed."""

    name, place = "sweep", Place.STUCK_TASKS
    acts = False

    claimer: Claimer
    reader: PlanReader
    acting: ActingTurns
    comments: TaskComments
    orders: TaskOrders
    journal: Journal
    phrase: Phrase

    async def run(self, poll: Poll) -> StepResult:
        """Settle our own claims, then look at the plans on which somebody works."""
        await self.claimer.settle()
        ours = {(f"{one.owner}/{one.repo}".lower(), one.issue, one.number) for one in await self.claimer.held()}
        changed = 0
        for found in poll.plans:
            held = frozenset(number for repo, issue, number in ours if (repo, issue) == found.key)
            if may_hold_dead_claims(found.plan, held):
                changed += await self._sweep(found, held)
        return StepResult(note=f"{counted(changed, 'task')} settled" if changed else "")

    async def _sweep(self, found: FoundPlan, held: frozenset[int]) -> int:
        if (reading := (await self.reader.read(found.repo, found.number)).or_else(None)) is None:
            return 0
        requests, swept = self.claimer.requests, 0
        await delete_dead_locks(requests, reading, found.repo, held)
        orphaned = await find_orphaned_tasks(requests, reading, found.repo, held)
        for dead in [*find_dead_claims(reading, held), *orphaned]:
            place = claim_key(found.repo.owner, found.repo.name, found.number, dead.task.number)
            if dead.closed and not await self._heeds_owner(found, dead, dead.closed):
                continue
            # NOTE(self): only one SOUL does it: each that writes the same line of the plan would find its own write.
            if not self.acting.ask_for_turn(f"sweep:{place}", of=dead.holder if dead.is_decided else ""):
                continue
            learned = (await self.reader.learned(found.repo, dead.closed)).or_else(None) if dead.closed else ""
            if learned is not None and await settle_dead_claim(requests, reading, found.repo, dead):
                swept += 1
                await self._report(found, dead, place, learned)
        return swept

    async def _heeds_owner(self, found: FoundPlan, dead: DeadClaim, closed: PullRequest) -> bool:
        """Leave a task alone if the owner closed its pull request; return False if that cannot be read now."""
        by_owner = (await self.reader.is_closed_by_owner(found.repo, closed)).or_else(None)
        place = TaskPlace(found.repo, found.number, dead.task.number, dead.task.title)
        if by_owner and not await self.orders.is_left(place):
            await self.orders.leave(place)
            await self._record(found, dead, "you closed its pull request, so it is left alone")
        return by_owner is not None

    async def _report(self, found: FoundPlan, dead: DeadClaim, place: str, learned: str) -> None:
        """Record it, and comment on the plan why a task can be taken again; GitHub itself shows a merge there."""
        number, epoch = dead.task.number, max(dead.epoch, 1)
        if dead.code == "completed":
            await self._record(found, dead, f"its pull request {dead.pull} was merged")
            return
        if dead.closed:
            why, phrase, event = "its pull request was closed", "github.task_failed", "task-closed"
            details = self.phrase("github.pull_closed", url=dead.closed.html_url, learned=learned)
            told, marker = {"details": details}, TaskEvent(number, "failed", epoch)
        elif dead.left:
            why, phrase, event = f"{dead.holder} did nothing for a week", "github.task_left", "task-timeout"
            told, marker = {"url": dead.left.html_url, "assignee": dead.holder}, TaskEvent(number, "timeout", epoch)
        else:
            why, phrase, event = f"the claim of {dead.holder} has ended", "github.task_timeout", "task-timeout"
            minutes = str(int(LEASE.total_seconds() // 60))
            told = {"status": dead.task.status, "assignee": dead.holder, "minutes": minutes}
            marker = TaskEvent(number, "timeout", epoch)
        await self._record(found, dead, why)
        cause, title = f"{event}:{place}:{dead.epoch}", dead.task.title
        await self.comments.say(found.repo, found.number, phrase, marker, cause, title=title, **told)

    async def _record(self, found: FoundPlan, dead: DeadClaim, why: str) -> None:
        summary = f"{dead.task.name} of {found.repo.full_name}#{found.number} {dead.code}: {why}"
        await self.journal.record(Entry("life", self.name, summary, line="info"))
