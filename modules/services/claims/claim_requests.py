"""Carries out the actions of a claim on GitHub. Each looks right before it writes, and may be done again without harm.

These writes do not wait in the outbox: each depends on what stands there at that moment, and loses its sense later.
Its rules and gates are asked before a claim begins; then they pass the same pause (in the adapter).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from adapters.github.client import GitHub
from adapters.github.rewriting import rewrite
from adapters.github.types import Comment, GitCommit, Issue, Repo
from common.clock import Clock, iso
from common.result import ApiResult, Err, Ok, answering
from modules.services.claims.claim_types import (
    Action,
    AssignSelf,
    ClaimAnswer,
    ClaimEvent,
    ClaimWait,
    CreateLock,
    DeleteLock,
    EndClaim,
    LineAnswer,
    LockAnswer,
    PlanRead,
    PostClaim,
    ResetLine,
    UnassignSelf,
    WriteLine,
)
from modules.services.claims.claiming import lock_branch
from modules.services.claims.claims import Claim, claim_marker, with_claim_until
from modules.services.claims.leases import Lease
from modules.services.claims.plan_reading import NO_BRANCHES, PlanReader, PlanReading
from modules.services.plans.events import build_task_event_marker
from modules.services.plans.types import Expected, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body

_NOT_AS_EXPECTED = Err("the task is not as it was", "conflict")
_LOCK_MARK = re.compile(r"Lock of \S{1,300} for (\S{1,100}), claim ")

ClaimWords = Callable[[Task], str]
"""Returns what the comment of a claim tells people."""


def repo_of(lease: Lease) -> Repo:
    """Return the repository of a lease."""
    return Repo(lease.owner, lease.repo)


class ClaimRequests:
    """The requests of one account. `words` returns what the comment of a claim says, its markers not among it."""

    def __init__(self, github: GitHub, reader: PlanReader, words: ClaimWords, clock: Clock) -> None:
        self._github = github
        self._reader = reader
        self._words = words
        self._clock = clock

    @property
    def login(self) -> str:
        """Whose requests they are."""
        return self._github.login

    async def read(self, lease: Lease) -> PlanReading | None:
        """Return the plan of a lease, None where it cannot be read."""
        found = await self._reader.read(repo_of(lease), lease.issue)
        return found.data if isinstance(found, Ok) else None

    async def act(self, lease: Lease, action: Action, task: Task) -> ClaimEvent | None:
        """Do what is asked for while a task, as it was read, is claimed, and return the answer."""
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
        """Change the task where it is as expected, and keep what somebody else writes at the same time."""
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
        """Let the comment of a claim say that it holds until `lease.until`; return whether it does."""
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
        """Return whether the lock of this epoch was made by an account for a claim of its own."""
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
            # NOTE(self): an answer may have been lost, and then the branch that is in the way is our own.
            is_ours = await self._is_own_lock(lease)
        if isinstance(is_ours, Ok) and is_ours.data:
            return LockAnswer("created")
        return LockAnswer("exists" if made.kind == "conflict" else "failed", made)

    @answering
    async def _own_commit(self, lease: Lease) -> ApiResult[GitCommit]:
        """Store the commit that the lock points to: the same one however often it is asked for."""
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
        """Whether the lock of a lease is ours, by what its commit says; None where there is none."""
        message = (await self._lock_message(lease, lease.epoch)).or_raise()
        return Ok(None if message is None else lock_mark(lease) in message)

    @answering
    async def _lock_message(self, lease: Lease, epoch: int) -> ApiResult[str | None]:
        """What the commit of a lock says; None where there is no such lock."""
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
        """A claim that was never won leaves no comment; that of one that was held says that it has ended, and how."""
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
    """Return the message of a lock's commit: it tells the lock of one claim from all others of the same name."""
    return f"Lock of {lease.key} for {lease.soul}, claim {lease.epoch} of {iso(lease.since)}"
