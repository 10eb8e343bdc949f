"""What the memory tools take. Their descriptions stand in `skills/own-tools`."""

from __future__ import annotations

from pydantic import BaseModel, Field

from modules.services.memory.profiles import LIMITS, POSTING, POSTS_A_DAY, Subject
from modules.services.memory.types import Kind

MOST_FOUND = 20
"""A search finds at most so many."""


class MemorySaveInput(BaseModel):
    """Something to remember."""

    kind: Kind
    subject: str
    body: str
    tags: list[str] = []
    importance: int = Field(default=3, ge=1, le=5)
    share: bool = False


class MemorySearchInput(BaseModel):
    """What to look for."""

    query: str
    kinds: list[Kind] = []
    since: str = ""
    limit: int = Field(default=8, ge=1, le=MOST_FOUND)


class MemoryHistoryInput(BaseModel):
    """One memory."""

    id: int


class ProfileUpdateInput(BaseModel):
    """One field of a profile."""

    subject: Subject
    field: str
    value: str
    evidence: str


class OnboardingInput(BaseModel):
    """What the first talk with the owner came to."""

    user_name: str
    role: str
    agent_name: str = ""
    voice: str = ""
    limits: str = ""
    posting: str = ""
    posts_a_day: int | None = Field(default=None, ge=0)
    user_location: str = ""
    user_about: str = ""

    @property
    def agent(self) -> dict[str, str]:
        """The SOUL's own profile."""
        most = "" if self.posts_a_day is None else str(self.posts_a_day)
        known = {"name": self.agent_name, "role": self.role, "voice": self.voice}
        return _said(**known, **{LIMITS: self.limits, POSTING: self.posting, POSTS_A_DAY: most})

    @property
    def user(self) -> dict[str, str]:
        """The owner's profile."""
        return _said(name=self.user_name, location=self.user_location, about=self.user_about)


def _said(**fields: str) -> dict[str, str]:
    return {name: value.strip() for name, value in fields.items() if value.strip()}
