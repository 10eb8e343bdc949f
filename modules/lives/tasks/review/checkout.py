"""The files of a pull request, in a folder of their own below `.workrepos/`, for as long as they are needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.git.client import Git
from adapters.git.worktree import Worktree
from adapters.github.types import PullRequest, Repo
from common.files import delete_folder
from common.result import ApiResult, Err, Ok
from modules.lives.tasks.code.folder import WORK_REPOS


@dataclass(frozen=True, slots=True)
class PullFiles:
    """The files of a pull request, and in the folder `base` those that it began with."""

    work: Worktree
    base: Path


@dataclass(frozen=True, slots=True)
class Checkout:
    """Clones a pull request into the home `root`; no program that runs in its files sees the repository."""

    git: Git
    root: Path

    @asynccontextmanager
    async def of(self, repo: Repo, pull: PullRequest, what: str) -> AsyncIterator[ApiResult[PullFiles]]:
        """Have its newest commit there, in a folder for `what`, for example `review`.

        The error is of kind `conflict` where another one stands there by now.
        """
        try:
            yield await self.open(repo, pull, what)
        finally:
            await self.delete(repo, pull.number, what)

    async def open(self, repo: Repo, pull: PullRequest, what: str) -> ApiResult[PullFiles]:
        """Have it there as `of` does, until it is deleted."""
        await self.delete(repo, pull.number, what)
        folder = self._folder(repo, pull.number, what)
        await asyncio.to_thread(folder.mkdir, parents=True)
        cloned = await self.git.clone(repo.owner, repo.name, folder / "clone", branch=pull.head.ref)
        if isinstance(cloned, Err):
            return cloned
        worktree = Worktree(folder / "repository", folder / "tree")
        worktree.take(folder / "clone")
        base = await worktree.begin(pull.head.ref)
        changes = base if isinstance(base, Err) else await worktree.changes(base.data)
        if isinstance(changes, Err):
            return changes
        if changes.data.sha != pull.head.sha:
            return Err(f"{pull.head.ref} stands on another commit by now", "conflict")
        files = PullFiles(worktree, folder / "base")
        files.base.mkdir()
        fork = await worktree.fork(pull.base.ref)
        exported = fork if isinstance(fork, Err) else await worktree.export(fork.data, files.base)
        return exported if isinstance(exported, Err) else Ok(files)

    async def delete(self, repo: Repo, number: int, what: str) -> None:
        """Delete the folder for `what` of pull request `number`, if it is there."""
        await asyncio.to_thread(delete_folder, self._folder(repo, number, what))

    def _folder(self, repo: Repo, number: int, what: str) -> Path:
        return self.root / WORK_REPOS / f"{repo.owner}-{repo.name}--{what}-{number}"
