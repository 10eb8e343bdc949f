"""Takes one commitment one step further: the next missing act goes to the outbox, and the last one is looked up.

Nothing is kept here: the commitment tells when its try began, and the rows of the outbox what became of its acts. What
left is not sent again, what waits is waited for, also after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from adapters.github.types import Repo
from common.clock import Clock, parse_iso, parse_iso_or_none
from modules.services.commitments import acts
from modules.services.commitments.params import PlanParams
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
        clock: tells when.
        phrase: returns operational texts.
        github: whether there is an account on GitHub to write as.
        plans: makes plans ready; without it commitments to plans wait.
        default_repo: the repository where a commitment names none, if there is one.
        social_only: whether this life keeps away from GitHub.

    """

    def __init__(
        self,
        outbox: Outbox,
        clock: Clock,
        *,
        phrase: Phrase,
        github: bool,
        plans: PlanMaker | None = None,
        default_repo: Callable[[], Repo | None] = lambda: None,
        social_only: bool = False,
    ) -> None:
        self._outbox = outbox
        self._clock = clock
        self._phrase = phrase
        self._github = github
        self._plans = plans
        self._default_repo = default_repo
        self._social_only = social_only

    def work(self, commitment: QueuedCommitment) -> acts.CommitmentWork:
        """What is to be done."""
        return acts.work_of(
            commitment,
            phrase=self._phrase,
            default_repo=self._default_repo(),
            github=self._github,
            social_only=self._social_only,
        )

    async def acts(self, commitment: QueuedCommitment) -> list[Intent]:
        """Return the rows of its acts in the outbox: of each the one that may still leave, or did, else the latest."""
        rows = [await self._newest(action) for action in self.work(commitment).actions]
        return [row for row in rows if row is not None]

    async def advance(self, commitment: QueuedCommitment) -> Progress:
        """Take the next step, if one can be taken. What was begun is never begun twice."""
        work = self.work(commitment)
        if work.plan_for and isinstance(commitment.params, PlanParams):
            if self._plans is None:
                return Progress("waits", NO_PLANS)
            return await self._plans.prepare(commitment, commitment.params, work.plan_for)
        if not work.actions:
            return Progress("failed" if work.problem else "waits", work.problem or work.waits)
        done: list[Intent] = []
        for action in work.actions:
            row = await self._newest(action)
            if row is None or row.state != "done":
                return await self._missing(commitment, action, row, done)
            done.append(row)
        return Progress("done", result=acts.result_of(commitment, done))

    async def _missing(
        self, commitment: QueuedCommitment, action: ProposedAction, row: Intent | None, done: list[Intent]
    ) -> Progress:
        so_far = acts.result_of(commitment, done) if done else dict(commitment.result or {})
        if row is not None and row.state in ACTIVE_STATES:
            return _under_way(row, so_far)
        if row is not None and row.rejected:
            return Progress("refused", row.error or "", so_far)
        if row is not None and self._is_of_this_try(row, commitment):
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
            return Progress("failed", submitted.reason, so_far)
        return _under_way(submitted.intent, so_far)

    def _is_of_this_try(self, row: Intent, commitment: QueuedCommitment) -> bool:
        """Whether the act was proposed since the try began; a later time than now is of a clock that was set back."""
        began = parse_iso_or_none(commitment.last_attempt_at)
        return began is not None and began <= parse_iso(row.created_at) <= self._clock.now()

    async def _newest(self, action: ProposedAction) -> Intent | None:
        """The row that counts: one that lives, else the latest."""
        rows = await self._outbox.by_target(action.kind, action.target)
        return next((row for row in rows if row.state in ACTIVE_STATES), rows[0] if rows else None)


def _under_way(row: Intent, so_far: Mapping[str, Any]) -> Progress:
    if row.state == "held":
        return Progress("held", HELD, so_far)
    return Progress("waits", row.error or "is on its way", so_far)
