"""Who the SOUL is, as each prompt tells it: SOUL.md, then SELF.md, then the ground rules, then the skill at hand."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from modules.home import Home, SoulDocument, read_self
from modules.self_document import SelfExtract, extract_display_name, extract_from_self
from modules.skills import Skills

_SEPARATOR = "\n\n---\n\n"
_SHA256_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Me:
    """Who answers: the account's name and owner, and the time zone of its day."""

    agent_name: str
    bluesky_username: str
    owner_handle: str
    owner_did: str
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One part of a prompt: its name, its length in characters, and of a document the first digits of its SHA-256."""

    name: str
    chars: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """What a model is told before anything else, and of what it was put together."""

    text: str
    parts: tuple[PromptPart, ...]


class Identity:
    """Reads SELF.md afresh each time, since it changes; SOUL.md once, since it must not."""

    def __init__(self, *, home: Home, soul: SoulDocument, skills: Skills, agent_name: str) -> None:
        self._home = home
        self._soul = soul
        self._skills = skills
        self._agent_name = agent_name

    @property
    def display_name(self) -> str:
        return extract_display_name(read_self(self._home), fallback="Agent", agent_name=self._agent_name)

    def extract(self) -> SelfExtract:
        """What SELF.md says, by its headings."""
        return extract_from_self(read_self(self._home))

    def system_prompt(self, skill: str, variables: Mapping[str, str] | None = None) -> SystemPrompt:
        """The whole system prompt for a skill. Raises `IdentityError` if SOUL.md is not what it was."""
        self._soul.check()
        own = read_self(self._home)
        soul, ground = self._soul.text.strip(), self._skills.render("core", "Ground Rules").strip()
        known = _SEPARATOR.join([own.strip(), ground]).strip()
        text = self._skills.build_system_prompt(soul, known, skill, variables)
        parts = (
            PromptPart("SOUL.md", len(soul), self._soul.sha256[:_SHA256_SHOWN]),
            PromptPart("SELF.md", len(own.strip()), hashlib.sha256(own.encode()).hexdigest()[:_SHA256_SHOWN]),
            PromptPart("ground rules", len(ground)),
            PromptPart(f"skill {skill}", len(text) - len(_SEPARATOR.join([soul, known, ""]))),
        )
        return SystemPrompt(text, parts)
