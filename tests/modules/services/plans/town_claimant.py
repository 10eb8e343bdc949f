"""A SOUL that claims a task in the town's GitHub, over HTTP and with real branches."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import Clock, parse_iso
from common.result import Err, Ok
from modules.services.plans.claim_types import (
    Action,
    AssignSelf,
    ClaimAnswer,
    ClaimState,
    CreateLock,
    DeleteLock,
    EndClaim,
    Event,
    LineAnswer,
    LockAnswer,
    PostClaim,
    Read,
    ResetLine,
    Snapshot,
    UnassignSelf,
    Wait,
    WriteLine,
)
from modules.services.plans.claiming import advance_claim, begin_claim, lock_branch, parse_lock_branch
from modules.services.plans.claims import Comment, claim_marker, claims_on, highest_epoch
from modules.services.plans.parse import parse_plan
from modules.services.plans.update import update_task_in_plan_body

NUMBER = 1


@dataclass
class TownClaimant:
    """One claimant of one task. `shortened` is how many times shorter than said it waits."""

    github: GitHub
    repo: Repo
    issue: int
    sha: str
    clock: Clock
    shortened: float

    async def claim(self, begin_s: float) -> ClaimState:
        """Claim the task after so many seconds, and return how that ended."""
        await self._wait(begin_s)
        state, actions = begin_claim(self.github.login, self.issue, NUMBER)
        while True:
            event: Event | None = None
            for action in actions:
                event = await self._act(action)
            if state.stage in {"won", "lost"}:
                return state
            assert event is not None
            state, actions = advance_claim(state, event)

    async def _wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.shortened)

    async def _act(self, action: Action) -> Event | None:  # noqa: C901 - one case for each action
        github, repo = self.github, self.repo
        match action:
            case Read():
                return Read(await self._snapshot())
            case CreateLock(epoch=epoch):
                made = await github.refs.create(repo, lock_branch(self.issue, NUMBER, epoch), self.sha)
                if isinstance(made, Ok):
                    return LockAnswer("created")
                return LockAnswer("exists" if made.kind == "conflict" else "failed")
            case WriteLine() | ResetLine():
                return await self._write(action)
            case Wait(seconds=seconds):
                await self._wait(seconds)
            case PostClaim(claim=claim):
                posted = await github.create_comment(repo, self.issue, f"I take it.\n\n{claim_marker(claim)}")
                return ClaimAnswer(posted.data.id if isinstance(posted, Ok) else None)
            case AssignSelf():
                await github.add_assignees(repo, self.issue, [github.login])
            case UnassignSelf():
                await github.remove_assignee(repo, self.issue, github.login)
            case EndClaim(comment_id=comment_id):
                await github.delete_comment(repo, comment_id)
            case DeleteLock(epoch=epoch):
                await github.refs.delete(repo, lock_branch(self.issue, NUMBER, epoch))
        return None

    async def _snapshot(self) -> Snapshot | None:
        issue = await self.github.get_issue(self.repo, self.issue)
        comments = await self.github.list_comments(self.repo, self.issue)
        refs = await self.github.refs.matching(self.repo, f"soul/{self.issue}-task-{NUMBER}-")
        if isinstance(issue, Err) or isinstance(comments, Err) or isinstance(refs, Err):
            return None
        now = self.clock.now()
        told = [Comment(one.id, one.author, one.body, parse_iso(one.updated_at)) for one in comments.data]
        locks: dict[int, datetime] = {parsed[2]: now for one in refs.data if (parsed := parse_lock_branch(one.ref))}
        return Snapshot(
            at=now,
            plan=parse_plan(issue.data.body, issue.data.title),
            assignees=issue.data.assignees,
            locks=locks,
            claims=tuple(claims_on(told, NUMBER)),
            epoch=highest_epoch(told, NUMBER),
        )

    async def _write(self, action: WriteLine | ResetLine) -> LineAnswer:
        began = self.clock.monotonic()
        issue = await self.github.get_issue(self.repo, self.issue)
        if isinstance(issue, Err):
            return LineAnswer("failed")
        found = update_task_in_plan_body(issue.data.body, NUMBER, action.change, action.expected)
        if found.code in {"conflict", "missing"}:
            return LineAnswer("conflict")
        if found.code == "changed":
            written = await self.github.update_issue(self.repo, self.issue, body=found.body)
            if isinstance(written, Err):
                return LineAnswer("failed")
        return LineAnswer("written", (self.clock.monotonic() - began) * self.shortened)
