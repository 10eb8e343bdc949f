"""Checks by its numeric id that a repository is the same one that its name stood for when it was first seen.

A repository can be deleted and recreated by somebody else, or move: then its old name is refused until the owner
accepts the new repository. The check is made before an act on GitHub is admitted, and again before the act leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Repo, Repository
from common.clock import iso
from common.result import ApiResult, Err, Ok, answering
from modules.services.pinned_names.store import PinnedNames


@dataclass(frozen=True, slots=True)
class AnotherRepositoryErr(Err):
    """The name now stands for another repository than when it was first seen."""


@dataclass(frozen=True, slots=True)
class RepositoryIdentity:
    """Compares the current numeric id of a repository with the first one, which is stored in `names`."""

    github: GitHub
    names: PinnedNames

    @answering
    async def check(self, repo: Repo) -> ApiResult[Repository]:
        """Return the repository under this name, or an `AnotherRepositoryErr` if it is another one.

        Raises `StorageError`.
        """
        answered, name = (await self.github.get_repository(repo)).or_raise(), repo.full_name
        if answered.full_name.lower() != name.lower():
            return AnotherRepositoryErr(f"{name} leads to {answered.full_name} now", "invalid")
        if not await self.names.check("repository", name, str(answered.id)):
            return AnotherRepositoryErr(
                f"{name} is another repository than when it was first seen; /trust repository:{name} accepts it",
                "invalid",
            )
        return Ok(answered)

    async def write_refusal(self, repo: Repo) -> Err | None:
        """Return why nothing may be written there, or None; a missing repository is left for the write to report."""
        found = await self.check(repo)
        return found if isinstance(found, Err) and found.kind != "not_found" else None

    def since(self, repo: Repo) -> str:
        """Return since when the name stands for its current repository, ISO-8601 UTC; "" if it is not known.

        Whatever was said about the name before was about another repository.
        """
        since = self.names.since("repository", repo.full_name)
        return iso(since) if since else ""
