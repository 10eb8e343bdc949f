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
from common.result import ApiResult, Err, Ok, answering
from common.trees import delete_tree
from modules.lives.tasks.code.folder import WORK_REPOS
from modules.services.coding.types import CodingRoom


@dataclass(frozen=True, slots=True)
class PullFiles:
    """The files of a pull request.

    Attributes:
        work: its branch.
        tested: what would stand after its merge, or its branch.
        base: what `tested` is compared with: what stands before that merge, or what the branch began with.
        fork: the commit that the branch began with.

    """

    work: Worktree
    tested: Path
    base: Path
    fork: str

    def room_from(self, start: str, base: str) -> CodingRoom:
        """Return the room in which the branch is changed from the commit `start` on, held against `base`."""
        return CodingRoom(self.work, base, self.base.with_name("tmp"), start)

    @answering
    async def room(self, name: str) -> ApiResult[CodingRoom]:
        """Return a room in a new folder with the files as they were committed, whatever ran in the tree."""
        folder = self.base.with_name(name)
        await asyncio.to_thread(folder.mkdir)
        (await self.work.export("HEAD", folder)).or_raise()
        return Ok(CodingRoom(Worktree(self.work.repository, folder), self.fork, folder.with_name(f"{name}-tmp")))


@dataclass(frozen=True, slots=True)
class Checkout:
    """Clones a pull request into the home `root`; no program that runs in its files sees the repository."""

    git: Git
    root: Path

    @asynccontextmanager
    async def of(self, repo: Repo, pull: PullRequest, what: str) -> AsyncIterator[ApiResult[PullFiles]]:
        """Have its newest commit there, merged where that can be, in a folder for `what`, for example `review`.

        The error is of kind `conflict` where another one stands there by now.
        """
        try:
            yield await self.open(repo, pull, what, is_merged=True)
        finally:
            await self.delete(repo, pull.number, what)

    @answering
    async def open(self, repo: Repo, pull: PullRequest, what: str, *, is_merged: bool = False) -> ApiResult[PullFiles]:
        """Have it there as `of` does, until it is deleted; not merged unless `is_merged`."""
        await self.delete(repo, pull.number, what)
        folder = self._folder(repo, pull.number, what)
        await asyncio.to_thread(folder.mkdir, parents=True)
        (await self.git.clone(repo.owner, repo.name, folder / "clone", branch=pull.head.ref)).or_raise()
        worktree = Worktree(folder / "repository", folder / "tree")
        worktree.take(folder / "clone")
        (await worktree.begin(pull.head.ref)).or_raise()
        if (await worktree.head()).or_raise() != pull.head.sha:
            return Err(f"{pull.head.ref} stands on another commit by now", "conflict")
        return Ok(await self._files(worktree, folder, pull.base.ref, is_merged=is_merged))

    async def _files(self, worktree: Worktree, folder: Path, branch: str, *, is_merged: bool) -> PullFiles:
        base = fork = (await worktree.fork(branch)).or_raise()
        tested = worktree.tree
        merged = await worktree.merged(branch) if is_merged else None
        if isinstance(merged, Ok):
            base, tested = (await worktree.tip(branch)).or_raise(), folder / "merged"
            tested.mkdir()
            (await worktree.export(merged.data, tested)).or_raise()
        files = PullFiles(worktree, tested, folder / "base", fork)
        files.base.mkdir()
        (await worktree.export(base, files.base)).or_raise()
        return files

    async def delete(self, repo: Repo, number: int, what: str) -> None:
        """Delete the folder for `what` of pull request `number`, if it is there."""
        await asyncio.to_thread(delete_tree, self._folder(repo, number, what))

    def _folder(self, repo: Repo, number: int, what: str) -> Path:
        return self.root / WORK_REPOS / f"{repo.owner}-{repo.name}--{what}-{number}"
