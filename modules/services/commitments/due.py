"""What deserves attention of the commitments: what is under way, what is due, and what keeps failing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from common.clock import parse_iso_or_none
from modules.services.agent.attention_list import Attention, Due, Failing
from modules.services.agent.wakeup.gathering import WorkSource
from modules.services.agent.wakeup.state import Task, Work
from modules.services.commitments.naming import title_of
from modules.services.commitments.outcomes import OutcomePatterns
from modules.services.commitments.policy import COMMITMENT_STALE_THRESHOLD_MS
from modules.services.commitments.types import QueuedCommitment

_WITHIN = timedelta(milliseconds=COMMITMENT_STALE_THRESHOLD_MS)


def active_work(live: Callable[[], Sequence[QueuedCommitment]]) -> WorkSource:
    """Return what tells a SOUL that wakes which commitments are still to be fulfilled, each with its state."""

    async def work() -> Work:
        return Work(tasks=tuple(Task(title_of(one), one.status.replace("_", " ")) for one in live()))

    return work


class DueCommitments:
    """A source of attention. Commitments were made in public, so nothing of them is private.

    Args:
        live: the commitments that are still to be fulfilled.
        outcomes: how those of the last week ended.

    """

    def __init__(self, live: Callable[[], Sequence[QueuedCommitment]], outcomes: Callable[[], OutcomePatterns]) -> None:
        self._live = live
        self._outcomes = outcomes

    async def __call__(self) -> Attention:
        """Every live commitment with the moment at which it goes stale, and the kinds that failed more than once."""
        made = ((one, parse_iso_or_none(one.created_at)) for one in self._live())
        return Attention(
            commitments=tuple(Due(title_of(one), at + _WITHIN) for one, at in made if at is not None),
            failing=tuple(Failing(one.type, one.place, len(one.errors)) for one in self._outcomes().patterns),
        )
