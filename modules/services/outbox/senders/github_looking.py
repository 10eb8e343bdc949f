"""How an act is sent to GitHub that can be seen there once it is done.

It is looked for before it is done, so that what stands there already is left alone, and an answer that was lost is
found. What GitHub can do only upon a certain state (`over`, `sha`, `head_sha`) fails for good where that has changed:
who proposed it must read again. All requests of one act follow each other at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from adapters.github.types import Issue, PullRequest
from common.result import ApiResult, Err, Ok
from modules.services.outbox.github_bodies import NOT_IN_A_REPOSITORY, OnGitHub
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.outbox.senders.github import meant, repo_of
from modules.services.outbox.types import Intent, Sent

B = TypeVar("B", bound=OnGitHub)
Look = ApiResult[Sent | None]


@dataclass(frozen=True, slots=True)
class OvertakenErr(Err):
    """What the act was to be done upon is not there any more."""


CHANGED = OvertakenErr("somebody changed it since it was read", "invalid")


class ChangeSender(ABC, Generic[B]):
    """Sends intents whose bodies are of the types in `bodies`."""

    bodies: tuple[type[B], ...]

    def __init__(self, identity: RepositoryIdentity) -> None:
        self._github = identity.github
        self._identity = identity

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Do it, unless it is done already."""
        if not self._github.configured:
            return Err("there is no account on GitHub to write as", "auth")
        if not isinstance(body := intent.body, self.bodies):
            return Err("it names no repository and no change for GitHub", "invalid")
        async with self._github.burst():
            in_one = intent.kind not in NOT_IN_A_REPOSITORY
            if in_one and (refusal := await self._identity.write_refusal(repo_of(body))):
                return meant(refusal)
            standing = await self._look(intent, body, departs=True)
            if isinstance(standing, Err):
                return meant(standing)
            if standing.data is not None:
                return Ok(standing.data)
            done = await self._do(intent, body)
        return meant(done) if isinstance(done, Err) else done

    async def find(self, intent: Intent) -> Look:
        """Whether an earlier try arrived. One that was overtaken did not, as far as can be seen."""
        if not isinstance(body := intent.body, self.bodies):
            return Err("it names no repository and no change for GitHub", "invalid")
        async with self._github.burst():
            standing = await self._look(intent, body, departs=False)
        if isinstance(standing, OvertakenErr):
            return Ok(None)
        return meant(standing) if isinstance(standing, Err) else standing

    @abstractmethod
    async def _look(self, intent: Intent, body: B, *, departs: bool) -> Look:
        """Whether it is done; `departs` says that it sets out now, else an earlier try is looked for."""

    @abstractmethod
    async def _do(self, intent: Intent, body: B) -> ApiResult[Sent]:
        """Do it."""


def none_if_missing(error: Err) -> Look:
    """A look that found nothing, or could not look."""
    return Ok(None) if error.kind == "not_found" else error


def folded(names: tuple[str, ...]) -> set[str]:
    """Names as GitHub compares them."""
    return {name.lower() for name in names}


def sent(one: Issue | PullRequest) -> Sent:
    """Where it stands, and its number."""
    return Sent(one.html_url, "issue", str(one.number))
