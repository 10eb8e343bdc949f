"""The base of senders to GitHub, whose acts can be seen there once they are done, and the sender of pushes.

A push is made by Git, once, and never overwrites other commits.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote

from adapters.git.client import Git
from adapters.github.types import Issue, PullRequest, Repo
from common.result import ApiResult, Err, Ok, answering
from modules.services.outbox.github_bodies import NOT_IN_A_REPOSITORY, OnGitHub, PushBody
from modules.services.outbox.types import Intent, Sent
from modules.services.pinned_names import RepositoryIdentity

B = TypeVar("B", bound=OnGitHub)
T = TypeVar("T")
_FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class OvertakenErr(Err):
    """The target of the act was changed or removed meanwhile."""


CHANGED = OvertakenErr("somebody changed it since it was read", "invalid")


class ChangeSender(ABC, Generic[B]):
    """Sends intents whose bodies have a type in `bodies`. Subclasses unwrap GitHub's answers with `or_raise`."""

    bodies: tuple[type[B], ...]

    def __init__(self, identity: RepositoryIdentity) -> None:
        self._github = identity.github
        self._identity = identity

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Perform the act, unless it is done already."""
        return meant(await self._sent(intent))

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Return the result of an earlier try that arrived. One that was overtaken counts as not arrived."""
        found = await self._found(intent)
        return Ok(None) if isinstance(found, OvertakenErr) else meant(found)

    @answering
    async def _sent(self, intent: Intent) -> ApiResult[Sent]:
        if not self._github.configured:
            return Err("there is no account on GitHub to write as", "auth")
        async with self._github.burst():
            body = await self._present(intent)
            return Ok(await self._look(intent, body, departs=True) or await self._do(intent, body))

    @answering
    async def _found(self, intent: Intent) -> ApiResult[Sent | None]:
        async with self._github.burst():
            return Ok(await self._look(intent, await self._present(intent), departs=False))

    async def _present(self, intent: Intent) -> B:
        """Return the body with the present name of its repository; a missing one is left for the act to report.

        Raises if nothing may be written there.
        """
        body = self._body(intent)
        if intent.kind in NOT_IN_A_REPOSITORY:
            return body
        there = (await self._identity.check(repo_of(body), follow=True)).or_else(None, "not_found")
        return body.model_copy(update={"repo": there.full_name}) if there else body

    def _body(self, intent: Intent) -> B:
        if isinstance(body := intent.body, self.bodies):
            return body
        return Err("it names no repository and nothing to do on GitHub", "invalid").or_raise()

    @abstractmethod
    async def _look(self, intent: Intent, body: B, *, departs: bool) -> Sent | None:
        """Return the result if the act is done already; `departs` if it is sent now, else look for an earlier try."""

    @abstractmethod
    async def _do(self, intent: Intent, body: B) -> Sent:
        """Perform the act."""


def repo_of(body: OnGitHub) -> Repo:
    """Return the repository that an act is for."""
    owner, _, name = body.repo.partition("/")
    return Repo(owner, name)


def mark(intent_id: str) -> str:
    """Return the invisible mark of an intent."""
    return f"<!-- soul:intent={intent_id} -->"


def marked(body: str, intent_id: str) -> str:
    """Return `body` with the mark of its intent."""
    return f"{body}\n\n{mark(intent_id)}" if body else mark(intent_id)


def meant(done: ApiResult[T]) -> ApiResult[T]:
    """Return GitHub's refusal as an error of one act: an account that may not write there need not retry for a day.

    A conflict does not resolve itself. A closed account on GitHub does not stop the SOUL, which has other things to do.
    """
    if isinstance(done, Ok):
        return done
    forbidden = done.kind == "auth" and done.status == _FORBIDDEN
    return replace(done, kind="invalid") if forbidden or done.kind in {"fatal", "conflict"} else done


def folded(names: tuple[str, ...]) -> set[str]:
    """Return names in lower case, as GitHub compares them."""
    return {name.lower() for name in names}


def sent(one: Issue | PullRequest) -> Sent:
    """Return the address and number of an issue or pull request as a result."""
    return Sent(one.html_url, "issue", str(one.number))


class PushSender(ChangeSender[PushBody]):
    """Sends intents of the kind `push`. The id of a result is the commit.

    Args:
        identity: checks the repository, and has the client that looks for the branch.
        git: makes the push.
        root: the home, which contains the clones.

    """

    bodies = (PushBody,)

    def __init__(self, identity: RepositoryIdentity, git: Git, root: Path) -> None:
        super().__init__(identity)
        self._git = git
        self._root = root

    async def _look(self, intent: Intent, body: PushBody, *, departs: bool) -> Sent | None:
        found = (await self._github.refs.get(repo_of(body), body.branch)).or_else(None, "not_found")
        stands = found.sha if found else ""
        if stands == body.sha:
            return self._at(body)
        return None if stands == body.before else CHANGED.or_raise()

    async def _do(self, intent: Intent, body: PushBody) -> Sent:
        repo = repo_of(body)
        folder = self._root / body.folder
        (await self._git.push(folder, repo.owner, repo.name, body.branch, sha=body.sha)).or_raise()
        found = (await self._github.refs.get(repo, body.branch)).or_else(None)
        if found is None or found.sha != body.sha:
            Err("it was pushed, and is not seen there yet", "unknown_outcome").or_raise()
        return self._at(body)

    def _at(self, body: PushBody) -> Sent:
        return Sent(f"{self._github.page(repo_of(body))}/tree/{quote(body.branch)}", "commit", body.sha)
