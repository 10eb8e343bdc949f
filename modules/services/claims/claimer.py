"""Claims tasks, stores the claims, and releases them: the protocol of `claiming.py` over GitHub and `soul.db`.

A claim is stored before each of its requests is sent, so that after `kill -9` between any two requests the next
`settle` undoes claims that were not won and keeps the others. Comments about a task on its plan go through the outbox,
once for each cause.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import Clock
from common.redact import Redactor
from common.result import Err
from common.text.github_text import without_mentions
from modules.services.claims.claim_requests import ClaimRequests, ClaimWords, PlanReader, PlanReading
from modules.services.claims.claiming import advance_claim, begin_claim, works_elsewhere
from modules.services.claims.lease_store import TaskLeases
from modules.services.claims.policy import (
    Action,
    ClaimAnswer,
    ClaimEvent,
    ClaimState,
    Lease,
    LineAnswer,
    LockAnswer,
    LoseCode,
    PlanRead,
    ResetLine,
    judge_lease,
    lease_of,
    release_actions,
    renewed,
)
from modules.services.outbox.github_bodies import IssueCommentBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ProposedAction
from modules.services.plans.events import TaskEvent, build_task_event_marker
from modules.services.plans.types import Expected, TaskChange
from modules.services.voice_phrases import Phrase
from modules.services.workspaces.acting import ActingTurns


def plain(text: str) -> str:
    """Return text of a plan or of work as a comment may contain it: it mentions nobody, and hides nothing."""
    return without_mentions(text).replace("<!--", "<!\u200b--")


class TaskComments:
    """Proposes comments in the words of the SOUL."""

    def __init__(self, outbox: Outbox, phrase: Phrase, redactor: Redactor) -> None:
        self._outbox = outbox
        self._phrase = phrase
        self._redactor = redactor

    async def say(self, repo: Repo, issue: int, phrase: str, event: TaskEvent, cause: str, **values: object) -> None:
        """Propose the comment named `phrase` with these values, on the issue of the plan."""
        body = IssueCommentBody(**for_workspace(repo), number=issue, body=self.text(phrase, event, **values))
        await self._outbox.submit(ProposedAction(body, once=cause, cause_id=cause))

    def text(self, phrase: str, event: TaskEvent, **values: object) -> str:
        """Return the text named `phrase` with these values, without mentions or secrets, and with an event marker."""
        told = {name: plain(self._redactor.text(str(value))) for name, value in values.items()}
        words = self._phrase(phrase, number=event.task, **told)
        return f"{words}\n\n{build_task_event_marker(event.task, event.event, event.attempt, event.about)}"

    async def rejections(self, cause: str) -> list[str]:
        """Return which acts of a cause the owner rejected, with their reasons, oldest first."""
        acts = await self._outbox.by_cause(cause)
        return [f"{one.deed}: {one.error}" for one in reversed(acts) if one.rejected]

    async def is_on_its_way(self, cause: str) -> bool:
        """Return whether a comment with this cause is still to be sent, for example after the owner's approval."""
        return any(one.state != "done" for one in await self._outbox.accepted(cause))

    async def said(self, cause: str) -> str:
        """Return the comment with this cause that was sent or is on its way; "" if there is none or it was put off."""
        found = await self._outbox.accepted(cause)
        return next((one.body.body for one in found if isinstance(one.body, IssueCommentBody)), "")


Ending = Literal["pending", "blocked", "opened", "completed"]
"""The state of a task when its work ends: free, blocked, completed, or `opened`, which stays ours until its merge."""
GIVEN_UP_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """The result of a claim: the lease if it was won; else the reason, and who has the task if known.

    `refusal` is the answer of GitHub to the request that failed.
    """

    lease: Lease | None
    code: LoseCode | None = None
    holder: str = ""
    refusal: Err | None = None


class Claimer:
    """The claims of one account. `settle` waits while a task is claimed or released."""

    def __init__(
        self,
        github: GitHub,
        leases: TaskLeases,
        reader: PlanReader,
        words: ClaimWords,
        clock: Clock,
        *,
        released: Callable[[], str],
    ) -> None:
        self._github = github
        self._released = released
        self._leases = leases
        self._clock = clock
        self.requests = ClaimRequests(github, reader, words, clock)
        self._has_loaded = False
        self._changing = asyncio.Lock()

    async def held(self) -> list[Lease]:
        """Return the leases that were won and not released, oldest first."""
        return [one for one in await self._all() if one.stage == "held"]

    async def claim(self, repo: Repo, reading: PlanReading, number: int) -> ClaimOutcome:
        """Claim a task of the plan that was just read. If the repository has branches, nothing is waited for."""
        async with self._changing:
            return await self._claim(repo, reading, number)

    async def start_work(self, lease: Lease) -> LineAnswer:
        """Mark the task as in progress; it is ours if that is `written`, and somebody else's only at a `conflict`.

        If the line is empty, another write at the same moment or a claimant that stepped down emptied it.
        """
        change, free = TaskChange("in_progress", lease.soul), Expected(frozenset({"", lease.soul}))
        return await self.requests.change_line(lease, change, free)

    async def check(self, lease: Lease) -> Lease | None:
        """Return the lease if it still holds, renewed if that is due; None if the work must stop."""
        reading = await self.requests.read(lease)
        now = self._clock.now()
        match judge_lease(lease, reading.snapshot(lease.number) if reading else None, now):
            case "keep":
                return lease
            case "renew":
                longer = renewed(lease, now)
                if not await self.requests.renew(longer):
                    return lease
                await self._leases.put(longer)
                return longer
            case "restore":
                free = Expected(frozenset({"", lease.soul}))
                await self.requests.change_line(lease, TaskChange("in_progress", lease.soul), free)
                return lease
            case _:
                return None

    async def release(self, lease: Lease, ending: Ending, note: str = "") -> None:
        """Release a task. What cannot be undone now is undone by `settle`; the task is then free (`pending`).

        The comment of the claim gets the `note`, so that no other comment has to say it. Without one, it says that we
        no longer work on the task, unless that is completed or has a pull request.
        """
        async with self._changing:
            ended = replace(lease, stage="ending")
            await self._leases.put(ended)
            await self._give_back(ended, ending, note)

    async def settle(self) -> list[Lease]:
        """Undo what is left of claims that were not won or have ended; return the leases that are not fully undone.

        After a day without success a lease is dropped: the plan is gone, or we may no longer change it.
        """
        async with self._changing:
            left = [one for one in await self._all() if one.stage != "held"]
            for lease in left:
                await self._give_back(lease, "pending")
                if self._clock.now() - lease.until > GIVEN_UP_AFTER:
                    await self._leases.end(lease)
            return [one for one in await self._leases.all() if one.stage != "held"]

    async def _claim(self, repo: Repo, reading: PlanReading, number: int) -> ClaimOutcome:
        await self._all()
        login = self._github.login
        state, actions = begin_claim(login, reading.issue.number, number, reading.snapshot(number))
        task = reading.plan.task(number) if reading.plan else None
        if state.stage == "lost" or task is None:
            return ClaimOutcome(None, state.code, state.holder)
        if not reading.has_room(number, login):
            return ClaimOutcome(None, "no_room")
        lease = lease_of(state, repo.owner, repo.name, self._clock.now())
        if not await self._leases.begin(lease):
            return ClaimOutcome(None, "taken", login)
        event: ClaimEvent | None = None
        async with self._github.burst():
            while state.stage not in {"won", "lost"}:
                event = None
                for action in actions:
                    if isinstance(action, PlanRead):
                        again = await self.requests.read(lease)
                        event = PlanRead(again.snapshot(number) if again else None)
                    else:
                        event = await self.requests.act(lease, action, task)
                if event is None:
                    raise ValueError(f"a claim that is {state.stage} has no answer to go on with")
                state, actions = advance_claim(state, event)
                lease = lease_of(state, repo.owner, repo.name, lease.since)
                await self._leases.put(lease)
            if state.code is not None:
                await self._step_down(lease, state, actions)
                refusal = event.refusal if isinstance(event, LockAnswer | LineAnswer | ClaimAnswer) else None
                return ClaimOutcome(None, state.code, state.holder, refusal if state.code == "failed" else None)
        return ClaimOutcome(lease)

    async def _step_down(self, lease: Lease, state: ClaimState, actions: Iterable[Action]) -> None:
        """Undo a lost claim. If a request failed, its effects may exist unseen, and are looked for."""
        if state.code == "failed" and lease.epoch:
            await self._give_back(lease, "pending")
        else:
            await self._undo(lease, actions)

    async def _all(self) -> list[Lease]:
        """Return all leases; the first call also decides what to do with those left by the previous process."""
        if self._has_loaded:
            return await self._leases.all()
        self._has_loaded = True
        return await self._leases.load()

    async def _give_back(self, lease: Lease, ending: Ending, note: str = "") -> None:
        reading = await self.requests.read(lease)
        if reading is None:
            return
        number = lease.number
        keeps_line = ending == "opened" or number in reading.open_pulls | reading.merged.keys()
        is_busy = reading.plan is not None and works_elsewhere(reading.plan, number, lease.soul)
        found = reading.claim_comment(number, lease.epoch, lease.soul)
        own = replace(lease, comment_id=lease.comment_id or found, has_lock=lease.epoch > 0)
        status: Literal["pending", "blocked", "completed"] = "pending" if ending == "opened" else ending
        note = note or ("" if keeps_line or ending == "completed" else self._released())
        actions = release_actions(own, status=status, busy=is_busy or keeps_line, note=note)
        await self._undo(own, [one for one in actions if not (keeps_line and isinstance(one, ResetLine))])

    async def _undo(self, lease: Lease, actions: Iterable[Action]) -> None:
        """Undo all that can be undone; end the lease once everything is."""
        undone = [await self.requests.undo(lease, action) for action in actions]
        if all(undone):
            await self._leases.end(lease)
        else:
            await self._leases.put(lease)


@dataclass(frozen=True, slots=True)
class Claims:
    """The services for claims of this SOUL.

    Attributes:
        claimer: claims tasks, stores the claims, and releases them.
        reader: reads a plan with everything that a claim depends on.
        comments: proposes comments on tasks.
        acting: whose turn it is for shared work, among us and the peers that were seen recently.
        words: returns the text for people in the comment of a claim.

    """

    claimer: Claimer
    reader: PlanReader
    comments: TaskComments
    acting: ActingTurns
    words: ClaimWords
