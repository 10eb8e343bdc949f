"""What the memory tools take. The field descriptions are what the model reads."""

from __future__ import annotations

from pydantic import BaseModel, Field

from modules.services.agent.memory.profiles import Subject
from modules.services.agent.memory.types import Kind


class MemorySaveInput(BaseModel):
    """Something to remember."""

    kind: Kind = Field(description="What sort of thing it is.")
    subject: str = Field(description="What or whom it is about, in a few words. The same subject again replaces it.")
    body: str = Field(description="The thing itself, in full sentences that can be understood later.")
    tags: list[str] = Field(default=[], description="A few words to find it by.")
    importance: int = Field(default=3, ge=1, le=5, description="1 a detail, 5 never to be forgotten.")
    share: bool = Field(default=False, description="True only if your owner said that others may know it.")


class MemorySearchInput(BaseModel):
    """What to look for."""

    query: str = Field(description="Words that stand in it. Empty for the newest.")
    kinds: list[Kind] = Field(default=[], description="Only these kinds. Leave empty for all.")
    since: str = Field(default="", description="Only from this day on, as 2026-01-31. Leave empty for all.")
    limit: int = Field(default=8, ge=1, le=20, description="At most so many.")


class MemoryHistoryInput(BaseModel):
    """One memory."""

    id: int = Field(description="The number in brackets, as memory_search shows it.")


class ProfileUpdateInput(BaseModel):
    """One field of a profile."""

    subject: Subject = Field(description="agent for yourself, user for your owner.")
    field: str = Field(description="Which field, one word, for example name or role.")
    value: str = Field(description="What it shall say.")
    evidence: str = Field(description="Your owner's own words that say so, copied exactly from this conversation.")


class OnboardingInput(BaseModel):
    """What the first talk with the owner came to."""

    user_name: str = Field(description="What your owner wants to be called. Empty if they did not say.")
    role: str = Field(description="What you are here for, in a few words. Empty if they did not say.")
    agent_name: str = Field(default="", description="Your name, if your owner gave you one.")
    voice: str = Field(default="", description="How you should sound.")
    limits: str = Field(default="", description="What you should never do or talk about.")
    user_location: str = Field(default="", description="Where your owner lives, or their time zone.")
    user_about: str = Field(default="", description="What matters to your owner.")

    @property
    def agent(self) -> dict[str, str]:
        """The SOUL's own profile."""
        return _said(name=self.agent_name, role=self.role, voice=self.voice, limits=self.limits)

    @property
    def user(self) -> dict[str, str]:
        """The owner's profile."""
        return _said(name=self.user_name, location=self.user_location, about=self.user_about)


def _said(**fields: str) -> dict[str, str]:
    return {name: value.strip() for name, value in fields.items() if value.strip()}
