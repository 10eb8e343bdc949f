"""Tells in the thread on Bluesky in which a workspace was first named what came of it: our claims, and a finished plan.

Each is told once, with a link, below our latest words there. A claim is told at the look after it was won, with its
pull request where that stands by then; one that came to nothing in between is not told. What is to be told is read from
the plans in each cycle, and what was told stands in the outbox, so that a crash neither hides nor repeats anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from adapters.atproto.client import Atproto
from adapters.github.types import Issue, Repo
from common.clock import Clock, parse_iso_or_none
from common.redact import Redactor
from common.result import Err
from common.text.graphemes import fit_post_text
from common.text.untrusted import one_line
from modules.lives.workspaces.task_comments import plain
from modules.lives.workspaces.types import FoundPlan, Place, Poll, PolledWorkspace, StepResult
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import RecordRef, ReplyBody
from modules.services.outbox.github_bodies import IssueUpdateBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.plans.types import ACTIVE_TASKS, Task
from modules.services.voice_phrases.store import Phrase
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

PLAN_COMPLETE = "plan-complete"
"""The key under which `PlanStanding` closes a plan, and says why."""

_TOLD_WITHIN = timedelta(hours=24)
_LOOKED_AT = 200
_TITLE_CHARS = 80
_UNSENT = frozenset({"pending", "sending", "held"})


@dataclass(frozen=True, slots=True)
class News:
    """Something to be told of a workspace; `key` names it for good."""

    repo: Repo
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class ThreadNews:
    """Tells one thing in a thread in each cycle, so that each stands below the one before."""

    atproto: Atproto
    outbox: Outbox
    workspaces: WatchedWorkspaces
    trust: WorkspaceTrust
    login: str
    phrase: Phrase
    redactor: Redactor
    journal: Journal
    clock: Clock
    name: str = "thread-news"
    place: Place = Place.PROGRESS
    acts: bool = True
    sees_finished: bool = True

    async def run(self, poll: Poll) -> StepResult:
        """Tell the next thing in each thread."""
        news = [one for polled in poll.workspaces for one in await self._claims(polled)]
        news += await self._finished()
        told: set[str] = set()
        for one in news:
            watched = self.workspaces.get(one.repo)
            root = (watched.discovered_in_thread if watched else None) or ""
            if root and root not in told and not await self.outbox.by_cause(one.key) and await self._tell(one, root):
                told.add(root)
        return StepResult(note=f"{len(told)} told in a thread" if told else "")

    async def _claims(self, polled: PolledWorkspace) -> list[News]:
        """Our tasks in the open plans of a workspace, by those whose words count."""
        if not polled.watched.discovered_in_thread or not polled.plans:
            return []
        trusted = await self.trust.accounts(polled.repo)
        plans = [plan for plan in polled.plans if trusted.covers(plan.issue.account)]
        return [self._claim(polled, plan, task) for plan in plans for task in _held_by(self.login, plan)]

    def _claim(self, polled: PolledWorkspace, plan: FoundPlan, task: Task) -> News:
        pull = next((one for one in polled.issues if _is_pull_for(one, self.login, plan, task)), None)
        title = plain(one_line(self.redactor.text(task.title), _TITLE_CHARS))
        text = self.phrase("task_claim", number=task.number, title=title)
        key = f"thread-claim:{plan.repo.full_name.lower()}#{plan.number}/task-{task.number}"
        return News(plan.repo, key, fit_post_text(text, (pull or plan.issue).html_url))

    async def _finished(self) -> list[News]:
        """The plans that we closed lately because all of their tasks are done."""
        closed = (one for one in await self.outbox.of_kind("issue_update", _LOOKED_AT) if self._is_finished_plan(one))
        return [self._end(one.body, one.result_uri or "") for one in closed if isinstance(one.body, IssueUpdateBody)]

    def _is_finished_plan(self, intent: Intent) -> bool:
        sent_at = parse_iso_or_none(intent.first_sent_at)
        lately = sent_at is not None and self.clock.now() - sent_at < _TOLD_WITHIN
        return lately and intent.state == "done" and intent.target.endswith(f"/{PLAN_COMPLETE}")

    def _end(self, body: IssueUpdateBody, url: str) -> News:
        owner, _, name = body.repo.partition("/")
        key = f"thread-complete:{body.repo.lower()}#{body.number}"
        return News(Repo(owner, name), key, self.phrase("bluesky.plan_complete", url=url))

    async def _tell(self, news: News, root_uri: str) -> bool:
        """Hand it to the outbox; return whether it was taken in. Nothing is told while words of ours wait there."""
        ours = [
            one
            for one in await self.outbox.of_kind("reply", _LOOKED_AT)
            if isinstance(one.body, ReplyBody) and one.body.root.uri == root_uri
        ]
        if any(one.state in _UNSENT for one in ours):
            return False
        latest = next((one for one in ours if one.state == "done" and one.result_uri and one.result_cid), None)
        if latest and isinstance(latest.body, ReplyBody):
            root, parent = latest.body.root, RecordRef(uri=latest.result_uri or "", cid=latest.result_cid or "")
        elif found := await self._root(root_uri):
            root = parent = found
        else:
            return False
        body = ReplyBody(text=news.text, parent=parent, root=root)
        submitted = await self.outbox.submit(ProposedAction(body, once=news.key, cause_id=news.key))
        return submitted.accepted

    async def _root(self, uri: str) -> RecordRef | None:
        read = await self.atproto.get_post_thread(uri, 0, 0)
        if isinstance(read, Err):
            summary = f"The thread of a workspace could not be read: {read.error}"
            await self.journal.record(Entry("error", self.name, summary, line=None, trigger_uri=uri))
            return None
        return RecordRef(uri=read.data.post.uri, cid=read.data.post.cid)


def _held_by(login: str, plan: FoundPlan) -> Iterator[Task]:
    """The tasks that an account has, or works on."""
    for task in plan.plan.tasks:
        if task.status in ACTIVE_TASKS and (task.assignee or "").lower() == login.lower():
            yield task


def _is_pull_for(issue: Issue, login: str, plan: FoundPlan, task: Task) -> bool:
    """Whether an open issue is the pull request of an account for a task."""
    ours = issue.is_pull_request and issue.author.lower() == login.lower()
    return ours and issue.title.startswith(f"task({task.number}):") and f"Part of #{plan.number}" in issue.body
