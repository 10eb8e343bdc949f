"""Where a coding task is done: a folder of its own below `.workrepos/`, kept until its pull request stands.

`tree` holds the files and `tmp` is `/tmp`: these are all that a program sees. `repository` holds the clone; `begun`
says that the steps that were paid for are carried out in the tree; `suites.json` holds how the tests stood before.
A try that came to no end leaves its changes in `kept.patch`, and the next claim on the task begins with them, as
`earlier.patch`, or `unfit.patch` where they do not fit any more. Then the folders of earlier claims are deleted.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from adapters.git.client import Git
from adapters.git.worktree import Worktree
from adapters.github.types import Repo
from common.files import write_atomic
from common.result import ApiResult, Err, Ok, answering
from common.trees import delete_tree
from modules.services.coding.environment.installer import move_installed
from modules.services.coding.suites import Suites
from modules.services.coding.types import CodingRoom

WORK_REPOS = ".workrepos"
"""The folder of the home in which repositories are worked on."""
KEPT = timedelta(days=30)
"""How long the folder of a task stays that waits for the owner or for another try, or was lost to somebody else."""

_KEPT_PATCH, _EARLIER_PATCH, _UNFIT_PATCH = "kept.patch", "earlier.patch", "unfit.patch"
_BASE = "refs/remotes/origin/HEAD"


@dataclass(frozen=True, slots=True)
class EarlierWork:
    """What an earlier try on a task changed, and whether that fits what is there now, and so is in the tree."""

    patch: str
    fits: bool


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

    def room(self, base: str) -> CodingRoom:
        """Return where the agent works, changes being held against the commit `base`."""
        return CodingRoom(self.worktree, base, self.root / self.name / "tmp")

    @answering
    async def open(self, git: Git, now: datetime) -> ApiResult[Worktree]:
        """Have the files there: those of an earlier life, or a fresh clone. What is too old elsewhere is deleted."""
        folder, worktree = self.root / self.name, self.worktree
        await asyncio.to_thread(self._delete_old, now)
        if self.is_begun:
            await asyncio.to_thread(self._delete_earlier)
            return Ok(worktree)
        await asyncio.to_thread(delete_tree, folder)
        folder.mkdir(parents=True)
        (await git.clone(self.repo.owner, self.repo.name, folder / "clone")).or_raise()
        worktree.take(folder / "clone")
        for earlier in self._earlier()[:1]:
            if (earlier / "begun").exists():
                await Worktree(earlier / "repository", earlier / "tree").save(_BASE, earlier / _KEPT_PATCH)
            if (kept := earlier / _KEPT_PATCH).exists():
                await asyncio.to_thread(shutil.copyfile, kept, folder / _EARLIER_PATCH)
        return Ok(worktree)

    async def take_up(self) -> EarlierWork | None:
        """Have in a fresh tree what an earlier try changed, if it fits; None where there is nothing."""
        patch, unfit = (self.root / self.name / name for name in (_EARLIER_PATCH, _UNFIT_PATCH))
        if patch.exists() and not self.is_begun and isinstance(await self.worktree.load(patch), Err):
            patch.rename(unfit)
        found = next((one for one in (patch, unfit) if one.exists()), None)
        return None if found is None else EarlierWork(found.read_text("utf-8", "replace"), found == patch)

    async def keep(self) -> None:
        """Keep what was changed for another try, and delete the rest; all of it if nothing was.

        What earlier tries kept stays until a try has begun with it.
        """
        folder, kept = self.root / self.name, self.root / self.name / _KEPT_PATCH
        if self.worktree.tree.exists():
            await self.worktree.save(_BASE, kept)
        if not (kept.exists() and kept.stat().st_size):
            if self.is_begun:
                return await self.delete()
            await asyncio.to_thread(delete_tree, folder)
            return None
        (folder / "begun").unlink(missing_ok=True)
        for inner in ("tree", "repository", "tmp"):
            await asyncio.to_thread(delete_tree, folder / inner)
        return None

    @answering
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
        (await self.worktree.export(base, copy)).or_raise()
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
        """Delete it, and those of earlier claims."""
        await asyncio.to_thread(delete_tree, self.root / self.name)
        await asyncio.to_thread(self._delete_earlier)

    @property
    def _stem(self) -> str:
        return f"{self.repo.owner}-{self.repo.name}--{self.issue}-task-{self.task}-e"

    def _earlier(self) -> list[Path]:
        """The folders of other claims on the task, the latest first."""
        found = {path.name.removeprefix(self._stem): path for path in (self.root / WORK_REPOS).glob(f"{self._stem}*")}
        others = [number for number in found if number.isdecimal() and int(number) != self.epoch]
        return [found[number] for number in sorted(others, key=int, reverse=True)]

    def _delete_earlier(self) -> None:
        for folder in self._earlier():
            delete_tree(folder)

    def _delete_old(self, now: datetime) -> None:
        for other in (self.root / WORK_REPOS).glob("*--*-task-*-e*"):
            if other != self.root / self.name and now.timestamp() - other.stat().st_mtime > KEPT.total_seconds():
                delete_tree(other)
