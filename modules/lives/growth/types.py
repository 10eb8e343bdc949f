"""The kinds of work, turns and events of reflection and of reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from modules.runtime.events import Event
from modules.services.experiences.types import Experience

KIND = "reflection"
READING = "reading"
"""The kind of the rows that hold what it wants to know, the loop of its turns, and its skill."""

READ = "read"
"""The `act` of the journal entry of a question that was looked up."""

OTHERS = frozenset({"stranger", "peer"})
"""The trust of experiences with other people."""

Objection = Literal["Needs Experience", "One Source", "Wish Of Others", "Gives Orders"]
"""Why a change of SELF.md is refused: a subsection of `Answers` in the skill `own-tools`."""


@dataclass(frozen=True, slots=True)
class ReflectionTurn:
    """What a turn of reflection may cite: the experiences that it was shown, by name, and the `proposal` to write."""

    experiences: Mapping[str, Experience]
    proposal: str = ""

    def cited(self, names: Iterable[str]) -> tuple[Experience, ...]:
        """Return those of these that it was shown."""
        return tuple(self.experiences[name] for name in dict.fromkeys(names) if name in self.experiences)

    @property
    def has_others(self) -> bool:
        """Whether it was shown experiences with others, whatever it cites."""
        return any(one.trust in OTHERS for one in self.experiences.values())


@dataclass(frozen=True, slots=True)
class ReadingTurn:
    """What a turn of reading was shown: addresses, each with the DID of whoever wrote what stands there."""

    seen: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReflectionDone(Event):
    """SELF.md was changed by a reflection; `text` is what the SOUL says of it."""

    text: str
