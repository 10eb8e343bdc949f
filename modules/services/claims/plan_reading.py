"""Reads all that a claim depends on: the plan, its comments, the locks of its tasks, and their pull requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from adapters.github.checks import BODY_LIMIT_CHARS
from adapters.github.client import GitHub
from adapters.github.types import Account, GitRef, Issue, PullRequest, Repo
from adapters.github.types import Comment as StoredComment
from common.clock import Clock, parse_iso
from common.result import ApiResult, Err, ErrKind, Ok, answering
from common.text.markdown import without_html_comments
from common.text.untrusted import one_line
from modules.services.claims.claim_types import Snapshot
from modules.services.claims.claiming import parse_lock_branch
from modules.services.claims.claims import PlanComment, claims_on, highest_epoch
from modules.services.claims.lease_store import TaskLeases
from modules.services.plans.events import count_task_failures, parse_task_event_markers, task_digest
from modules.services.plans.naming import parse_task_branch
from modules.services.plans.parse import parse_plan
from modules.services.plans.types import Plan, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from modules.services.workspaces.pulls import pulls_for, read_pulls
from modules.services.workspaces.trust import WorkspaceTrust

_LEARNED_CHARS = 500
"""So much of each thing that was said of a pull request is kept on the plan."""
NO_BRANCHES: tuple[ErrKind, ...] = ("conflict", "not_found")
"""How GitHub answers for a repository without a commit: no branch can be made there."""


@dataclass(frozen=True, slots=True)
class PlanReading:
    """What one reading of a plan told, at the time `at`.

    Attributes:
        at: when it was read.
        issue: that holds the plan.
        plan: None where the issue is closed, or holds none.
        comments: of those whose words count, oldest first.
        locks: by the number of a task the epochs of its locks, each with the time since when we have seen it; None
            where the repository has no branches.
        open_pulls: the numbers of the tasks with an open pull request for this plan, by somebody whose words count.
        merged: by the number of a task the address of such a one that was merged.
        closed: by the number of a task the newest such one that was closed without a merge.
        by_people: the ids of those `comments` that a person wrote, and no SOUL.

    """

    at: datetime
    issue: Issue
    plan: Plan | None
    comments: tuple[StoredComment, ...]
    locks: Mapping[int, Mapping[int, datetime]] | None
    open_pulls: frozenset[int]
    merged: Mapping[int, str]
    closed: Mapping[int, PullRequest]
    by_people: frozenset[int] = frozenset()

    def snapshot(self, number: int) -> Snapshot:
        """Return what of it is about one task."""
        told = [PlanComment(one.id, one.author, one.body, parse_iso(one.updated_at)) for one in self.comments]
        return Snapshot(
            at=self.at,
            plan=self.plan,
            assignees=self.issue.assignees,
            locks=None if self.locks is None else self.locks.get(number, {}),
            claims=tuple(claims_on(told, number)),
            epoch=highest_epoch(told, number),
            has_pull_request=number in self.open_pulls,
        )

    def has_room(self, number: int, login: str) -> bool:
        """Return whether the issue holds the plan with a task of ours in work; one that is not there needs no room."""
        update = update_task_in_plan_body(self.issue.body, number, TaskChange("in_progress", login))
        return len(update.body) <= BODY_LIMIT_CHARS

    def failures(self, number: int) -> int:
        """Return how many attempts at a task failed."""
        return count_task_failures((one.body for one in self.comments), number)

    def failed_tries(self, number: int) -> tuple[str, ...]:
        """Return the comments that tell of attempts at a task that failed, oldest first."""
        return tuple(one.body for one in self.comments if count_task_failures([one.body], number))

    def open_question(self, number: int) -> StoredComment | None:
        """Return the comment in which a SOUL asks how a task is meant; None where none does, or it was answered.

        A comment by a person after it answers it, and so does another text of the task. So does another event of the
        task, such as a claim that the owner ordered.
        """
        told = [(one, event) for one in self.comments for event in parse_task_event_markers(one.body)]
        asked, event = next((each for each in reversed(told) if each[1].task == number), (None, None))
        task = self.plan.task(number) if self.plan else None
        if asked is None or event is None or self.plan is None or task is None:
            return None
        if event.about != task_digest(self.plan, task) or any(one > asked.id for one in self.by_people):
            return None
        return asked

    def talk(self, number: int) -> tuple[StoredComment, ...]:
        """Return the questions that SOULs asked about a task, and all that people said on the plan, oldest first."""
        asked = {
            one.id
            for one in self.comments
            for event in parse_task_event_markers(one.body)
            if event.task == number and event.about
        }
        return tuple(one for one in self.comments if one.id in asked | self.by_people)

    def is_abandoned(self, number: int) -> bool:
        """Return whether a comment says that a task is left alone."""
        told = (event for one in self.comments for event in parse_task_event_markers(one.body))
        return any(event.task == number and event.event == "abandoned" for event in told)

    def closed_since(self, number: int, claim: int | None) -> PullRequest | None:
        """Return the pull request for a task that was closed without a merge, if it is newer than a claim's comment."""
        pull = self.closed.get(number)
        made_at = next((one.created_at for one in self.comments if one.id == claim), None)
        return pull if pull and made_at and parse_iso(pull.created_at) >= parse_iso(made_at) else None

    def claim_comment(self, number: int, epoch: int, login: str) -> int | None:
        """Return the id of the comment by which an account claimed a task at an epoch, or None."""
        told = [PlanComment(one.id, one.author, one.body, parse_iso(one.updated_at)) for one in self.comments]
        own = (one for one in claims_on(told, number) if one.soul.lower() == login.lower() and one.until)
        return next((one.comment_id for one in own if one.epoch == epoch), None)


class PlanReader:
    """Reads plans, four requests each or a few more, one after the other without a pause."""

    def __init__(self, github: GitHub, leases: TaskLeases, trust: WorkspaceTrust, clock: Clock) -> None:
        self._github = github
        self._leases = leases
        self._trust = trust
        self._clock = clock

    @answering
    async def read(self, repo: Repo, number: int) -> ApiResult[PlanReading]:
        """Return the plan in issue `number` with all that is said of its tasks.

        It is an error where another repository answers than the one that was known under its name, and where it cannot
        be read whose words count: a claim of a peer would look like none.
        """
        github = self._github
        trusted = await self._trust.accounts(repo)
        if self._trust.has_passed_on(repo) or not trusted.is_whole:
            return self._unknown(repo)
        async with github.burst():
            issue = (await github.get_issue(repo, number)).or_raise()
            comments = (await github.list_comments(repo, number)).or_raise()
            refs = (await github.refs.matching(repo, f"soul/{number}-task-")).or_else(None, *NO_BRANCHES)
            pulls = (await read_pulls(github, repo, number, trusted)).or_raise()
        offered = pulls_for(number, pulls, trusted)
        counted = tuple(one for one in comments if trusted.covers(one.account))
        return Ok(
            PlanReading(
                at=self._clock.now(),
                issue=issue,
                plan=parse_plan(issue.body, issue.title) if issue.state == "open" else None,
                comments=counted,
                locks=None if refs is None else await self._locks(repo, refs),
                open_pulls=_tasks(one for one in offered if one.state == "open"),
                merged=_merged(one for one in offered if one.merged),
                closed=_closed(one for one in offered if one.state == "closed" and not one.merged),
                by_people=frozenset(
                    one.id
                    for one in counted
                    if not trusted.is_program(one.account) and not parse_task_event_markers(one.body)
                ),
            )
        )

    def _unknown(self, repo: Repo) -> Err:
        if self._trust.has_passed_on(repo):
            return Err(f"{repo.full_name} is another repository than when it was first seen", "invalid")
        return Err(f"whose words count in {repo.full_name} cannot be read now", "transient")

    @answering
    async def learned(self, repo: Repo, pull: PullRequest) -> ApiResult[str]:
        """Return what those whose words count said of a pull request: who asked for changes, and the last comment."""
        trusted = await self._trust.accounts(repo)
        reviews = (await self._github.pulls.reviews(repo, pull.number)).or_raise()
        comments = (await self._github.list_comments(repo, pull.number)).or_raise()
        asked = [
            one.body
            for one in reviews
            if one.state == "CHANGES_REQUESTED" and trusted.covers(Account(one.author_id, one.author))
        ]
        last = [one.body for one in comments if trusted.covers(one.account)][-1:]
        told = [one_line(without_html_comments(text), _LEARNED_CHARS) for text in (*asked[-2:], *last)]
        return Ok(" ".join(f"“{text}”" for text in told if text))

    async def _locks(self, repo: Repo, refs: Iterable[GitRef]) -> Mapping[int, Mapping[int, datetime]]:
        found = [(one.ref, parsed) for one in refs if (parsed := parse_lock_branch(one.ref))]
        names = {ref: f"{repo.full_name.lower()}:{ref.removeprefix('refs/heads/')}" for ref, _ in found}
        since = await self._leases.first_seen(names.values()) if names else {}
        locks: dict[int, dict[int, datetime]] = {}
        for ref, (_, task, epoch) in found:
            locks.setdefault(task, {})[epoch] = since[names[ref]]
        return locks


def _merged(pulls: Iterable[PullRequest]) -> Mapping[int, str]:
    numbered = ((parse_task_branch(one.head.ref), one.html_url) for one in pulls)
    return {number: url for number, url in numbered if number is not None}


def _closed(pulls: Iterable[PullRequest]) -> Mapping[int, PullRequest]:
    numbered = ((parse_task_branch(one.head.ref), one) for one in sorted(pulls, key=lambda one: one.number))
    return {number: one for number, one in numbered if number is not None}


def _tasks(pulls: Iterable[PullRequest]) -> frozenset[int]:
    numbers = (parse_task_branch(one.head.ref) for one in pulls)
    return frozenset(one for one in numbers if one is not None)
