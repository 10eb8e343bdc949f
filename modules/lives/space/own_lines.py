"""What we ourselves said in rooms within the last days, so that no line is said again word for word.

It is read from the journal, which outlives the process and the pauses of a talk.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from common.clock import Clock
from common.constants import SPACE_OWN_LINES_KEPT_MS
from common.text.strings import dedup_key
from modules.lives.space.telling import LOOP
from modules.runtime.journal.journal import Journal

SPOKE = "spoke"

_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class OwnLines:
    """Our lines, as `journal` tells them."""

    journal: Journal
    clock: Clock

    async def hold(self, message: str) -> bool:
        """Whether we said the same words within the last days; a greeting of up to three words may come again."""
        if len(message.split()) < _FEWEST_WORDS:
            return False
        since = self.clock.now() - timedelta(milliseconds=SPACE_OWN_LINES_KEPT_MS)
        key = dedup_key(message)
        return any(dedup_key(said) == key for said in await self.journal.messages(LOOP, SPOKE, since))
