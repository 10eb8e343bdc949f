"""Changes the SOUL's own program after its owner approved that: a task in their repository, up to a pull request.

The files are a fresh clone in the sandbox, never the running ones. Changes that are reserved for people are refused.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapters.git.worktree import BranchChanges
from common.clock import Clock
from common.files import delete_tree
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.tasks.code import CodeWork, TaskFolder
from modules.lives.tasks.execute import done_in_time
from modules.lives.tasks.offering import TaskStopped, read
from modules.lives.tasks.types import UNCLAIMED, Blocked, Deferred, Failed, HeldTask, Opened, Stopped, TaskWorker
from modules.runtime.sandbox.policy import MIB
from modules.services.claims.lease_store import place_of
from modules.services.coding.gates import Closed
from modules.services.coding.suites import SuiteChange, SuiteRun, Suites, in_tree, run_suites
from modules.services.craft.bounds import (
    MOST_PROGRAM_FILES,
    MOST_PROGRAM_LINES,
    OUT_OF_BOUNDS,
    PROGRAM,
    PROGRAM_GATE,
    WITHIN_BOUNDS,
    closed_to_program,
    out_of_bounds,
)
from modules.services.craft.proposals import OPEN, Proposals
from modules.services.craft.record import FrictionRecord
from modules.services.owner import TellOwner
from modules.services.pinned_names import RepositoryIdentity
from modules.services.plans.types import FoundPlan, Plan, Task
from modules.services.skills.skills import Skills
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, WorkItem

_SKILL = "self-improvement-decision"
_LOOK_S = 3_600.0
_LAST_LINES, _LINE_CHARS = 5, 200
_AS_CLONED = "git init --quiet && git add --all; [ ! -d .venv ] || touch .venv/.dev .venv/.run"
"""Prepares what the gate expects besides the files: a Git repository, and stamps of the installation for `make`."""


@dataclass(frozen=True, slots=True)
class ProgramWork(CodeWork):
    """The worker for the SOUL's own program: within bounds, and only if the repository's own gate passes."""

    def check_begin(self, before: Suites) -> None:
        """Raise `TaskStopped` if the gate does not pass on the unchanged program."""
        for run in self.broken(SuiteChange(before, before)):
            minutes, memory = self.agent.limits.suite_seconds / 60, self.agent.limits.suite_bytes // MIB
            timeout = f"; it may take {minutes:g} minutes, SOUL_PROGRAM_MINUTES"
            limits = {"timeout": timeout, "memory": f"; it may take {memory:,} MB, SOUL_PROGRAM_MEMORY_MB"}
            ended = f"{run.outcome}{limits.get(run.outcome, '')}"
            why = f"`{PROGRAM_GATE}` does not pass on the program as it is ({ended}), so no code was written"
            last = [before.lacks, *run.output.strip().split("\n")[-_LAST_LINES:]]
            told = "\n".join(one_line(one, _LINE_CHARS) for one in last if one)
            raise TaskStopped(Failed("code_tests_failed", told, why=why))

    def is_bound(self, path: str) -> bool:
        """Return whether only people may change a file."""
        return bool(out_of_bounds([path]))

    def bound(self, changes: BranchChanges) -> Closed | None:
        """Return the closed gate if changes are out of bounds, else None."""
        return closed_to_program(changes)

    def broken(self, suites: SuiteChange) -> Sequence[SuiteRun]:
        """Return the run of the gate unless it passed, whatever the result was before."""
        return [one for one in suites.after.runs if not one.passed]

    async def suites_of(self, folder: TaskFolder) -> Suites:
        """Return the result of the gate for the files that would be pushed, without those that Git ignores."""
        copy = read(await folder.copy(read(await folder.worktree.snapshot())))
        await self.install(copy)
        suites = await self._suites(copy)
        await asyncio.to_thread(delete_tree, copy)
        return suites

    async def _suites(self, tree: Path) -> Suites:
        limits, sandbox = self.agent.limits, self.agent.sandbox
        # NOTE(self): the gate asks Git which files there are, and a copy has no repository of its own.
        await sandbox.run(in_tree(_AS_CLONED), tree, network=False)
        may: dict[str, Any] = {"seconds": limits.suite_seconds, "memory": limits.suite_bytes}
        return await run_suites(tree, sandbox, network=limits.network, gate=PROGRAM_GATE, **may)


@dataclass(frozen=True, slots=True)
class ProgramHandler(Handler):
    """Works on one change of the program, and tells the owner the result."""

    kind = PROGRAM
    line = "social"
    is_cut_off = True

    work: TaskWorker
    identity: RepositoryIdentity
    skills: Skills
    table: WorkTable
    friction: FrictionRecord
    proposals: Proposals
    tell: TellOwner
    name: str
    clock: Clock

    async def handle(self, item: WorkItem) -> Disposition:
        """Do the change, or continue where an earlier process stopped."""
        place, told = place_of(item), dict(item.payload["told"])
        proposal = next(one for one in await self.proposals.all() if one.id == item.payload["proposal"])
        if proposal.state not in OPEN:
            return Disposition("silent", "gone", "its proposal is over")
        (await self.identity.check(place.repo)).or_raise()
        issue = (await self.identity.github.get_issue(place.repo, place.issue)).or_raise()
        bounds = {"files": MOST_PROGRAM_FILES, "lines": MOST_PROGRAM_LINES, "gate": PROGRAM_GATE}
        paths = {"within": ", ".join(WITHIN_BOUNDS), "paths": ", ".join(OUT_OF_BOUNDS)}
        title = self.skills.render(_SKILL, "Task Title", **told).strip()
        words = self.skills.render(_SKILL, "Task", **told, **bounds, **paths).strip()
        task = Task(place.number, title, description=words)
        friction = await self.friction.get(proposal.friction)
        evidence = await self.friction.evidence(friction, proposal.entries, in_public=True)
        context = self.skills.render(_SKILL, "Diagnosis", why=proposal.why, evidence=evidence)
        plan = Plan(title, self.skills.render(_SKILL, "Task Goal", **told).strip(), context=context, tasks=(task,))
        held = HeldTask(FoundPlan(place.repo, issue, plan), task, UNCLAIMED)
        match await done_in_time(self.work, held, self.clock):
            case Opened(url=url):
                return Disposition("done", "opened", url)
            case Stopped() | Deferred() as waits:
                return Disposition("later", type(waits).__name__.lower(), waits.reason, _LOOK_S)
            case Failed(problem=problem, detail=detail, about=about, why=why):
                await self.table.note(item, why=why)
                return Disposition("silent", problem, ": ".join(filter(None, (about, why, detail or problem))))
            case Blocked(question=question):
                return Disposition("silent", "ended-with-a-question", question)
            case _:
                return Disposition("silent", "nothing-to-change", "there was nothing to change")

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Store the address of the pull request; tell only the owner the result, which may hold untrusted text."""
        is_open = disposition.code == "opened"
        await self.table.note(item, reason=disposition.reason if is_open else "")
        what = "a pull request waits for your review" if is_open else "nothing was pushed"
        headline = f"{self.name}, on a change of its own program: {what}"
        await self.tell(f"program:{item.key}", headline, disposition.reason, Provenance.SELF, at_once=False)
