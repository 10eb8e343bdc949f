"""Pushes the commits of a clone by Git, once, and never over what stands there."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from adapters.git.client import Git
from common.result import Err
from modules.services.outbox.github_bodies import PushBody
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.outbox.senders.github_looking import CHANGED, ChangeSender, repo_of
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
