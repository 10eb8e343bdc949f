"""Takes one commitment one step further: the next missing act goes to the outbox, and the last one is looked up.

Nothing is stored here but which acts belong to the running try. After a crash the rows of the outbox tell the rest:
what left is not sent again, what waits is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from adapters.github.types import Repo
from modules.services.commitments import acts
from modules.services.commitments.plans import PlanMaker
from modules.services.commitments.types import Progress, QueuedCommitment
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent, ProposedAction
from modules.services.voice_phrases.store import Phrase

HELD = "waits for the owner's yes"
NO_PLANS = "nobody makes plans here"


class Fulfiller:
    """Turns commitments into acts.

    Args:
        outbox: the only way out.
        phrase: returns operational texts.
        github: whether there is an account on GitHub to write as.
        plans: makes plans ready; without it commitments to plans wait.
        default_repo: the repository where a commitment names none, if there is one.
        social_only: whether this life keeps away from GitHub.

    """

    def __init__(
        self,
        outbox: Outbox,
        *,
        phrase: Phrase,
        github: bool,
        plans: PlanMaker | None = None,
        default_repo: Callable[[], Repo | None] = lambda: None,
        social_only: bool = False,
    ) -> None:
        self._outbox = outbox
        self._phrase = phrase
        self._github = github
        self._plans = plans
        self._default_repo = default_repo
        self._social_only = social_only
        self._tries: dict[str, str] = {}
        self._refused: dict[str, str] = {}

    def work(self, commitment: QueuedCommitment) -> acts.CommitmentWork:
        """What is to be done."""
        return acts.work_of(
            commitment,
            phrase=self._phrase,
            default_repo=self._default_repo(),
            github=self._github,
            social_only=self._social_only,
        )

    async def has_begun(self, commitment: QueuedCommitment) -> bool:
        """Whether an act of it is done or on its way."""
        for action in self.work(commitment).actions:
            row = await self._newest(action)
            if row is not None and row.state in ACTIVE_STATES:
                return True
        return False

    async def is_on_the_way(self, commitment: QueuedCommitment) -> bool:
        """Whether an act of it may still leave."""
        rows = [await self._newest(action) for action in self.work(commitment).actions]
        return any(row is not None and row.state in ACTIVE_STATES and row.state != "done" for row in rows)

    async def advance(self, commitment: QueuedCommitment) -> Progress:
        """Take the next step, if one can be taken. What was begun is never begun twice."""
        work = self.work(commitment)
        if work.plan_for:
            return await self._plans.prepare(commitment, work.plan_for) if self._plans else Progress("waits", NO_PLANS)
        if not work.actions:
            return Progress("failed" if work.problem else "waits", work.problem or work.waits)
        done: list[Intent] = []
        for action in work.actions:
            row = await self._newest(action)
            if row is None or row.state != "done":
                return await self._missing(commitment, action, row, done)
            done.append(row)
        return Progress("done", result=acts.result_of(commitment, done))

    async def latest_act(self, commitment: QueuedCommitment) -> str | None:
        """The id of the act that was last taken for it, so that its story can be told."""
        for action in reversed(self.work(commitment).actions):
            row = await self._newest(action)
            if row is not None:
                return row.id
        return None

    def forget(self, commitment: QueuedCommitment) -> None:
        """The try is over: the next one begins afresh."""
        for kept in (self._tries, self._refused):
            for target in [target for target in kept if target.rpartition("#")[0] == commitment.id]:
                del kept[target]

    async def _missing(
        self, commitment: QueuedCommitment, action: ProposedAction, row: Intent | None, done: list[Intent]
    ) -> Progress:
        so_far = acts.result_of(commitment, done) if done else dict(commitment.result or {})
        if row is not None and row.state in ACTIVE_STATES:
            return _under_way(row, so_far)
        if action.target in self._refused:
            return Progress("failed", self._refused[action.target], so_far)
        if row is not None and row.rejected:
            return Progress("refused", row.error or "", so_far)
        if row is not None and self._tries.get(action.target) == row.id:
            state: Literal["put_off", "failed"] = "put_off" if row.state == "expired" else "failed"
            return Progress(state, row.error or row.state, so_far)
        return await self._propose(action, so_far)

    async def _propose(self, action: ProposedAction, so_far: Mapping[str, Any]) -> Progress:
        submitted = await self._outbox.submit(action)
        if submitted.advice.code == "later":
            return Progress("later", submitted.advice.reason, so_far, submitted.advice.not_before)
        if submitted.advice.code == "silence":
            return Progress("unwelcome", submitted.reason, so_far)
        if not submitted.accepted:
            self._refused[action.target] = submitted.reason
            return Progress("failed", submitted.reason, so_far)
        self._tries[action.target] = submitted.intent.id
        return _under_way(submitted.intent, so_far)

    async def _newest(self, action: ProposedAction) -> Intent | None:
        """The row that counts: one that lives, else the latest."""
        rows = await self._outbox.by_target(action.kind, action.target)
        return next((row for row in rows if row.state in ACTIVE_STATES), rows[0] if rows else None)


def _under_way(row: Intent, so_far: Mapping[str, Any]) -> Progress:
    if row.state == "held":
        return Progress("held", HELD, so_far)
    return Progress("waits", row.error or "is on its way", so_far)
