"""Who the SOUL is, as each prompt tells it: SOUL.md, then SELF.md, then the ground rules, then the skill at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from modules.home import Home, SoulDocument, read_self
from modules.self_document import SelfExtract, extract_display_name, extract_from_self
from modules.skills import Skills

_SEPARATOR = "\n\n---\n\n"


@dataclass(frozen=True, slots=True)
class Me:
    """Who answers: the account's name and owner, and the time zone of its day."""

    agent_name: str
    bluesky_username: str
    owner_handle: str
    owner_did: str
    timezone: str = ""


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

    def system_prompt(self, skill: str, variables: Mapping[str, str] | None = None) -> str:
        """The whole system prompt for a skill. Raises `IdentityError` if SOUL.md is not what it was."""
        self._soul.check()
        own = _SEPARATOR.join([read_self(self._home).strip(), self._skills.render("core", "Ground Rules")])
        return self._skills.build_system_prompt(self._soul.text, own, skill, variables)
