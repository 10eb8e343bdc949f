"""The owner's and the SOUL's own accounts, as set in the settings."""

from __future__ import annotations

from dataclasses import dataclass

from common.settings import Settings


@dataclass(frozen=True, slots=True)
class Me:
    """The SOUL's account, its name on GitHub ("" if it has none), its owner, and the time zone of its day."""

    agent_name: str
    bluesky_username: str
    owner_handle: str
    owner_did: str
    timezone: str = ""
    github_username: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Me:
        """Return the identity that the settings describe."""
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
