"""Answers reviews that ask for changes: the work goes one more round, twice at most; then the owner is told, once.

A round is a row of work for the commit that was reviewed. What the reviewers wrote reaches the model as data, and what
came of it is pushed to the branch of the pull request. The row waits, and its checkout is kept, until the push is done
or came to nothing; then the reviewers are asked again.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from adapters.git.worktree import BranchChanges, Worktree
from adapters.github.client import GitHub
from adapters.github.types import PullRequest, Repo, Review
from common.clock import Clock, parse_iso
from common.errors import PolicyBlocked, Transient
from common.result import Err
from common.text.untrusted import clean, one_line
from common.wording import told_outcome
from modules.lives.tasks.acts import TaskActs
from modules.lives.tasks.code.work import CodeWork
from modules.lives.tasks.execute import WORK_LIMIT_S
from modules.lives.tasks.offering import TaskStopped, read
from modules.lives.tasks.review.checkout import Checkout, PullFiles
from modules.lives.tasks.review.judge import SKILL
from modules.lives.tasks.types import Blocked, Deferred, Failed, HeldTask, Lost, WorkResult
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.plan_reading import PlanReader
from modules.services.coding.gates import GateFacts, closed_gate, gate_told
from modules.services.coding.suites import SuiteRun, suite_change
from modules.services.coding.types import CodingJob, CodingRoom
from modules.services.outbox.github_bodies import PushBody, ReviewRequestBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.plans.naming import parse_task_branch
from modules.services.plans.types import FoundPlan
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem
from modules.services.workspaces.pulls import plan_of
from modules.services.workspaces.reviewers import requested_changes
from modules.services.workspaces.trust import WorkspaceTrust

REVISION = "revision"
"""The kind of the rows: one for each commit of ours of which changes are asked for, `owner/repo#31@<sha>`."""
MOST_ROUNDS = 2

_LINE_CHARS, _TEXT_CHARS, _PATCH_CHARS = 200, 6_000, 20_000
_AGAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Round:
    """Which round the commit `sha` of our pull request `number` goes into."""

    repo: Repo
    number: int
    sha: str
    count: int = 1

    @property
    def key_prefix(self) -> str:
        """What the keys of all rounds of the pull request begin with."""
        return f"{self.repo.full_name}#{self.number}@".lower()

    @property
    def key(self) -> str:
        """The key of its row."""
        return f"{self.key_prefix}{self.sha}"

    @property
    def folder(self) -> str:
        """What its checkout is called."""
        return f"{REVISION}-{self.sha}"

    @property
    def cause(self) -> str:
        """The cause of its push, and of its row."""
        return f"{REVISION}:{self.key}"

    @property
    def row(self) -> NewWork:
        """Its row."""
        told = {"owner": self.repo.owner, "repo": self.repo.name, "number": self.number, "sha": self.sha}
        return NewWork(REVISION, self.key, {**told, "round": self.count}, importance="commitment")


def round_of(item: WorkItem) -> Round:
    """Return what a row is about."""
    told = item.payload
    return Round(Repo(told["owner"], told["repo"]), told["number"], told["sha"], told["round"])


@dataclass(slots=True)
class RevisionHandler(Handler):
    """Goes one more round at a time. `code` has the agent that wrote the pull request, and what offered it."""

    kind = REVISION
    is_cut_off = True

    github: GitHub
    trust: WorkspaceTrust
    plans: PlanReader
    code: CodeWork
    checkout: Checkout
    outbox: Outbox
    journal: Journal
    skills: Skills
    clock: Clock
    rng: random.Random

    async def handle(self, item: WorkItem) -> Disposition:
        this = round_of(item)
        try:
            async with self.clock.timeout(WORK_LIMIT_S):
                answered = await self._answer(this)
        except TaskStopped as stopped:
            return await self._ended(this, stopped.result)
        except TimeoutError:
            return await self._ended(this, Failed("too_slow", f"not done within {WORK_LIMIT_S / 60:.0f} minutes"))
        return answered if isinstance(answered, Disposition) else await self._pushed(this, answered)

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> Disposition:
        """Go on with a round whose push was accepted."""
        return await self._pushed(round_of(item), accepted[0])

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Delete the checkout, from which nothing is pushed any more."""
        this = round_of(item)
        await self.checkout.delete(this.repo, this.number, this.folder)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        this = round_of(item)
        return f"Round {this.count} on {this.repo.full_name}#{this.number}: {told_outcome(disposition.code)}"

    async def _answer(self, this: Round) -> Disposition | Intent:
        """Return the push that came of a round, or what becomes of one that came to none."""
        pull = read(await self.github.pulls.get(this.repo, this.number))
        trusted = await self.trust.accounts(this.repo)
        given = read(await self.github.pulls.reviews(this.repo, this.number))
        reviews = requested_changes(this.sha, given, trusted)
        if pull.state != "open" or pull.head.sha != this.sha or not reviews:
            return Disposition("silent", "over", "it is closed, was changed, or nobody asks for changes any more")
        held = await self._held(this, pull)
        if held is None:
            return Disposition("silent", "given-back", "its task is not ours any more")
        if this.count > MOST_ROUNDS:
            return await self._tell_owner(this, "rounds-used", f"changes are asked for after {MOST_ROUNDS} rounds")
        if not self.code.may_run:
            return await self._tell_owner(this, "no-code", "changes are asked for, and no code is written here")
        if any(one.rejected for one in await self.outbox.by_cause(this.cause)):
            return Disposition("silent", "refused", "you said no to its push")
        return await self._go_round(this, pull, held, reviews)

    async def _held(self, this: Round, pull: PullRequest) -> HeldTask | None:
        """Return the task that a pull request is for, as long as it is in work, and ours."""
        issue, number = plan_of(pull.body), parse_task_branch(pull.head.ref)
        if issue is None or number is None:
            return None
        reading = read(await self.plans.read(this.repo, issue))
        task = reading.plan.task(number) if reading.plan else None
        if reading.plan is None or task is None or task.status != "in_progress":
            return None
        if (task.assignee or "").lower() != self.github.login.lower():
            return None
        found = FoundPlan(this.repo, reading.issue, reading.plan)
        return HeldTask(found, task, this.count, partial(self._is_held, this, pull))

    async def _is_held(self, this: Round, pull: PullRequest) -> bool:
        return await self._held(this, pull) is not None

    async def _go_round(
        self, this: Round, pull: PullRequest, held: HeldTask, reviews: Sequence[Review]
    ) -> Disposition | Intent:
        acts = TaskActs(held)
        cloned = await self.checkout.open(this.repo, pull, this.folder)
        if isinstance(cloned, Err) and cloned.kind == "conflict":
            return Disposition("later", "moved", cloned.error, _AGAIN_S)
        files = read(cloned)
        tree = files.work
        await self._coded(this, acts, files, reviews)
        changes = read(await tree.changes(this.sha))
        broken = await self._broken(files)
        shut = closed_gate(GateFacts(pull.head.ref, changes, broken, self.code.redactor.finds, acts.task.files))
        if shut is not None:
            raise TaskStopped(Failed("code_unfit", f"{shut.code}: {shut.detail}", about=shut.about))
        return await self.code.offering.proposed(acts, self._push(this, acts, tree, changes))

    async def _pushed(self, this: Round, push: Intent) -> Disposition:
        """Wait a while until a push has left, and ask the reviewers again once it is done."""
        row = await self.outbox.settled(push.id) or push
        if row.state == "held":
            return Disposition("later", "needs-owner", "its push waits for your yes", _AGAIN_S, row.id, held=True)
        if row.state not in ACTIVE_STATES:
            return await self._ended(this, Failed("not_sent", row.error or row.state))
        if row.state != "done":
            return Disposition("later", "on-its-way", "its push has not left yet", _AGAIN_S, row.id)
        try:
            given = read(await self.github.pulls.reviews(this.repo, this.number))
        except TaskStopped as stopped:
            return await self._ended(this, stopped.result)
        await self._ask_again(this, requested_changes(this.sha, given, await self.trust.accounts(this.repo)))
        return Disposition("done", "pushed", row.result_uri or "", intent_id=row.id)

    async def _coded(self, this: Round, acts: TaskActs, files: PullFiles, reviews: Sequence[Review]) -> None:
        """Have the changes committed that are asked for. Steps that were paid for before a crash are done again."""
        agent, tree = self.code.agent, files.work

        room = CodingRoom(tree, this.sha, files.base.parent / "tmp")

        async def failing() -> str:
            """What fails, or which gate is shut."""
            if broken := await self._broken(files):
                return "\n".join(f"{one.command}\n{one.output}" for one in broken)
            changes = read(await tree.staged(this.sha))
            facts = GateFacts(changes.branch, changes, (), self.code.redactor.finds, acts.task.files)
            return gate_told(self.skills, closed_gate(facts))

        job = CodingJob(
            key=f"{acts.cause}/round-{this.count}",
            epoch=this.number,
            title=acts.task.title,
            files=acts.task.files,
            message=self._message(acts, reviews),
            is_new=True,
            check=failing,
        )
        try:
            await self.code.install(tree.tree)
            end = await agent.work(job, room, await agent.resume(job, room))
        except PolicyBlocked as refused:
            raise TaskStopped(Blocked("not_allowed", str(refused))) from None
        if end.code != "finished":
            raise TaskStopped(Failed("code_unfinished", f"{end.code}: {end.text}"))
        steps = await agent.store.steps(job.key, job.epoch)
        login = self.github.login
        by = f"{one_line(self.code.name, _LINE_CHARS)}:{one_line(agent.gateway.model, _LINE_CHARS)}"
        message, email = f"{acts.title} (review)\n\nAssisted-by: {by}\n", f"{login}@users.noreply.github.com"
        # NOTE(self): at the time of the last step, so that a life that commits again makes the same commit.
        read(await tree.commit(message, name=login, email=email, at=parse_iso(steps[-1].at)))

    async def _broken(self, files: PullFiles) -> Sequence[SuiteRun]:
        """Return the tests that fail by what the pull request changes."""
        agent = self.code.agent
        network, install = agent.limits.network, self.code.install
        change = await suite_change(files.base, files.work.tree, agent.sandbox, install, network=network)
        return change.broken

    def _message(self, acts: TaskActs, reviews: Sequence[Review]) -> str:
        framer = Framer(self.skills, self.rng)
        task = f"{one_line(acts.task.title, _LINE_CHARS)}\n\n{clean(acts.task.description).strip()[:_TEXT_CHARS]}"
        return self.skills.render(
            SKILL,
            "Revision",
            repo=acts.repo.full_name,
            task=framer.frame(
                "reading", author=acts.repo.full_name, uri=acts.held.found.issue.html_url, text=task.strip()
            ),
            reviews="\n\n".join(
                framer.frame("reading", author=f"@{one.author}", uri=one.html_url, text=one.body[:_TEXT_CHARS])
                for one in reviews
            ),
        )

    def _push(self, this: Round, acts: TaskActs, tree: Worktree, changes: BranchChanges) -> ProposedAction:
        shown = f"{changes.stat}\n\n{changes.patch[:_PATCH_CHARS]}"
        push = PushBody(
            **acts.at(f"push to {changes.branch}", shown),
            branch=changes.branch,
            sha=changes.sha,
            folder=str(tree.repository.relative_to(self.checkout.root)),
            before=this.sha,
            paths=tuple(one.path for one in changes.files),
        )
        return ProposedAction(push, part=this.cause, cause_id=this.cause)

    async def _ask_again(self, this: Round, reviews: Sequence[Review]) -> None:
        """Ask those for another review who asked for changes."""
        for login in sorted({one.author for one in reviews}):
            about = f"another review of {this.repo.full_name}#{this.number} by {login}"
            body = ReviewRequestBody(
                source="workspace",
                repo=this.repo.full_name,
                number=this.number,
                reviewers=(login,),
                about=about,
                text=about,
            )
            # NOTE(self): a cause of its own, for by that of the round only its push is looked up.
            cause_id = f"review-again:{this.key}"
            action = ProposedAction(body, part=f"{cause_id} {login.lower()}", cause_id=cause_id)
            if not await self.outbox.by_target(action.kind, action.target):
                await self.outbox.submit(action)

    async def _ended(self, this: Round, result: WorkResult) -> Disposition:
        match result:
            case Deferred(reason=reason, retry_after=retry_after):
                raise Transient(reason, retry_after=retry_after)
            case Blocked(problem=problem, detail=detail) | Failed(problem=problem, detail=detail):
                return await self._tell_owner(this, problem, f"the round came to nothing: {detail or problem}")
            case Lost():
                return Disposition("silent", "given-back", "its task is not ours any more")
        raise TypeError(f"a round does not end so: {result}")

    async def _tell_owner(self, this: Round, code: str, reason: str) -> Disposition:
        """Tell the owner that somebody has to look at a pull request; its row is settled, so that is told once."""
        url = f"{self.github.page(this.repo)}/pull/{this.number}"
        summary = f"Your word is needed on {this.repo.full_name}#{this.number}: {url}"
        data = {"act": "review-stuck", "code": code, "repo": this.repo.full_name, "round": this.count}
        await self.journal.record(
            Entry("decision", REVISION, summary, line="warn", reason=reason, trigger_uri=url, data=data)
        )
        return Disposition("silent", code, reason)
