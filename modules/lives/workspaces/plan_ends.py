"""Tells that all tasks of a plan are done, once, where the plan was asked for.

The SOUL that opened the plan tells it, whoever closed it: in the room in which it promised the plan, in the thread of
the post that asked for the plan or for the issues that it is for, or to the owner who asked for it in the terminal or
in a direct message. A plan without such a place, and one that a person wrote, is told in the thread that named the
workspace. What was told stands in the outbox and in the journal, so that a restart repeats nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.clock import Clock, parse_iso_or_none
from common.constants import OWNER_CAUSE
from common.result import Err
from modules.lives.workspaces.closing import PLAN_COMPLETE
from modules.lives.workspaces.thread_news import News, ThreadNews, post_in
from modules.lives.workspaces.types import Place, Poll, StepResult
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.commitments.acts import announcement_target
from modules.services.inbox.messages import MESSAGES
from modules.services.outbox.bodies import SpaceChatBody
from modules.services.outbox.github_bodies import IssueBody, IssueUpdateBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.plans.events import PLAN_DONE, PLAN_ENDS
from modules.services.plans.parse import parse_plan
from modules.services.plans.tasks import PLAN_LABEL
from modules.services.plans.types import Plan
from modules.services.plans.words import issues_taken_up
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.store import Phrase

_LASTS = timedelta(days=60)
"""How long a plan may take whose end is told."""
_TOLD_WITHIN = timedelta(days=7)
"""How long ago a plan was closed whose end is still told: nobody may have been awake when it was."""

EndPlace = Literal["room", "thread", "terminal", "message", "workspace"]


@dataclass(frozen=True, slots=True)
class PlanEnd:
    """A plan that is done: its issue, and what opened it, None where that was not us."""

    repo: Repo
    issue: Issue
    plan: Plan
    opened: Intent | None

    @property
    def key(self) -> str:
        """The name under which it is told."""
        return end_key(self.repo.full_name, self.issue.number)


def end_key(repo: str, number: int) -> str:
    """Return the name under which the end of a plan is told."""
    return f"thread-complete:{repo.lower()}#{number}"


@dataclass(slots=True)
class PlanEnds:
    """Tells the ends of plans. `peers` returns the logins of other SOULs, who tell the ends of their own plans."""

    github: GitHub
    outbox: Outbox
    threads: ThreadNews
    skills: Skills
    phrase: Phrase
    peers: Callable[[], Iterable[str]]
    journal: Journal
    clock: Clock
    name: str = PLAN_ENDS
    place: Place = Place.PROGRESS
    acts: bool = True
    sees_finished: bool = True
    _passed: set[str] = field(default_factory=set, init=False)
    """Plans that were closed in another way, or too long ago."""

    async def run(self, poll: Poll) -> StepResult:
        """Tell all that is done and was not told."""
        now = self.clock.now()
        recorded = await self.journal.with_act(PLAN_ENDS, PLAN_DONE, now - _LASTS, now)
        known = {one.entry.data.get("key") for one in recorded}
        still_open = {end_key(plan.repo.full_name, plan.number) for plan in poll.plans}
        self._passed -= still_open
        told = 0
        for repo, number, opened in await self._candidates(poll, now):
            key = end_key(repo.full_name, number)
            if key in still_open | known | self._passed or await self.outbox.by_cause(key):
                continue
            end = await self._ended(repo, number, opened, now)
            if end is not None and (place := await self._tell(end)):
                told += 1
                await self._record(end, place)
        return StepResult(note=f"the end of {told} plan{'' if told == 1 else 's'} told" if told else "")

    async def _candidates(self, poll: Poll, now: datetime) -> list[tuple[Repo, int, Intent | None]]:
        """The plans that we opened, and those that we closed, in the workspaces that were read."""
        repos = {one.repo.full_name.lower(): one.repo for one in poll.workspaces}
        found: dict[tuple[str, int], Intent | None] = {}
        for one in await self.outbox.since(["issue", "issue_update"], now - _LASTS):
            if one.state != "done":
                continue
            if isinstance(one.body, IssueBody) and PLAN_LABEL in one.body.labels:
                found[one.body.repo.lower(), one.issue_number] = one
            elif isinstance(one.body, IssueUpdateBody) and one.target.endswith(f"/{PLAN_COMPLETE}"):
                found.setdefault((one.body.repo.lower(), one.body.number), None)
        return [(repos[name], number, opened) for (name, number), opened in found.items() if name in repos]

    async def _ended(self, repo: Repo, number: int, opened: Intent | None, now: datetime) -> PlanEnd | None:
        """Return a plan where it is closed with all of its tasks completed, and its end is ours to tell."""
        read = await self.github.get_issue(repo, number)
        if isinstance(read, Err) or read.data.state != "closed":
            return None
        issue, plan = read.data, parse_plan(read.data.body, read.data.title)
        closed_at = parse_iso_or_none(issue.closed_at)
        lately = closed_at is not None and now - closed_at < _TOLD_WITHIN
        of_peer = opened is None and issue.author.lower() in {one.lower() for one in self.peers()}
        if plan is None or plan.status != "complete" or not lately or of_peer:
            self._passed.add(end_key(repo.full_name, number))
            return None
        return PlanEnd(repo, issue, plan, opened)

    async def _tell(self, end: PlanEnd) -> EndPlace | None:
        """Hand it to the outbox, where somebody else than the owner's terminal is told; return where it is told."""
        opened = end.opened
        if asked := await self._post_that_asked(end):
            return "thread" if await self._in_thread(end, asked) else None
        if opened and isinstance(opened.body, IssueBody) and opened.body.source == "space":
            return "room" if await self._in_room(end, opened.body.commitment_id) else None
        if opened and (opened.cause_id or "").partition(":")[0] == OWNER_CAUSE:
            by_message = (opened.cause_id or "").startswith(f"{OWNER_CAUSE}:{MESSAGES}")
            return "message" if by_message else "terminal"
        return "workspace" if await self._in_thread(end, "") else None

    async def _post_that_asked(self, end: PlanEnd) -> str:
        """The post that asked for a plan of ours, or for the first issue that it is for; "" for none."""
        if end.opened is None:
            return ""
        if asked := post_in(end.opened.cause_id):
            return asked
        for number in issues_taken_up(end.plan, self.skills):
            url = f"{end.issue.html_url.rpartition('/')[0]}/{number}"
            issue = await self.outbox.opened(url)
            if issue and (asked := post_in(issue.cause_id)):
                return asked
        return ""

    async def _in_thread(self, end: PlanEnd, asked: str) -> bool:
        text = self.phrase("bluesky.plan_complete", url=end.issue.html_url)
        return await self.threads.tell(News(end.repo, end.key, text, asked))

    async def _in_room(self, end: PlanEnd, commitment_id: str) -> bool:
        """Tell it in the room that was told that the plan stands."""
        rows = await self.outbox.by_target("space_chat", announcement_target(commitment_id))
        stood = next((one.body for one in rows if isinstance(one.body, SpaceChatBody)), None)
        if stood is None:
            return False
        body = stood.model_copy(update={"text": self.phrase("bluesky.plan_complete", url=end.issue.html_url)})
        submitted = await self.outbox.submit(ProposedAction(body, end.key, cause_id=end.key, urgent=True))
        return submitted.accepted

    async def _record(self, end: PlanEnd, place: EndPlace) -> None:
        data = {"act": PLAN_DONE, "key": end.key, "place": place, "url": end.issue.html_url}
        summary = f"All tasks of {end.repo.full_name}#{end.issue.number} are done"
        await self.journal.record(Entry("life", PLAN_ENDS, summary, line="done", reason=end.issue.html_url, data=data))
