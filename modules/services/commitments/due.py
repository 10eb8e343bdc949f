"""What deserves attention of the commitments: what is under way, what is due, and what keeps failing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from common.clock import parse_iso_or_none
from modules.services.agent.attention_list import AttentionNeeds, Failing, Item
from modules.services.commitments.naming import title_of
from modules.services.commitments.outcomes import FailurePattern
from modules.services.commitments.policy import COMMITMENT_STALE_THRESHOLD_MS
from modules.services.commitments.types import QueuedCommitment

_WITHIN = timedelta(milliseconds=COMMITMENT_STALE_THRESHOLD_MS)


@dataclass(frozen=True, slots=True)
class DueCommitments:
    """A source of attention. Commitments were made in public, so nothing of them is private.

    Attributes:
        live: the commitments that are still to be fulfilled.
        failed: what of the last week failed more than once.

    """

    live: Callable[[], Sequence[QueuedCommitment]]
    failed: Callable[[], Sequence[FailurePattern]]

    async def __call__(self) -> AttentionNeeds:
        """Return the live commitments, each with its state and when it goes stale, and what failed more than once."""
        made = ((one, parse_iso_or_none(one.created_at)) for one in self.live())
        return AttentionNeeds(
            commitments=tuple(
                Item(title_of(one), one.status.replace("_", " "), at + _WITHIN if at else None) for one, at in made
            ),
            failing=tuple(Failing(one.type, one.place, len(one.errors)) for one in self.failed()),
        )
