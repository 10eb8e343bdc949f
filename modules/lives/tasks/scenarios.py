"""Tries the scenarios in SCENARIOS.md after a plan: the coding agent runs the program and reports what it saw.

One SOUL does this at a time, under a lock like that of a task. What fails becomes an issue, and a comment on the plan
reports the result of each scenario. An interrupted run continues from the steps that were paid for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal, cast, get_args

from common.clock import Clock, parse_iso
from common.errors import Transient
from common.facts import QuestionFacts
from common.text.markdown import without_links
from common.text.untrusted import clean, one_line
from modules.lives.tasks.code import CodeWork, TaskFolder
from modules.runtime.llm.dialect import ToolAnswer, ToolCall, ToolSpec
from modules.services.claims.claim_requests import ClaimRequests, PlanReader, PlanReading
from modules.services.claims.claimer import plain
from modules.services.claims.lease_store import TaskPlace, place_of
from modules.services.claims.policy import LEASE, ClaimState, CreateLock, Lease, LockAnswer, lease_of
from modules.services.coding.hands import FINISH, RUN
from modules.services.coding.policy import CodingJob, Reporting
from modules.services.outbox.github_bodies import IssueCommentBody
from modules.services.outbox.github_writer import act_key, for_workspace
from modules.services.outbox.types import ActStanding, Intent, ProposedAction
from modules.services.plans.types import SCENARIOS_PAGE, Task
from modules.services.skills.skills import Framer, Skills
from modules.services.work.types import Disposition, Handler, WorkItem
from modules.services.workspaces.health import SCENARIOS, WorkspaceGaps, failing_in, failing_mark, gap_key

SKILL = "scenario-run"
VERDICT = "scenario_verdict"
MOST_TOLD = 40
"""How many scenarios are reported at most."""
OTHERS_FOR = timedelta(minutes=30)
"""How long a SOUL without a sandbox leaves the scenarios to its peers."""

Verdict = Literal["passes", "fails", "cannot_be_tried"]

_ENDS_BEFORE = timedelta(minutes=5)
"""How long before the end of its lock a run ends, so that it is reported in time."""
_LOOK_S, _UNSENT_S = 120.0, 600.0
_SHARE = 2
"""A run may use the tokens of a coding task divided by this."""
_PAGE_CHARS, _NAME_CHARS, _SAW_CHARS = 20_000, 160, 600
_TEXT = {"type": "string"}


@dataclass(slots=True)
class ScenarioReport:
    """The result of a run at the commit `sha`, "" if there was no run; `is_whole` unless a limit ended it.

    `found` holds the name, the verdict and what the agent saw, by `_comparable` name; `page` is SCENARIOS.md.
    """

    skills: Skills
    page: str = ""
    sha: str = ""
    is_whole: bool = True
    found: dict[str, tuple[str, Verdict, str]] = field(default_factory=dict)
    _runs_told: int = 0
    _refused: dict[str, str] = field(default_factory=dict)

    @property
    def specs(self) -> list[ToolSpec]:
        """The tool that records a verdict, and the one that ends the run."""
        fields = {"scenario": _TEXT, "verdict": {"type": "string", "enum": [*get_args(Verdict)]}, "saw": _TEXT}
        return [
            ToolSpec(
                name,
                self.skills.subsection(SKILL, "Descriptions", name),
                {"type": "object", "properties": given, "required": [*given], "additionalProperties": False},
            )
            for name, given in {VERDICT: fields, FINISH: {}}.items()
        ]

    def count(self, verdict: Verdict) -> int:
        """Return how many scenarios have this verdict."""
        return sum(one == verdict for _, one, _ in self.found.values())

    def answer(self, call: ToolCall, earlier: Sequence[ToolCall]) -> ToolAnswer:
        """Record a verdict, which needs a program run of its own; a later one on the same scenario replaces it."""
        name, saw = (one_line(str(call.input.get(one, "")), _SAW_CHARS) for one in ("scenario", "saw"))
        verdict, problem = call.input.get("verdict"), ""
        runs = sum(one.name == RUN for one in earlier)
        if call.malformed or not (name and saw) or verdict not in get_args(Verdict):
            problem = "Not Understood"
        elif _comparable(name) not in filter(None, map(_comparable, self.page.splitlines())):
            problem = "Not There"
        elif verdict != "cannot_be_tried" and runs <= self._runs_told:
            problem = "Not Run"
        elif len(self.found) < MOST_TOLD:
            self._runs_told = self._runs_told if verdict == "cannot_be_tried" else runs
            self.found[_comparable(name)] = (one_line(name, _NAME_CHARS), cast("Verdict", verdict), saw)
        told = self.skills.subsection(SKILL, "Answers", problem or "Noted").strip()
        self._refused.pop(_comparable(name), "")
        if problem == "Not Run":
            self._refused[_comparable(name)] = told
        return ToolAnswer(call.id, call.name, told, is_error=bool(problem))

    async def check(self) -> str:
        """Return why the run may not end yet; "" if it may. What was refused and not reported anew is told once."""
        refused, self._refused = "\n".join(dict.fromkeys(self._refused.values())), {}
        return refused if self.found else self.skills.subsection(SKILL, "Answers", "No Verdict").strip()

    def listed(self, *verdicts: Verdict) -> str:
        """Return a line for each scenario with one of these verdicts; for all scenarios if none is given."""
        shown = [one for one in self.found.values() if not verdicts or one[1] in verdicts]
        return "\n".join(
            self.skills.render(SKILL, "Verdicts", one, name=name, saw=saw).strip() for name, one, saw in shown
        )


def _comparable(text: str) -> str:
    """Return a line in a form for comparison: without Markdown prefix, emphasis and case."""
    return " ".join(one_line(text, _SAW_CHARS).casefold().replace("*", "").lstrip("#->+ \t").split())


@dataclass(frozen=True, slots=True)
class ScenarioHandler(Handler):
    """Tries the scenarios once for each completed plan."""

    kind = SCENARIOS
    line = "social"
    is_cut_off = True

    code: CodeWork
    plans: PlanReader
    requests: ClaimRequests
    gaps: WorkspaceGaps
    clock: Clock

    async def handle(self, item: WorkItem) -> Disposition:
        place = place_of(item)
        reading = (await self.plans.read(place.repo, place.issue)).or_raise()
        if failing_in(reading.comments) is not None:
            return Disposition("silent", "told", "they were gone through already")
        body = IssueCommentBody(**for_workspace(place.repo), number=place.issue, body=SCENARIOS_PAGE)
        advice = await self.gaps.writer.outbox.advise(ProposedAction(body, part=item.cause_id))
        if advice.code != "admitted":
            act = "later" if advice.code == "later" else "silent"
            return Disposition(act, "not-allowed", advice.reason, _UNSENT_S)
        if self.code.may_run:
            return await self._go_through(place, reading)
        if self.clock.since(parse_iso(item.created_at)) < OTHERS_FOR:
            return Disposition("later", "no-sandbox", "a SOUL that can run programs may do it", _LOOK_S)
        return await self._tell(place, ScenarioReport(self.code.skills))

    async def _go_through(self, place: TaskPlace, reading: PlanReading) -> Disposition:
        """Run the scenarios under a lock, and report the result unless another SOUL has done so meanwhile."""
        locks, now = (reading.locks or {}).get(place.number, {}), self.clock.now()
        epoch = 1 + max(locks, default=0)
        state = ClaimState(self.requests.login, place.issue, place.number, now + LEASE, epoch=epoch, has_lock=True)
        lease = lease_of(state, place.repo.owner, place.repo.name, now)
        is_free = not locks or now >= max(locks.values()) + LEASE
        if not is_free:  # NOTE(self): an interrupted run of ours may have left the lock
            is_free = await self.requests.has_lock(lease, epoch - 1, self.requests.login)
        answer = await self.requests.act(lease, CreateLock(epoch), Task(place.number, "")) if is_free else None
        if not isinstance(answer, LockAnswer) or answer.code != "created":
            return Disposition("later", "locked", "another SOUL goes through them", _LOOK_S)
        try:
            report = await self._run(place, lease)
            reading = (await self.plans.read(place.repo, place.issue)).or_raise()
            if failing_in(reading.comments) is not None or self.clock.now() >= lease.until:
                return Disposition("later", "late", "the time for this run is over", _LOOK_S)
            return await self._tell(place, report)
        finally:
            for one in (*locks, epoch):
                await self.requests.delete_dead_lock(lease, one)

    async def _run(self, place: TaskPlace, lease: Lease) -> ScenarioReport:
        """Have the agent try the scenarios in a fresh clone, which is deleted afterwards."""
        code, report = self.code, ScenarioReport(self.code.skills, is_whole=False)
        folder = TaskFolder(code.root, place.repo, place.issue, place.number, lease.epoch)
        seconds = (lease.until - _ENDS_BEFORE - self.clock.now()).total_seconds()
        limits = replace(code.agent.limits, tokens=code.agent.limits.tokens // _SHARE, seconds=seconds)
        agent, contents = replace(code.agent, limits=limits), code.offering.github.contents
        try:
            async with self.clock.timeout(seconds):
                tree = (await folder.open(code.git, self.clock.now())).or_raise()
                report.sha = (await tree.head()).or_raise()
                read = await contents.read(place.repo, SCENARIOS_PAGE, ref=report.sha, max_chars=_PAGE_CHARS)
                page = read.or_raise()
                report.page = clean(page.text)
                await code.install(tree.tree)
                job, room = self._job(place, report), folder.room(report.sha)
                end = await agent.work(job, room, await agent.resume(job, room))
                report.is_whole = end.code == "finished" and not page.truncated
        except TimeoutError:
            report.is_whole = False
        finally:
            await folder.delete()
        return report

    def _job(self, place: TaskPlace, report: ScenarioReport) -> CodingJob:
        framer, skills = Framer(self.code.skills, self.code.rng), self.code.skills
        page = framer.frame("reading", author=place.repo.full_name, uri=SCENARIOS_PAGE, text=report.page)
        return CodingJob(
            key=f"{place.row.key.lower()}/{SCENARIOS}",
            epoch=int(report.sha[:7], 16),
            title=SCENARIOS_PAGE,
            files=(),
            message=skills.render(SKILL, "Message", repo=place.repo.full_name, page=page),
            is_new=True,
            check=report.check,
            reporting=Reporting(SKILL, report.specs, report.answer, QuestionFacts(SKILL, {"page": (report.page,)})),
        )

    async def _tell(self, place: TaskPlace, report: ScenarioReport) -> Disposition:
        """Open an issue for what fails, then report all results on the plan; each once."""
        passing, failing, untried = (report.count(one) for one in get_args(Verdict))
        if report.found:
            said = [self._words("Comment", sha=report.sha[:7], listed=report.listed())]
            said += [await self._follow_up(place, report)] if failing else []
            said += [] if report.is_whole else [self._words("After / Not Whole")]
        else:
            said = [self._words("After / Nothing Tried" if report.sha else "After / Not Run")]
        words, key = "\n\n".join(filter(None, said)), act_key(place.repo, place.issue, SCENARIOS)
        told = await self.gaps.writer.comment(place.repo, place.issue, key, words, failing_mark(failing))
        if await self._sent(told) is None:
            return Disposition("silent", "not-allowed", told.reason)
        return Disposition("done", "told", f"{passing} pass, {failing} fail, {untried} could not be tried")

    async def _follow_up(self, place: TaskPlace, report: ScenarioReport) -> str:
        """Open the issue for what fails if a round is left; return what the report says of it."""
        occasion, fails = f"{SCENARIOS}-{place.issue}", report.listed("fails")
        if number := await self.gaps.opened(place.repo, occasion):
            # NOTE(self): perhaps opened by another SOUL that ended before it reported that.
            return self._words("After / Issue", number=number)
        known = await self.gaps.writer.outbox.standing("issue", f"{gap_key(place.repo)}{occasion}")
        is_left = known.is_decided or await self.gaps.has_round_left(place.repo)
        if is_left is None:
            raise Transient("the issues of the workspace cannot be read now")
        if not is_left:
            return self._words("After / Rounds Over")
        first = next(name for name, verdict, _ in report.found.values() if verdict == "fails")
        title = self._words("Issue Title", count=report.count("fails"), name=first)
        body = self._words("Issue Body", plan=place.issue, listed=fails)
        opened = await self._sent(await self.gaps.open(place.repo, occasion, title, body))
        return self._words("After / Issue", number=opened.made("issue")) if opened else ""

    async def _sent(self, standing: ActStanding) -> Intent | None:
        """Wait for an act to leave, and return it; None if it never will. Raises `Transient` if it still waits."""
        row = await self.gaps.writer.outbox.settled(standing.active.id) if standing.active else None
        if row and row.state in {"pending", "sending"}:
            raise Transient("what came of the scenarios has not left yet", retry_after=_UNSENT_S)
        return row if row and row.state == "done" else None

    def _words(self, section: str, **words: object) -> str:
        """Return a text for people, without secrets, mentions, links or planted marks of ours."""
        told = {name: without_links(plain(self.code.redactor.text(str(value)))) for name, value in words.items()}
        return self.code.skills.render(SKILL, section, **told).strip()
