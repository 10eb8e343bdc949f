"""Where a coding task is done: a folder of its own below `.workrepos/`, kept until its pull request stands.

`tree` holds the files and is all that a program sees; `repository` holds the clone; `begun` says that the steps that
were paid for are carried out in the tree; `suites.json` holds how the tests stood before the work. Folders of other
claims on the same task are deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from adapters.git.client import Git
from adapters.git.worktree import Worktree
from adapters.github.types import Repo
from common.files import write_atomic
from common.result import ApiResult, Err, Ok
from common.trees import delete_tree
from modules.services.coding.environment.installer import move_installed
from modules.services.coding.suites import Suites

WORK_REPOS = ".workrepos"
"""The folder of the home in which repositories are worked on."""
KEPT = timedelta(days=30)
"""How long the folder of a task stays that waits for the owner, or was lost to somebody else."""


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """The folder of a task, by its number and its plan's, under the claim of `epoch`; `root` is the home."""

    root: Path
    repo: Repo
    issue: int
    task: int
    epoch: int

    @property
    def name(self) -> str:
        """Where it lies, from the home."""
        return f"{WORK_REPOS}/{self._stem}{self.epoch}"

    @property
    def clone(self) -> str:
        """Where the clone lies, from the home."""
        return f"{self.name}/repository"

    @property
    def worktree(self) -> Worktree:
        """The files, and their repository."""
        folder = self.root / self.name
        return Worktree(folder / "repository", folder / "tree")

    @property
    def is_begun(self) -> bool:
        """Whether the steps that were paid for are carried out in it."""
        return (self.root / self.name / "begun").exists()

    async def open(self, git: Git, now: datetime) -> ApiResult[Worktree]:
        """Have the files there: those of an earlier life, or a fresh clone. What is too old elsewhere is deleted."""
        folder, worktree = self.root / self.name, self.worktree
        await asyncio.to_thread(self._delete_others, now)
        if self.is_begun:
            return Ok(worktree)
        await asyncio.to_thread(delete_tree, folder)
        folder.mkdir(parents=True)
        cloned = await git.clone(self.repo.owner, self.repo.name, folder / "clone")
        if isinstance(cloned, Err):
            return cloned
        worktree.take(folder / "clone")
        return Ok(worktree)

    async def suites_before(
        self, base: str, install: Callable[[Path], Awaitable[str]], run: Callable[[Path], Awaitable[Suites]]
    ) -> ApiResult[Suites]:
        """Return how the tests stood at the commit `base`: run once, upon a copy, and kept.

        What `install` puts into the copy is moved into the tree afterwards.
        """
        folder = self.root / self.name
        kept, copy = folder / "suites.json", folder / "before"
        if kept.exists():
            return Ok(Suites.from_json(kept.read_text("utf-8")))
        await asyncio.to_thread(delete_tree, copy)
        copy.mkdir()
        exported = await self.worktree.export(base, copy)
        if isinstance(exported, Err):
            return exported
        lacks = await install(copy)
        suites = replace(await run(copy), lacks=lacks)
        await asyncio.to_thread(move_installed, copy, self.worktree.tree)
        write_atomic(kept, suites.to_json())
        await asyncio.to_thread(delete_tree, copy)
        return Ok(suites)

    def note_begun(self) -> None:
        """Note that the steps that were paid for are carried out."""
        (self.root / self.name / "begun").touch()

    async def delete(self) -> None:
        """Delete it."""
        await asyncio.to_thread(delete_tree, self.root / self.name)

    @property
    def _stem(self) -> str:
        return f"{self.repo.owner}-{self.repo.name}--{self.issue}-task-{self.task}-e"

    def _delete_others(self, now: datetime) -> None:
        for other in (self.root / WORK_REPOS).glob("*--*-task-*-e*"):
            is_older_claim = other.name.removeprefix(self._stem).isdecimal()
            is_old = now.timestamp() - other.stat().st_mtime > KEPT.total_seconds()
            if other != self.root / self.name and (is_older_claim or is_old):
                delete_tree(other)
