"""A task's files beside a repository that whoever changes them cannot reach.

The repository lies in another folder than the tree: programs that run in the tree see no `.git`, and what they put
there under that name is deleted before `git` looks. So no hook, no setting and no filter of theirs ever runs here. Of
the attributes in the tree those count that need no program.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from adapters.git.client import GIT_DEADLINE_S
from adapters.git.params import environment, is_valid_git_param
from adapters.git.process import GitRun, run_git
from common.result import ApiResult, Err, Ok

GIT = ".git"
_IGNORED = ("__pycache__/", "*.pyc", ".pytest_cache/", "node_modules/", ".venv/", "/target/")
_LINK_MODE, _MODULE_MODE = "120000", "160000"
_BINARY = "-\t-\t"
_ROLES = ("AUTHOR", "COMMITTER")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-renames")
_MOST_ERROR_CHARS = 300


class _GitFailed(Exception):
    """`git` did not do it."""

    def __init__(self, told: Err) -> None:
        super().__init__(told.error)
        self.told = told


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A file that differs from where the branch began: its size now (None once deleted), and what it is."""

    path: str
    size: int | None
    is_binary: bool = False
    is_link: bool = False
    is_repository: bool = False


@dataclass(frozen=True, slots=True)
class BranchChanges:
    """What a branch adds to the commit that it began at.

    Attributes:
        branch: on which the tree stands.
        sha: its newest commit.
        commits: how many it has beyond `base`.
        merges: how many of these are merges.
        holds_base: whether it still contains the commit it began at.
        files: that differ.
        patch: how the files differ, for people and for a search in the lines that it adds.
        stat: one line on how much changed.

    """

    branch: str
    sha: str
    commits: int
    merges: int
    holds_base: bool
    files: tuple[TreeChange, ...]
    patch: str
    stat: str

    @property
    def added(self) -> str:
        """The lines that it adds."""
        return "\n".join(line[1:] for line in self.patch.splitlines() if line.startswith("+"))


@dataclass(frozen=True, slots=True)
class Worktree:
    """The files of a task in `tree`, and a clone whose `.git` lies in `repository`."""

    repository: Path
    tree: Path

    def take(self, clone: Path) -> None:
        """Take a fresh clone apart into the two folders."""
        self.repository.mkdir(parents=True)
        (clone / GIT).rename(self.repository / GIT)
        exclude = self.repository / GIT / "info" / "exclude"
        exclude.parent.mkdir(exist_ok=True)
        exclude.write_text("".join(f"{line}\n" for line in _IGNORED))
        clone.rename(self.tree)

    async def begin(self, branch: str) -> ApiResult[str]:
        """Stand on `branch`, which begins at the default branch unless it is there. Returns the commit it begins at."""
        if not is_valid_git_param(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            base = await self._git("rev-parse", "--verify", "refs/remotes/origin/HEAD^{commit}")
            if not await self._git("for-each-ref", f"refs/heads/{branch}"):
                await self._git("update-ref", f"refs/heads/{branch}", base)
            await self._git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        except _GitFailed as failed:
            return failed.told
        return Ok(base)

    async def fork(self, branch: str) -> ApiResult[str]:
        """Return the commit at which what stands here left `branch` of the server."""
        if not is_valid_git_param(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            return Ok(await self._git("merge-base", f"refs/remotes/origin/{branch}", "HEAD"))
        except _GitFailed as failed:
            return failed.told

    async def tip(self, branch: str) -> ApiResult[str]:
        """Return the newest commit of `branch` of the server, as it was cloned."""
        if not is_valid_git_param(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            return Ok(await self._git("rev-parse", "--verify", f"refs/remotes/origin/{branch}^{{commit}}"))
        except _GitFailed as failed:
            return failed.told

    async def export(self, base: str, folder: Path) -> ApiResult[None]:
        """Write the files of a commit into a folder that is there, beside the tree, which stays as it is."""
        prefix = f"--prefix={await asyncio.to_thread(folder.resolve)}/"
        index = {"GIT_INDEX_FILE": str(self.repository.resolve() / GIT / "export-index")}
        try:
            await self._git("read-tree", base, more=index)
            await self._git("checkout-index", "--all", "--force", prefix, more=index)
        except _GitFailed as failed:
            return failed.told
        return Ok(None)

    async def touched(self, base: str) -> ApiResult[tuple[str, ...]]:
        """Return the files of the tree that differ from the commit `base`, committed or not."""
        try:
            await self._stage()
            return Ok(tuple((await self._git("diff", "--cached", "--name-only", "-z", *_PLAIN, base)).split("\0")[:-1]))
        except _GitFailed as failed:
            return failed.told

    async def paths(self) -> ApiResult[tuple[str, ...]]:
        """Return the paths of all files of the tree, committed or not, without those that it ignores."""
        try:
            await self._stage()
            return Ok(tuple((await self._git("ls-files", "-z")).split("\0")[:-1]))
        except _GitFailed as failed:
            return failed.told

    async def snapshot(self) -> ApiResult[str]:
        """Return the name that Git gives the files of the tree as they are, without those that it ignores."""
        try:
            await self._stage()
            return Ok(await self._git("write-tree"))
        except _GitFailed as failed:
            return failed.told

    async def merged(self, branch: str) -> ApiResult[str]:
        """Return Git's name of the files that a merge of what stands here into `branch` of the server would make.

        The error is of kind `conflict` where they cannot be merged.
        """
        if not is_valid_git_param(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            return Ok(await self._git("merge-tree", "--write-tree", f"refs/remotes/origin/{branch}", "HEAD"))
        except _GitFailed as failed:
            return replace(failed.told, kind="conflict")

    async def commit(self, message: str, *, name: str, email: str, at: datetime) -> ApiResult[bool]:
        """Commit all that changed in the tree; whether there was anything."""
        who = {f"GIT_{role}_{part}": value for role in _ROLES for part, value in (("NAME", name), ("EMAIL", email))}
        when = {f"GIT_{role}_DATE": f"{at:%Y-%m-%dT%H:%M:%S+00:00}" for role in _ROLES}
        try:
            await self._stage()
            if not await self._git("diff", "--cached", "--name-only", *_PLAIN):
                return Ok(data=False)
            await self._git("commit", "--quiet", "--no-verify", "--file=-", given=message, more=who | when)
        except _GitFailed as failed:
            return failed.told
        return Ok(data=True)

    async def changes(self, base: str) -> ApiResult[BranchChanges]:
        """Read what the branch adds to the commit `base`."""
        span = f"{base}..HEAD"
        try:
            counts = await self._git("diff", "--numstat", "-z", *_PLAIN, base, "HEAD")
            return Ok(
                BranchChanges(
                    branch=await self._git("symbolic-ref", "--short", "HEAD"),
                    sha=await self._git("rev-parse", "HEAD"),
                    commits=int(await self._git("rev-list", "--count", span)),
                    merges=int(await self._git("rev-list", "--count", "--merges", span)),
                    holds_base=await self._git("merge-base", base, "HEAD") == base,
                    files=await self._files(base, {line[4:] for line in counts.split("\0") if line[:4] == _BINARY}),
                    patch=await self._git("diff", *_PLAIN, base, "HEAD"),
                    stat=(await self._git("diff", "--shortstat", *_PLAIN, base, "HEAD")).strip(),
                )
            )
        except _GitFailed as failed:
            return failed.told

    async def _stage(self) -> None:
        await asyncio.to_thread(_delete_planted, self.tree)
        await self._git("add", "--all", "--", ".")

    async def _files(self, base: str, binaries: set[str]) -> tuple[TreeChange, ...]:
        """The changed files: `git diff --raw -z` tells of each its modes and objects, then its path."""
        fields = (await self._git("diff", "--raw", "-z", "--abbrev=40", *_PLAIN, base, "HEAD")).split("\0")
        found = []
        for told, path in zip(fields[::2], fields[1::2], strict=False):
            _, mode, _, blob, _ = told.split(" ")
            exists = blob.strip("0") and mode != _MODULE_MODE
            size = int(await self._git("cat-file", "-s", blob)) if exists else None
            found.append(TreeChange(path, size, path in binaries, mode == _LINK_MODE, mode == _MODULE_MODE))
        return tuple(found)

    async def _git(self, *arguments: str, given: str = "", more: Mapping[str, str] | None = None) -> str:
        """What `git` wrote. Raises `_GitFailed`."""
        env = environment("", login="", token="", home=str(self.repository), path=os.environ.get("PATH", os.defpath))
        places = (f"--git-dir={self.repository.resolve() / GIT}", f"--work-tree={self.tree.resolve()}")
        env |= more or {}
        run = await run_git((*places, *arguments), at=self.tree, env=env, deadline_s=GIT_DEADLINE_S, given=given)
        if isinstance(run, GitRun) and run.code == 0:
            return run.out.strip("\n")
        told = " ".join(run.told.split())[:_MOST_ERROR_CHARS] if isinstance(run, GitRun) else run.error
        raise _GitFailed(Err(f"git {arguments[0]} failed: {told}", "invalid"))


def _delete_planted(tree: Path) -> None:
    """Delete whatever is called `.git` below the tree, so that no repository of others is looked into."""
    for folder, folders, files in os.walk(tree):
        for name in (one for one in (*folders, *files) if one.lower() == GIT):
            planted = Path(folder) / name
            if planted.is_dir() and not planted.is_symlink():
                shutil.rmtree(planted)
            else:
                planted.unlink()
        folders[:] = [one for one in folders if one.lower() != GIT]
