"""The values that the ritual code passes around."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

from modules.services.identity.self_mechanics import DailyRitual

Part = Literal["analyst", "critic", "observer"]
"""The parts of an agent in one thread of a ritual; it may have another part in another thread."""
RunRole = Literal["initiator", "participant"]


@dataclass(frozen=True, slots=True)
class RitualRun:
    """One run of a ritual on one local date.

    Attributes:
        key: identifies the ritual: its name as a slug.
        day: the local date.
        name: the ritual's name in SELF.md at that time.
        role: whether we opened it.
        thread_uri: its opening post.
        opener: DID of the account that opened it.
        artefact_url: our memo, or our comment on the memo of the day; "" if there is none.
        note: the beginning of our memo, or of our post if there is none.
        took_part: DIDs of the others listed in SELF.md who answered the opening with a view.

    """

    key: str
    day: date
    name: str
    role: RunRole
    thread_uri: str
    opener: str
    artefact_url: str = ""
    note: str = ""
    took_part: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The unique id of a run: `<key>/<local date>`."""
        return f"{self.key}/{self.day.isoformat()}"


@dataclass(frozen=True, slots=True)
class RitualThread:
    """The thread of a run for an answer: the ritual as SELF.md has it now, and our part in this thread."""

    ritual: DailyRitual
    run: RitualRun
    part: Part
    context: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether we opened it."""
        return self.run.role == "initiator"
