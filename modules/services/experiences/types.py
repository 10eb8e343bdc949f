"""What an experience is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from common.impression import Impressed
from common.provenance import Trust

ExperienceType = Literal[
    "owner_guidance",
    "learned_something",
    "helped_someone",
    "was_challenged",
    "idea_resonated",
    "question_emerged",
    "connection_formed",
    "saw_perspective",
    "chose_silence",
]
IMPRESSED: Mapping[Impressed, ExperienceType] = {"challenge": "was_challenged", "question": "question_emerged"}
"""What an answer is kept as, where its author said that it was left with one of these."""
Source = Literal["bluesky", "github", "space", "terminal", "message", "commitment", "ritual"]


@dataclass(frozen=True, slots=True)
class NewExperience:
    """Something that was lived through.

    Attributes:
        type: what kind of experience it is.
        source: where it happened.
        key: of what happened; the same key is kept once.
        about: what it was about: the SOUL's own text, whole, or the program's; the owner's in `owner_guidance`. The
            SOUL's may repeat words of the people it wrote to.
        did: of the other person: a DID, or `github:<numeric id>`; "" if there is none, or it is not known.
        person: how they are shown.
        uri: where it happened.
        trust: of the least trusted person who took part.

    """

    type: ExperienceType
    source: Source
    key: str
    about: str = ""
    did: str = ""
    person: str = ""
    uri: str = ""
    trust: Trust = "self"


@dataclass(frozen=True, slots=True)
class Experience(NewExperience):
    """A stored experience, with its number and time (ISO-8601 UTC)."""

    id: int = 0
    at: str = ""

    @property
    def name(self) -> str:
        """How a change of SELF.md cites it."""
        return f"e{self.id}"


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """How many experiences there were, and when the first one was (ISO-8601 UTC; "" if there was none)."""

    total: int
    first_at: str
