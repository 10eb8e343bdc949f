"""Tells whether a repository is the one that its name stood for when it was first seen, by the id that answers now.

A repository can be deleted and made anew by somebody else, or move: then its old name gives nothing until the owner
accepts what answers there. It is asked before an act on GitHub is admitted, and again before the act leaves.
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
    """Another repository answers under the name than when it was first seen."""


@dataclass(frozen=True, slots=True)
class RepositoryIdentity:
    """Compares the numeric id that answers with the one that is kept in `names`; the first one is kept."""

    github: GitHub
    names: PinnedNames

    @answering
    async def check(self, repo: Repo) -> ApiResult[Repository]:
        """Return the repository that answers; an `AnotherRepositoryErr` where it is another one.

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
        """Return why nothing may be written there now, None if it may; where there is none the write itself tells."""
        found = await self.check(repo)
        return found if isinstance(found, Err) and found.kind != "not_found" else None

    def since(self, repo: Repo) -> str:
        """Return since when the name stands for the repository that it stands for, ISO-8601 UTC; "" if it is not known.

        What was said of the name before that was said of another repository.
        """
        since = self.names.since("repository", repo.full_name)
        return iso(since) if since else ""
