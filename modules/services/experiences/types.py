"""The types of experiences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from common.provenance import Trust
from common.schemas import Impressed

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
"""The experience type of an answer whose author was left with this impression."""
Source = Literal["bluesky", "github", "space", "terminal", "message", "commitment", "ritual"]


@dataclass(frozen=True, slots=True)
class NewExperience:
    """An experience to be stored.

    Attributes:
        type: its kind.
        source: where it happened.
        key: identifies it; the same key is stored once.
        about: what it was about: the whole text of the SOUL or the program; the owner's in `owner_guidance`. The SOUL's
            text may repeat words of the people it wrote to.
        did: the other person: a DID, or `github:<numeric id>`; "" if there is none, or it is unknown.
        person: how they are shown.
        uri: where it happened.
        trust: of the least trusted participant.

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
        """The name by which a change of SELF.md cites it."""
        return f"e{self.id}"
