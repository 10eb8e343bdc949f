"""Handles the row of a task: continues an earlier claim or claims the task, then has it done and settles the row.

The rules and gates of the outbox decide whether a task may be claimed now: a claim leaves at once, or not at all.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from adapters.github.types import Repo
from common.clock import Clock, doubled, parse_iso, seldom_s
from common.constants import LOG_MAX_DAYS
from common.errors import BudgetExceeded
from common.result import Err, ErrKind
from common.text.markdown import without_html_comments
from common.text.untrusted import one_line
from common.wording import told_outcome
from modules.lives.tasks.execute import Execution, cause_of
from modules.lives.tasks.offering import is_refused
from modules.lives.tasks.types import AlreadyDone, Blocked, Deferred, Failed, Lost, Opened, Stopped, TaskWorker
from modules.runtime.events import Publish
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.claim_requests import PlanReading, repo_of
from modules.services.claims.claimer import Claimer, ClaimOutcome, Claims
from modules.services.claims.lease_store import (
    ABANDONED,
    ASKS,
    TASK,
    TaskEnded,
    TaskOrders,
    TaskPlace,
    is_left,
    is_ordered,
    place_of,
)
from modules.services.claims.policy import Lease, LoseCode, get_claimable_tasks
from modules.services.outbox.github_bodies import IssueCommentBody, OfTask
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.plans.events import MAX_TASK_RETRIES, TaskEvent
from modules.services.plans.types import FoundPlan, Task, claim_key
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WorkTable
from modules.services.work.types import STOPPED, Disposition, Handler, Perceiver, WorkItem
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces


@dataclass(slots=True)
class ClaimDoor:
    """Asks the outbox whether the comment of a claim could leave now. `words` returns the text of that comment.

    The owner is told once for each plan and kind of reason why no claim is made, also after a restart.
    """

    outbox: Outbox
    etiquette: Etiquette
    journal: Journal
    words: Callable[[Task], str]
    clock: Clock

    async def opens(self, found: FoundPlan, task: Task, *, by_owner: bool) -> bool:
        """Return whether a task may be claimed, that is, whether the comment of its claim may be posted.

        A task that the owner ordered (`by_owner`) needs no further approval.
        """
        body = IssueCommentBody(**for_workspace(found.repo), number=found.number, body=self.words(task))
        key = claim_key(found.repo.owner, found.repo.name, found.number, task.number)
        advice = await self.outbox.advise(ProposedAction(body, part=f"claim:{key}", by_owner=by_owner))
        if advice.code == "admitted":
            return True
        await self.tell_shut(found, task, advice.code, advice.reason)
        return False

    async def count(self) -> None:
        """Count the comment of a won claim towards the limits of etiquette."""
        await self.etiquette.note_created()

    async def tell_shut(self, found: FoundPlan, task: Task, code: str, reason: str) -> None:
        """Tell the owner why a task is not claimed, once for each plan and kind of reason."""
        uri, now = found.issue.html_url, self.clock.now()
        told = await self.journal.with_act(CLAIM, _REFUSED, now - timedelta(days=LOG_MAX_DAYS), now)
        if any((one.entry.trigger_uri, one.entry.data["code"]) == (uri, code) for one in told):
            return
        summary = f"{task.name} of {found.repo.full_name}#{found.number} is not claimed"
        data = {"act": _REFUSED, "code": code, "repo": found.repo.full_name}
        await self.journal.record(Entry("decision", CLAIM, summary, "warn", reason, trigger_uri=uri, data=data))


CLAIM = "claim"
"""The name under which the journal records claims."""
_REFUSED = "claim-refused"
PAUSE_S = 180.0
"""Seconds without any claim after a task was put off. That task waits twice as long, so that others get a turn.

Both double, up to six hours: the wait of the task each time it is put off, the pause with each task in a row that is
put off. The reason is that each claim posts a comment of which people are notified.
"""
_LONGEST_PUT_OFF_S, _LONGEST_PAUSE_S = 21_600.0, 3_600.0
_LEFT_ALONE_S = 3_600.0
"""Seconds after which a task that failed too often is looked at again, as a person may have reset it."""
_NEVER_DROPPED = 10_000
_QUESTION_CHARS = 500
_LASTING: frozenset[ErrKind] = frozenset({"auth", "invalid", "not_found"})
"""Refusals of a claim by GitHub that a person has to resolve: by granting a right, or by changing a rule there."""
_LOST: frozenset[LoseCode | None] = frozenset({"contest", "earlier_claim"})
"""Codes of a claim that lost against another one."""


@dataclass(slots=True)
class TaskHandler(Handler):
    """Claims at most one task at a time, among those that the `worker` can do.

    `why_no_budget` returns why there is no budget for work now, "" if there is.
    """

    kind = TASK
    most_tries = _NEVER_DROPPED
    is_cut_off = True
    pause_s = PAUSE_S

    claims: Claims
    trust: WorkspaceTrust
    workspaces: WatchedWorkspaces
    worker: TaskWorker
    execution: Execution
    door: ClaimDoor
    journal: Journal
    clock: Clock
    publish: Publish
    orders: TaskOrders
    why_no_budget: Callable[[], Awaitable[str]]
    _paused_until_s: float = field(default=0.0, init=False)
    _put_off: int = field(default=0, init=False)
    """How many tasks in a row were put off, without one in between that ended."""

    async def handle(self, item: WorkItem) -> Disposition:
        """Do the task, or make it wait. Raises what the work raises."""
        place = place_of(item)
        leases = await self.claims.claimer.held()
        lease = next((one for one in leases if _is_of(one, place)), None)
        if is_left(item) or await self._is_refused(item, lease):
            return await self._left(lease)
        if wait := await self._wait(lease, leases, place.repo, by_owner=is_ordered(item)):
            return wait
        read = await self.claims.reader.read(place.repo, place.issue)
        if isinstance(read, Err):
            is_gone = lease is None and read.kind == "not_found"
            act, code = ("dropped" if is_ordered(item) else "silent", "gone") if is_gone else ("later", "unread")
            return Disposition(act, code, read.error)
        plan = read.data.plan
        found = FoundPlan(place.repo, read.data.issue, plan) if plan else None
        task = plan.task(place.number) if plan else None
        can_do = task is not None and self.worker.can_do(task)
        if task is not None and task.title != place.title:
            await self.orders.table.note(item, title=task.title)
        if lease is None:
            return await self._claim(item, read.data, found, task, can_do=can_do)
        if found is None or task is None or not can_do:
            await self.claims.claimer.release(lease, "pending")
            return Disposition("silent", "given-back", f"task {lease.number} of #{lease.issue} was given back")
        return await self._work(item, lease, found, task, reading=read.data)

    async def _left(self, lease: Lease | None) -> Disposition:
        """Give back a task that the owner wants left alone."""
        if lease is not None:
            await self.claims.claimer.release(lease, "pending")
            self.publish(TaskEnded())
        return Disposition("later", "left-alone", "the owner said to leave it", _LEFT_ALONE_S * 24)

    async def _is_refused(self, item: WorkItem, lease: Lease | None) -> bool:
        """Return whether the owner rejected an act of a task and did not order the task since; note to leave it."""
        place = place_of(item)
        acts = await self.door.outbox.by_cause(claim_key(place.repo.owner, place.repo.name, place.issue, place.number))
        refused = [one for one in acts if is_refused(one) and (lease is None or _is_under(lease, one))]
        if not refused or (lease is None and is_ordered(item)):
            return False
        await self.orders.table.note(item, left=True)
        summary = f"You rejected an act of task {item.key}: it is left alone"
        reason = f"{refused[0].deed}: {refused[0].error}; `/task {item.key}` has it tried again, with your reason"
        await self.journal.record(Entry("life", TASK, summary, line="done", reason=reason))
        return True

    async def _wait(
        self, lease: Lease | None, leases: Sequence[Lease], repo: Repo, *, by_owner: bool
    ) -> Disposition | None:
        """Return why our task cannot continue now, or why no task can be claimed now; None if work can go on.

        A task that the owner ordered (`by_owner`) is not delayed by another that was put off.
        """
        if lease is not None and self.clock.now() >= lease.until:
            # NOTE(self): nothing renewed it, as in a long pause; the task may be somebody else's by now, or gone.
            await self.claims.claimer.release(lease, "pending")
            return Disposition("silent", "given-back", "its claim ended while nothing was done for it")
        if lease is not None:
            waits = await self._waits_for_owner(lease) and await self.claims.claimer.check(lease)
            return Disposition("later", "needs-owner", "an act of it waits for your approval") if waits else None
        if self.workspaces.get(repo) is None and (not by_owner or self.workspaces.stopped_at(repo)):
            return Disposition("silent", "unwatched", f"{repo.full_name} is not watched any more")
        if leases:
            return Disposition("later", "busy", "another task is ours, and goes on first")
        if self.clock.monotonic() < self._paused_until_s and not by_owner:
            return Disposition("later", "pause", "another task was put off")
        if why := await self.why_no_budget():
            raise BudgetExceeded(f"no task is claimed: {why}")
        return None

    async def _waits_for_owner(self, lease: Lease) -> bool:
        """Return whether an act under a claim still waits for the owner's decision."""
        acts = await self.door.outbox.accepted(lease.key)
        return any(one.state == "held" and _is_under(lease, one) for one in acts)

    async def _claim(
        self,
        item: WorkItem,
        reading: PlanReading,
        found: FoundPlan | None,
        task: Task | None,
        *,
        can_do: bool,
    ) -> Disposition:
        is_free = found is not None and task in get_claimable_tasks(found.plan)
        if found is None or task is None or not can_do or not is_free:
            return _not_to_be_had(is_free=is_free)
        if not (await self.trust.accounts(found.repo)).covers(found.issue.account):
            return Disposition("silent", "untrusted", "the plan is by somebody whose words do not count")
        if not is_ordered(item) and (waits := await self._waits_for_people(item, reading, found, task)):
            return waits
        if not await self.door.opens(found, task, by_owner=is_ordered(item)):
            return Disposition("later", "not-allowed", "its claim may not be said now", 2 * PAUSE_S)
        outcome = await self.claims.claimer.claim(found.repo, reading, task.number)
        if outcome.lease is None:
            return await self._not_won(outcome, found, task)
        await self.door.count()
        await self._tell(found, task, "claimed", "claim-won", by=outcome.lease.soul, epoch=outcome.lease.epoch)
        return await self._work(item, outcome.lease, found, task, reading=reading)

    async def _waits_for_people(
        self, item: WorkItem, reading: PlanReading, found: FoundPlan, task: Task
    ) -> Disposition | None:
        """Return why a task waits for a person: an unanswered question, or too many failures; else None."""
        if asks := await self._asks(item, reading, task.number):
            return asks
        failures = reading.failures(task.number)
        if failures < MAX_TASK_RETRIES:
            return None
        if not reading.is_abandoned(task.number):
            await self._abandon(found, task, failures)
        if item.outcome != ABANDONED:
            await self._tell_owner(item, found, failures)
        return Disposition("later", ABANDONED, f"it failed {failures} times", _LEFT_ALONE_S)

    async def _asks(self, item: WorkItem, reading: PlanReading, number: int) -> Disposition | None:
        """Return a disposition that waits for an answer; None if nothing was asked, or it was answered."""
        if await self.claims.comments.is_on_its_way(str(item.payload.get("asked_as") or "")):
            return Disposition("later", ASKS, "its question has not left yet", self._seldom_s(item.created_at))
        asked = reading.open_question(number)
        if asked is None:
            return None
        question = one_line(without_html_comments(asked.body), _QUESTION_CHARS)
        await self.orders.table.note(item, question=question)
        return Disposition("later", ASKS, f"{asked.html_url} waits for an answer", self._seldom_s(asked.created_at))

    def _seldom_s(self, since: str) -> float:
        return seldom_s(self.clock.since(parse_iso(since)), PAUSE_S, _LEFT_ALONE_S)

    async def _not_won(self, outcome: ClaimOutcome, found: FoundPlan, task: Task) -> Disposition:
        """Report why a task was not claimed, and make it wait."""
        if outcome.refusal and outcome.refusal.kind in _LASTING:
            await self.door.tell_shut(found, task, "not_permitted", outcome.refusal.error)
            return Disposition("later", "not_permitted", outcome.refusal.error, _LEFT_ALONE_S)
        if outcome.code == "no_room":
            await self.door.tell_shut(found, task, "no_room", "its issue holds no more characters")
        else:
            act = "claim-lost" if outcome.code in _LOST else "not-claimed"
            await self._tell(
                found, task, f"not claimed: {told_outcome(outcome.code or 'failed')}", act, by=outcome.holder
            )
        return Disposition("later", outcome.code or "not-claimed", outcome.holder, 2 * PAUSE_S)

    async def _work(
        self,
        item: WorkItem,
        lease: Lease,
        found: FoundPlan,
        task: Task,
        *,
        reading: PlanReading,
    ) -> Disposition:
        result = await self.execution.run(lease, found, task, self.worker, reading)
        put_off_before, self._put_off = self._put_off, 0
        match result:
            case Deferred(reason=reason, retry_after=retry_after):
                least_s = min(retry_after or 0.0, _LONGEST_PAUSE_S)
                pause_s = doubled(PAUSE_S, put_off_before, _LONGEST_PUT_OFF_S)
                self._put_off = put_off_before + 1
                self._paused_until_s = self.clock.monotonic() + max(self.clock.real(pause_s), least_s)
                put_off_s = doubled(PAUSE_S, item.attempts + 1, _LONGEST_PUT_OFF_S)
                put_off_s = max(put_off_s, self.clock.lived(retry_after or 0.0))
                return Disposition("undecided", "deferred", reason, put_off_s)
            case Stopped(reason=reason):
                return Disposition("later", "needs-owner", reason)
            case Opened(url=url):
                disposition = Disposition("done", "opened", url)
            case AlreadyDone(summary=summary):
                disposition = Disposition("done", "already-there", summary)
            case Blocked(question=question):
                # NOTE(self): an order of the owner is carried out by now; the next try needs an answer.
                await self.orders.table.note(item, question=question, asked_as=cause_of(lease), left=None)
                disposition = Disposition("later", ASKS, question, PAUSE_S)
            case Failed(problem=problem):
                disposition = Disposition("silent", problem)
            case Lost() if await self.orders.is_left(place_of(item)):
                return await self._left(None)
            case Lost():
                return Disposition("silent", "lost", "somebody else has it, or it was given back")
            case None:
                return Disposition("silent", "ended", "it ended on an earlier try")
        self.publish(TaskEnded())
        return disposition

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        place = place_of(item)
        key = claim_key(place.repo.owner, place.repo.name, place.issue, place.number)
        kept = f". What was made is kept: soul why {key}" if disposition.code == STOPPED else ""
        return f"Task {place.number} of {place.repo.full_name}#{place.issue}: {told_outcome(disposition.code)}{kept}"

    async def _abandon(self, found: FoundPlan, task: Task, failures: int) -> None:
        """Say on the plan that a task is left alone; one SOUL does so for all."""
        cause = f"task-abandoned:{claim_key(found.repo.owner, found.repo.name, found.number, task.number)}"
        if self.claims.acting.ask_for_turn(cause):
            event = TaskEvent(task.number, "abandoned", failures)
            say = self.claims.comments.say
            await say(found.repo, found.number, "github.task_abandoned", event, cause, count=failures)

    async def _tell_owner(self, item: WorkItem, found: FoundPlan, failures: int) -> None:
        """Tell the owner that a task waits for them; the outcome of its row then prevents a repetition."""
        summary = f"Task {place_of(item).number} of {found.repo.full_name}#{found.number} failed {failures} times"
        reason = f"it is left alone; `/task {item.key}` has it tried again. {found.issue.html_url}"
        data = {"act": ABANDONED, "repo": found.repo.full_name}
        await self.journal.record(Entry("life", CLAIM, summary, line="warn", reason=reason, data=data))

    async def _tell(self, found: FoundPlan, task: Task, what: str, act: str, *, by: str, epoch: int = 0) -> None:
        summary = f"{task.name} of {found.repo.full_name}#{found.number} {what}{f' ({by})' if by else ''}"
        about = f"{claim_key(found.repo.owner, found.repo.name, found.number, task.number)}@{epoch}"
        data = {"act": act, "repo": found.repo.full_name, "about": about, "holder": by}
        await self.journal.record(Entry("life", CLAIM, summary, line="info", reason=task.title, data=data))


def _not_to_be_had(*, is_free: bool) -> Disposition:
    """Return the disposition of a task that nobody may claim, or that is free but that we cannot do."""
    if is_free:
        return Disposition("later", "no-worker", "SOUL_CODING is off, or there is no sandbox", _LEFT_ALONE_S)
    return Disposition("silent", "taken", "it is not to be had any more")


def _is_under(lease: Lease, act: Intent) -> bool:
    return isinstance(act.body, OfTask) and act.body.epoch == lease.epoch


def _is_of(lease: Lease, place: TaskPlace) -> bool:
    return (lease.owner, lease.repo, lease.issue, lease.number) == (
        place.repo.owner,
        place.repo.name,
        place.issue,
        place.number,
    )


@dataclass(frozen=True, slots=True)
class HeldTasks(Perceiver):
    """Gives each claimed task a waiting row, so that its work continues after a restart."""

    claimer: Claimer
    table: WorkTable

    async def perceive(self) -> None:
        """Offer a row for each claim that is held."""
        for lease in await self.claimer.held():
            await self.table.offer(TaskPlace(repo_of(lease), lease.issue, lease.number).row)


@dataclass(frozen=True, slots=True)
class TaskLife:
    """The loop of the life, its worker, and the owner's orders about tasks."""

    loop: WorkLoop
    orders: TaskOrders
    worker: TaskWorker

    def can_do(self, task: Task) -> bool:
        """Return whether the worker can do a task."""
        return self.worker.can_do(task)
