"""Finds the workspace of an organisation. One that could not be looked for is never taken for one that is missing."""

from __future__ import annotations

from adapters.github.client import GitHub
from adapters.github.places import MAX_LISTED
from adapters.github.types import Repository
from common.clock import Clock
from common.result import ApiResult, Err, Ok, answering
from modules.services.workspaces.addresses import WORKSPACE_PREFIX

KNOWN_FOR_S = 600.0


class WorkspaceFinder:
    """Looks through the repositories of organisations; what it found counts for ten minutes. Keeps nothing on disk."""

    def __init__(self, github: GitHub, clock: Clock) -> None:
        self._github = github
        self._clock = clock
        self._found: dict[str, tuple[Repository | None, float]] = {}

    @answering
    async def find_existing_workspace(self, org: str, *, anew: bool = False) -> ApiResult[Repository | None]:
        """Return the first repository of an organisation that is named as a workspace; None where it has none.

        Each hundred repositories cost a request. With `anew` what was found before does not count.
        """
        known = self._found.get(org.lower())
        if known and not anew and self._clock.monotonic() - known[1] < KNOWN_FOR_S:
            return Ok(known[0])
        listed = (await self._github.repositories.of_organization(org, direction="asc")).or_raise()
        named = (one for one in listed if is_workspace_name(one.repo.name))
        found = min(named, key=precedence, default=None)
        if found is None and len(listed) >= MAX_LISTED:
            return Err(f"{org} has more repositories than can be looked through ({MAX_LISTED})", kind="invalid")
        self._found[org.lower()] = (found, self._clock.monotonic())
        return Ok(found)

    @answering
    async def get_workspace_url(self, org: str) -> ApiResult[str]:
        """Return the address of the workspace of an organisation; "" where it has none."""
        found = (await self.find_existing_workspace(org)).or_raise()
        return Ok(found.html_url if found else "")


def precedence(one: Repository) -> tuple[str, str]:
    """Return what orders the workspaces of an organisation: the oldest is the first, of several of one second by name.

    All who look at the same repositories find the same one, whenever they look.
    """
    return one.created_at, one.full_name.lower()


def is_workspace_name(name: str) -> bool:
    """Whether a repository of this name is a workspace."""
    return name.lower().startswith(WORKSPACE_PREFIX) and len(name) > len(WORKSPACE_PREFIX)
