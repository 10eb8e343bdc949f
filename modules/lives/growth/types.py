"""The kinds of work, turns and events of reflections and readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from modules.runtime.events import Event
from modules.services.experiences.types import Experience

KIND = "reflection"
READING = "reading"
"""The kind of the rows that hold questions, the loop of their turns, and their skill."""

READ = "read"
"""The `act` of the journal entry about a question that was looked up."""

OTHERS = frozenset({"stranger", "peer"})
"""The trust levels of experiences with other people."""

Objection = Literal["Needs Experience", "One Source", "Wish Of Others", "Gives Orders"]
"""Why a change of SELF.md is refused; the name of a subsection of `Answers` in the skill `own-tools`."""


@dataclass(frozen=True, slots=True)
class ReflectionTurn:
    """What a reflection may cite: the experiences that it was shown, by name, and the cause of the skill to write."""

    experiences: Mapping[str, Experience]
    proposal: str = ""

    def cited(self, names: Iterable[str]) -> tuple[Experience, ...]:
        """Return the experiences of these names that the turn was shown, each once."""
        return tuple(self.experiences[name] for name in dict.fromkeys(names) if name in self.experiences)

    @property
    def has_others(self) -> bool:
        """Whether the turn was shown experiences with others, cited or not."""
        return any(one.trust in OTHERS for one in self.experiences.values())


@dataclass(frozen=True, slots=True)
class ReadingTurn:
    """What a reading was shown: addresses, each with the DID of the author."""

    seen: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReflectionDone(Event):
    """A reflection changed SELF.md; `text` is what the SOUL says about it."""

    text: str
