"""How an act is sent to GitHub that can be seen there once it is done.

It is looked for before it is done, so that what stands there already is left alone, and an answer that was lost is
found. What GitHub can do only upon a certain state (`over`, `sha`, `head_sha`) fails for good where that has changed:
who proposed it must read again. All requests of one act follow each other at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from adapters.github.types import Issue, PullRequest, Repo
from common.result import ApiResult, Err, Ok, answering
from modules.services.outbox.github_bodies import NOT_IN_A_REPOSITORY, OnGitHub
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.outbox.types import Intent, Sent

B = TypeVar("B", bound=OnGitHub)
T = TypeVar("T")

_FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class OvertakenErr(Err):
    """What the act was to be done upon is not there any more."""


CHANGED = OvertakenErr("somebody changed it since it was read", "invalid")


class ChangeSender(ABC, Generic[B]):
    """Sends intents whose bodies are of the types in `bodies`. What it asks of GitHub it takes with `or_raise`."""

    bodies: tuple[type[B], ...]

    def __init__(self, identity: RepositoryIdentity) -> None:
        self._github = identity.github
        self._identity = identity

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Do it, unless it is done already."""
        return meant(await self._sent(intent))

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Whether an earlier try arrived. One that was overtaken did not, as far as can be seen."""
        found = await self._found(intent)
        return Ok(None) if isinstance(found, OvertakenErr) else meant(found)

    @answering
    async def _sent(self, intent: Intent) -> ApiResult[Sent]:
        if not self._github.configured:
            return Err("there is no account on GitHub to write as", "auth")
        body = self._body(intent)
        async with self._github.burst():
            in_one = intent.kind not in NOT_IN_A_REPOSITORY
            if in_one and (refusal := await self._identity.write_refusal(repo_of(body))):
                return refusal
            return Ok(await self._look(intent, body, departs=True) or await self._do(intent, body))

    @answering
    async def _found(self, intent: Intent) -> ApiResult[Sent | None]:
        async with self._github.burst():
            return Ok(await self._look(intent, self._body(intent), departs=False))

    def _body(self, intent: Intent) -> B:
        if isinstance(body := intent.body, self.bodies):
            return body
        return Err("it names no repository and nothing to do on GitHub", "invalid").or_raise()

    @abstractmethod
    async def _look(self, intent: Intent, body: B, *, departs: bool) -> Sent | None:
        """Return what is done already; `departs` says that it sets out now, else an earlier try is looked for."""

    @abstractmethod
    async def _do(self, intent: Intent, body: B) -> Sent:
        """Do it."""


def repo_of(body: OnGitHub) -> Repo:
    """Return the repository that an act is for."""
    owner, _, name = body.repo.partition("/")
    return Repo(owner, name)


def mark(intent_id: str) -> str:
    """Return the unseen mark of an intent."""
    return f"<!-- soul:intent={intent_id} -->"


def marked(body: str, intent_id: str) -> str:
    """Return `body` with the mark of its intent."""
    return f"{body}\n\n{mark(intent_id)}" if body else mark(intent_id)


def meant(done: ApiResult[T]) -> ApiResult[T]:
    """What GitHub's refusals mean for one act: an account that may not write there need not wait for a day.

    What changed in between does not change back. An account that GitHub has closed does not end the life of a SOUL,
    which has other things to do.
    """
    if isinstance(done, Ok):
        return done
    forbidden = done.kind == "auth" and done.status == _FORBIDDEN
    return replace(done, kind="invalid") if forbidden or done.kind in {"fatal", "conflict"} else done


def folded(names: tuple[str, ...]) -> set[str]:
    """Names as GitHub compares them."""
    return {name.lower() for name in names}


def sent(one: Issue | PullRequest) -> Sent:
    """Where it stands, and its number."""
    return Sent(one.html_url, "issue", str(one.number))
