"""Tells in threads on Bluesky what came of a workspace: our claims, and plans that were asked for there.

A claim is told in the thread in which the workspace was first named, with its pull request where that stands by then.
Of a plan that somebody asked for in a post its asker is told below that post that it stands, unless our answer has the
link; claims in it are not told. Each is told once, with a link, below our latest words there. What is to be told is
read from the plans in each cycle, and what was told stands in the outbox, so that a crash neither hides nor repeats
anything. The end of a plan is told by `PlanEnds`, in the same way where that is a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from adapters.atproto.client import Atproto
from adapters.atproto.records import parse_at_uri
from adapters.github.types import Issue, Repo
from common.clock import Clock, parse_iso_or_none
from common.redact import Redactor
from common.result import Err
from common.text.graphemes import fit_post_text
from common.text.untrusted import one_line
from modules.lives.workspaces.types import CycleStep, Place, Poll, PolledWorkspace, StepResult
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.task_comments import plain
from modules.services.outbox.bodies import RecordRef, ReplyBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ProposedAction
from modules.services.plans.types import ACTIVE_TASKS, FoundPlan, Task
from modules.services.plans.wishes import tells_link, wish_of
from modules.services.plans.words import issues_taken_up
from modules.services.rights.preferences import Preferences
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.store import Phrase
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

_TOLD_WITHIN = timedelta(hours=24)
_ANSWERED_WITHIN = timedelta(minutes=5)
"""How long an answer that tells of a plan is waited for."""
_TITLE_CHARS = 80
_UNSENT = frozenset({"pending", "sending", "held"})


@dataclass(frozen=True, slots=True)
class News:
    """Something to be told of a workspace; `key` names it for good.

    `asked` is the post that asked for it, "" for what is told in the thread of the workspace. What the thread says
    already, the link `url`, is not told. Of all whose keys begin with `topic` one thread is told once.
    """

    repo: Repo
    key: str
    text: str
    asked: str = ""
    url: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where it is told: the thread that begins with `root`, below `parent`; `told_to` is the DID of who asked."""

    root: RecordRef
    parent: RecordRef
    told_to: str


@dataclass(frozen=True, slots=True)
class ThreadNews(CycleStep):
    """Tells one thing in a thread in each cycle, so that each stands below the one before."""

    atproto: Atproto
    outbox: Outbox
    workspaces: WatchedWorkspaces
    trust: WorkspaceTrust
    preferences: Preferences
    skills: Skills
    login: str
    phrase: Phrase
    redactor: Redactor
    journal: Journal
    clock: Clock
    name = "thread-news"
    place = Place.PROGRESS
    sees_finished = True

    async def run(self, poll: Poll) -> StepResult:
        """Tell the next thing in each thread."""
        news = [one for polled in poll.workspaces for one in await self._claims(polled)]
        news += [one for polled in poll.workspaces for one in await self._standing(polled)]
        told = 0
        for one in news:
            told += not await self.outbox.was_proposed(one.key) and await self.tell(one)
        return StepResult(note=f"{told} told in a thread" if told else "")

    async def _claims(self, polled: PolledWorkspace) -> list[News]:
        """Our tasks in the open plans of a workspace, by those whose words count."""
        if not polled.watched.discovered_in_thread or not polled.plans:
            return []
        trusted = await self.trust.accounts(polled.repo)
        plans = [one for one in polled.plans if trusted.covers(one.issue.account) and not wish_of(one.issue.body)]
        return [self._claim(polled, plan, task) for plan in plans for task in _held_by(self.login, plan)]

    def _claim(self, polled: PolledWorkspace, plan: FoundPlan, task: Task) -> News:
        pull = next((one for one in polled.issues if _is_pull_for(one, self.login, plan, task)), None)
        title = plain(one_line(self.redactor.text(task.title), _TITLE_CHARS))
        text = self.phrase("task_claim", number=task.number, title=title)
        key = f"thread-claim:{plan.repo.full_name.lower()}#{plan.number}/task-{task.number}"
        return News(plan.repo, key, fit_post_text(text, (pull or plan.issue).html_url))

    async def _standing(self, polled: PolledWorkspace) -> list[News]:
        """The plans that we made lately of what was asked for on Bluesky."""
        news = []
        for plan in polled.plans:
            made = await self.outbox.opened(plan.issue.html_url)
            sent_at = parse_iso_or_none(made.first_sent_at) if made else None
            age = self.clock.now() - sent_at if sent_at else _TOLD_WITHIN
            if made is None or not _ANSWERED_WITHIN <= age < _TOLD_WITHIN:
                continue
            url, asked = plan.issue.html_url, post_in(made.cause_id)
            phrase = "bluesky.plan_made" if asked else "github.plan_synthesized"
            asked = asked or await self._asked_for_issues(polled, plan)
            if asked:
                key = f"thread-plan:{plan.repo.full_name.lower()}#{plan.number}"
                news.append(News(plan.repo, key, self.phrase(phrase, url=url), asked, url))
        return news

    async def _asked_for_issues(self, polled: PolledWorkspace, plan: FoundPlan) -> str:
        """The post that asked for the first issue that a plan is for, where we opened that; "" for none."""
        numbers = issues_taken_up(plan.plan, self.skills)
        urls = {one.number: one.html_url for one in polled.issues}
        for number in numbers:
            opened = await self.outbox.opened(urls[number]) if number in urls else None
            if opened and (asked := post_in(opened.cause_id)):
                return asked
        return ""

    async def tell(self, news: News) -> bool:
        """Hand it to the outbox; return whether it was taken in. Nothing is told while words of ours wait there."""
        watched = self.workspaces.get(news.repo)
        asked = news.asked or (watched.discovered_in_thread if watched else None)
        place = await self._place(asked) if asked else None
        if place is None or not await self._may_be_told(place.told_to):
            return False
        ours = await self.outbox.at_place(["reply"], place.root.uri)
        if news.topic and any(f"{one.cause_id}/".startswith(f"{news.topic}/") for one in ours):
            return True
        if any(one.state in _UNSENT for one in ours):
            return False
        done = [one for one in ours if one.state == "done" and one.result_uri and one.made("record")]
        if news.url and any(tells_link(one.body.public_text, news.url) for one in done if one.body.public_text):
            return False
        latest = next(iter(done), None)
        parent = RecordRef(uri=latest.result_uri or "", cid=latest.made("record")) if latest else place.parent
        body = ReplyBody(text=news.text, parent=parent, root=place.root, told_to=place.told_to)
        submitted = await self.outbox.submit(ProposedAction(body, once=news.key, cause_id=news.key))
        return submitted.accepted

    async def _may_be_told(self, did: str) -> bool:
        """Whether somebody may be told unasked: nobody who is muted or forgotten, or keeps their posts from AI."""
        return bool(did) and did in await self.preferences.readable([did])

    async def _place(self, uri: str) -> _Place | None:
        """Where the answer to a post hangs; None where the post cannot be read."""
        at, post = parse_at_uri(uri), await self._root(uri)
        if at is None or post is None:
            return None
        if (refs := (await self.atproto.get_reply_refs(post.uri, post.cid)).or_else(None)) is None:
            return None
        root = RecordRef(uri=refs.root.uri, cid=refs.root.cid)
        return _Place(root, post, at.repo)

    async def _root(self, uri: str) -> RecordRef | None:
        read = await self.atproto.get_post_thread(uri, 0, 0)
        if isinstance(read, Err):
            summary = f"The thread of a workspace could not be read: {read.error}"
            await self.journal.record(Entry("error", self.name, summary, line=None, trigger_uri=uri))
            return None
        return RecordRef(uri=read.data.post.uri, cid=read.data.post.cid)


def post_in(cause: str | None) -> str:
    """Return the post on Bluesky that caused something, "" for another cause."""
    return cause if cause and cause.startswith("at://") else ""


def _held_by(login: str, plan: FoundPlan) -> Iterator[Task]:
    """The tasks that an account has, or works on."""
    for task in plan.plan.tasks:
        if task.status in ACTIVE_TASKS and (task.assignee or "").lower() == login.lower():
            yield task


def _is_pull_for(issue: Issue, login: str, plan: FoundPlan, task: Task) -> bool:
    """Whether an open issue is the pull request of an account for a task."""
    ours = issue.is_pull_request and issue.author.lower() == login.lower()
    return ours and issue.title.startswith(f"task({task.number}):") and f"Part of #{plan.number}" in issue.body
