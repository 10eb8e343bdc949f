"""A task's files beside a repository that whoever changes them cannot reach.

The repository lies in another folder than the tree: programs that run in the tree see no `.git`, and what they put
there under that name is deleted before `git` looks. So no hook, no setting and no filter of theirs ever runs here. Of
the attributes in the tree those count that need no program.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
_MOST_COMMITS = 20
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_WEBP = (b"RIFF", b"WEBP")
_HEAD_BYTES = 12
_MOST_ERROR_CHARS = 300


class _GitFailed(Exception):
    """`git` did not do it."""

    def __init__(self, told: Err) -> None:
        super().__init__(told.error)
        self.told = told


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A file that differs from where the branch began.

    Attributes:
        path: of the file.
        size: in bytes now; None once deleted.
        blob: the object that holds its content now, "" once deleted.
        is_picture: whether a binary file begins as a PNG, JPEG, GIF or WebP does.

    """

    path: str
    size: int | None
    is_binary: bool = False
    is_link: bool = False
    is_repository: bool = False
    blob: str = field(default="", compare=False)
    is_picture: bool = False


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

    async def paths(self) -> ApiResult[tuple[str, ...]]:
        """Return the paths of all files of the tree, committed or not, without those that it ignores."""
        try:
            await self._stage()
            return Ok(tuple((await self._git("ls-files", "-z")).split("\0")[:-1]))
        except _GitFailed as failed:
            return failed.told

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
        try:
            return Ok(await self._changes(base, "HEAD"))
        except _GitFailed as failed:
            return failed.told

    async def staged(self, base: str, path: str = "") -> ApiResult[BranchChanges]:
        """Read what a commit of all that is in the tree, or of one file or folder, would add to the commit `base`.

        `commits` counts that commit too.
        """
        try:
            await self._stage()
            return Ok(await self._changes(base, "--cached", path=path))
        except _GitFailed as failed:
            return failed.told

    async def restore(self, base: str, path: str) -> ApiResult[None]:
        """Put a file or a folder back as it is in the commit `base`; what is not in there is deleted."""
        try:
            await self._stage()
            paths = _only(path) or ("--", ":/")
            await self._git("restore", f"--source={base}", "--staged", "--worktree", *paths)
        except _GitFailed as failed:
            return failed.told
        return Ok(None)

    async def log(self, base: str, path: str) -> ApiResult[str]:
        """Return the last commits up to `base` that changed a file or folder, one line each."""
        try:
            form = "--format=%h %ad %an: %s"
            return Ok(await self._git("log", f"-{_MOST_COMMITS}", form, "--date=short", base, *_only(path)))
        except _GitFailed as failed:
            return failed.told

    async def blame(self, base: str, path: str, first: int, last: int) -> ApiResult[str]:
        """Return which commit up to `base` each line of a file comes from."""
        try:
            return Ok(await self._git("blame", "--date=short", f"-L{first},{last}", base, "--", path))
        except _GitFailed as failed:
            return failed.told

    async def save(self, base: str, file: Path) -> ApiResult[None]:
        """Write all that differs from the commit `base` into a file, which `load` takes."""
        try:
            await self._stage()
            output = f"--output={await asyncio.to_thread(file.resolve)}"
            await self._git("diff", "--cached", "--binary", "--full-index", output, *_PLAIN, base)
        except _GitFailed as failed:
            return failed.told
        return Ok(None)

    async def load(self, file: Path) -> ApiResult[None]:
        """Make the changes that `save` wrote; none of them if one does not fit."""
        try:
            await self._git("apply", "--whitespace=nowarn", "--", str(await asyncio.to_thread(file.resolve)))
        except _GitFailed as failed:
            return failed.told
        return Ok(None)

    async def _changes(self, base: str, end: str, *, path: str = "") -> BranchChanges:
        """Read what `end`, which is a commit or `--cached`, adds to `base`."""

        async def diff(*options: str) -> str:
            return await self._git("diff", *options, *_PLAIN, *ends, *_only(path))

        ends = (end, base) if end == "--cached" else (base, end)
        counts = await diff("--numstat", "-z")
        binaries = {line[4:] for line in counts.split("\0") if line[:4] == _BINARY}
        return BranchChanges(
            branch=await self._git("symbolic-ref", "--short", "HEAD"),
            sha=await self._git("rev-parse", "HEAD"),
            commits=int(await self._git("rev-list", "--count", f"{base}..HEAD")) + (end == "--cached"),
            merges=int(await self._git("rev-list", "--count", "--merges", f"{base}..HEAD")),
            holds_base=await self._git("merge-base", base, "HEAD") == base,
            files=await self._files(await diff("--raw", "-z", "--abbrev=40"), binaries),
            patch=await diff(),
            stat=(await diff("--shortstat")).strip(),
        )

    async def _stage(self) -> None:
        """Stage all of the tree, but not a file that is as in HEAD and that Git would only write anew by attributes.

        # NOTE(self): such a file was committed before its attribute, and counts as changed right after a clone.
        """
        await asyncio.to_thread(_delete_planted, self.tree)
        await self._git("add", "--all", "--", ".")
        raw = await self._git("diff", "--cached", "--raw", "-z", "--abbrev=40", *_PLAIN, "HEAD")
        kept = await asyncio.to_thread(lambda: "".join(f"{entry}\0" for entry in _as_in_head(self.tree, raw)))
        if kept:
            await self._git("update-index", "-z", "--index-info", given=kept)

    async def _files(self, raw: str, binaries: set[str]) -> tuple[TreeChange, ...]:
        """The changed files of `git diff --raw -z`."""
        found = []
        for _, mode, _, blob, path in _raw(raw):
            is_there = bool(blob.strip("0"))
            exists = is_there and mode != _MODULE_MODE
            size = int(await self._git("cat-file", "-s", blob)) if exists else None
            is_picture = exists and path in binaries and await asyncio.to_thread(_is_picture, self.tree / path)
            kinds = (path in binaries, mode == _LINK_MODE, mode == _MODULE_MODE)
            found.append(TreeChange(path, size, *kinds, blob if is_there else "", is_picture))
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


def _only(path: str) -> tuple[str, ...]:
    """The arguments that limit a command to one file or folder; "" is all of them."""
    return ("--", f":(top,literal){path}") if path else ()


def _raw(told: str) -> Iterator[tuple[str, str, str, str, str]]:
    """The entries of `git diff --raw -z`: the modes before and after, the objects before and after, the path."""
    fields = told.split("\0")
    for entry, path in zip(fields[::2], fields[1::2], strict=False):
        before, mode, old, blob, _ = entry.lstrip(":").split(" ")
        yield before, mode, old, blob, path


def _as_in_head(tree: Path, raw: str) -> Iterator[str]:
    """Yield the entries of the index for files whose bytes in the tree are those of HEAD."""
    for before, mode, old, blob, path in _raw(raw):
        place = tree / path
        if before == mode and before not in {_LINK_MODE, _MODULE_MODE} and old != blob and place.is_file():
            content = place.read_bytes()
            if hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest() == old:
                yield f"{before} {old}\t{path}"


def _is_picture(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(_PICTURES) or (head.startswith(_WEBP[0]) and head.endswith(_WEBP[1]))


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
