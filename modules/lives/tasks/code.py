"""Writes the code that a task asks for, in a folder of the task, and offers it as a pull request.

The agent stores its steps, and each act is an intent of the outbox with a name of its own. So a restarted process
continues where the killed one stopped: nothing is paid for twice, and no second pull request is opened. Tests run again
only after a file has changed.
"""

import asyncio
import random
import re
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from adapters.git.client import MIB, Git
from adapters.git.diffs import fair_share
from adapters.git.worktree import BranchChanges, TreeChange, Worktree
from adapters.github.types import Repo
from common.clock import parse_iso
from common.errors import PolicyBlocked
from common.files import delete_tree, write_atomic
from common.redact import Redactor
from common.result import ApiResult, Err, Ok, answering
from common.text.github_text import without_mentions
from common.text.strings import both_ends
from common.text.untrusted import clean, one_line
from modules.lives.tasks.offering import (
    TESTS_FAILED,
    TESTS_PASSED,
    TESTS_UNRUN,
    TESTS_WEAKENED,
    Offering,
    TaskActs,
    TaskStopped,
    read,
    told_plan,
    told_talk,
    told_task,
)
from modules.lives.tasks.types import AlreadyDone, Blocked, Failed, HeldTask, TaskProblem, TaskWorker, WorkResult
from modules.services.coding.agent import CodingAgent
from modules.services.coding.environment.installer import Installer, move_installed
from modules.services.coding.gates import Closed, GateFacts, closed_gate, gate_told, named_but_unchanged
from modules.services.coding.hands import SKILL
from modules.services.coding.policy import CodingEnd, CodingEndCode, CodingJob, CodingRoom, CodingStep
from modules.services.coding.suite_words import failures, outcomes, printed, quoted, suite_lines
from modules.services.coding.suites import SuiteChange, SuiteRun, Suites, run_suites
from modules.services.outbox.github_bodies import PushBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.rules.policy import first_trusted
from modules.services.outbox.types import ProposedAction
from modules.services.plans.events import MAX_TASK_RETRIES
from modules.services.plans.types import Task
from modules.services.skills.skills import Framer, Skills

WORK_REPOS = ".workrepos"
"""The folder of the home in which repositories are worked on."""
KEPT = timedelta(days=30)
"""How long the folder is kept of a task that waits for the owner or another try, or was lost to somebody else."""

_MOST_LEFT_BYTES = 4 * MIB
"""The largest patch of somebody else's work that is continued."""
_KEPT_PATCH, _EARLIER_PATCH, _UNFIT_PATCH = "kept.patch", "earlier.patch", "unfit.patch"
_BASE = "refs/remotes/origin/HEAD"


def work_folder(root: Path, repo: Repo, what: str) -> str:
    """Return the folder for `what` of a repository, relative to the home. One of an earlier version keeps its name."""
    named, before = (f"{WORK_REPOS}/{repo.owner}{between}{repo.name}--{what}" for between in ("--", "-"))
    return before if (root / before).exists() else named


@dataclass(frozen=True, slots=True)
class EarlierWork:
    """The changes of an earlier try on a task; `fits` if they still apply, in which case they are in the tree."""

    patch: str
    fits: bool


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """The folder of the task `task` of the plan `issue`, under the claim with this `epoch`; `root` is the home."""

    root: Path
    repo: Repo
    issue: int
    task: int
    epoch: int

    @property
    def name(self) -> str:
        """The path of the folder, relative to the home."""
        return work_folder(self.root, self.repo, f"{self.issue}-task-{self.task}-e{self.epoch}")

    @property
    def clone(self) -> str:
        """The path of the clone, relative to the home."""
        return f"{self.name}/repository"

    @property
    def worktree(self) -> Worktree:
        """The files and their Git repository."""
        folder = self.root / self.name
        return Worktree(folder / "repository", folder / "tree")

    @property
    def is_begun(self) -> bool:
        """Whether the steps that were paid for have been carried out in the folder."""
        return (self.root / self.name / "begun").exists()

    def room(self, base: str) -> CodingRoom:
        """Return the room in which the agent works, with changes compared to the commit `base`."""
        return CodingRoom(self.worktree, base, self.root / self.name / "tmp")

    @answering
    async def open(self, git: Git, now: datetime) -> ApiResult[Worktree]:
        """Provide the files of an earlier process or a fresh clone, and delete folders of tasks that are too old."""
        folder, worktree = self.root / self.name, self.worktree
        await asyncio.to_thread(self._delete_old, now)
        if self.is_begun:
            await asyncio.to_thread(self._delete_earlier)
            return Ok(worktree)
        await asyncio.to_thread(delete_tree, folder)
        folder.mkdir(parents=True)
        (await git.clone(self.repo.owner, self.repo.name, folder / "clone")).or_raise()
        worktree.take(folder / "clone")
        for earlier in self._earlier():
            if (earlier / "begun").exists():
                (await Worktree(earlier / "repository", earlier / "tree").save(_BASE, earlier / _KEPT_PATCH)).or_raise()
            if (kept := earlier / _KEPT_PATCH).exists():
                await asyncio.to_thread(shutil.copyfile, kept, folder / _EARLIER_PATCH)
                break
        return Ok(worktree)

    async def take_up(self, left: str = "") -> EarlierWork | None:
        """Apply the changes of an earlier try to a fresh tree, if they fit, and return them; None if there are none.

        Without an earlier try of ours, these are the changes of `left`, the branch of an inactive SOUL.
        """
        patch, unfit = (self.root / self.name / name for name in (_EARLIER_PATCH, _UNFIT_PATCH))
        if left and not (self.is_begun or patch.exists() or unfit.exists()):
            saved = await self.worktree.save_branch(left, patch)
            if isinstance(saved, Err) or not 0 < patch.stat().st_size <= _MOST_LEFT_BYTES:
                patch.unlink(missing_ok=True)
        if patch.exists() and not self.is_begun and isinstance(await self.worktree.load(patch), Err):
            patch.rename(unfit)
        found = next((one for one in (patch, unfit) if one.exists()), None)
        return None if found is None else EarlierWork(found.read_text("utf-8", "replace"), found == patch)

    async def keep(self) -> None:
        """Keep the changes for another try, and delete the rest; without changes, delete the whole folder.

        What earlier tries kept stays until a try has begun with it.
        """
        folder, kept = self.root / self.name, self.root / self.name / _KEPT_PATCH
        if self.worktree.tree.exists() and isinstance(await self.worktree.save(_BASE, kept), Err):
            return  # the files stay, and the next try saves them
        if kept.exists() and kept.stat().st_size:
            (folder / "begun").unlink(missing_ok=True)
            for inner in ("tree", "repository", "tmp", "copy"):
                await asyncio.to_thread(delete_tree, folder / inner)
        elif self.is_begun:
            await self.delete()
        else:
            await asyncio.to_thread(delete_tree, folder)

    @answering
    async def suites_before(
        self, base: str, install: Callable[[Path], Awaitable[str]], run: Callable[[Path], Awaitable[Suites]]
    ) -> ApiResult[Suites]:
        """Return the test results at the commit `base`: the tests run once, on a copy, and the results are stored.

        What `install` puts into the copy is moved into the tree afterwards.
        """
        kept, form = self.root / self.name / "tests-before.json", TypeAdapter(Suites)
        if kept.exists():
            return Ok(form.validate_json(kept.read_bytes()))
        copy = (await self.copy(base)).or_raise()
        lacks = await install(copy)
        suites = replace(await run(copy), lacks=lacks)
        await asyncio.to_thread(move_installed, copy, self.worktree.tree)
        write_atomic(kept, form.dump_json(suites))
        await asyncio.to_thread(delete_tree, copy)
        return Ok(suites)

    @answering
    async def copy(self, commit: str) -> ApiResult[Path]:
        """Create and return a folder beside the tree with nothing but the files of a commit or snapshot."""
        copy = self.root / self.name / "copy"
        await asyncio.to_thread(delete_tree, copy)
        copy.mkdir()
        (await self.worktree.export(commit, copy)).or_raise()
        return Ok(copy)

    def note_begun(self) -> None:
        """Note that the steps that were paid for have been carried out."""
        (self.root / self.name / "begun").touch()

    async def delete(self) -> None:
        """Delete the folder, and those of other claims on the task."""
        await asyncio.to_thread(delete_tree, self.root / self.name)
        await asyncio.to_thread(self._delete_earlier)

    def _earlier(self) -> list[Path]:
        """Return the folders of other claims on the task, the latest first."""
        owner, name = re.escape(self.repo.owner), re.escape(self.repo.name)
        ours = re.compile(rf"{owner}--?{name}--{self.issue}-task-{self.task}-e(\d+)")
        found = {int(one[1]): path for path in (self.root / WORK_REPOS).glob("*") if (one := ours.fullmatch(path.name))}
        return [found[number] for number in sorted(found, reverse=True) if number != self.epoch]

    def _delete_earlier(self) -> None:
        for folder in self._earlier():
            delete_tree(folder)

    def _delete_old(self, now: datetime) -> None:
        for other in (self.root / WORK_REPOS).glob("*--*-task-*-e*"):
            if other != self.root / self.name and now.timestamp() - other.stat().st_mtime > KEPT.total_seconds():
                delete_tree(other)


T = TypeVar("T")


@dataclass(slots=True)
class TreeTests(Generic[T]):
    """Runs the tests of a worktree with `run`, and keeps the result until its files change."""

    work: Worktree
    run: Callable[[Path], Awaitable[T]]
    _kept: tuple[str, T] | None = field(default=None, init=False)
    """The snapshot of the files after the tests, and the result."""

    async def result(self) -> T:
        """Return the test result. Raises `TaskStopped` if Git fails, else as `run` does."""
        if self._kept is None or self._kept[0] != read(await self.work.snapshot()):
            result = await self.run(self.work.tree)
            self._kept = (read(await self.work.snapshot()), result)
        return self._kept[1]


_LINE_CHARS, _TEXT_CHARS, _MOST_LISTED = 200, 4_000, 30
_TRY_CHARS, _EARLIER_CHARS, _QUESTION_CHARS = 2_000, 12_000, 1_200
_ENDS: dict[CodingEndCode, TaskProblem] = {
    "blocked": "code_blocked",
    "stuck": "code_stuck",
    "steps": "code_unfinished",
    "tokens": "code_unfinished",
    "money": "code_unfinished",
    "time": "code_unfinished",
    "length": "code_unfinished",
}


@dataclass(frozen=True, slots=True)
class CodeWork(TaskWorker):
    """The worker for the tasks of plans, documents among them.

    Attributes:
        offering: makes the branch, the pull request and the review requests.
        agent: writes the code.
        git: clones.
        root: the home.
        name: of the agent, for the commit.
        may_run: whether the owner lets it code, and there is a sandbox.
        installer: installs the packages that a repository depends on.

    """

    offering: Offering
    agent: CodingAgent
    git: Git
    skills: Skills
    rng: random.Random
    redactor: Redactor
    root: Path
    name: str
    may_run: bool
    installer: Installer

    def can_do(self, task: Task) -> bool:
        """Return whether code may be run here."""
        return self.may_run

    async def do(self, task: HeldTask) -> WorkResult:
        """Do the rest of the task, up to its pull request."""
        try:
            return await self._do(TaskActs(task))
        except TaskStopped as ended:
            if isinstance(ended.result, Blocked | Failed):
                await _folder(self.root, TaskActs(task)).keep()
            return ended.result

    async def _do(self, acts: TaskActs) -> WorkResult:
        place = await self.offering.place(acts)
        folder = _folder(self.root, acts)
        if place.pull is not None:
            await folder.delete()
            return await self.offering.stands(acts, place.pull, acts.title)
        await self.offering.head(acts, place.repository)
        tree = read(await folder.open(self.git, self.agent.clock.now()))
        base = read(await tree.begin(place.branch))
        earlier = await folder.take_up(acts.held.left.head.ref if acts.held.left else "")
        before = read(await folder.suites_before(base, self.install, self._suites))
        self.check_begin(before)
        tests = TreeTests(tree, lambda _: self.suites_of(folder))
        lines = await self.offering.missing_lines(acts.repo)
        end = await self._coded(acts, folder, tests, base, before, earlier=earlier, lines=lines)
        changes = read(await tree.changes(base))
        suites = SuiteChange(before, await tests.result() if changes.files else before)
        if end.is_found and not changes.files:
            await folder.delete()
            return AlreadyDone(f"{one_line(end.text, _TEXT_CHARS)}\n\n{self._tests(suites, is_draft=False)}")
        broken = self.broken(suites)
        facts = GateFacts(place.branch, changes, broken, self.redactor.finds, acts.task.files, lines=lines)
        shut = self.closed(facts)
        if shut is not None and place.begun is None:  # its push has passed them
            problem: TaskProblem = "code_tests_failed" if shut.code == "tests_failed" else "code_unfit"
            raise TaskStopped(Failed(problem, f"{shut.code}: {shut.detail}", about=shut.about))
        is_draft = suites.needs_look and not self.offering.has_reviewers
        body = self.description(acts, end.text, changes, suites, is_draft=is_draft) + self.offering.taken_up(acts)
        offered = acts.pull_request(head=place.branch, base=place.base, draft=is_draft, body=body)
        told = f"{changes.stat}.\n\n{self._tests(suites, is_draft=is_draft)}"
        opened = await self.offering.opened(acts, offered, told, push=self._push(acts, folder, changes))
        await folder.delete()
        return opened

    def check_begin(self, before: Suites) -> None:
        """Raise `TaskStopped` if no work may begin with the test results `before`."""

    def is_bound(self, path: str) -> bool:
        """Return whether no task may change a file."""
        return False

    def bound(self, changes: BranchChanges) -> Closed | None:
        """Return the gate that changes close whatever the test results are, or None."""
        return None

    def closed(self, facts: GateFacts) -> Closed | None:
        """Return the first gate that is closed, or None."""
        return self.bound(facts.changes) or closed_gate(facts)

    def broken(self, suites: SuiteChange) -> Sequence[SuiteRun]:
        """Return the test runs that prevent the work from being offered."""
        return suites.broken

    def description(
        self, acts: TaskActs, summary: str, changes: BranchChanges, suites: SuiteChange, *, is_draft: bool
    ) -> str:
        """Return the text of a pull request that makes `changes`, with their effect on the tests."""
        left = named_but_unchanged(acts.task.files, [one.path for one in changes.files])
        phrase = self.offering.phrase
        unchanged = [f"- {phrase('github.files_unchanged', files=quoted(left))}"] if left else []
        text = phrase(
            "github.code_pull_request",
            **acts.told,
            summary=without_mentions(one_line(summary, _TEXT_CHARS)),
            stat=changes.stat,
            count=len(changes.files),
            files=_listed(changes),
            tests="\n".join([*unchanged, self._tests(suites, is_draft=is_draft)]),
        )
        return text.replace("<!--", "&lt;!--") + _mark(suites)  # plan, model and tests must not set the mark

    def _tests(self, suites: SuiteChange, *, is_draft: bool) -> str:
        """Return what is said of the tests, as a Markdown list."""
        phrase = self.offering.phrase
        said = [*suite_lines(suites, phrase), *([phrase("github.tests_draft")] if is_draft else [])]
        return "\n".join(f"- {one}" for one in said)

    async def _coded(
        self,
        acts: TaskActs,
        folder: TaskFolder,
        tests: TreeTests[Suites],
        base: str,
        before: Suites,
        *,
        earlier: EarlierWork | None,
        lines: Sequence[tuple[str, str]],
    ) -> CodingEnd:
        """Have the code written and committed, and return how the agent ended."""
        told, tree, room = list[str](), folder.worktree, replace(folder.room(base), is_bound=self.is_bound)

        async def wrong() -> str:
            """Return what fails, which gate is closed, or that nothing changed; else, once, what may be overlooked."""
            changes = read(await tree.staged(base))
            if bound := gate_told(self.skills, self.bound(changes)):
                return bound
            if changes.files and (failed := self.failed(self.broken(SuiteChange(before, await tests.result())))):
                return failed
            changes = read(await tree.staged(base))
            facts = GateFacts(changes.branch, changes, (), self.redactor.finds, acts.task.files, lines=lines)
            if shut := gate_told(self.skills, self.closed(facts)):
                return shut
            noted = self._noted(acts.task, [one.path for one in changes.files])
            if not noted or (told and changes.files):
                return ""
            told.append(noted)
            return noted

        async def not_found() -> str:
            """Return what contradicts the agent's statement that everything existed already; "" if nothing does."""
            if read(await tree.staged(base)).files:
                return await wrong()
            paths = read(await tree.paths())
            is_there = not named_but_unchanged(acts.task.files, paths) and _pass(before)
            return "" if is_there else self.skills.subsection(SKILL, "Answers", "Not There").strip()

        tried = await self.agent.store.steps_before(acts.cause, acts.held.epoch)
        job = CodingJob(
            key=acts.cause,
            epoch=acts.held.epoch,
            title=acts.task.title,
            goal=acts.held.found.plan.goal,
            files=acts.task.files,
            message=self._message(acts, before, tried, earlier),
            is_new=not folder.is_begun,
            check=wrong,
            check_found=not_found,
        )
        try:
            begun = await self.agent.resume(job, room)
            folder.note_begun()
            end = await self.agent.work(job, room, begun)
        except PolicyBlocked as refused:
            raise TaskStopped(Failed("not_allowed", str(refused))) from None
        steps = await self.agent.store.steps(job.key, job.epoch)
        if end.code != "finished":
            question = clean(end.text, is_ours=True)[:_QUESTION_CHARS] if end.code == "blocked" else ""
            last = clean(end.text or "\n".join(_end_of(steps)), is_ours=True)[-_TRY_CHARS:]
            raise TaskStopped(Blocked(question) if question else Failed(_ENDS[end.code], f"{end.code}: {last}"))
        login, model = self.offering.github.login, self.agent.gateway.model
        message = f"{acts.title}\n\nAssisted-by: {one_line(self.name, _LINE_CHARS)}:{one_line(model, _LINE_CHARS)}\n"
        message += f"{acts.credit}\n" if acts.credit else ""
        # NOTE(self): dated at the last step, so that a restarted process makes the same commit again.
        email, at = f"{login}@users.noreply.github.com", parse_iso(steps[-1].at)
        read(await tree.commit(message, name=login, email=email, at=at))
        return end

    async def install(self, tree: Path) -> str:
        """Install what a tree depends on, and return why something is not installed; "" if all is."""
        return await self.installer.install(tree, self.agent.sandbox)

    def failed(self, broken: Sequence[SuiteRun]) -> str:
        """Return what the agent is told of tests that its changes broke; "" if there are none."""
        output = clean(printed(broken))
        return self.skills.render(SKILL, "Answers", "Check Failed", output=output).strip() if broken else ""

    async def suites_of(self, folder: TaskFolder) -> Suites:
        """Run the tests of the tree, and return the results."""
        return await self._suites(folder.worktree.tree)

    async def _suites(self, tree: Path) -> Suites:
        limits = self.agent.limits
        return await run_suites(tree, self.agent.sandbox, network=limits.network, seconds=limits.suite_seconds)

    def _noted(self, task: Task, changed: Sequence[str]) -> str:
        """Return what the agent is asked once before it ends: about unchanged files, or those that need approval."""
        left = named_but_unchanged(task.files, changed)
        allowed = [one for one in changed if first_trusted([one])]
        words: dict[str, dict[str, str]] = {} if changed else {"Nothing Changed": {}}
        words |= {"Files Unchanged": {"files": quoted(left)}} if changed and left else {}
        words |= {"Owner Asked": {"files": quoted(allowed)}} if allowed else {}
        return "\n\n".join(self.skills.render(SKILL, "Answers", name, **said).strip() for name, said in words.items())

    def _message(self, acts: TaskActs, before: Suites, earlier: Sequence[CodingStep], work: EarlierWork | None) -> str:
        framer, found = Framer(self.skills, self.rng), acts.held.found

        def framed(text: str, *, author: str = "", uri: str = "") -> str:
            return framer.frame("reading", author=author or f"@{found.issue.author}", uri=uri, text=text)

        place = found.issue.html_url
        files = one_line(", ".join(acts.task.files), _TEXT_CHARS)
        task = (told_task(acts.task), *([f"Files: {files}"] if files else []))
        talk = "\n".join(one.body for one in acts.held.talk)
        ended = [one for one in _end_of(earlier) if clean(one).strip()[:_LINE_CHARS] not in talk]
        tries = [both_ends(clean(one), _TRY_CHARS) for one in (*acts.held.tries[-MAX_TASK_RETRIES:], *ended)]
        told = [framed("\n\n".join(tries), author="tries")] if tries else []
        told += [asked] if (asked := told_talk(self.skills, framer, acts.held.talk)) else []
        if work:
            fits = "Fits" if work.fits else "Does Not Fit"
            words = {} if work.fits else {"diff": framed(both_ends(clean(work.patch), _EARLIER_CHARS))}
            told.append(self.skills.render(SKILL, "Earlier Work", fits, **words).strip())
        return self.skills.render(
            SKILL,
            "Message",
            repo=acts.repo.full_name,
            plan=framed(told_plan(found.plan, acts.task), uri=place),
            task=framed("\n\n".join(task), uri=place),
            tests=self._before(before, lambda text: framed(text, author="tests")),
            tries="\n\n".join(told) or self.skills.section(SKILL, "No Tries").strip(),
        )

    def _before(self, before: Suites, framed: Callable[[str], str]) -> str:
        """Return what the agent is told of the existing tests."""
        by_outcome: dict[str, list[SuiteRun]] = {"Passed": [], "Missing": [], "Failed": [], "No Result": []}
        for one in before.runs:
            by_outcome.get(one.outcome.title(), by_outcome["No Result"]).append(one)
        shown = [*by_outcome["Failed"], *by_outcome["No Result"]]
        said = [
            self.skills.render(SKILL, "Tests Before", outcome, commands=outcomes(runs)).strip()
            for outcome, runs in by_outcome.items()
            if runs
        ]
        said += [framed(failures(shown))] if shown else []
        if before.lacks:
            said.append(self.skills.render(SKILL, "Tests Before", "Not Installed", reason=clean(before.lacks)).strip())
        return "\n\n".join(said) or self.skills.subsection(SKILL, "Tests Before", "None").strip()

    def _push(self, acts: TaskActs, folder: TaskFolder, changes: BranchChanges) -> ProposedAction:
        at, paths = for_workspace(acts.repo), tuple(one.path for one in changes.files)
        shown, clone = shown_changes(changes, folder.clone), folder.clone
        push = PushBody(**at, text=shown, branch=changes.branch, sha=changes.sha, folder=clone, paths=paths)
        return acts.action("push", push)


def _folder(root: Path, acts: TaskActs) -> TaskFolder:
    return TaskFolder(root, acts.repo, acts.issue, acts.task.number, acts.held.epoch)


def _end_of(steps: Sequence[CodingStep]) -> list[str]:
    """Return what the last step of an earlier try of ours said, and the answers to its calls."""
    last = steps[-1:]
    said = [str(call.input.get("reason") or call.input.get("summary") or "") for one in last for call in one.calls]
    return [one for one in (*said, *(answer.content for step in last for answer in step.answers or ())) if one]


def _mark(suites: SuiteChange) -> str:
    """Return the mark by which a pull request is merged if nobody can review it; "" if there are no tests.

    Tests count as passed if some were found and ran, none fails that did not fail before, and none is gone.
    """
    if suites.needs_look:
        return f"\n\n{TESTS_WEAKENED}"
    if not suites.after.declared or suites.state == "none":
        return ""
    marks = {"passed": TESTS_PASSED, "failing_before": TESTS_PASSED, "failed": TESTS_FAILED, "unrun": TESTS_UNRUN}
    return f"\n\n{marks[suites.state]}"


def _pass(suites: Suites) -> bool:
    """Return whether there are tests, and all that can be run here passed."""
    outcomes = {one.outcome for one in suites.runs}
    return bool(suites.declared) and "passed" in outcomes and outcomes <= {"passed", "missing", "empty"}


def _listed(changes: BranchChanges) -> str:
    """Return the changed files as a Markdown list."""
    lines = [f"- `{one_line(one.path, _LINE_CHARS).replace('`', '')}`" for one in changes.files[:_MOST_LISTED]]
    return "\n".join([*lines, *(["- …"] if len(changes.files) > _MOST_LISTED else [])])


_MOST_CHARS, _PATH_CHARS = 20_000, 2_000
_SECTION = re.compile(r"^(?=diff --git )", re.MULTILINE)


def shown_changes(changes: BranchChanges, clone: str) -> str:
    """Return the files of a branch and its diff, of at most 20,000 characters.

    Files that make the push wait for approval come first. Each file gets a fair share of the diff, so that a long one
    hides no other; omitted characters are counted, with the command that shows them. `clone` is relative to the home.
    """
    files = sorted(changes.files, key=lambda one: not first_trusted([one.path]))
    listed = [f"- {one_line(one.path, _PATH_CHARS)} ({', '.join(_told(one))})" for one in files]
    trusted = [one.path for one in files if first_trusted([one.path])]
    sections = [one for one in _SECTION.split(changes.patch) if one]
    sections.sort(key=lambda one: not any(path in one.partition("\n")[0] for path in trusted))
    share = fair_share(map(len, sections), _MOST_CHARS)
    shown = [_cut(one, share) for one in sections]
    left_out = sum(max(0, len(one) - share) for one in sections)
    told = [changes.stat, "\n".join(listed)]
    if left_out or not changes.is_whole:
        some = f"{left_out:,} characters" if changes.is_whole else "More than 4 MiB"
        command = f"git --git-dir={clone}/.git diff {changes.base} {changes.sha}"
        told.append(f"{some} of the diff are not shown. To see all of it, run in the folder of the home:\n{command}")
    return "\n\n".join([*told, "".join(shown).strip("\n")])


def _told(file: TreeChange) -> list[str]:
    """Return what is said of a file besides its path."""
    kinds = {"link": file.is_link, "repository": file.is_repository, "binary": file.is_binary and not file.is_link}
    kinds["needs your approval"] = bool(first_trusted([file.path]))
    size = "deleted" if file.size is None and not file.is_repository else f"{file.size or 0:,} bytes"
    return [size, *(kind for kind, is_it in kinds.items() if is_it)]


def _cut(section: str, share: int) -> str:
    more = len(section) - share
    return f"{section[:share]}\n[{more:,} more characters of this file]\n" if more > 0 else section
