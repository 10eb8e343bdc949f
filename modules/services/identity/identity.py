"""Who the SOUL is: the account it answers by, and what its SELF.md says."""

from __future__ import annotations

from dataclasses import dataclass

from common.settings import Settings
from modules.runtime.home import Home, read_self
from modules.services.identity.self_document import SelfExtract, extract_display_name, extract_from_self


@dataclass(frozen=True, slots=True)
class Me:
    """Who answers: its account, its name on GitHub ("" if it has none), its owner, and the time zone of its day."""

    agent_name: str
    bluesky_username: str
    owner_handle: str
    owner_did: str
    timezone: str = ""
    github_username: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Me:
        """Return who the settings say we are."""
        return cls(
            agent_name=settings.agent_name,
            bluesky_username=settings.agent_bluesky_username,
            owner_handle=settings.owner_bluesky_social_handle,
            owner_did=settings.owner_bluesky_social_handle_did,
            timezone=settings.soul_timezone,
            github_username=settings.agent_github_username,
        )

    def is_owner(self, did: str) -> bool:
        """Return whether an account on Bluesky is the owner's."""
        return did == self.owner_did


class Identity:
    """Reads SELF.md afresh each time, since it changes."""

    def __init__(self, *, home: Home, agent_name: str) -> None:
        self._home = home
        self._agent_name = agent_name

    @property
    def display_name(self) -> str:
        return extract_display_name(read_self(self._home), fallback="Agent", agent_name=self._agent_name)

    def text(self) -> str:
        """SELF.md as it stands; "" when it cannot be read."""
        return read_self(self._home)

    def extract(self) -> SelfExtract:
        """What SELF.md says, by its headings."""
        return extract_from_self(read_self(self._home))
