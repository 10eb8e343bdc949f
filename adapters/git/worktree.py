"""A task's files beside a repository that whoever changes them cannot reach.

The repository lies in another folder than the tree: programs that run in the tree see no `.git`, and what they put
there under that name is deleted before `git` looks. So no hook, no setting and no filter of theirs ever runs here. Of
the attributes in the tree those count that need no program.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from adapters.git.changes import BranchChanges, Merging, TreeChange
from adapters.git.client import GIT_DEADLINE_S
from adapters.git.diffs import FileDiff, file_diffs, raw_entries
from adapters.git.params import environment, is_valid_git_param
from adapters.git.process import MIB, MOST_OUT_BYTES, GitRun, run_git
from adapters.git.sizes import LISTING, MOST_PATH_BYTES, why_too_large
from common.git_names import is_branch_name
from common.result import ApiResult, Err, Ok
from common.trees import delete_tree, open_to_owner, walk

GIT = ".git"
_IGNORED = ("__pycache__/", "*.pyc", ".pytest_cache/", "node_modules", ".venv", "/target/")
_LINK_MODE, _MODULE_MODE = "120000", "160000"
_BINARY = "-\t-\t"
_ROLES = ("AUTHOR", "COMMITTER")
_SHOWN = ("--no-ext-diff", "--no-textconv")
_PLAIN = (*_SHOWN, "--no-renames")
_ATTRIBUTES = "* !diff\n"
"""Goes before the attributes in the tree: what is text shows in a diff whatever those say of it."""
_MOST_ERROR_CHARS = 300
_MOST_PATCH_BYTES = 4 * MIB
_MOST_SUBJECTS = 20
_MERGE_HEAD = "MERGE_HEAD"
_MARKERS = ("<<<<<<< ", "||||||| ", ">>>>>>> ")
_DIVIDER = "======="
_ENDED, _ENDED_OR_CONFLICT, _ENDED_OR_MISSING = (0,), (0, 1), (0, 128)


class _GitFailed(Exception):
    """`git` did not do it."""

    def __init__(self, told: Err) -> None:
        super().__init__(told.error)
        self.told = told


@dataclass(frozen=True, slots=True)
class Worktree:
    """The files of a task in `tree`, and a clone whose `.git` lies in `repository`."""

    repository: Path
    tree: Path

    def take(self, clone: Path) -> None:
        """Take a fresh clone apart into the two folders."""
        self.repository.mkdir(parents=True)
        (clone / GIT).rename(self.repository / GIT)
        info = self.repository / GIT / "info"
        info.mkdir(exist_ok=True)
        (info / "exclude").write_text("".join(f"{line}\n" for line in _IGNORED))
        (info / "attributes").write_text(_ATTRIBUTES)
        clone.rename(self.tree)

    async def begin(self, branch: str) -> ApiResult[str]:
        """Stand on `branch`, which begins at the default branch unless it is there. Returns the commit it begins at."""
        if not is_branch_name(branch):
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
        if not is_branch_name(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            return Ok(await self._git("merge-base", f"refs/remotes/origin/{branch}", "HEAD"))
        except _GitFailed as failed:
            return failed.told

    async def tip(self, branch: str) -> ApiResult[str]:
        """Return the newest commit of `branch` of the server, as it was cloned."""
        if not is_branch_name(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            return Ok(await self._git("rev-parse", "--verify", f"refs/remotes/origin/{branch}^{{commit}}"))
        except _GitFailed as failed:
            return failed.told

    async def merge(self, theirs: str) -> ApiResult[Merging]:
        """Merge a commit into the files of the tree, whose own changes are lost; the next `commit` ends the merge.

        Nothing is run for it but `git` itself.
        """
        if not is_valid_git_param(theirs):
            return Err(f"{theirs!r} is nothing to hand to git", "invalid")
        try:
            ours = await self._git("rev-parse", "HEAD")
            merged = await self._git(
                "merge-tree", "--write-tree", "-z", "--name-only", ours, theirs, ends=_ENDED_OR_CONFLICT
            )
            listed, _, told = merged.partition("\0\0")
            tree, *conflicts = filter(None, listed.split("\0"))
            await self._git("read-tree", "--reset", "-u", tree)
            await self._git("update-ref", _MERGE_HEAD, theirs)
            return Ok(
                Merging(
                    ours=ours,
                    theirs=theirs,
                    conflicts=tuple(dict.fromkeys(conflicts)),
                    told=tuple(
                        line.strip() for line in told.split("\0") if line.startswith("CONFLICT") and ": " in line
                    ),
                    our_subjects=await self._subjects(theirs, ours),
                    their_subjects=await self._subjects(ours, theirs),
                )
            )
        except _GitFailed as failed:
            return failed.told

    async def unresolved(self, merging: Merging) -> ApiResult[tuple[str, ...]]:
        """Return the conflicting paths whose file still holds a conflict marker that it has on neither side."""
        try:
            await self._stage()
            return Ok(tuple([path for path in merging.conflicts if await self._is_unresolved(merging, path)]))
        except _GitFailed as failed:
            return failed.told

    async def export(self, base: str, folder: Path) -> ApiResult[None]:
        """Write the files of a commit into a folder that is there, beside the tree, which stays as it is.

        The error is of kind `invalid` where they are too many or too large.
        """
        prefix = f"--prefix={await asyncio.to_thread(folder.resolve)}/"
        index = {"GIT_INDEX_FILE": str(self.repository.resolve() / GIT / "export-index")}
        try:
            if wrong := why_too_large(await self._git(*LISTING, base)):
                return Err(f"git {base} is too large to work on: {wrong}", "invalid")
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
        if not is_branch_name(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            return Ok(await self._git("merge-tree", "--write-tree", f"refs/remotes/origin/{branch}", "HEAD"))
        except _GitFailed as failed:
            return replace(failed.told, kind="conflict")

    async def commit(self, message: str, *, name: str, email: str, at: datetime) -> ApiResult[bool]:
        """Commit all that changed in the tree, or the merge that stands in it; whether there was anything."""
        who = {f"GIT_{role}_{part}": value for role in _ROLES for part, value in (("NAME", name), ("EMAIL", email))}
        when = {f"GIT_{role}_DATE": f"{at:%Y-%m-%dT%H:%M:%S+00:00}" for role in _ROLES}
        try:
            await self._stage()
            is_merge = (self.repository / GIT / _MERGE_HEAD).exists()
            if not is_merge and not await self._git("diff", "--cached", "--name-only", *_PLAIN):
                return Ok(data=False)
            await self._git("commit", "--quiet", "--no-verify", "--file=-", given=message, more=who | when)
        except _GitFailed as failed:
            return failed.told
        return Ok(data=True)

    async def head(self) -> ApiResult[str]:
        """Return the commit that the branch stands on."""
        try:
            return Ok(await self._git("rev-parse", "HEAD"))
        except _GitFailed as failed:
            return failed.told

    async def changes(self, base: str, *, merged: str = "") -> ApiResult[BranchChanges]:
        """Read what the branch adds to the commit `base`.

        Where its newest commit is the merge of `merged` into `base`, how the files differ is read against `merged`.
        """
        span = ("HEAD", f"^{base}", *([f"^{merged}"] if merged else []))
        start = merged or base
        try:
            counts = await self._git("diff", "--numstat", "-z", *_PLAIN, start, "HEAD")
            patch = await self._run(
                "diff", "--irreversible-delete", *_PLAIN, start, "HEAD", most_bytes=_MOST_PATCH_BYTES
            )
            parents = (await self._git("rev-list", "--parents", "--max-count=1", "HEAD")).split()[1:]
            is_merge = bool(merged) and parents == [base, merged]
            return Ok(
                BranchChanges(
                    branch=await self._git("symbolic-ref", "--short", "HEAD"),
                    sha=await self._git("rev-parse", "HEAD"),
                    commits=int(await self._git("rev-list", "--count", *span)),
                    merges=int(await self._git("rev-list", "--count", "--merges", *span)) - is_merge,
                    holds_base=await self._git("merge-base", base, "HEAD") == base and is_merge == bool(merged),
                    files=await self._files(start, {line[4:] for line in counts.split("\0") if line[:4] == _BINARY}),
                    patch=patch.out.strip("\n"),
                    stat=(await self._git("diff", "--shortstat", *_PLAIN, start, "HEAD")).strip(),
                    base=start,
                    is_whole=not patch.is_cut,
                )
            )
        except _GitFailed as failed:
            return failed.told

    async def diffs(self, base: str) -> ApiResult[tuple[FileDiff, ...]]:
        """Read how each file of the newest commit differs from the commit `base`; moved files are found."""
        try:
            span = (*_SHOWN, "--find-renames", base, "HEAD")
            raw = await self._git("diff", "--raw", "-z", "--abbrev=40", *span)
            blobs = "".join(f"{one.blob}\n" for one in raw_entries(raw))
            told = await self._git("cat-file", "--batch-check=%(objectname) %(objectsize)", given=blobs)
            fields = (line.partition(" ") for line in told.split("\n"))
            sizes = {name: int(size) for name, _, size in fields if size.isdecimal()}
            return Ok(tuple(file_diffs(raw, await self._git("diff", *span), sizes)))
        except _GitFailed as failed:
            return failed.told

    async def _subjects(self, known: str, until: str) -> tuple[str, ...]:
        span = f"{known}..{until}"
        told = await self._git("log", "--no-merges", "--format=%s", f"--max-count={_MOST_SUBJECTS}", span)
        return tuple(told.split("\n"))

    async def _is_unresolved(self, merging: Merging, path: str) -> bool:
        staged, ours, theirs = [
            await self._git("cat-file", "-p", f"{where}:{path}", ends=_ENDED_OR_MISSING)
            for where in ("", merging.ours, merging.theirs)
        ]
        return bool(_markers(staged) - _markers(ours) - _markers(theirs))

    async def _stage(self) -> None:
        await asyncio.to_thread(open_to_owner, self.tree)
        if left := await asyncio.to_thread(_clear, self.tree):
            raise _GitFailed(Err(f"{left} cannot be deleted", "invalid"))
        await self._git("add", "--all", "--", ".")

    async def _files(self, base: str, binaries: set[str]) -> tuple[TreeChange, ...]:
        """The changed files: `git diff --raw -z` tells of each its modes and objects, then its path."""
        fields = (await self._git("diff", "--raw", "-z", "--abbrev=40", *_PLAIN, base, "HEAD")).split("\0")
        found = [(path, *told.split(" ")[1:4:2]) for told, path in zip(fields[::2], fields[1::2], strict=False)]
        blobs = [blob for _, mode, blob in found if blob.strip("0") and mode != _MODULE_MODE]
        told = await self._git("cat-file", "--batch-check=%(objectsize)", given="".join(f"{blob}\n" for blob in blobs))
        sizes = dict(zip(blobs, map(int, told.split()), strict=True))
        return tuple(
            TreeChange(path, sizes.get(blob), path in binaries, mode == _LINK_MODE, mode == _MODULE_MODE)
            for path, mode, blob in found
        )

    async def _git(
        self,
        *arguments: str,
        given: str = "",
        more: Mapping[str, str] | None = None,
        ends: Collection[int] = _ENDED,
    ) -> str:
        """What `git` wrote. Raises `_GitFailed` for any exit code but those in `ends`."""
        run = await self._run(*arguments, given=given, more=more, ends=ends)
        if run.is_cut:
            raise _GitFailed(Err(f"git {arguments[0]} failed: {run.told}", "invalid"))
        return run.out.strip("\n")

    async def _run(
        self,
        *arguments: str,
        given: str = "",
        more: Mapping[str, str] | None = None,
        most_bytes: int = MOST_OUT_BYTES,
        ends: Collection[int] = _ENDED,
    ) -> GitRun:
        """Run `git` until it ends, or wrote more than `most_bytes`. Raises `_GitFailed`."""
        env = environment("", login="", token="", home=str(self.repository), path=os.environ.get("PATH", os.defpath))
        places = (f"--git-dir={self.repository.resolve() / GIT}", f"--work-tree={self.tree.resolve()}")
        env |= more or {}
        run = await run_git(
            (*places, *arguments), at=self.tree, env=env, deadline_s=GIT_DEADLINE_S, given=given, most_bytes=most_bytes
        )
        if isinstance(run, GitRun) and (run.code in ends or run.is_cut):
            return run
        told = " ".join(run.told.split())[:_MOST_ERROR_CHARS] if isinstance(run, GitRun) else run.error
        raise _GitFailed(Err(f"git {arguments[0]} failed: {told}", "invalid"))


def _clear(tree: Path) -> str:
    """Delete whatever is called `.git` below the tree, and what lies too deep for git to name.

    So no repository of others is looked into. Return the path of one that could not be deleted, or "".
    """
    for place, folders, others in walk(tree):
        below = f"{place}/" if place else ""
        planted = {name for name in (*folders, *others) if name.lower() == GIT}
        too_deep = {name for name in folders if len(os.fsencode(below + name)) > MOST_PATH_BYTES}
        for name in planted | too_deep:
            if not delete_tree(tree / place / name):
                return below + name
        folders[:] = [name for name in folders if name not in planted | too_deep]
    return ""


def _markers(text: str) -> set[str]:
    """The lines of a text that look like conflict markers."""
    return {line for line in text.split("\n") if line.startswith(_MARKERS) or line.rstrip("\r") == _DIVIDER}
