"""Answers reviews that ask for changes or only comment, in two rounds at most; then the owner is told, once.

A round is a row of work for the commit that was reviewed. What the reviewers wrote reaches the model as data, and the
result is pushed to the branch of the pull request. The row waits, and its checkout is kept, until the push is done or
has failed; then the text of the pull request is updated, the author's summary is posted as a comment, and the reviewers
are asked again.
"""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from adapters.git.worktree import BranchChanges, Worktree
from adapters.github.client import GitHub
from adapters.github.types import PullRequest, Review
from common.clock import Clock, parse_iso
from common.errors import PolicyBlocked, Transient
from common.result import Err
from common.text.github_text import without_closing_words
from common.text.markdown import without_html_comments
from common.text.strings import both_ends
from common.text.untrusted import clean, one_line
from common.wording import told_outcome
from modules.lives.tasks.code import CodeWork, TreeTests, shown_changes
from modules.lives.tasks.execute import WORK_LIMIT_S, first_of, place_of_pull, until_left, until_lost
from modules.lives.tasks.offering import TAKEN_UP, TaskActs, TaskStopped, read, told_plan, told_talk, told_task
from modules.lives.tasks.review.handle import Checkout, PullFiles
from modules.lives.tasks.review.judge import SKILL, review_text
from modules.lives.tasks.review.rounds import ANSWERED, MOST_ROUNDS, OVER, REVISION, Round, RoundActs, round_of
from modules.lives.tasks.types import Deferred, Failed, HeldTask, Lost, WorkResult
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.claim_requests import PlanReader
from modules.services.claims.lease_store import TaskOrders, TaskPlace
from modules.services.coding.gates import GateFacts, closed_gate, gate_told
from modules.services.coding.policy import CodingEnd, CodingJob, CodingRoom
from modules.services.coding.suites import SuiteChange, suite_change
from modules.services.outbox.github_bodies import PushBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.plans.types import FoundPlan, claim_key
from modules.services.skills.skills import Framer, Skills
from modules.services.work.table import WorkTable
from modules.services.work.types import HELD, Disposition, Handler, WorkItem
from modules.services.workspaces.acting import reviews_to_answer
from modules.services.workspaces.trust import WorkspaceTrust

_LINE_CHARS, _TEXT_CHARS, _REVIEW_CHARS = 200, 6_000, 20_000
_AGAIN_S, _LEFT_ALONE_S = 60.0, 3_600.0
_GIVEN_BACK = Disposition("silent", "given-back", "its task is not ours any more, or its pull request is closed")
_LEFT_ALONE = Disposition("later", "left-alone", "you said to leave its task alone", _LEFT_ALONE_S)


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a round: the facts for the gates, the author's summary, and the new text of the pull request."""

    facts: GateFacts
    summary: str = ""
    text: str = ""


@dataclass(slots=True)
class RevisionHandler(Handler):
    """Runs one round at a time. `code` has the agent that wrote the pull request, and what offered it."""

    kind = REVISION
    what: ClassVar[str] = "review"
    """What a round answers, for its commit message."""
    steps: ClassVar[str] = "round"
    """Follows the task in the key under which the steps of a round are stored."""
    most_rounds: ClassVar[int] = MOST_ROUNDS
    says: ClassVar[str] = "github.revised"
    """The phrase for the comment that says what a round changed."""
    is_cut_off = True

    github: GitHub
    trust: WorkspaceTrust
    plans: PlanReader
    code: CodeWork
    checkout: Checkout
    table: WorkTable
    orders: TaskOrders
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
        """Continue a round whose push was accepted."""
        return await self._pushed(round_of(item), accepted[0])

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Delete the checkout, from which nothing more is pushed."""
        this = round_of(item)
        await self.checkout.delete(this.repo, this.number, this.folder)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        this = round_of(item)
        return f"Round {this.count} on {this.repo.full_name}#{this.number}: {told_outcome(disposition.code)}"

    async def _answer(self, this: Round) -> Disposition | Intent:
        """Run a round, and return its push, or the disposition of a round without a push."""
        pull = read(await self.github.pulls.get(this.repo, this.number))
        reviews = await self._reviews(this, pull)
        if pull.state != "open" or pull.head.sha != this.sha or reviews is None:
            return Disposition("silent", OVER, "it is closed, was changed, or needs no change any more")
        held, place = await self._held(this, pull), place_of_pull(this.repo, pull)
        if held is None or place is None:
            return _GIVEN_BACK
        if refusal := await self._refusal(this, place):
            return refusal
        return await first_of(
            self._go_round(this, pull, held, reviews),
            _ends_as(_LEFT_ALONE, until_left(self.orders, place, self.clock)),
            _ends_as(_GIVEN_BACK, until_lost(partial(self._is_held, this, pull), self.clock)),
        )

    async def _refusal(self, this: Round, place: TaskPlace) -> Disposition | None:
        """Return why nothing may be changed now, or None."""
        if await self.orders.is_left(place):
            return _LEFT_ALONE
        if this.count > self.most_rounds:
            return await self._tell_owner(this, "rounds-used", f"changes are asked for after {MOST_ROUNDS} rounds")
        if not self.code.may_run:
            return await self._tell_owner(this, "no-code", "changes are asked for, and no code is written here")
        if (await self.outbox.standing("push", this.cause)).code == "refused":
            return Disposition("silent", "refused", "you said no to its push")
        return None

    async def _reviews(self, this: Round, pull: PullRequest) -> Sequence[Review] | None:
        """Return the reviews that a round answers, whose authors are asked again; None if there are none to answer."""
        given = read(await self.github.pulls.reviews(this.repo, this.number))
        return reviews_to_answer(this.sha, given, await self.trust.whole(this.repo)) or None

    async def _held(self, this: Round, pull: PullRequest) -> HeldTask | None:
        """Return the task of a pull request if it is ours and in progress, and the pull request open; else None."""
        place = place_of_pull(this.repo, pull)
        if place is None:
            return None
        reading = read(await self.plans.read(this.repo, place.issue))
        task = reading.plan.task(place.number) if reading.plan else None
        if reading.plan is None or task is None or task.status != "in_progress":
            return None
        if (task.assignee or "").lower() != self.github.login.lower() or place.number not in reading.open_pulls:
            return None
        found = FoundPlan(this.repo, reading.issue, reading.plan)
        return HeldTask(found, task, this.count, talk=reading.talk(place.number))

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
        made = await self._made(this, pull, acts, files, reviews)
        shut = closed_gate(made.facts)
        if shut and shut.code == "no_changes" and reviews and all(one.state == "COMMENTED" for one in reviews):
            told = RoundActs(this, made.summary, made.text, name=ANSWERED)
            await self._tell(told, pull, reviews, "github.answered")
            return Disposition("done", ANSWERED, "no change was needed")
        if shut:
            raise TaskStopped(Failed("code_unfit", f"{shut.code}: {shut.detail}", about=shut.about))
        return await self.code.offering.proposed(self._push(this, acts, files.work, made))

    async def _made(
        self, this: Round, pull: PullRequest, acts: TaskActs, files: PullFiles, reviews: Sequence[Review]
    ) -> Made:
        """Have the requested changes made and committed, and return the result."""
        tests = TreeTests(files.work, partial(self._suite_change, files.base))

        async def failing() -> str:
            """Return what fails, or which gate is closed; "" if nothing is wrong."""
            if failed := self.code.failed((await tests.result()).broken):
                return failed
            changes = read(await files.work.staged(this.sha))
            facts = GateFacts(changes.branch, changes, (), self.code.redactor.finds, acts.task.files)
            return gate_told(self.skills, closed_gate(facts))

        comments = read(await self.github.pulls.review_comments(this.repo, this.number))
        message = self._message(acts, pull, [(one, review_text(one, comments)) for one in reviews])
        end = await self._coded(this, acts, files.room_from(this.sha, files.fork), message, failing)
        changes, suites = read(await files.work.changes(this.sha)), await tests.result()
        facts = GateFacts(pull.head.ref, changes, suites.broken, self.code.redactor.finds, acts.task.files)
        return Made(facts, end.text, self._text(acts, pull, end, read(await files.work.changes(files.fork)), suites))

    def _text(
        self, acts: TaskActs, pull: PullRequest, end: CodingEnd, changes: BranchChanges, suites: SuiteChange
    ) -> str:
        """Return the new text of the pull request, which makes `changes`, after a round; "" to keep the present one."""
        if not end.description:
            return ""
        text = self.code.description(acts, end.description, changes, suites, is_draft=pull.draft)
        taken_up = [line for line in pull.body.splitlines() if line.endswith(TAKEN_UP)]
        return without_closing_words("\n\n".join([text, *taken_up]))

    async def _pushed(self, this: Round, push: Intent) -> Disposition:
        """Wait a while for a push to leave, and ask the reviewers again once it is done."""
        row = await self.outbox.settled(push.id) or push
        if row.state == "held":
            return Disposition("later", HELD, "its push waits for your approval", _AGAIN_S, row.id, held=True)
        if row.state not in ACTIVE_STATES:
            return await self._ended(this, Failed("not_sent", row.error or row.state))
        if row.state != "done":
            return Disposition("later", "on-its-way", "its push has not left yet", _AGAIN_S, row.id)
        if not isinstance(push.body, PushBody):
            raise TypeError("the push of a round is no push")
        try:
            pull = read(await self.github.pulls.get(this.repo, this.number))
            reviews = await self._reviews(this, pull) or ()
        except TaskStopped as stopped:
            return await self._ended(this, stopped.result)
        acts = RoundActs(this, push.body.summary_text, push.body.description_text)
        await self._tell(acts, pull, reviews, self.says)
        return Disposition("done", "pushed", row.result_uri or "", intent_id=row.id)

    async def _coded(
        self,
        this: Round,
        acts: TaskActs,
        room: CodingRoom,
        message: str,
        check: Callable[[], Awaitable[str]],
    ) -> CodingEnd:
        """Have the changes in `message` made and committed, and return how the agent ended.

        The work ends once `check` finds nothing wrong with it. Steps that were paid for before a crash are repeated.
        """
        agent, tree = self.code.agent, room.worktree
        job = CodingJob(
            key=f"{acts.cause}/{self.steps}-{this.count}",
            epoch=this.number,
            title=acts.task.title,
            files=acts.task.files,
            message=message,
            is_new=True,
            check=check,
            is_round=True,
        )
        try:
            await self.code.install(tree.tree)
            end = await agent.work(job, room, await agent.resume(job, room))
        except PolicyBlocked as refused:
            raise TaskStopped(Failed("not_allowed", str(refused))) from None
        if end.code != "finished":
            raise TaskStopped(Failed("code_unfinished", f"{end.code}: {end.text}"))
        steps = await agent.store.steps(job.key, job.epoch)
        by = f"{one_line(self.code.name, _LINE_CHARS)}:{one_line(agent.gateway.model, _LINE_CHARS)}"
        # NOTE(self): dated at the last step, so that a restarted process makes the same commit again.
        await self._commit(tree, f"{acts.title} ({self.what})\n\nAssisted-by: {by}\n", parse_iso(steps[-1].at))
        return end

    async def _commit(self, tree: Worktree, message: str, at: datetime) -> None:
        login = self.github.login
        read(await tree.commit(message, name=login, email=f"{login}@users.noreply.github.com", at=at))

    async def _suite_change(self, base: Path, tree: Path) -> SuiteChange:
        """Return what the pull request does to the tests."""
        agent, install = self.code.agent, self.code.install
        limits = agent.limits
        return await suite_change(
            base, tree, agent.sandbox, install, network=limits.network, seconds=limits.suite_seconds
        )

    def _message(self, acts: TaskActs, pull: PullRequest, reviews: Sequence[tuple[Review, str]]) -> str:
        """Return what the agent is told: the task, the text of its pull request, and each review with its text."""
        framer, place = Framer(self.skills, self.rng), acts.held.found.issue.html_url
        plan, task = (
            framer.frame("reading", author=acts.repo.full_name, uri=place, text=text)
            for text in (told_plan(acts.held.found.plan, acts.task), told_task(acts.task))
        )
        return self.skills.render(
            SKILL,
            "Revision",
            repo=acts.repo.full_name,
            plan=plan,
            task=f"{task}\n\n{told_talk(self.skills, framer, acts.held.talk)}".strip(),
            text=framer.frame(
                "reading",
                author=f"@{pull.author}",
                uri=pull.html_url,
                text=both_ends(without_html_comments(clean(pull.body)).strip(), _TEXT_CHARS),
            ),
            reviews="\n\n".join(
                framer.frame("reading", author=f"@{one.author}", uri=one.html_url, text=both_ends(text, _REVIEW_CHARS))
                for one, text in reviews
            ),
        )

    def _push(self, this: Round, acts: TaskActs, tree: Worktree, made: Made) -> ProposedAction:
        clone, changes = str(tree.repository.relative_to(self.checkout.root)), made.facts.changes
        shown = f"{made.summary}\n\n{shown_changes(changes, clone)}"
        push = PushBody(
            **for_workspace(acts.repo),
            task=acts.cause,
            text=shown,
            branch=changes.branch,
            sha=changes.sha,
            folder=clone,
            before=this.sha,
            paths=tuple(one.path for one in changes.files),
            summary_text=made.summary,
            description_text=made.text,
        )
        return ProposedAction(push, part=this.cause, cause_id=this.cause)

    async def _tell(self, acts: RoundActs, pull: PullRequest, reviews: Sequence[Review], says: str) -> None:
        """Update the pull request's text, post the author's summary, and ask for another review."""
        place = place_of_pull(acts.round.repo, pull)
        task = claim_key(acts.round.repo.owner, acts.round.repo.name, place.issue, place.number) if place else ""
        earlier = await self.outbox.done(task) if task else []
        for action in (
            *acts.description(pull.body, earlier),
            *acts.comment(partial(self.code.offering.phrase, says)),
            *acts.review_requests(one.author for one in reviews),
        ):
            await self.outbox.do_once(action)

    async def _ended(self, this: Round, result: WorkResult) -> Disposition:
        match result:
            case Deferred(reason=reason, retry_after=retry_after):
                raise Transient(reason, retry_after=retry_after)
            case Failed(problem=problem, detail=detail):
                return await self._tell_owner(this, problem, f"the round came to nothing: {detail or problem}")
            case Lost():
                return _GIVEN_BACK
        raise TypeError(f"a round does not end so: {result}")

    async def _tell_owner(self, this: Round, code: str, reason: str) -> Disposition:
        """Tell the owner that a person has to look at a pull request; its row is settled, so this happens once."""
        url = f"{self.github.page(this.repo)}/pull/{this.number}"
        summary = f"Your word is needed on {this.repo.full_name}#{this.number}: {url}"
        data = {"act": "review-stuck", "code": code, "repo": this.repo.full_name, "round": this.count}
        await self.journal.record(Entry("decision", REVISION, summary, "warn", reason, trigger_uri=url, data=data))
        return Disposition("silent", code, reason)


async def _ends_as(disposition: Disposition, watch: Awaitable[None]) -> Disposition:
    await watch
    return disposition
