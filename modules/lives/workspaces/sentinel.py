"""Looks after the issues that say that workspaces are finished: adopts them, and acts on what happens to them.

What is decided is a table (`modules/services/workspaces/sentinel.py`). A workspace counts as active again once its
sentinel is closed on GitHub, never before, so that a crash in between repeats nothing.

Tells the room how far each plan is: when that changed, and once an hour for those who came in since. Undoes what is
left of claims: of our own that ended half-way, and of those whose SOUL is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from adapters.github.client import GitHub
from adapters.github.types import Comment, Issue, Repo
from adapters.space.client import SpaceClient
from adapters.space.types import WorkspaceProgress
from common.clock import Clock, parse_iso
from common.result import ApiResult, Err, Ok, answering
from common.text.markdown import without_html_comments
from common.wording import counted
from modules.lives.workspaces.policy import progress_of
from modules.lives.workspaces.types import CycleStep, Place, PlanProgress, Poll, PolledWorkspace, StepResult
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
from modules.services.claims.claims import LEASE
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.plans.events import TaskEvent
from modules.services.plans.types import FoundPlan, claim_key
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.regenerate import Phrase
from modules.services.workspaces.acting import ActingTurns
from modules.services.workspaces.health import SKILL
from modules.services.workspaces.sentinel import (
    NO_SENTINEL_FOR,
    SentinelCode,
    SentinelDecision,
    SentinelFacts,
    is_creator_gone,
    is_marked_finished,
    judge_sentinel,
    sentinel_in,
)
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

AGAIN_S = 3600.0


class ProgressTeller(CycleStep):
    """Sends progress to `room`, unless `mute_reason` returns why nothing may be shown there.

    Args:
        room: where it is told.
        clock: says when.
        mute_reason: returns why nothing may be told now, "" if something may.
        is_trusted_room: returns whether the owner named the room, or it is on this machine.
        github: tells which repositories are public.

    """

    name, place = "plan-progress", Place.PROGRESS
    acts = False

    def __init__(
        self,
        room: SpaceClient,
        clock: Clock,
        mute_reason: Callable[[], str],
        is_trusted_room: Callable[[], bool],
        github: GitHub,
    ) -> None:
        self._room = room
        self._clock = clock
        self._mute_reason = mute_reason
        self._is_trusted_room = is_trusted_room
        self._github = github
        self._sent: dict[tuple[str, int], tuple[PlanProgress, float]] = {}

    async def run(self, poll: Poll) -> StepResult:
        """Send what is new of all open plans."""
        await self.tell(poll.plans)
        return StepResult()

    async def tell(self, plans: Iterable[FoundPlan]) -> None:
        """Send what is new of these plans; the others are forgotten. A member that is in no room sends nothing."""
        now = self._clock.monotonic()
        standing = {(one.repo.full_name, one.number): (one.repo, progress_of(one.plan)) for one in plans}
        self._sent = {key: sent for key, sent in self._sent.items() if key in standing}
        if not self._room.is_active or self._mute_reason():
            return
        for (name, number), (repo, progress) in standing.items():
            before = self._sent.get((name, number))
            is_new = before is None or before[0] != progress
            if before and not is_new and now - before[1] < AGAIN_S:
                continue
            if is_new and _says(self._room.workspace_states().get(name), number, progress):
                self._sent[name, number] = (progress, now)
                continue
            if not await self._may_be_told(repo):
                continue
            sent = await self._room.send_workspace_state(
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
        if self._is_trusted_room():
            return True
        known = await self._github.get_repository(repo)
        return isinstance(known, Ok) and not known.data.private


def _says(posted: WorkspaceProgress | None, number: int, progress: PlanProgress) -> bool:
    """Whether a member told the room the same already."""
    if posted is None:
        return False
    counts = (posted.plan_number, posted.total, posted.completed, posted.blocked, posted.in_progress)
    return counts == (number, progress.total, progress.completed, progress.blocked, progress.active)


@dataclass(slots=True, kw_only=True)
class SweepStep(CycleStep):
    """Runs in each cycle, and so also in the first after a start, before anything is claimed."""

    name, place = "sweep", Place.STUCK_TASKS
    acts = False

    claimer: Claimer
    reader: PlanReader
    acting: ActingTurns
    comments: TaskComments
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
            # NOTE(self): one alone, for each who writes the same line of the plan finds it as it wrote it.
            if not self.acting.ask_for_turn(f"sweep:{place}", of=dead.holder if dead.is_decided else ""):
                continue
            learned = (await self.reader.learned(found.repo, dead.closed)).or_else(None) if dead.closed else ""
            if learned is not None and await settle_dead_claim(requests, reading, found.repo, dead):
                swept += 1
                await self._report(found, dead, place, learned)
        return swept

    async def _report(self, found: FoundPlan, dead: DeadClaim, place: str, learned: str) -> None:
        """Tell it in the journal, and on the plan why a task can be taken again; GitHub shows a merge there itself."""
        number, epoch = dead.task.number, max(dead.epoch, 1)
        if dead.code == "completed":
            await self._record(found, dead, f"its pull request {dead.pull} was merged")
            return
        if dead.closed:
            why, phrase, event = "its pull request was closed", "github.task_failed", "task-closed"
            details = self.phrase("github.pull_closed", url=dead.closed.html_url, learned=learned)
            told, marker = {"details": details}, TaskEvent(number, "failed", epoch)
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


MOST_OTHERS = 10
"""So many other issues are looked through for what people ask for since."""

_SUMMARY_CHARS = 80
_Seen = tuple[str, bool, tuple[tuple[int, str], ...]]


@dataclass(slots=True)
class SentinelStep(CycleStep):
    """The first step of a cycle. Needs a request for each finished workspace in which something changed.

    `seen_at` tells when the SOUL with a login was last seen; None if nobody knows.
    """

    github: GitHub
    workspaces: WatchedWorkspaces
    writer: GitHubWriter
    trust: WorkspaceTrust
    turns: ActingTurns
    seen_at: Callable[[str], datetime | None]
    phrase: Phrase
    skills: Skills
    journal: Journal
    clock: Clock
    name = "finished-sentinel"
    place = Place.SENTINEL
    sees_finished = True
    _quiet: dict[str, _Seen] = field(default_factory=dict)

    async def run(self, poll: Poll) -> StepResult:
        """Look at each workspace once. What cannot be read stays as it is."""
        notes = []
        for one in poll.workspaces:
            number = await self._the_one(one)
            note = await self._adopt(one) if number is None else await self._verify(one, number, poll.at)
            notes += [note] if note else []
        return StepResult(note="; ".join(notes))

    async def _the_one(self, one: PolledWorkspace) -> int | None:
        """Return the known sentinel. Of two made at the same time the first counts; we close ours if second."""
        known, first = one.watched.finished_issue_number, sentinel_in(one.issues)
        if first is None or known is None:
            return known
        for issue in one.issues:
            is_ours = issue.author.lower() == self.github.login.lower()
            if is_ours and is_marked_finished(issue) and issue.state == "open" and issue.number > first.number:
                await self.writer.set_state(
                    one.repo, issue.number, f"second-{_place(one.repo, issue.number)}", "closed"
                )
        if first.number < known:
            self.workspaces.note(one.repo, finished_issue_number=first.number)
        return min(first.number, known)

    async def _adopt(self, one: PolledWorkspace) -> str:
        """Take an open sentinel for the one of the workspace, whoever made it."""
        found = sentinel_in(one.issues)
        if found is None:
            return ""
        self.workspaces.note(one.repo, finished_issue_number=found.number)
        return await self._tell(
            one.repo, "sentinel-adopted", f"is finished, says #{found.number}", f"@{found.author} says so"
        )

    async def _verify(self, one: PolledWorkspace, number: int, now: datetime) -> str:
        repo, place = one.repo, _place(one.repo, number)
        if await self.writer.outbox.waits("issue_update", f"close-sentinel:{place}:"):
            return ""
        sentinel = await self._sentinel(one, number)
        if isinstance(sentinel, Err):
            is_gone = sentinel.kind == "not_found"
            return await self._clear(repo, number, "the issue that said so is gone", now) if is_gone else ""
        others = [issue for issue in one.issues if not is_marked_finished(issue) and issue.number != number]
        looks_after = self._looks_after(sentinel.data, repo, now)
        seen = _seen(sentinel.data, others, looks_after=looks_after)
        if self._quiet.get(place) == seen:
            return ""
        if (facts := (await self._facts(repo, sentinel.data, others, looks_after=looks_after)).or_else(None)) is None:
            return ""
        decision = judge_sentinel(facts)
        if decision.code in {SentinelCode.STANDS, SentinelCode.AGREED}:
            self._quiet[place] = seen
            return ""
        return await self._act(facts, repo, decision, now)

    async def _sentinel(self, one: PolledWorkspace, number: int) -> ApiResult[Issue]:
        found = next((issue for issue in one.issues if issue.number == number), None)
        return Ok(found) if found else await self.github.get_issue(one.repo, number)

    def _looks_after(self, sentinel: Issue, repo: Repo, now: datetime) -> bool:
        if sentinel.author.lower() == self.github.login.lower():
            return True
        gone = is_creator_gone(sentinel, self.seen_at(sentinel.author), now)
        return gone and self.turns.ask_for_turn(f"sentinel:{_place(repo, sentinel.number)}")

    @answering
    async def _facts(
        self, repo: Repo, sentinel: Issue, others: Collection[Issue], *, looks_after: bool
    ) -> ApiResult[SentinelFacts]:
        """Read what is needed: of a closed sentinel, and of another's, no comments."""
        comments: tuple[Comment, ...] = ()
        elsewhere: list[Comment] = []
        if looks_after and sentinel.state == "open":
            made_at = parse_iso(sentinel.created_at)
            touched = [issue for issue in others if parse_iso(issue.updated_at) > made_at]
            comments = (await self.github.list_comments(repo, sentinel.number, since=sentinel.created_at)).or_raise()
            for issue in touched[:MOST_OTHERS]:
                elsewhere += (await self.github.list_comments(repo, issue.number, since=sentinel.created_at)).or_raise()
        return Ok(
            SentinelFacts(
                sentinel=sentinel,
                trusted=await self.trust.accounts(repo),
                comments=comments,
                others=tuple(others),
                comments_on_others=elsewhere,
                looks_after=looks_after,
            )
        )

    async def _act(self, facts: SentinelFacts, repo: Repo, decision: SentinelDecision, now: datetime) -> str:
        sentinel = facts.sentinel
        place = _place(repo, sentinel.number)
        match decision.code:
            case SentinelCode.FEEDBACK:
                return await self._reopen_work(repo, sentinel, decision, max(one.id for one in decision.feedback))
            case SentinelCode.SPOKEN_ELSEWHERE:
                ids = [one.id for one in facts.comments_on_others] or [one.number for one in facts.others]
                return await self._reopen_work(repo, sentinel, decision, max(ids))
            case SentinelCode.REOPEN:
                return await self._reopen(repo, sentinel, decision, f"reopen-sentinel:{place}:{sentinel.closed_at}")
            case SentinelCode.CLOSED_BY_PERSON:
                key = f"sentinel-question:{place}:{sentinel.closed_at}"
                if self.turns.ask_for_turn(key):
                    words = self.phrase("github.sentinel_question")
                    await self.writer.comment(repo, sentinel.number, key, words)
                self.workspaces.note(repo, last_health_check_attempt=None)
        return await self._clear(repo, sentinel.number, decision.reason, now)

    async def _reopen(self, repo: Repo, sentinel: Issue, decision: SentinelDecision, key: str) -> str:
        if not self.turns.ask_for_turn(key):
            return ""
        if not (await self.writer.set_state(repo, sentinel.number, key, "open")).is_new:
            return ""
        return await self._tell(
            repo, "sentinel-reopened", f"stays finished: #{sentinel.number} is opened again", decision.reason
        )

    async def _reopen_work(self, repo: Repo, sentinel: Issue, decision: SentinelDecision, occasion: int) -> str:
        """Say so on the sentinel and close it; what was said on it becomes an issue first."""
        number, key = sentinel.number, f"{_place(repo, sentinel.number)}:{occasion}"
        if (await self.writer.outbox.standing("issue_update", f"close-sentinel:{key}")).is_decided:
            return ""
        if decision.feedback:
            title, body = self._feedback(number, decision.feedback)
            if not (await self.writer.open_issue(repo, f"sentinel-feedback:{key}", title, body)).is_decided:
                return ""
        words = self.phrase("github.sentinel_reopened_work")
        if not (await self.writer.comment(repo, number, f"sentinel-reopened:{key}", words)).is_decided:
            return ""
        await self.writer.set_state(repo, number, f"close-sentinel:{key}", "closed")
        return await self._tell(repo, "sentinel-closed", f"is not finished: #{number} is closed", decision.reason)

    def _feedback(self, number: int, comments: Collection[Comment]) -> tuple[str, str]:
        first = next(iter(without_html_comments(next(iter(comments)).body).strip().splitlines()), "")
        summary = first if len(first) <= _SUMMARY_CHARS else f"{first[: _SUMMARY_CHARS - 1].rstrip()}…"
        told = [
            self.skills.render(SKILL, "Feedback Comment", author=one.author, text=_quoted(one.body)) for one in comments
        ]
        body = self.skills.render(SKILL, "Feedback Body", number=number, comments="\n\n".join(told))
        return self.skills.render(SKILL, "Feedback Title", number=number, summary=summary), body

    async def _clear(self, repo: Repo, number: int, reason: str, now: datetime) -> str:
        """Go on with the workspace, which gets no new sentinel for a day: whoever wants something may say what."""
        until = now + self.clock.real(NO_SENTINEL_FOR)
        self.workspaces.note(repo, finished_issue_number=None, no_sentinel_before=until)
        self._quiet.pop(_place(repo, number), None)
        what = "is not finished any more, and gets no new sentinel for a day"
        return await self._tell(repo, "sentinel-cleared", what, reason)

    async def _tell(self, repo: Repo, act: str, what: str, reason: str) -> str:
        """Record it; return it for the line that ends the cycle."""
        summary = f"{repo.full_name} {what}"
        data = {"act": act, "repo": repo.full_name}
        await self.journal.record(Entry("decision", self.name, summary, line="info", reason=reason, data=data))
        return summary


def _seen(sentinel: Issue, others: Collection[Issue], *, looks_after: bool) -> _Seen:
    return sentinel.updated_at, looks_after, tuple((one.number, one.updated_at) for one in others)


def _place(repo: Repo, number: int) -> str:
    return f"{repo.full_name.lower()}#{number}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in without_html_comments(text).strip().splitlines())
