"""Reads the state that a claim on a task depends on, and carries out its actions on GitHub: claim, release and sweep.

Each action reads before it writes, and may be repeated safely. These writes do not wait in the outbox, as each depends
on the state at that moment. The rules and gates of the outbox are asked before a claim begins; then the writes keep the
same pause between requests (in the adapter).
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from adapters.github.checks import BODY_LIMIT_CHARS
from adapters.github.client import GitHub
from adapters.github.rewriting import rewrite
from adapters.github.types import Account, Comment, GitCommit, GitRef, Issue, PullRequest, Repo
from adapters.github.types import Comment as StoredComment
from common.clock import Clock, iso, parse_iso
from common.result import ApiResult, Err, ErrKind, Ok, answering
from common.text.markdown import without_html_comments
from common.text.untrusted import one_line
from modules.services.claims.claiming import lock_branch, parse_lock_branch
from modules.services.claims.lease_store import TaskLeases
from modules.services.claims.policy import (
    GRACE,
    Action,
    AssignSelf,
    Claim,
    ClaimAnswer,
    ClaimEvent,
    ClaimState,
    ClaimWait,
    CreateLock,
    DeleteLock,
    EndClaim,
    Lease,
    LineAnswer,
    LockAnswer,
    PlanComment,
    PlanRead,
    PostClaim,
    ResetLine,
    Snapshot,
    UnassignSelf,
    WriteLine,
    claim_marker,
    claims_on,
    dead_holder,
    dead_locks,
    highest_epoch,
    last_claim_end,
    lease_of,
    orphan_of_task_in_work,
    with_claim_until,
)
from modules.services.plans.events import (
    build_task_event_marker,
    count_task_failures,
    parse_task_event_markers,
    task_digest,
)
from modules.services.plans.plan_text import parse_plan
from modules.services.plans.types import ACTIVE_TASKS, Expected, Plan, Task, TaskChange, task_of_branch
from modules.services.plans.update import update_task_in_plan_body
from modules.services.workspaces.acting import GONE_AFTER, GoneAccounts
from modules.services.workspaces.trust import WorkspaceTrust, pulls_for, read_pulls

_LEARNED_CHARS = 500
"""The most characters of each text about a pull request that are kept on the plan."""
NO_BRANCHES: tuple[ErrKind, ...] = ("conflict", "not_found")
"""The errors of GitHub for a repository without a commit, in which no branch can be made."""


@dataclass(frozen=True, slots=True)
class PlanReading:
    """The result of one reading of a plan.

    Attributes:
        at: when it was read.
        issue: the issue of the plan.
        plan: None if the issue is closed or contains no plan.
        comments: the comments of trusted accounts, oldest first.
        locks: by task number, the epochs of its locks, each with when we first saw it; None if the repository has no
            branches.
        open_pulls: the numbers of the tasks with an open pull request for this plan by a trusted account.
        merged: by task number, the URL of such a pull request that was merged.
        closed: by task number, the newest such pull request that was closed without a merge.
        by_people: the ids of those `comments` that a person wrote, not a SOUL.
        left: by task number, an open pull request of a SOUL that is gone; these are not in `open_pulls`.

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
    left: Mapping[int, PullRequest] = field(default_factory=dict)

    def snapshot(self, number: int) -> Snapshot:
        """Return the part of it that is about one task."""
        told = _told(self.comments)
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
        """Return whether the issue has room for the plan with this task in progress by `login`."""
        update = update_task_in_plan_body(self.issue.body, number, TaskChange("in_progress", login))
        return len(update.body) <= BODY_LIMIT_CHARS

    def failures(self, number: int) -> int:
        """Return how many attempts at a task failed."""
        return count_task_failures((one.body for one in self.comments), number)

    def failed_tries(self, number: int) -> tuple[str, ...]:
        """Return the comments about failed attempts at a task, oldest first."""
        return tuple(one.body for one in self.comments if count_task_failures([one.body], number))

    def open_question(self, number: int) -> StoredComment | None:
        """Return the comment in which a SOUL asks what a task means; None if there is none, or it was answered.

        A later comment by a person answers it, and so does a change of the task's text or another event of the task,
        such as a claim that the owner ordered.
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
        """Return the questions that SOULs asked about a task, and all comments by people on the plan, oldest first."""
        asked = {
            one.id
            for one in self.comments
            for event in parse_task_event_markers(one.body)
            if event.task == number and event.about
        }
        return tuple(one for one in self.comments if one.id in asked | self.by_people)

    def is_abandoned(self, number: int) -> bool:
        """Return whether a comment says that a task is abandoned."""
        told = (event for one in self.comments for event in parse_task_event_markers(one.body))
        return any(event.task == number and event.event == "abandoned" for event in told)

    def closed_since(self, number: int, claim: int | None) -> PullRequest | None:
        """Return the pull request of a task that was closed without a merge, if it is newer than a claim's comment."""
        pull = self.closed.get(number)
        made_at = next((one.created_at for one in self.comments if one.id == claim), None)
        return pull if pull and made_at and parse_iso(pull.created_at) >= parse_iso(made_at) else None

    def claim_comment(self, number: int, epoch: int, login: str) -> int | None:
        """Return the id of the comment by which an account claimed a task at an epoch, or None."""
        own = (
            one for one in claims_on(_told(self.comments), number) if one.soul.lower() == login.lower() and one.until
        )
        return next((one.comment_id for one in own if one.epoch == epoch), None)


class PlanReader:
    """Reads plans, each with four requests or a few more, in sequence without a pause."""

    def __init__(
        self, github: GitHub, leases: TaskLeases, trust: WorkspaceTrust, clock: Clock, gone: GoneAccounts
    ) -> None:
        self._github = github
        self._leases = leases
        self._trust = trust
        self._clock = clock
        self._gone = gone

    @answering
    async def read(self, repo: Repo, number: int) -> ApiResult[PlanReading]:
        """Return the plan in issue `number` with everything that is said about its tasks.

        It is an error if the repository is not the one that was known under its name, or if the trusted accounts cannot
        be read: a claim of a peer would be overlooked.
        """
        github = self._github
        trusted = await self._trust.accounts(repo)
        if self._trust.has_passed_on(repo) or not trusted.is_whole:
            return await self._unknown(repo)
        async with github.burst():
            issue = (await github.get_issue(repo, number)).or_raise()
            comments = (await github.list_comments(repo, number)).or_raise()
            refs = (await github.refs.matching(repo, f"soul/{number}-task-")).or_else(None, *NO_BRANCHES)
            pulls = (await read_pulls(github, repo, number, trusted)).or_raise()
        plan = parse_plan(issue.body, issue.title) if issue.state == "open" else None
        tasks, trusted_pulls = plan.tasks if plan else (), pulls_for(number, pulls, trusted)
        named = ((task_of_branch(one.head.ref, tasks), one) for one in trusted_pulls)
        offered = [(task, one) for task, one in named if task is not None]
        counted = tuple(one for one in comments if trusted.covers(one.account))
        left = await self._left(repo, offered, counted)
        return Ok(
            PlanReading(
                at=self._clock.now(),
                issue=issue,
                plan=plan,
                comments=counted,
                locks=None if refs is None else await self._locks(repo, refs),
                open_pulls=frozenset(task for task, one in offered if one.state == "open" and one not in left.values()),
                left=left,
                merged={task: one.html_url for task, one in offered if one.merged},
                closed={task: one for task, one in reversed(offered) if one.state == "closed" and not one.merged},
                by_people=frozenset(
                    one.id
                    for one in counted
                    if not trusted.is_program(one.account) and not parse_task_event_markers(one.body)
                ),
            )
        )

    async def _left(
        self, repo: Repo, offered: Iterable[tuple[int, PullRequest]], comments: Collection[StoredComment]
    ) -> dict[int, PullRequest]:
        """Return, by task, the open pull requests of SOULs that are gone and whose claims ended long ago."""
        found: dict[int, PullRequest] = {}
        for number, pull in offered:
            if pull.state != "open" or pull.author.lower() == self._github.login.lower():
                continue
            ended_at = last_claim_end(_told(comments), number, pull.author)
            is_old = ended_at is not None and self._clock.now() - ended_at > GONE_AFTER
            if is_old and await self._gone.is_gone(pull.account, repo):
                found[number] = pull
        return found

    async def _unknown(self, repo: Repo) -> Err:
        if self._trust.has_passed_on(repo):
            return Err(f"{repo.full_name} is another repository than when it was first seen", "invalid")
        found = await self._github.get_repository(repo)
        if isinstance(found, Err) and found.kind == "not_found":
            return found
        return Err(f"whose words count in {repo.full_name} cannot be read now", "transient")

    @answering
    async def learned(self, repo: Repo, pull: PullRequest) -> ApiResult[str]:
        """Return what trusted accounts said about a pull request: the requests for changes, and the last comment."""
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

    @answering
    async def is_closed_by_owner(self, repo: Repo, pull: PullRequest) -> ApiResult[bool]:
        """Return whether the owner closed a pull request."""
        issue = (await self._github.get_issue(repo, pull.number)).or_raise()
        return Ok((await self._trust.accounts(repo)).why(issue.closer) == "owner")

    async def _locks(self, repo: Repo, refs: Iterable[GitRef]) -> Mapping[int, Mapping[int, datetime]]:
        found = [(one.ref, parsed) for one in refs if (parsed := parse_lock_branch(one.ref))]
        names = {ref: f"{repo.full_name.lower()}:{ref.removeprefix('refs/heads/')}" for ref, _ in found}
        since = await self._leases.first_seen(names.values()) if names else {}
        locks: dict[int, dict[int, datetime]] = {}
        for ref, (_, task, epoch) in found:
            locks.setdefault(task, {})[epoch] = since[names[ref]]
        return locks


def _told(comments: Iterable[StoredComment]) -> list[PlanComment]:
    return [PlanComment(one.id, one.author, one.body, parse_iso(one.updated_at)) for one in comments]


_NOT_AS_EXPECTED = Err("the task is not as it was", "conflict")
_LOCK_MARK = re.compile(r"Lock of \S{1,300} for (\S{1,100}), claim ")

ClaimWords = Callable[[Task], str]
"""Returns the text for people in the comment of a claim."""


def repo_of(lease: Lease) -> Repo:
    """Return the repository of a lease."""
    return Repo(lease.owner, lease.repo)


class ClaimRequests:
    """The requests of one account. `words` returns the text of a claim's comment without its markers."""

    def __init__(self, github: GitHub, reader: PlanReader, words: ClaimWords, clock: Clock) -> None:
        self._github = github
        self._reader = reader
        self._words = words
        self._clock = clock

    @property
    def login(self) -> str:
        """The login of the account."""
        return self._github.login

    async def read(self, lease: Lease) -> PlanReading | None:
        """Return the plan of a lease, or None if it cannot be read."""
        found = await self._reader.read(repo_of(lease), lease.issue)
        return found.data if isinstance(found, Ok) else None

    async def act(self, lease: Lease, action: Action, task: Task) -> ClaimEvent | None:
        """Carry out an action of a claim on a task, and return the answer."""
        match action:
            case CreateLock(epoch=epoch):
                return await self._create_lock(replace(lease, epoch=epoch))
            case WriteLine(change=change, expected=expected):
                return await self.change_line(lease, change, expected)
            case PostClaim(claim=claim):
                return await self._post_claim(lease, claim, task)
            case ClaimWait(seconds=seconds):
                await self._github.pause(seconds)
                return action
            case AssignSelf():
                await self._github.add_assignees(repo_of(lease), lease.issue, [lease.soul])
                return None
            case PlanRead():
                raise ValueError("a plan is read by `read`")
            case _:
                await self.undo(lease, action)
                return None

    async def undo(self, lease: Lease, action: Action) -> bool:
        """Undo a part of a claim; return whether nothing of that part is left."""
        repo = repo_of(lease)
        match action:
            case ResetLine(change=change, expected=expected):
                return (await self.change_line(lease, change, expected)).code != "failed"
            case UnassignSelf():
                done = await self._github.remove_assignee(repo, lease.issue, lease.soul)
                return isinstance(done, Ok) or done.kind == "not_found"
            case EndClaim(comment_id=comment_id, note=note):
                return await self._end_claim(lease, comment_id, note)
            case DeleteLock(epoch=epoch):
                return await self._delete_own_lock(replace(lease, epoch=epoch))
            case _:
                raise ValueError(f"{type(action).__name__} undoes nothing")

    async def change_line(self, lease: Lease, change: TaskChange, expected: Expected) -> LineAnswer:
        """Change the task if it is as expected, and keep what others write at the same time."""
        github, repo, began_s = self._github, repo_of(lease), self._clock.monotonic()

        def text(issue: Issue) -> str | Err:
            update = update_task_in_plan_body(issue.body, lease.number, change, expected)
            return _NOT_AS_EXPECTED if update.code in {"conflict", "missing"} else update.body

        done = await rewrite(
            github,
            (repo, lease.issue),
            lambda: github.get_issue(repo, lease.issue),
            text,
            lambda body: github.update_issue(repo, lease.issue, body=body),
        )
        if done is _NOT_AS_EXPECTED:
            return LineAnswer("conflict")
        if isinstance(done, Err):
            return LineAnswer("conflict" if done.kind == "not_found" else "failed", refusal=done)
        return LineAnswer("written", self._clock.monotonic() - began_s)

    async def renew(self, lease: Lease) -> bool:
        """Extend the claim in its comment to `lease.until`; return whether that was done."""
        if lease.comment_id is None:
            return False
        done = await self._change_comment(
            lease, lease.comment_id, lambda one: with_claim_until(one.body, lease.number, lease.until)
        )
        return isinstance(done, Ok)

    async def delete_dead_lock(self, lease: Lease, epoch: int) -> bool:
        """Delete the lock of an ended claim, whoever made it; return whether it is gone."""
        branch = lock_branch(lease.issue, lease.number, epoch)
        return isinstance(await self._github.refs.delete(repo_of(lease), branch), Ok)

    async def has_lock(self, lease: Lease, epoch: int, login: str) -> bool:
        """Return whether an account made the lock of this epoch for a claim of its own."""
        message = await self._lock_message(lease, epoch)
        found = _LOCK_MARK.match(message.data or "") if isinstance(message, Ok) else None
        return found is not None and found[1].lower() == login.lower()

    async def _create_lock(self, lease: Lease) -> LockAnswer:
        repo, branch = repo_of(lease), lock_branch(lease.issue, lease.number, lease.epoch)
        async with self._github.burst():
            own = await self._own_commit(lease)
            if isinstance(own, Err):
                return LockAnswer("unsupported" if own.kind in NO_BRANCHES else "failed", own)
            made = await self._github.refs.create(repo, branch, own.data.sha)
            if isinstance(made, Ok):
                return LockAnswer("created")
            # NOTE(self): an answer may have been lost; then the existing branch is our own.
            is_ours = await self._is_own_lock(lease)
        if isinstance(is_ours, Ok) and is_ours.data:
            return LockAnswer("created")
        return LockAnswer("exists" if made.kind == "conflict" else "failed", made)

    @answering
    async def _own_commit(self, lease: Lease) -> ApiResult[GitCommit]:
        """Create the commit that the lock points to; repeated calls create the same one."""
        repo, refs = repo_of(lease), self._github.refs
        known = (await self._github.get_repository(repo)).or_wait()
        base = (await refs.get(repo, known.default_branch)).or_raise()
        parent = (await refs.commit(repo, base.sha)).or_wait()
        return await refs.create_empty_commit(
            repo,
            parent,
            message=lock_mark(lease),
            name=lease.soul,
            email=f"{lease.soul}@users.noreply.github.com",
            date=f"{lease.since:%Y-%m-%dT%H:%M:%SZ}",
        )

    @answering
    async def _is_own_lock(self, lease: Lease) -> ApiResult[bool | None]:
        """Return whether the lock of a lease is ours, by the message of its commit; None if there is no lock."""
        message = (await self._lock_message(lease, lease.epoch)).or_raise()
        return Ok(None if message is None else lock_mark(lease) in message)

    @answering
    async def _lock_message(self, lease: Lease, epoch: int) -> ApiResult[str | None]:
        """Return the message of a lock's commit; None if there is no such lock."""
        repo, refs = repo_of(lease), self._github.refs
        read = await refs.get(repo, lock_branch(lease.issue, lease.number, epoch))
        if (found := read.or_else(None, "not_found", "conflict")) is None:
            return Ok(None)
        return Ok((await refs.commit(repo, found.sha)).or_raise().message)

    async def _delete_own_lock(self, lease: Lease) -> bool:
        async with self._github.burst():
            is_ours = await self._is_own_lock(lease)
            if isinstance(is_ours, Err):
                return False
            return await self.delete_dead_lock(lease, lease.epoch) if is_ours.data else True

    async def _post_claim(self, lease: Lease, claim: Claim, task: Task) -> ClaimAnswer:
        marker = build_task_event_marker(lease.number, "claimed", max(lease.epoch, 1))
        text = f"{self._words(task)}\n\n{marker}\n{claim_marker(claim)}"
        posted = await self._github.create_comment(repo_of(lease), lease.issue, text)
        if isinstance(posted, Ok):
            return ClaimAnswer(posted.data.id)
        again = await self.read(lease) if posted.kind == "unknown_outcome" else None
        return ClaimAnswer(again.claim_comment(lease.number, lease.epoch, lease.soul) if again else None, posted)

    async def _end_claim(self, lease: Lease, comment_id: int, note: str) -> bool:
        """End a claim's comment: delete it if the claim was never won, else write in it that it ended, and how."""
        repo = repo_of(lease)
        if lease.stage == "claiming":
            return isinstance(await self._github.delete_comment(repo, comment_id), Ok)
        until = min(self._clock.now(), lease.until)

        def text(comment: Comment) -> str:
            ended = with_claim_until(comment.body, lease.number, until)
            return f"{ended}\n\n{note}" if note and note not in ended else ended

        done = await self._change_comment(lease, comment_id, text)
        return isinstance(done, Ok) or done.kind == "not_found"

    async def _change_comment(
        self, lease: Lease, comment_id: int, change: Callable[[Comment], str]
    ) -> ApiResult[Comment]:
        github, repo = self._github, repo_of(lease)
        return await rewrite(
            github,
            (repo, lease.issue),
            lambda: github.get_comment(repo, comment_id),
            change,
            lambda body: github.edit_comment(repo, comment_id, body),
        )


def lock_mark(lease: Lease) -> str:
    """Return the message of a lock's commit, which distinguishes the lock of one claim from others of the same name."""
    return f"Lock of {lease.key} for {lease.soul}, claim {lease.epoch} of {iso(lease.since)}"


DeadCode = Literal["completed", "freed"]


@dataclass(frozen=True, slots=True)
class DeadClaim:
    """A task whose claim by `holder` ("" if its line names nobody) has ended, at this epoch.

    `code` is what the task becomes: `completed` if its pull request, at the URL `pull`, was merged, else `freed`.
    `closed` is its pull request if that was closed without a merge, `left` if its holder left it open.
    """

    task: Task
    code: DeadCode
    holder: str
    epoch: int
    pull: str = ""
    closed: PullRequest | None = None
    left: PullRequest | None = None

    @property
    def is_decided(self) -> bool:
        """Whether its pull request was merged or closed, so that its holder need not be gone."""
        return self.code == "completed" or self.closed is not None


def may_hold_dead_claims(plan: Plan, held: Collection[int]) -> bool:
    """Return whether a plan needs a closer look: it has a task that is not completed and not among the `held` ones.

    A claimant that vanished early leaves only the lock, which the plan does not show.
    """
    return any(task.status != "completed" for task in plan.tasks if task.number not in held)


def find_dead_claims(reading: PlanReading, held: Collection[int] = ()) -> list[DeadClaim]:
    """Return the tasks whose holder is gone or done, except those that we hold (`held`). Pure."""
    found: list[DeadClaim] = []
    for task in reading.plan.tasks if reading.plan else ():
        snapshot, pull = reading.snapshot(task.number), reading.merged.get(task.number, "")
        # NOTE(self): a merged task is done, so nothing that its holder still writes can be lost.
        holder = dead_holder(snapshot, task.number, grace=timedelta() if pull else GRACE)
        if pull and not snapshot.claims and task.status in ACTIVE_TASKS:
            holder = task.assignee or ""  # the claim was made under another number
        told = [one for comment in reading.comments for one in parse_task_event_markers(comment.body)]
        was_freed = [one.event for one in told if one.task == task.number][-1:] == ["timeout"]
        is_nobodys = not task.assignee and (task.status == "blocked" or was_freed)
        if task.number not in held and (holder or (pull and is_nobodys)):
            epoch = snapshot.epoch
            closed = reading.closed_since(task.number, reading.claim_comment(task.number, epoch, holder))
            code: DeadCode = "completed" if pull else "freed"
            left = reading.left.get(task.number)
            found.append(DeadClaim(task, code, holder, epoch, pull, None if pull else closed, left))
    return found


async def find_orphaned_tasks(
    requests: ClaimRequests, reading: PlanReading, repo: Repo, held: Collection[int] = ()
) -> list[DeadClaim]:
    """Return the tasks whose holder vanished after making the lock and before posting the claim."""
    found: list[DeadClaim] = []
    for task in reading.plan.tasks if reading.plan else ():
        epoch = 0 if task.number in held else orphan_of_task_in_work(reading.snapshot(task.number), task.number)
        if epoch and await requests.has_lock(_place(requests, reading, repo, task), epoch, task.assignee or ""):
            found.append(DeadClaim(task, "freed", task.assignee or "", epoch))
    return found


async def delete_dead_locks(
    requests: ClaimRequests, reading: PlanReading, repo: Repo, held: Collection[int] = ()
) -> None:
    """Delete the locks that protect nothing any more, of all tasks except those that we hold."""
    for task in reading.plan.tasks if reading.plan else ():
        for epoch in [] if task.number in held else dead_locks(reading.snapshot(task.number), task.number):
            await requests.delete_dead_lock(_place(requests, reading, repo, task), epoch)


async def settle_dead_claim(requests: ClaimRequests, reading: PlanReading, repo: Repo, dead: DeadClaim) -> bool:
    """Mark a task as completed or free if it is as it was read; return whether that was done."""
    change = TaskChange("completed" if dead.code == "completed" else "pending", "")
    expected = Expected(frozenset({dead.holder}), frozenset({dead.task.status}))
    answer = await requests.change_line(_place(requests, reading, repo, dead.task), change, expected)
    return answer.code == "written"


def _place(requests: ClaimRequests, reading: PlanReading, repo: Repo, task: Task) -> Lease:
    state = ClaimState(requests.login, reading.issue.number, task.number, reading.at)
    return lease_of(state, repo.owner, repo.name, reading.at)
