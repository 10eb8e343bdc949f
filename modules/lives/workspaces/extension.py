"""Adds to an open plan the tasks that the owner asked for and that it lacks: once for each request.

The intent contains the tasks, not a body: they are added to the plan as it is when they are sent, whatever others
changed in it meanwhile. If others add tasks while the model judges what is missing, it judges again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.result import Err
from common.text.github_text import without_mentions
from common.text.untrusted import one_line
from modules.services.outbox.github_bodies import IssueUpdateBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.plans.missing import MissingTask, PlanGaps
from modules.services.plans.plan_text import add_tasks_to_plan_body, parse_plan
from modules.services.plans.types import Plan, Task
from modules.services.workspaces.trust import WorkspaceTrust

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
            return Extension("held")
        if settled.state == "done":
            return Extension("added", words)
        return Extension("failed", reason=settled.error or settled.state)


def _titles(plan: Plan) -> list[str]:
    return [task.title for task in plan.tasks]


def _plain(task: Task) -> Task:
    """Return the task with texts that mention nobody."""
    return replace(task, title=without_mentions(task.title), description=without_mentions(task.description))
