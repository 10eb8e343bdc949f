"""Tells people about plans: their progress, what was claimed, and that all tasks are done.

The room is told the progress of each plan when it changes, and once an hour for those who joined since. The SOUL that
opened a plan tells its end, whoever closed it: in the room of its commitment, in the thread that asked for the plan, or
to the owner in the terminal or a direct message. The end of a plan without such a place, or of one that a person wrote,
is told in the thread that named the workspace. Everybody who later asked for what the plan does is told by the SOUL
that they asked. If the SOUL that opened the plan has not come back, another one tells its end, once, and says so on the
plan. What was told is in the outbox and the journal, so that a restart repeats nothing.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from adapters.atproto.client import Atproto
from adapters.atproto.reads import resolve_reply_refs
from adapters.atproto.records import parse_at_uri
from adapters.atproto.types import StrongRef
from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from adapters.space.client import SpaceClient
from adapters.space.types import WorkspaceProgress
from common.clock import Clock, parse_iso_or_none
from common.constants import OWNER_CAUSE
from common.redact import Redactor
from common.result import GONE, ApiResult, Err, Ok
from common.text.graphemes import fit_post_text
from common.text.untrusted import one_line
from common.wording import LineKind, counted
from modules.lives.workspaces.plan_upkeep import PLAN_COMPLETE
from modules.lives.workspaces.policy import progress_of
from modules.lives.workspaces.types import CycleStep, Place, PlanProgress, Poll, PolledWorkspace, StepResult
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.claimer import plain
from modules.services.commitments.acts import announcement_target
from modules.services.inbox.messages import MESSAGES
from modules.services.outbox.bodies import RecordRef, ReplyBody, SpaceChatBody
from modules.services.outbox.github_bodies import IssueBody, IssueUpdateBody
from modules.services.outbox.github_writer import GitHubWriter, act_key
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, ActStanding, Intent, ProposedAction
from modules.services.plans.compose import issues_taken_up
from modules.services.plans.events import (
    PLAN_ASKED,
    PLAN_DONE,
    PLAN_ENDS,
    PlanAsk,
    ask_of,
    tells_link,
    wish_of,
)
from modules.services.plans.plan_text import parse_plan
from modules.services.plans.types import ACTIVE_TASKS, PLAN_LABEL, FoundPlan, Task
from modules.services.rights.policy import may_stand_in_prompt
from modules.services.rights.preferences import Preferences
from modules.services.skills.skills import Skills
from modules.services.voice_phrases import Phrase
from modules.services.workspaces.acting import OTHERS_AFTER, ActingTurns
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

_CLAIM_NEWS_WITHIN = timedelta(hours=24)
_TOLD_AGAIN_AFTER, _MOST_TOLD = timedelta(hours=6), 8
"""How long after they were refused news are told again, and how often they are proposed."""
_ANSWERED_WITHIN = timedelta(minutes=5)
"""How long to wait for an answer that already tells about a plan."""
_TITLE_CHARS = 80
_UNSENT = frozenset({"pending", "sending", "held"})


@dataclass(frozen=True, slots=True)
class News:
    """A piece of news about a workspace; `key` is its permanent name.

    `asked` is the post that asked for it, "" if it is told in the thread of the workspace. It is not told if the thread
    already contains the link `url`. Of all news whose keys begin with `topic`, a thread is told one.
    """

    repo: Repo
    key: str
    text: str
    asked: str = ""
    url: str = ""
    topic: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """The place for news: the thread that begins with `root`, below `parent`; `told_to` is the DID of who asked."""

    root: RecordRef
    parent: RecordRef
    told_to: str


@dataclass(frozen=True, slots=True)
class ThreadNews(CycleStep):
    """Posts one piece of news per thread in each cycle, so that each is below the one before."""

    atproto: Atproto
    outbox: Outbox
    workspaces: WatchedWorkspaces
    trust: WorkspaceTrust
    preferences: Preferences
    skills: Skills
    phrase: Phrase
    redactor: Redactor
    journal: Journal
    clock: Clock
    untellable: set[str] = field(default_factory=set, init=False)
    """The keys of news without a place, or whose place already has them."""
    name = "thread-news"
    place = Place.PROGRESS
    sees_finished = True

    async def run(self, poll: Poll) -> StepResult:
        """Post the next piece of news in each thread."""
        news = [one for polled in poll.workspaces for one in await self._claims(polled)]
        news += [one for polled in poll.workspaces for one in await self._standing(polled)]
        told = 0
        for one in news:
            is_over = one.key in self.untellable or (await self.standing(one.key)).code != "free"
            told += not is_over and await self.tell(one)
        return StepResult(note=f"{told} told in a thread" if told else "")

    async def _claims(self, polled: PolledWorkspace) -> list[News]:
        """Return the news about our tasks in those open plans of a workspace whose authors' words count."""
        if not polled.watched.discovered_in_thread or not polled.plans:
            return []
        trusted = await self.trust.accounts(polled.repo)
        plans = [one for one in polled.plans if trusted.covers(one.issue.account) and not wish_of(one.issue.body)]
        return [self._claim(polled, plan, task) for plan in plans for task in _held_by(self.trust.github.login, plan)]

    def _claim(self, polled: PolledWorkspace, plan: FoundPlan, task: Task) -> News:
        pull = next((one for one in polled.issues if _is_pull_for(one, self.trust.github.login, plan, task)), None)
        title = plain(one_line(self.redactor.text(task.title), _TITLE_CHARS))
        text = self.phrase("task_claim", number=task.number, title=title)
        key = f"thread-claim:{plan.repo.full_name.lower()}#{plan.number}/task-{task.number}"
        return News(plan.repo, key, fit_post_text(text, (pull or plan.issue).html_url))

    async def _standing(self, polled: PolledWorkspace) -> list[News]:
        """Return the news about plans that we made lately because of a request on Bluesky."""
        news = []
        for plan in polled.plans:
            made = await self.outbox.opened(plan.issue.html_url)
            sent_at = parse_iso_or_none(made.first_sent_at) if made else None
            age = self.clock.now() - sent_at if sent_at else _CLAIM_NEWS_WITHIN
            if made is None or not _ANSWERED_WITHIN <= age < _CLAIM_NEWS_WITHIN:
                continue
            url, topic = plan.issue.html_url, f"thread-plan:{plan.repo.full_name.lower()}#{plan.number}"
            phrase = "bluesky.plan_made" if post_in(made.cause_id) else "github.plan_synthesized"
            for at, asked in enumerate(await posts_that_asked(self.outbox, made, self.skills)):
                key = told_key(topic, asked if at else "")
                news.append(News(plan.repo, key, self.phrase(phrase, url=url), asked, url))
        return news

    async def standing(self, key: str) -> ActStanding:
        """Return how the news with a key stand; those that were refused are told later, a few times."""
        found = await self.outbox.standing_for(key, again_after=_TOLD_AGAIN_AFTER)
        return replace(found, code="left_alone") if found.code == "free" and found.tries >= _MOST_TOLD else found

    async def tell(self, news: News) -> bool:
        """Submit it to the outbox; return whether it is told. Submit nothing while a reply of ours waits there."""
        watched = self.workspaces.get(news.repo)
        asked = news.asked or (watched.discovered_in_thread if watched else None)
        found = await self._place(asked or "")
        if isinstance(found, Err):
            if found.kind in GONE:
                self.untellable.add(news.key)
            return False
        place = found.data
        ours = await self.outbox.at_place(["reply"], place.root.uri)
        said = (one for one in ours if one.state in ACTIVE_STATES or one.rejected)
        if news.topic and any(f"{one.cause_id}/".startswith(f"{news.topic}/") for one in said):
            return True
        if any(one.state in _UNSENT for one in ours):
            return False
        done = [one for one in ours if one.state == "done" and one.result_uri and one.made("record")]
        if news.url and any(tells_link(one.body.public_text, news.url) for one in done if one.body.public_text):
            self.untellable.add(news.key)
            return False
        latest = next(iter(done), None)
        parent = RecordRef(uri=latest.result_uri or "", cid=latest.made("record")) if latest else place.parent
        body = ReplyBody(text=news.text, parent=parent, root=place.root, told_to=place.told_to)
        submitted = await self.outbox.submit(ProposedAction(body, once=news.key, cause_id=news.key))
        return submitted.accepted

    async def _place(self, uri: str) -> ApiResult[_Place]:
        """Return the place for an answer to a post, or an `Err`, of a kind in `GONE` if there is none.

        Nobody is told unasked who is muted or forgotten, or keeps posts from AI.
        """
        at = parse_at_uri(uri)
        if at is None or await self.preferences.hidden([at.repo]):
            return Err("there is nobody to tell", "not_found")
        declared = (await self.preferences.of([at.repo])).get(at.repo)
        if not may_stand_in_prompt(declared):
            return Err("they may not be told", "not_found" if declared else "transient")
        read = await self.atproto.get_post_thread(uri, 0, 0)
        if isinstance(read, Err):
            if read.kind not in GONE:
                summary = f"The thread of a workspace could not be read: {read.error}"
                await self.journal.record(Entry("error", self.name, summary, line=None, trigger_uri=uri))
            return read
        post = read.data.post
        refs = resolve_reply_refs(StrongRef(post.uri, post.cid), read.data)
        root, parent = (RecordRef(uri=one.uri, cid=one.cid) for one in (refs.root, refs.parent))
        return Ok(_Place(root, parent, at.repo))


def post_in(cause: str | None) -> str:
    """Return the cause if it is a post on Bluesky, else ""."""
    return cause if cause and cause.startswith("at://") else ""


async def posts_that_asked(outbox: Outbox, made: Intent, skills: Skills) -> list[str]:
    """Return the posts that asked for a plan that we opened, and for issues of ours that it covers, each once."""
    plan = parse_plan(made.body.body, made.body.title) if isinstance(made.body, IssueBody) else None
    url = (made.result_uri or "").rpartition("/")[0]
    issues = [await outbox.opened(f"{url}/{number}") for number in (issues_taken_up(plan, skills) if plan else ())]
    posts = (post_in(one.cause_id) for one in (made, *issues) if one)
    return list(dict.fromkeys(filter(None, posts)))


def _held_by(login: str, plan: FoundPlan) -> Iterator[Task]:
    """Yield the tasks that an account has or works on."""
    for task in plan.plan.tasks:
        if task.status in ACTIVE_TASKS and (task.assignee or "").lower() == login.lower():
            yield task


def _is_pull_for(issue: Issue, login: str, plan: FoundPlan, task: Task) -> bool:
    """Return whether an open issue is the pull request of an account for a task."""
    ours = issue.is_pull_request and issue.author.lower() == login.lower()
    return ours and issue.title.startswith(f"task({task.number}):") and f"Part of #{plan.number}" in issue.body


_LASTS = timedelta(days=60)
"""The longest duration of a plan for its end to be told."""
_PLAN_END_WITHIN = timedelta(days=7)
"""How long after its closing the end of a plan is still told: the SOUL may not have run then."""

EndPlace = Literal["room", "thread", "terminal", "message", "workspace", "nowhere"]
"""Where an end is told; `nowhere` if nobody is there to be told."""
_TOLD = "<!-- soul:end-told -->"
"""The mark of a comment on a plan whose SOUL is gone, by the SOUL that tells the end instead."""


@dataclass(frozen=True, slots=True)
class PlanEnd:
    """A plan that is done: its issue, the intent that opened it, and who else asked us for it.

    `opened` is None if we did not open it; `opener_gone` says whether the SOUL that did is gone, None if no other SOUL
    did. `cause` is why the end is told in a place, "" for the place where the plan was first asked for.
    """

    repo: Repo
    issue: Issue
    opened: Intent | None
    asks: tuple[PlanAsk, ...] = ()
    opener_gone: bool | None = None
    cause: str = ""

    @property
    def topic(self) -> str:
        """The common beginning of the names under which the end is told."""
        return end_key(self.repo.full_name, self.issue.number)

    @property
    def key(self) -> str:
        """The name under which the end is told."""
        return told_key(self.topic, self.cause)


@dataclass(slots=True)
class _PlanAtHand:
    """A plan whose end we may have to tell."""

    repo: Repo
    number: int
    opened: Intent | None = None
    asks: list[PlanAsk] = field(default_factory=list)

    @property
    def causes(self) -> list[str]:
        """The causes for telling its end: "" for the first place, and each request for it elsewhere."""
        body = self.opened.body if self.opened else None
        is_of_room = not isinstance(body, IssueBody) or body.source == "space"
        told = (one.cause for one in self.asks if not one.is_openers or (one.commitment and not is_of_room))
        return ["", *dict.fromkeys(told)]


def end_key(repo: str, number: int) -> str:
    """Return the name under which the end of a plan is told."""
    return f"thread-complete:{repo.lower()}#{number}"


def told_key(topic: str, cause: str) -> str:
    """Return the name under which an end is told for a cause."""
    return f"{topic}/{hashlib.sha256(cause.encode()).hexdigest()[:16]}" if cause else topic


@dataclass(slots=True)
class PlanEnds(CycleStep):
    """Tells the ends of plans.

    Attributes:
        peers: returns the logins of other SOULs, who tell the ends of their own plans.
        seen_at: returns when a peer was last seen.

    """

    github: GitHub
    outbox: Outbox
    writer: GitHubWriter
    threads: ThreadNews
    trust: WorkspaceTrust
    turns: ActingTurns
    skills: Skills
    phrase: Phrase
    peers: Callable[[], Iterable[str]]
    seen_at: Callable[[str], datetime | None]
    journal: Journal
    clock: Clock
    name = PLAN_ENDS
    place = Place.PROGRESS
    sees_finished = True
    _passed: set[str] = field(default_factory=set, init=False)
    """Plans whose end is not ours to tell: deleted, closed in another way or too long ago, or told by others."""

    async def run(self, poll: Poll) -> StepResult:
        """Tell all ends that were not told yet."""
        now = self.clock.now()
        recorded = await self.journal.with_act(PLAN_ENDS, PLAN_DONE, now - _LASTS, now)
        known = {one.entry.data.get("key") for one in recorded}
        still_open = {end_key(plan.repo.full_name, plan.number) for plan in poll.plans}
        self._passed -= still_open
        told = 0
        for one in await self._at_hand(poll, now):
            topic = end_key(one.repo.full_name, one.number)
            if topic in still_open | self._passed:
                continue
            asked = await posts_that_asked(self.outbox, one.opened, self.skills) if one.opened else []
            one.asks += [PlanAsk(one.repo.full_name, one.number, post, is_openers=False) for post in asked[1:]]
            keys = {cause: told_key(topic, cause) for cause in one.causes}
            untold = [
                cause
                for cause, key in keys.items()
                if key not in known and (await self.threads.standing(key)).code not in {"refused", "left_alone"}
            ]
            end = await self._ended(one, now) if untold else None
            told += await self._tell_all(end, untold, now) if end else 0
        return StepResult(note=f"the end of {counted(told, 'plan')} told" if told else "")

    async def _tell_all(self, end: PlanEnd, causes: Sequence[str], now: datetime) -> int:
        """Tell an end for each of these causes; return in how many places it was told."""
        by_other = await self._is_told_instead(end) if end.opened else end.opener_gone is False
        places = {
            cause: await self._tell(replace(end, cause=cause), now) for cause in causes if cause or by_other is False
        }
        for cause, place in places.items():
            one = replace(end, cause=cause)
            if place is None and one.key in self.threads.untellable:
                places[cause] = "nowhere"
            if told := places[cause]:
                await self._record(one, told)
        if by_other and all(places.values()):
            self._passed.add(end.topic)
        return sum(place not in {None, "nowhere"} for place in places.values())

    async def _at_hand(self, poll: Poll, now: datetime) -> list[_PlanAtHand]:
        """Return the plans that we opened, closed or were asked for, in the workspaces that were read."""
        repos = {one.repo.full_name.lower(): one.repo for one in poll.workspaces}
        found: dict[tuple[str, int], _PlanAtHand] = {}

        def candidate(name: str, number: int) -> _PlanAtHand:
            key = (name.lower(), number)
            return found.setdefault(key, _PlanAtHand(repos.get(key[0], Repo("", "")), number))

        for one in await self.outbox.since(["issue", "issue_update"], now - _LASTS):
            if one.state != "done":
                continue
            if isinstance(one.body, IssueBody) and PLAN_LABEL in one.body.labels:
                candidate(one.body.repo, one.issue_number).opened = one
            elif isinstance(one.body, IssueUpdateBody) and one.target.endswith(f"/{PLAN_COMPLETE}"):
                candidate(one.body.repo, one.body.number)
        for entry in await self.journal.with_act(PLAN_ENDS, PLAN_ASKED, now - _LASTS, now):
            ask = ask_of(entry.entry)
            candidate(ask.repo, ask.number).asks.append(ask)
        return [one for one in found.values() if one.repo.name]

    async def _ended(self, one: _PlanAtHand, now: datetime) -> PlanEnd | None:
        """Return the end of a plan if it is closed with all tasks completed, and may be ours to tell; else None."""
        read = await self.github.get_issue(one.repo, one.number)
        if isinstance(read, Err):
            if read.kind in GONE:
                self._passed.add(end_key(one.repo.full_name, one.number))
            return None
        issue = read.data
        if issue.state != "closed":
            return None
        plan = parse_plan(issue.body, issue.title)
        closed_at = parse_iso_or_none(issue.closed_at)
        of_peer = one.opened is None and issue.author.lower() in {each.lower() for each in self.peers()}
        if plan is None or plan.status != "complete" or closed_at is None or now - closed_at >= _PLAN_END_WITHIN:
            self._passed.add(end_key(one.repo.full_name, one.number))
            return None
        seen = self.seen_at(issue.author) if of_peer else None
        is_gone = (seen is None or seen < closed_at) if of_peer else None
        if is_gone is False and len(one.causes) == 1:
            self._passed.add(end_key(one.repo.full_name, one.number))
            return None
        return PlanEnd(one.repo, issue, one.opened, tuple(one.asks), is_gone)

    async def _tell(self, end: PlanEnd, now: datetime) -> EndPlace | None:
        """Tell an end; return where, or None if it cannot be told yet."""
        if end.cause:
            return await self._tell_asker(end, next(one for one in end.asks if one.cause == end.cause))
        return await (self._tell_instead(end, now) if end.opener_gone else self._tell_first(end))

    async def _tell_first(self, end: PlanEnd) -> EndPlace | None:
        """Tell an end where the plan was first asked for; return where, or None if it cannot be told yet."""
        opened = end.opened
        if asked := await posts_that_asked(self.outbox, opened, self.skills) if opened else []:
            return "thread" if await self._in_thread(end, asked[0]) else None
        if opened and isinstance(opened.body, IssueBody) and opened.body.source == "space":
            return "room" if await self._in_room(end, opened.body.commitment_id) else None
        return await self._tell_by(end, (opened.cause_id or "") if opened else "")

    async def _tell_by(self, end: PlanEnd, cause: str) -> EndPlace | None:
        """Tell an end where the owner asked, if the cause says that they did; else in a thread."""
        if cause.partition(":")[0] == OWNER_CAUSE:
            return "message" if cause.startswith(f"{OWNER_CAUSE}:{MESSAGES}") else "terminal"
        if asked := post_in(cause):
            return "thread" if await self._in_thread(end, asked) else None
        return "workspace" if await self._in_thread(end, "") else None

    async def _tell_asker(self, end: PlanEnd, ask: PlanAsk) -> EndPlace | None:
        """Tell an end to somebody who asked for a plan that existed already."""
        if ask.commitment:
            return "room" if await self._in_room(end, ask.commitment) else None
        return await self._tell_by(end, ask.cause)

    async def _tell_instead(self, end: PlanEnd, now: datetime) -> EndPlace | None:
        """Tell an end for a SOUL that has not come back since the plan was closed: one SOUL does, and says so there."""
        closed_at, watched = parse_iso_or_none(end.issue.closed_at) or now, self.threads.workspaces.get(end.repo)
        ask = next((one for one in end.asks if one.is_openers), None)
        if ask is None and not (watched and watched.discovered_in_thread):
            return "nowhere"
        if self.clock.since(closed_at) < OTHERS_AFTER or not self.turns.ask_for_turn(end.topic):
            return None
        key = act_key(end.repo, end.issue.number, "end-told")
        if not await self.outbox.was_proposed(key) and await self._is_told_instead(end) is not False:
            return None
        words = self.phrase("github.plan_end_told", author=end.issue.author)
        if not (await self.writer.comment(end.repo, end.issue.number, key, words, _TOLD)).is_decided:
            return None
        return await self._tell_asker(end, ask) if ask else await self._tell_by(end, "")

    async def _is_told_instead(self, end: PlanEnd) -> bool | None:
        """Return whether another SOUL says on the plan that it tells the end; None if that cannot be read now."""
        if (comments := (await self.github.list_comments(end.repo, end.issue.number)).or_else(None)) is None:
            return None
        trusted = await self.trust.accounts(end.repo)
        return any(_TOLD in one.body and trusted.covers(one.account) for one in comments)

    async def _in_thread(self, end: PlanEnd, asked: str) -> bool:
        text = self.phrase("bluesky.plan_complete", url=end.issue.html_url)
        return await self.threads.tell(News(end.repo, end.key, text, asked, topic=end.topic))

    async def _in_room(self, end: PlanEnd, commitment_id: str) -> bool:
        """Tell an end in the room that was told that the plan exists."""
        stood = (await self.outbox.standing("space_chat", announcement_target(commitment_id))).intent
        if stood is None or not isinstance(stood.body, SpaceChatBody):
            return False
        body = stood.body.model_copy(update={"text": self.phrase("bluesky.plan_complete", url=end.issue.html_url)})
        action = ProposedAction(body, end.key, cause_id=end.key, urgent=True)
        return (await self.outbox.do_once(action, again_after=_TOLD_AGAIN_AFTER)).active is not None

    async def _record(self, end: PlanEnd, place: EndPlace) -> None:
        data = {"act": PLAN_DONE, "key": end.key, "place": place, "url": end.issue.html_url}
        summary = f"All tasks of {end.repo.full_name}#{end.issue.number} are done"
        line: LineKind | None = None if place == "nowhere" else "done"
        await self.journal.record(Entry("life", PLAN_ENDS, summary, line=line, reason=end.issue.html_url, data=data))


AGAIN_S = 3600.0


@dataclass(slots=True)
class ProgressTeller(CycleStep):
    """Sends the progress of plans to `room`, unless `mute_reason` returns why nothing may be shown there.

    Attributes:
        room: the room that is told.
        clock: the time.
        mute_reason: returns why nothing may be sent now, "" if something may.
        is_trusted_room: returns whether the owner named the room, or it is on this machine.
        github: says which repositories are public.

    """

    name, place = "plan-progress", Place.PROGRESS
    acts = False

    room: SpaceClient
    clock: Clock
    mute_reason: Callable[[], str]
    is_trusted_room: Callable[[], bool]
    github: GitHub
    _sent: dict[tuple[str, int], tuple[PlanProgress, float]] = field(default_factory=dict, init=False)

    async def run(self, poll: Poll) -> StepResult:
        """Send the new progress of all open plans."""
        await self.tell(poll.plans)
        return StepResult()

    async def tell(self, plans: Iterable[FoundPlan]) -> None:
        """Send the new progress of these plans, and forget all others. Outside of a room, send nothing."""
        now = self.clock.monotonic()
        standing = {(one.repo.full_name, one.number): (one.repo, progress_of(one.plan)) for one in plans}
        self._sent = {key: sent for key, sent in self._sent.items() if key in standing}
        if not self.room.is_active or self.mute_reason():
            return
        for (name, number), (repo, progress) in standing.items():
            before = self._sent.get((name, number))
            is_new = before is None or before[0] != progress
            if before and not is_new and now - before[1] < AGAIN_S:
                continue
            if is_new and _says(self.room.view.workspace_states().get(name), number, progress):
                self._sent[name, number] = (progress, now)
                continue
            if not await self._may_be_told(repo):
                continue
            sent = await self.room.send_workspace_state(
                name,
                plan_number=number,
                total=progress.total,
                completed=progress.completed,
                blocked=progress.blocked,
                in_progress=progress.active,
            )
            if isinstance(sent, Ok):
                self._sent[name, number] = (progress, now)

    async def _may_be_told(self, repo: Repo) -> bool:
        if self.is_trusted_room():
            return True
        known = await self.github.get_repository(repo)
        return isinstance(known, Ok) and not known.data.private


def _says(posted: WorkspaceProgress | None, number: int, progress: PlanProgress) -> bool:
    """Return whether a member told the room the same already."""
    if posted is None:
        return False
    counts = (posted.plan_number, posted.total, posted.completed, posted.blocked, posted.in_progress)
    return counts == (number, progress.total, progress.completed, progress.blocked, progress.active)
