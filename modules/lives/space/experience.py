"""What of a talk is kept in memory: every few messages, its latest words, so that a later thought can return to them.

They are words of others in part, so they rest on others' trust and validate little. Memory that cannot be reached costs
an experience, never the talk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from common.clock import Clock, local
from common.errors import PolicyBlocked, Transient
from common.provenance import Provenance
from modules.lives.space.decide import SESSION
from modules.lives.space.journal_reporter import LOOP
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.memory.admission import BODY_LENGTH, Words, admitted
from modules.services.agent.memory.types import MemoryStore, NewMemory
from modules.services.commitments.events import CommitmentKept
from modules.services.commitments.policy import title_of

_SUBJECTS = {"connection_formed": "A talk in the room", "helped_someone": "A promise kept"}
_IMPORTANCE = 2


@dataclass(frozen=True, slots=True)
class Experiences:
    """Keeps them in `store`.

    Attributes:
        store: of memories.
        journal: hears what could not be kept.
        clock: tells when.
        timezone: the SOUL's own; "" for the machine's.
        is_trusted_room: whether the owner named the room; else its words are strangers'.

    """

    store: MemoryStore
    journal: Journal
    clock: Clock
    timezone: str = ""
    is_trusted_room: Callable[[], bool] = lambda: True

    async def keep(self, kind: str, what: str) -> None:
        """Remember it, or say why not."""
        now = self.clock.now()
        try:
            whose = Provenance.PEER if self.is_trusted_room() else Provenance.STRANGER
            await self.store.save(experience_of(kind, what, now, self.timezone, whose), now)
        except (PolicyBlocked, Transient) as error:
            summary = "[space] An experience could not be remembered"
            await self.journal.record(Entry("error", LOOP, summary, line="warn", reason=str(error)))

    async def keep_commitment(self, event: CommitmentKept) -> None:
        """Remember a commitment that was made in the room and kept."""
        if event.commitment.source == "space":
            await self.keep("helped_someone", title_of(event.commitment))


def experience_of(
    kind: str, what: str, now: datetime, timezone: str = "", whose: Provenance = Provenance.PEER
) -> NewMemory:
    """The memory that an experience becomes: an episode of its own, whatever was remembered before."""
    subject = f"{_SUBJECTS.get(kind, kind)}, {local(now, timezone):%Y-%m-%d %H:%M:%S}"
    wish = NewMemory("episode", subject, what[:BODY_LENGTH], ("experience", kind), _IMPORTANCE)
    return admitted(wish, Words(whose, whose, SESSION))
