"""Which issues of a workspace may go into a plan: by whom they are, or who of those that count asked for their work.

An issue that was asked for as an issue stays one until somebody who counts asks for its work, whoever opened it.
Nothing that we did ourselves makes the words of a stranger count, and neither does a comment that does not ask for it.

Asks the model whether those whose words count asked for the work of somebody else's issue. One cycle
over the watched workspaces: the steps in their order, over what was read at its beginning. Reads the open issues of
the workspaces that are watched. A workspace that cannot be read costs that one only. When this life runs; nothing
else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.clock import Clock, parse_iso
from common.errors import Fatal, Transient
from common.result import ApiResult, Err, Ok, answering
from common.text.github_text import own_words
from common.text.untrusted import one_line
from modules.lives.workspaces.policy import is_work, line_of
from modules.lives.workspaces.types import CycleStep, Poll, PolledWorkspace, StepResult
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.agent.verdicts import SkillQuestion, numbered, without_quotation_marks
from modules.services.claims.offers import PLAN_AWARENESS
from modules.services.commitments.texts import ASKED_AS_ISSUE
from modules.services.plans.plan_text import TITLE_MARK, parse_plan
from modules.services.plans.types import PLAN_LABEL, FoundPlan
from modules.services.skills.skills import Skills
from modules.services.workspaces.trust import MOST_PEOPLE, TrustedAccounts, WorkspaceTrust, by_login
from modules.services.workspaces.watched import OwnWorkspace, RequestedRepositories, WatchedWorkspaces

SKILL = "work-request"
MOST_COMMENTS = 20
"""So many of the newest comments are read."""

_TOKENS = 120
_COMMENT_CHARS = 1_000
_ANSWER_CHARS = 2_000
_LEAST_QUOTE_CHARS = 2
_COMMENT = re.compile(r'"comment"\s{0,3}:\s{0,3}(\d{1,3})')
_QUOTE = re.compile(r'"quote"\s{0,3}:\s{0,3}"((?:[^"\\]|\\.){0,1000})"')


@dataclass(frozen=True, slots=True)
class WorkRequest:
    """The words that ask for the work, and the place of their comment among those that were read, from 0."""

    comment: int
    quote: str


@dataclass(frozen=True, slots=True)
class WorkRequestReader:
    """Asks `gateway` in the words of the skill `work-request`."""

    gateway: LLMGateway
    skills: Skills

    async def read(self, comments: Sequence[str]) -> WorkRequest | None:
        """Return who asked for the work; None where nobody did, or two answers of the model cannot be read.

        Raises `SoulError`.
        """
        said = [one_line("\n".join(own_words(one)), _COMMENT_CHARS) for one in comments]
        if not any(said):
            return None
        question = SkillQuestion(self.gateway, self.skills, SKILL, "comments", _TOKENS)
        found = await question.ask(numbered(said), tuple(said), "own", lambda answer: request_in(answer, said))
        return found if isinstance(found, WorkRequest) else None


def request_in(answer: str, said: Sequence[str]) -> WorkRequest | Literal["nobody"] | None:
    """Return what a model's answer says of these comments; None where that does not stand in one of them. Pure."""
    found = _COMMENT.search(answer[:_ANSWER_CHARS])
    if found is None or int(found[1]) > len(said):
        return None
    place = int(found[1]) - 1
    if place < 0:
        return "nobody"
    quote = _QUOTE.search(answer[:_ANSWER_CHARS])
    words = _plain(quote[1].replace('\\"', "'")) if quote else ""
    if len(words) < _LEAST_QUOTE_CHARS or words not in _plain(said[place]):
        return None
    return WorkRequest(place, words)


def _plain(text: str) -> str:
    """A text as quotations are compared: in lower case, one kind of quotation mark, single blanks, no full stop."""
    return " ".join(without_quotation_marks(text).lower().split()).rstrip(".!")


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What came of a cycle: the poll as its steps left it, and their notes."""

    poll: Poll
    notes: tuple[str, ...] = ()


class Cycle:
    """Runs the steps. Before each that acts it asks again whether the SOUL does something else (`is_idle`)."""

    def __init__(self, steps: Sequence[CycleStep], is_idle: Callable[[], bool], journal: Journal) -> None:
        self._steps = sorted(steps, key=lambda step: step.place)
        self._is_idle = is_idle
        self._journal = journal

    async def run(self, poll: Poll) -> CycleReport:
        """Run each step once, until one ends the cycle. Raises `Fatal` and `Transient` as the steps do."""
        notes: list[str] = []
        for step in self._steps:
            if step.acts and not self._is_idle():
                continue
            result = await self._run_step(step, poll if step.sees_finished else poll.unfinished)
            poll = poll.without(result.closed)
            notes += [result.note] if result.note else []
            if result.ends_cycle:
                break
        return CycleReport(poll, tuple(notes))

    async def _run_step(self, step: CycleStep, poll: Poll) -> StepResult:
        """Run it; what it raises costs this step only, and is told."""
        try:
            return await step.run(poll)
        except (Fatal, Transient):
            raise
        except Exception as error:
            summary = f"{step.name} failed: {type(error).__name__}: {error}"
            await self._journal.record(Entry("error", step.name, summary, line="error"))
            return StepResult()


WORK_LABEL = "work"
"""By this label somebody whose words count makes an issue of somebody else work."""
MOST_ASKED_OF = 30
"""So many issues that need somebody's word are looked at for one plan."""

_LOOP = "plan-synthesis"
_Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class _Version:
    """How an issue reads: a hash of that, and since when at the latest; None where it was never seen to change."""

    text_hash: str
    changed_at: datetime | None = None
    is_told: bool = False

    def is_later_than(self, moment: str) -> bool:
        """Return whether what was agreed to at that moment may have read otherwise."""
        return self.changed_at is not None and parse_iso(moment) < self.changed_at


@dataclass(slots=True)
class WantedIssues:
    """Reads who asked for what. What the model said of the same comments before is not asked again."""

    github: GitHub
    reader: WorkRequestReader
    journal: Journal
    _judged: dict[_Key, tuple[tuple[tuple[int, str], ...], bool]] = field(default_factory=dict, init=False)
    _versions: dict[_Key, _Version] = field(default_factory=dict, init=False)

    @answering
    async def of(self, repo: Repo, work: Sequence[Issue], accounts: TrustedAccounts) -> ApiResult[list[Issue]]:
        """Return those of the issues that may go into a plan.

        Raises:
            SoulError: as the model does.

        """
        wanted = [one for one in work if accounts.covers(one.account) and ASKED_AS_ISSUE not in one.body]
        unasked = [one for one in work if one not in wanted]
        if not unasked:
            return Ok(wanted)
        touched = (await self.touched(repo, accounts)).or_raise()
        numbers = {one.number for one in touched}
        versions = {one.number: self._version_of(repo, one) for one in unasked}
        for one in [each for each in unasked if each.number in numbers][:MOST_ASKED_OF]:
            wanted += [one] if await self._check_request(repo, one, accounts, versions[one.number]) else []
        return Ok(wanted)

    @answering
    async def touched(self, repo: Repo, accounts: TrustedAccounts) -> ApiResult[list[Issue]]:
        """Return the open issues that have the label for work, or on which somebody commented that counts beside us."""
        place = f"repo:{repo.full_name} is:issue is:open"
        labelled = (await self.github.list_issues(repo, labels=(WORK_LABEL,))).or_raise()
        found = {one.number: one for one in labelled if is_work(one)}
        for person in accounts.others()[:MOST_PEOPLE]:
            commented = by_login(await self.github.search.issues(f"{place} commenter:{person.login}"))
            found |= {one.number: one for one in commented if is_work(one)}
        return Ok([found[number] for number in sorted(found)])

    def _version_of(self, repo: Repo, issue: Issue) -> _Version:
        """Return how an issue reads now, and since when at the latest."""
        key, words = (repo.full_name.lower(), issue.number), f"{issue.title}\n{issue.body}"
        text_hash = hashlib.sha256(words.encode(errors="replace")).hexdigest()
        known = self._versions.get(key)
        if known is None or known.text_hash != text_hash:
            # NOTE(self): GitHub tells no edits of a text: what differs from the last look was edited by `updated_at`.
            known = self._versions[key] = _Version(text_hash, parse_iso(issue.updated_at) if known else None)
        return known

    async def _check_request(self, repo: Repo, issue: Issue, accounts: TrustedAccounts, version: _Version) -> bool:
        if WORK_LABEL in {label.lower() for label in issue.labels}:
            told = (await self.github.labellings(repo, issue.number)).or_raise()
            last = next((one for one in reversed(told) if one.label.lower() == WORK_LABEL and one.is_added), None)
            if last and accounts.covers_besides_us(last.by) and not version.is_later_than(last.at):
                await self._tell(repo, issue, f"@{last.by.login} gave it the label {WORK_LABEL}")
                return True
        comments = (await self.github.list_comments(repo, issue.number)).or_raise()
        counting = [one for one in comments if accounts.covers_besides_us(one.account)]
        said = [one for one in counting if not version.is_later_than(one.updated_at)][-MOST_COMMENTS:]
        if not said and version.changed_at and not version.is_told:
            version.is_told = True
            await self._tell_edited(repo, issue)
        key, words = (repo.full_name.lower(), issue.number), tuple((one.id, one.body) for one in said)
        known = self._judged.get(key)
        if known and known[0] == words:
            return known[1]
        request = await self.reader.read([one.body for one in said])
        self._judged[key] = (words, request is not None)
        if request:
            await self._tell(repo, issue, f"@{said[request.comment].author} said: “{request.quote}”")
        return request is not None

    async def _tell_edited(self, repo: Repo, issue: Issue) -> None:
        summary = f"{repo.full_name}#{issue.number} by @{issue.author} waits until somebody asks for it again"
        reason = "it was edited after the last word on it by somebody whose words count"
        entry = Entry("decision", _LOOP, summary, line="info", reason=reason, trigger_uri=issue.html_url)
        await self.journal.record(entry)

    async def _tell(self, repo: Repo, issue: Issue, why: str) -> None:
        summary = f"{repo.full_name}#{issue.number} by @{issue.author} may go into a plan"
        entry = Entry("decision", _LOOP, summary, line="info", reason=why, trigger_uri=issue.html_url)
        await self.journal.record(entry)


MOST_ISSUES = 100
MOST_PLANS = 30


class WorkspacePerceiver:
    """Looks at the open issues of the watched workspaces: the newest `MOST_ISSUES` of each.

    One request is enough for a workspace, unless it has more: then its plans are asked for besides, and the issues of
    each account that counts, so that no number of others hides them.
    """

    def __init__(self, github: GitHub, workspaces: WatchedWorkspaces, trust: WorkspaceTrust, clock: Clock) -> None:
        self._github = github
        self._trust = trust
        self._workspaces = workspaces
        self._clock = clock

    async def look(self) -> Poll:
        """Read them one after the other, and note in the file of workspaces when, and which plans are open.

        Raises:
            StorageError: the file cannot be written.

        """
        at = self._clock.now()
        read: list[PolledWorkspace] = []
        unread: list[str] = []
        with self._workspaces.one_save():
            for one in self._workspaces.all():
                if not self._github.enough_for_loops:
                    unread.append("the rest of the workspaces: too few requests to GitHub are left in this hour")
                    break
                repo = Repo(one.owner, one.repo)
                found = await self._issues_of(repo)
                if isinstance(found, Err):
                    gone = found.kind == "not_found" and self._workspaces.unwatch_gone(repo)
                    unread.append(f"{found.error}{'; it is watched no longer' if gone else ''}")
                    continue
                issues = await self._asked_for(repo, found.data) if one.requested else found.data
                plans = () if one.finished_issue_number is not None else await self._plans_in(repo, issues)
                read.append(PolledWorkspace(one, issues, plans))
                if one.finished_issue_number is None:
                    self._workspaces.note_plans(repo, [plan.number for plan in plans])
        return Poll(at, tuple(read), tuple(unread))

    async def _asked_for(self, repo: Repo, issues: tuple[Issue, ...]) -> tuple[Issue, ...]:
        """Return what a requested repository is watched for: plans, pull requests, our issues, and labelled work.

        Its other issues are not ours to plan, answer or close.
        """
        trusted = await self._trust.accounts(repo)

        def is_asked_for(one: Issue) -> bool:
            is_plan = _is_labelled(one) or one.title.startswith(TITLE_MARK)
            return (
                one.is_pull_request or is_plan or one.account == trusted.us or WORK_LABEL in map(str.lower, one.labels)
            )

        return tuple(filter(is_asked_for, issues))

    async def _plans_in(self, repo: Repo, issues: tuple[Issue, ...]) -> tuple[FoundPlan, ...]:
        """The plans among the issues: those with the label, and those by somebody who counts that are titled as one."""
        titled = [one for one in issues if not _is_labelled(one) and one.title.startswith(TITLE_MARK)]
        trusted = await self._trust.accounts(repo) if titled else None
        meant = {one.number for one in titled if trusted and trusted.covers(one.account)}
        chosen = [one for one in issues if not one.is_pull_request and (_is_labelled(one) or one.number in meant)]
        found = ((one, parse_plan(one.body, one.title)) for one in chosen[:MOST_PLANS])
        return tuple(FoundPlan(repo, issue, plan) for issue, plan in found if plan)

    @answering
    async def _issues_of(self, repo: Repo) -> ApiResult[tuple[Issue, ...]]:
        listed = (await self._github.list_issues(repo, limit=MOST_ISSUES)).or_raise()
        if len(listed) < MOST_ISSUES:
            return Ok(listed)
        found = {one.number: one for one in listed}
        plans = (await self._github.list_issues(repo, labels=(PLAN_LABEL,), limit=MOST_PLANS)).or_raise()
        accounts = await self._trust.accounts(repo)
        found |= {one.number: one for one in plans}
        for person in [accounts.us, *accounts.others()][:MOST_PEOPLE]:
            written = by_login(await self._github.list_issues(repo, creator=person.login, limit=MOST_ISSUES))
            found |= {one.number: one for one in written}
        return Ok(tuple(found[number] for number in sorted(found, reverse=True)))


def _is_labelled(issue: Issue) -> bool:
    return PLAN_LABEL in (label.lower() for label in issue.labels)


PLAN_AWARENESS_INTERVAL_MS = 180_000


@dataclass(slots=True)
class PlanAwarenessLoop(Loop):
    """Looks at the watched workspaces and runs the steps of a cycle.

    How far the plans are is told where that changed; what cannot be read is told once.
    """

    name = PLAN_AWARENESS
    social_only = False

    perceiver: WorkspacePerceiver
    cycle: Cycle
    workspaces: WatchedWorkspaces
    own: OwnWorkspace
    requested: RequestedRepositories
    github: GitHub
    journal: Journal
    clock: Clock
    _told: str = field(default="", init=False)
    _unread: tuple[str, ...] = field(default=(), init=False)

    @property
    def interval_ms(self) -> float:
        return self.clock.real(PLAN_AWARENESS_INTERVAL_MS)

    async def run(self) -> Outcome:
        if not self.github.enough_for_loops:
            return Outcome(ran=False, reason=f"{self.github.rate.remaining} requests to GitHub are left in this hour")
        await self.own.watch_existing()
        await self.requested.catch_up()
        if not self.workspaces.all():
            return Outcome(ran=False, reason="no workspace is watched")
        poll = await self.perceiver.look()
        await self._tell_unread(poll.unread)
        report = await self.cycle.run(poll)
        if poll.unread and not poll.workspaces:
            return Outcome(ran=False, reason=poll.unread[0])
        line = line_of(report.poll, report.notes)
        await self._tell(line)
        return Outcome(ran=True, reason=line)

    async def _tell(self, line: str) -> None:
        """Tell it where it is another than before."""
        if line == self._told:
            return
        self._told = line
        urls = ", ".join(one.url for one in self.workspaces.all())
        await self.journal.record(Entry("life", self.name, line, line="info", reason=urls))

    async def _tell_unread(self, unread: tuple[str, ...]) -> None:
        """Told once for as long as it is the same."""
        for line in unread:
            if line not in self._unread:
                summary = f"Plans could not be read: {line}"
                await self.journal.record(Entry("error", self.name, summary, line="warn"))
        self._unread = unread
