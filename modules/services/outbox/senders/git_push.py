"""Pushes the commits of a clone by Git, once, and never over what stands there."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from adapters.git.client import Git
from common.result import ApiResult, Err, Ok
from modules.services.outbox.github_bodies import PushBody
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.outbox.senders.github import repo_of
from modules.services.outbox.senders.github_looking import CHANGED, ChangeSender, Look, none_if_missing
from modules.services.outbox.types import Intent, Sent


class PushSender(ChangeSender[PushBody]):
    """Sends intents of the kind `push`. A result's cid is the commit.

    Args:
        identity: of the repository, whose branch is looked for.
        git: pushes.
        root: the home, below which the clones lie.

    """

    bodies = (PushBody,)

    def __init__(self, identity: RepositoryIdentity, git: Git, root: Path) -> None:
        super().__init__(identity)
        self._git = git
        self._root = root

    async def _look(self, intent: Intent, body: PushBody, *, departs: bool) -> Look:
        found = await self._github.refs.get(repo_of(body), body.branch)
        if isinstance(found, Err):
            return CHANGED if body.before and found.kind == "not_found" else none_if_missing(found)
        if found.data.sha == body.sha:
            return Ok(self._sent(body))
        return Ok(None) if found.data.sha == body.before else CHANGED

    async def _do(self, intent: Intent, body: PushBody) -> ApiResult[Sent]:
        repo = repo_of(body)
        pushed = await self._git.push(self._root / body.folder, repo.owner, repo.name, body.branch, sha=body.sha)
        if isinstance(pushed, Err):
            return Err(pushed.error, "invalid") if pushed.kind == "conflict" else pushed
        found = await self._github.refs.get(repo, body.branch)
        if isinstance(found, Ok) and found.data.sha == body.sha:
            return Ok(self._sent(body))
        return Err("it was pushed, and is not seen there yet", "unknown_outcome")

    def _sent(self, body: PushBody) -> Sent:
        return Sent(f"{self._github.page(repo_of(body))}/tree/{quote(body.branch)}", "commit", body.sha)
