"""Goes through SCENARIOS.md of a workspace after a plan: the coding agent runs the program and reports what it saw.

One SOUL does this at a time, under a lock like that of a task. What fails becomes an issue, and a comment on the plan
tells what came of each scenario. A run that was cut off is repeated from the steps that were paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, cast, get_args

from adapters.github.types import Repo
from common.clock import Clock, iso, parse_iso
from common.errors import Transient
from common.facts import QuestionFacts
from common.text.untrusted import clean, one_line
from modules.lives.tasks.code.work import CodeWork, TaskFolder
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import ToolAnswer, ToolCall, ToolSpec
from modules.services.claims.claim_requests import ClaimRequests, PlanReader, PlanReading
from modules.services.claims.policy import LEASE, ClaimState, CreateLock, Lease, LockAnswer, lease_of
from modules.services.coding.hands import FINISH, RUN
from modules.services.coding.types import CodingJob, Reporting
from modules.services.outbox.github_bodies import IssueCommentBody
from modules.services.outbox.github_writer import act_key, for_workspace
from modules.services.outbox.types import ActStanding, ProposedAction
from modules.services.plans.types import SCENARIOS_PAGE, Task
from modules.services.skills.skills import Framer, Skills
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, WorkItem
from modules.services.workspaces.gaps import WorkspaceGaps, gap_key
from modules.services.workspaces.scenarios import SCENARIOS, ScenarioCounts, ScenarioPlace, counts_in, scenario_place

SKILL = "scenario-run"
VERDICT = "scenario_verdict"
MOST_FOUND = 40
"""So many scenarios are told of."""
OTHERS_FOR = timedelta(minutes=30)
"""How long a SOUL without a sandbox leaves the scenarios to its peers."""

Verdict = Literal["passes", "fails", "cannot_be_tried"]

_NUMBER = 0
"""The number under which the lock is made; no task has it."""
_ENDS_BEFORE = timedelta(minutes=5)
"""So long before its lock ends a run ends, to be told in time."""
_LOOK_S = 120.0
_SHARE = 2
_PAGE_CHARS, _NAME_CHARS, _SAW_CHARS = 20_000, 160, 600
_TEXT = {"type": "string"}


@dataclass(frozen=True, slots=True)
class TriedScenario:
    """What came of a scenario, and what the agent saw."""

    name: str
    verdict: Verdict
    saw: str


@dataclass(slots=True)
class ScenarioReport:
    """Takes the verdicts of one run; `page` is the text of SCENARIOS.md."""

    skills: Skills
    page: str
    found: dict[str, TriedScenario] = field(default_factory=dict)

    def specs(self) -> list[ToolSpec]:
        """Return the tool that takes a verdict, and the one that ends the run."""
        fields = {"scenario": _TEXT, "verdict": {"type": "string", "enum": [*get_args(Verdict)]}, "saw": _TEXT}
        given = {VERDICT: fields, FINISH: {}}
        return [
            ToolSpec(
                name,
                self.skills.subsection(SKILL, "Descriptions", name),
                {"type": "object", "properties": one, "required": [*one], "additionalProperties": False},
            )
            for name, one in given.items()
        ]

    def answer(self, call: ToolCall, earlier: Sequence[ToolCall]) -> ToolAnswer:
        """Take a verdict; a later one on the same scenario replaces it."""
        name, saw = (one_line(str(call.input.get(one, "")), _SAW_CHARS) for one in ("scenario", "saw"))
        verdict = call.input.get("verdict")
        problem = "Noted"
        if call.malformed or not (name and saw) or verdict not in get_args(Verdict):
            problem = "Not Understood"
        elif _plain(name) not in _plain(self.page):
            problem = "Not There"
        elif verdict != "cannot_be_tried" and all(one.name != RUN for one in earlier):
            problem = "Not Run"
        else:
            self.found[_plain(name)] = TriedScenario(one_line(name, _NAME_CHARS), cast("Verdict", verdict), saw)
        told = self.skills.subsection(SKILL, "Answers", problem).strip()
        return ToolAnswer(call.id, call.name, told, is_error=problem != "Noted")

    async def check(self) -> str:
        """Return why the run may not end yet, "" where it may."""
        return "" if self.found else self.skills.subsection(SKILL, "Answers", "No Verdict").strip()


def _plain(text: str) -> str:
    return " ".join(one_line(text.casefold(), len(text)).replace("*", "").replace("#", "").split())


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """What came of a run at the commit `sha`, "" where none was made; `is_whole` unless a limit ended it."""

    tried: Sequence[TriedScenario] = ()
    sha: str = ""
    is_whole: bool = True

    def of(self, verdict: Verdict) -> list[TriedScenario]:
        """Return the scenarios with this verdict."""
        return [one for one in self.tried if one.verdict == verdict]

    @property
    def counts(self) -> ScenarioCounts:
        """How many there are of each verdict."""
        return ScenarioCounts(*(len(self.of(one)) for one in get_args(Verdict)))


@dataclass(slots=True)
class ScenarioHandler(Handler):
    """Goes through the scenarios once for each completed plan. `peers` returns the logins of the known SOULs."""

    kind = SCENARIOS
    line = "social"
    is_cut_off = True

    code: CodeWork
    plans: PlanReader
    requests: ClaimRequests
    gaps: WorkspaceGaps
    table: WorkTable
    journal: Journal
    clock: Clock
    peers: Callable[[], Collection[str]]

    async def handle(self, item: WorkItem) -> Disposition:
        place = scenario_place(item)
        reading = (await self.plans.read(place.repo, place.plan)).or_raise()
        if counts_in(reading.comments):
            await self._unlock(reading, place)
            return Disposition("silent", "told", "they were gone through already")
        body = IssueCommentBody(**for_workspace(place.repo), number=place.plan, body=SCENARIOS_PAGE)
        advice = await self.gaps.writer.outbox.advise(ProposedAction(body, part=f"{SCENARIOS}:{place.key}"))
        if advice.code != "admitted":
            return Disposition("silent", "not-allowed", advice.reason)
        if not self.code.may_run:
            if self.peers() and self.clock.since(parse_iso(item.created_at)) < OTHERS_FOR:
                return Disposition("later", "no-sandbox", "a SOUL that can run programs may do it", _LOOK_S)
            return await self._tell(place, ScenarioRun())
        return await self._go_through(item, place, reading)

    async def _go_through(self, item: WorkItem, place: ScenarioPlace, reading: PlanReading) -> Disposition:
        """Run them under our lock, and tell what came of it, unless another SOUL did meanwhile."""
        lease = await self._lock(item, place, reading)
        if lease is None:
            return Disposition("later", "elsewhere", "another SOUL goes through them", _LOOK_S)
        ran = await self._run(place, lease)
        reading = (await self.plans.read(place.repo, place.plan)).or_raise()
        if counts_in(reading.comments) or self.clock.now() >= lease.until:
            return Disposition("later", "late", "the time for this run is over", _LOOK_S)
        disposition = await self._tell(place, ran)
        if disposition.settles:
            await self._unlock(reading, place)
        return disposition

    async def _lock(self, item: WorkItem, place: ScenarioPlace, reading: PlanReading) -> Lease | None:
        """Return our lock, made now or before a restart; None where another SOUL has it, or had it a moment ago."""
        locks, now = (reading.locks or {}).get(_NUMBER, {}), self.clock.now()
        newest, epoch = max(locks, default=0), int(item.payload.get("epoch", 0))
        since = parse_iso(item.payload["since"]) if epoch else now
        if epoch < max(newest, 1) or now >= since + LEASE - _ENDS_BEFORE:
            if newest > epoch and now < locks[newest] + LEASE:
                return None
            epoch, since = max(newest, epoch) + 1, now
            await self.table.note(item, epoch=epoch, since=iso(since))
        lease = self._lease(place, epoch, since)
        answer = await self.requests.act(lease, CreateLock(epoch), Task(_NUMBER, ""))
        if isinstance(answer, LockAnswer) and answer.code == "failed":
            raise Transient(answer.refusal.error if answer.refusal else "the lock could not be made")
        return lease if isinstance(answer, LockAnswer) and answer.code == "created" else None

    def _lease(self, place: ScenarioPlace, epoch: int, since: datetime) -> Lease:
        state = ClaimState(self.requests.login, place.plan, _NUMBER, since + LEASE, epoch=epoch, has_lock=True)
        return lease_of(state, place.repo.owner, place.repo.name, since)

    async def _unlock(self, reading: PlanReading, place: ScenarioPlace) -> None:
        """Delete all locks: once it was told what came of the scenarios, nobody needs one."""
        for epoch in (reading.locks or {}).get(_NUMBER, {}):
            await self.requests.delete_dead_lock(self._lease(place, epoch, self.clock.now()), epoch)

    async def _run(self, place: ScenarioPlace, lease: Lease) -> ScenarioRun:
        """Have the agent go through them in a fresh clone, which is deleted afterwards."""
        code, skills = self.code, self.code.skills
        folder = TaskFolder(code.root, place.repo, place.plan, _NUMBER, lease.epoch)
        seconds = (lease.until - _ENDS_BEFORE - self.clock.now()).total_seconds()
        limits = replace(code.agent.limits, tokens=code.agent.limits.tokens // _SHARE, seconds=seconds)
        report, sha, is_whole = ScenarioReport(skills, ""), "", False
        try:
            async with self.clock.timeout(seconds):
                tree = (await folder.open(code.git, self.clock.now())).or_raise()
                sha = (await tree.head()).or_raise()
                report.page = await self._page(place.repo, sha)
                await code.install(tree.tree)
                job = self._job(place, sha, report)
                agent, room = replace(code.agent, limits=limits), folder.room(sha)
                is_whole = (await agent.work(job, room, await agent.resume(job, room))).code == "finished"
        except TimeoutError:
            is_whole = False
        finally:
            await folder.delete()
        return ScenarioRun(list(report.found.values())[:MOST_FOUND], sha, is_whole)

    async def _page(self, repo: Repo, sha: str) -> str:
        read = await self.code.offering.github.contents.read(repo, SCENARIOS_PAGE, ref=sha, max_chars=_PAGE_CHARS)
        return clean(read.or_raise().text)

    def _job(self, place: ScenarioPlace, sha: str, report: ScenarioReport) -> CodingJob:
        framer = Framer(self.code.skills, self.code.rng)
        page = framer.frame("reading", author=place.repo.full_name, uri=SCENARIOS_PAGE, text=report.page)
        return CodingJob(
            key=f"{place.key}/{SCENARIOS}",
            epoch=int(sha[:7], 16),
            title=SCENARIOS_PAGE,
            files=(),
            message=self.code.skills.render(SKILL, "Message", repo=place.repo.full_name, page=page),
            is_new=True,
            check=report.check,
            reporting=Reporting(SKILL, report.specs(), report.answer, QuestionFacts(SKILL, {"page": (report.page,)})),
        )

    async def _tell(self, place: ScenarioPlace, ran: ScenarioRun) -> Disposition:
        """Open an issue for what fails, then say on the plan what came of each; each once."""
        after = await self._open_issue(place, ran) if ran.of("fails") else ""
        if after is None:
            return Disposition("later", "unsent", "the issue for what fails has not left yet", _LOOK_S)
        if not ran.tried:
            after = self._words("After", "Not Run" if not ran.sha else "Nothing Tried")
        elif not ran.is_whole:
            after = "\n\n".join(filter(None, (after, self._words("After", "Not Whole"))))
        words = self._words("Comment", sha=ran.sha[:7], listed=self._listed(ran.tried)) if ran.tried else ""
        text = "\n\n".join(filter(None, (words, after)))
        key = act_key(place.repo, place.plan, SCENARIOS)
        said = await self.gaps.writer.comment(place.repo, place.plan, key, self._plain(text), ran.counts.mark)
        if not await self._has_left(said):
            return Disposition("later", "unsent", "what came of them has not been told yet", _LOOK_S)
        counts = ran.counts
        told = f"{counts.passed} pass, {counts.failed} fail, {counts.untried} could not be tried"
        return Disposition("done", "told", told, intent_id=said.active.id if said.active else None)

    async def _open_issue(self, place: ScenarioPlace, ran: ScenarioRun) -> str | None:
        """Return what is said of the issue for what fails; None where it has not left yet."""
        occasion = f"{SCENARIOS}-{place.plan}"
        known = await self.gaps.writer.outbox.standing("issue", f"{gap_key(place.repo)}{occasion}")
        is_left = known.is_decided or await self.gaps.has_round_left(place.repo, place.sentinel)
        if is_left is None:
            return None
        if not is_left:
            summary = f"Scenarios of {place.repo.full_name} still fail after two rounds of work"
            reason = "; ".join(one.name for one in ran.of("fails"))
            await self.journal.record(Entry("decision", SKILL, summary, line="warn", reason=reason))
            return self._words("After", "Rounds Over")
        fails = ran.of("fails")
        title = self._words("Issue Title", count=len(fails), name=fails[0].name)
        body = self._words("Issue Body", plan=place.plan, listed=self._listed(fails))
        opened = await self.gaps.open(place.repo, occasion, title, self._plain(body))
        if not await self._has_left(opened):
            return None
        row = await self.gaps.writer.outbox.get(opened.active.id) if opened.active else None
        return self._words("After", "Issue", number=row.made("issue")) if row and row.made("issue") else ""

    async def _has_left(self, standing: ActStanding) -> bool:
        """Wait for an act to leave; return whether nothing more is to be done for it."""
        row = await self.gaps.writer.outbox.settled(standing.active.id) if standing.active else None
        return standing.is_decided and (row is None or row.state not in {"pending", "sending"})

    def _listed(self, tried: Sequence[TriedScenario]) -> str:
        return "\n".join(self._words("Verdicts", one.verdict, name=one.name, saw=one.saw) for one in tried)

    def _words(self, section: str, part: str = "", **words: object) -> str:
        name = f"{section} / {part}" if part else section
        return self.code.skills.render(SKILL, name, **words).strip()

    def _plain(self, text: str) -> str:
        """Return text without secrets, and in which no mark of ours can be planted."""
        return self.code.redactor.text(text).replace("<!--", "&lt;!--")
