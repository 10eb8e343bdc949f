"""Git at work on the files of a task: a tree without a `.git` of its own, and a repository beside it."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from adapters.git.client import GIT_DEADLINE_S
from adapters.git.params import environment
from adapters.git.process import MIB, MOST_OUT_BYTES, GitRun, run_git
from adapters.git.sizes import MOST_PATH_BYTES
from common.result import Err
from common.trees import delete_tree, open_to_owner, walk

GIT = ".git"
LINK_MODE, MODULE_MODE = "120000", "160000"
SHOWN = ("--no-ext-diff", "--no-textconv")
PLAIN = (*SHOWN, "--no-renames")
_MOST_ERROR_CHARS = 300
_MOST_COMPARED_BYTES = 4 * MIB
_ENDED = (0,)


class GitFailed(Exception):
    """`git` did not do it."""

    def __init__(self, told: Err) -> None:
        super().__init__(told.error)
        self.told = told


@dataclass(frozen=True, slots=True)
class TreeGit:
    """Runs Git on `tree`, with the clone whose `.git` lies in `repository`. Its methods raise `GitFailed`."""

    repository: Path
    tree: Path

    async def _stage(self) -> None:
        """Stage all of the tree, but not a file that is as in HEAD and that Git would only write anew by attributes.

        # NOTE(self): such a file was committed before its attribute, and counts as changed right after a clone.
        """
        await asyncio.to_thread(open_to_owner, self.tree)
        if left := await asyncio.to_thread(_clear, self.tree):
            raise GitFailed(Err(f"{left} cannot be deleted", "invalid"))
        await self._git("add", "--all", "--", ".")
        raw = await self._git("diff", "--cached", "--raw", "-z", "--abbrev=40", *PLAIN, "HEAD")
        kept = await asyncio.to_thread(lambda: "".join(f"{entry}\0" for entry in _as_in_head(self.tree, raw)))
        if kept:
            await self._git("update-index", "-z", "--index-info", given=kept)

    async def _git(
        self,
        *arguments: str,
        given: str = "",
        more: Mapping[str, str] | None = None,
        ends: Collection[int] = _ENDED,
    ) -> str:
        """What `git` wrote. Raises `GitFailed` for any exit code but those in `ends`."""
        run = await self._run(*arguments, given=given, more=more, ends=ends)
        if run.is_cut:
            raise GitFailed(Err(f"git {arguments[0]} failed: {run.told}", "invalid"))
        return run.out.strip("\n")

    async def _run(
        self,
        *arguments: str,
        given: str = "",
        more: Mapping[str, str] | None = None,
        most_bytes: int = MOST_OUT_BYTES,
        ends: Collection[int] = _ENDED,
    ) -> GitRun:
        """Run `git` until it ends, or wrote more than `most_bytes`. Raises `GitFailed`."""
        env = environment("", login="", token="", home=str(self.repository), path=os.environ.get("PATH", os.defpath))
        places = (f"--git-dir={self.repository.resolve() / GIT}", f"--work-tree={self.tree.resolve()}")
        env |= more or {}
        run = await run_git(
            (*places, *arguments), at=self.tree, env=env, deadline_s=GIT_DEADLINE_S, given=given, most_bytes=most_bytes
        )
        if isinstance(run, GitRun) and (run.code in ends or run.is_cut):
            return run
        told = " ".join(run.told.split())[:_MOST_ERROR_CHARS] if isinstance(run, GitRun) else run.error
        raise GitFailed(Err(f"git {arguments[0]} failed: {told}", "invalid"))


def raw_changes(told: str) -> Iterator[tuple[str, str, str, str, str]]:
    """The entries of `git diff --raw -z`: the modes before and after, the objects before and after, the path."""
    fields = told.split("\0")
    for entry, path in zip(fields[::2], fields[1::2], strict=False):
        before, mode, old, blob, _ = entry.lstrip(":").split(" ")
        yield before, mode, old, blob, path


def _as_in_head(tree: Path, raw: str) -> Iterator[str]:
    """Yield the entries of the index for files whose bytes in the tree are those of HEAD."""
    for before, mode, old, blob, path in raw_changes(raw):
        place = tree / path
        if before == mode and before not in {LINK_MODE, MODULE_MODE} and old != blob and _is_small(place):
            content = place.read_bytes()
            if hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest() == old:
                yield f"{before} {old}\t{path}"


def _is_small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _MOST_COMPARED_BYTES


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
