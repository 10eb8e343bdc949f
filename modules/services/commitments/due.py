"""What was promised, as something that is due: for the lines on what deserves attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from common.clock import parse_iso_or_none
from common.constants import COMMITMENT_STALE_THRESHOLD_MS
from modules.services.agent.attention_list import Attention, Due
from modules.services.commitments.policy import title_of
from modules.services.commitments.types import QueuedCommitment

_WITHIN = timedelta(milliseconds=COMMITMENT_STALE_THRESHOLD_MS)


class DueCommitments:
    """A source of attention: what `live` gives. Promises were made in the open, so nothing of them is private."""

    def __init__(self, live: Callable[[], Sequence[QueuedCommitment]]) -> None:
        self._live = live

    async def __call__(self) -> Attention:
        """Every promise that is still to be kept, with the moment until which it has sense."""
        made = ((one, parse_iso_or_none(one.created_at)) for one in self._live())
        return Attention(commitments=tuple(Due(title_of(one), at + _WITHIN) for one, at in made if at is not None))
