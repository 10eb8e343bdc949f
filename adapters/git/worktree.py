"""Git on the files of a task, with the repository outside the tree.

Programs that run in the tree see no `.git`, and anything they create under that name is deleted before `git` looks. So
none of their hooks, settings or filters ever runs here. Attributes in the tree apply only if they need no program.
"""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from adapters.git.client import GIT_DEADLINE_S, MIB, MOST_OUT_BYTES, GitRun, run_git
from adapters.git.diffs import FileDiff, file_diffs, raw_entries
from adapters.git.params import LISTING, MOST_PATH_BYTES, environment, is_valid_git_param, why_too_large
from common.files import delete_tree, open_to_owner, walk
from common.git_names import is_branch_name
from common.result import ApiResult, Err, Ok

GIT = ".git"
LINK_MODE, MODULE_MODE = "120000", "160000"
SHOWN = ("--no-ext-diff", "--no-textconv")
PLAIN = (*SHOWN, "--no-renames")
_MOST_ERROR_CHARS = 300
_MOST_COMPARED_BYTES = 4 * MIB
_ENDED = (0,)


class GitFailed(Exception):
    """A run of `git` failed."""

    def __init__(self, told: Err) -> None:
        super().__init__(told.error)
        self.told = told


@dataclass(frozen=True, slots=True)
class TreeGit:
    """Runs Git on `tree`, with the clone whose `.git` is in `repository`. Its methods raise `GitFailed`."""

    repository: Path
    tree: Path

    async def _stage(self) -> None:
        """Stage the whole tree, except files that equal HEAD and that Git would only rewrite because of attributes.

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
        """Return the output of `git`. Raises `GitFailed` for any exit code but those in `ends`."""
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
        """Run `git` until it ends, or has written more than `most_bytes`. Raises `GitFailed`."""
        env = environment("", login="", token="", home=str(self.repository), path=os.environ.get("PATH", os.defpath))
        places = (f"--git-dir={self.repository.resolve() / GIT}", f"--work-tree={self.tree.resolve()}")
        env |= more or {}
        with _alone(self.repository / GIT) as handle:
            run = await run_git(
                (*places, *arguments),
                at=self.tree,
                env=env,
                deadline_s=GIT_DEADLINE_S,
                given=given,
                most_bytes=most_bytes,
                handles=(handle,),
            )
        if isinstance(run, GitRun) and (run.code in ends or run.is_cut):
            return run
        told = " ".join(run.told.split())[:_MOST_ERROR_CHARS] if isinstance(run, GitRun) else run.error
        raise GitFailed(Err(f"git {arguments[0]} failed: {told}", "invalid"))


@contextmanager
def _alone(git: Path) -> Iterator[int]:
    """Delete the locks that a killed `git` left, and yield a handle for the next one to inherit. Raises `GitFailed`.

    The lock on the handle is held for as long as that `git` runs, even if we are killed meanwhile.
    """
    try:
        handle = os.open(git, os.O_RDONLY)
    except OSError as error:
        raise GitFailed(Err(f"{git} cannot be opened: {error.strerror}", "invalid")) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for lock in (*git.glob("*.lock"), *(git / "refs").rglob("*.lock")):
            lock.unlink()
        yield handle
    except BlockingIOError:
        raise GitFailed(Err(f"another git still runs in {git}", "transient")) from None
    finally:
        os.close(handle)


def raw_changes(told: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the entries of `git diff --raw -z`: the modes before and after, the objects before and after, the path."""
    fields = told.split("\0")
    for entry, path in zip(fields[::2], fields[1::2], strict=False):
        before, mode, old, blob, _ = entry.lstrip(":").split(" ")
        yield before, mode, old, blob, path


def _as_in_head(tree: Path, raw: str) -> Iterator[str]:
    """Yield the index entries of files whose bytes in the tree equal those in HEAD."""
    for before, mode, old, blob, path in raw_changes(raw):
        place = tree / path
        if before == mode and before not in {LINK_MODE, MODULE_MODE} and old != blob and _is_small(place):
            content = place.read_bytes()
            if hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest() == old:
                yield f"{before} {old}\t{path}"


def _is_small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _MOST_COMPARED_BYTES


def _clear(tree: Path) -> str:
    """Delete everything named `.git` below the tree, and folders too deep for git to name.

    So no other repository is read. Return the path of one that could not be deleted, or "".
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


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A file that differs from where the branch began.

    Attributes:
        path: the path of the file.
        size: its present size in bytes; None if deleted.
        blob: the object with its present content, "" if deleted.
        is_picture: whether a binary file begins like a PNG, JPEG, GIF or WebP.

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
        branch: the branch that is checked out.
        sha: its newest commit.
        commits: how many commits it has beyond `base`.
        merges: how many of these are merges, besides the one that was asked for.
        holds_base: whether it still contains the commit it began at.
        files: the files that differ.
        patch: how the files differ, for people and for a search in the added lines. For a deleted file it has only the
            name.
        base: the commit that it is compared with.
        is_whole: whether `patch` is complete: one of more than 4 MiB is cut.
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
    base: str = ""
    is_whole: bool = True

    @property
    def added(self) -> str:
        """The lines that it adds."""
        return "\n".join(line[1:] for line in self.patch.split("\n") if line.startswith("+"))


@dataclass(frozen=True, slots=True)
class Merging:
    """A merge that is in the tree but not committed yet.

    Attributes:
        start: a commit on no branch with the files as Git merged them, conflict markers included.
        ours: the commit that is merged into.
        theirs: the commit that is merged.
        conflicts: the paths that Git could not merge; their files hold conflict markers if both sides are text.
        told: Git's messages about the conflicts, one line each.
        our_subjects: the subjects of the commits that only `ours` has, newest first.
        their_subjects: those of the commits that only `theirs` has.

    """

    start: str
    ours: str
    theirs: str
    conflicts: tuple[str, ...]
    told: tuple[str, ...]
    our_subjects: tuple[str, ...]
    their_subjects: tuple[str, ...]


_IGNORED = ("__pycache__/", "*.pyc", ".pytest_cache/", "node_modules", ".venv", ".soul-packages", "/target/")
_BINARY = "-\t-\t"
_ROLES = ("AUTHOR", "COMMITTER")
_ATTRIBUTES = "* !diff\n"
"""Overrides the attributes in the tree: text is shown in a diff whatever they say."""
_MOST_COMMITS = 20
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_WEBP = (b"RIFF", b"WEBP")
_HEAD_BYTES = 12
_MOST_PATCH_BYTES = 4 * MIB
_MOST_SUBJECTS = 20
_MERGE_HEAD = "MERGE_HEAD"
_MARKERS = ("<<<<<<< ", "||||||| ", ">>>>>>> ")
_DIVIDER = "======="
_ENDED_OR_CONFLICT, _ENDED_OR_MISSING = (0, 1), (0, 128)


@dataclass(frozen=True, slots=True)
class Worktree(TreeGit):
    """The files of a task in `tree`, and a clone whose `.git` is in `repository`."""

    def take(self, clone: Path) -> None:
        """Split a fresh clone into the two folders."""
        self.repository.mkdir(parents=True)
        (clone / GIT).rename(self.repository / GIT)
        info = self.repository / GIT / "info"
        info.mkdir(exist_ok=True)
        (info / "exclude").write_text("".join(f"{line}\n" for line in _IGNORED))
        (info / "attributes").write_text(_ATTRIBUTES)
        clone.rename(self.tree)

    async def begin(self, branch: str) -> ApiResult[str]:
        """Check out `branch`, which is created from the default branch if it is absent. Return the base commit."""
        if not is_branch_name(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            base = await self._git("rev-parse", "--verify", "refs/remotes/origin/HEAD^{commit}")
            if not await self._git("for-each-ref", f"refs/heads/{branch}"):
                await self._git("update-ref", f"refs/heads/{branch}", base)
            await self._git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        except GitFailed as failed:
            return failed.told
        return Ok(base)

    async def fork(self, branch: str) -> ApiResult[str]:
        """Return the commit at which HEAD left `branch` of the server."""
        if not is_branch_name(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            return Ok(await self._git("merge-base", f"refs/remotes/origin/{branch}", "HEAD"))
        except GitFailed as failed:
            return failed.told

    async def tip(self, branch: str) -> ApiResult[str]:
        """Return the newest commit of `branch` of the server, as of the clone."""
        if not is_branch_name(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            return Ok(await self._git("rev-parse", "--verify", f"refs/remotes/origin/{branch}^{{commit}}"))
        except GitFailed as failed:
            return failed.told

    async def merge(self, theirs: str) -> ApiResult[Merging]:
        """Merge a commit into the files of the tree, whose own changes are lost; the next `commit` completes the merge.

        No program but `git` is run for it.
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
            nobody = {f"GIT_{role}_{part}": "merge" for role in _ROLES for part in ("NAME", "EMAIL")}
            parents = ("-p", ours, "-p", theirs)
            return Ok(
                Merging(
                    start=await self._git("commit-tree", tree, *parents, given="Merge\n", more=nobody),
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
        except GitFailed as failed:
            return failed.told

    async def unresolved(self, merging: Merging) -> ApiResult[tuple[str, ...]]:
        """Return the conflicting paths whose file still holds a conflict marker that is on neither side."""
        try:
            await self._stage()
            return Ok(tuple([path for path in merging.conflicts if await self._is_unresolved(merging, path)]))
        except GitFailed as failed:
            return failed.told

    async def export(self, base: str, folder: Path) -> ApiResult[None]:
        """Write the files of a commit into an existing folder outside the tree, which stays unchanged.

        The error is of kind `invalid` if they are too many or too large.
        """
        prefix = f"--prefix={await asyncio.to_thread(folder.resolve)}/"
        index = {"GIT_INDEX_FILE": str(self.repository.resolve() / GIT / "export-index")}
        try:
            if wrong := why_too_large(await self._git(*LISTING, base)):
                return Err(f"git {base} is too large to work on: {wrong}", "invalid")
            await self._git("read-tree", base, more=index)
            await self._git("checkout-index", "--all", "--force", prefix, more=index)
        except GitFailed as failed:
            return failed.told
        return Ok(None)

    async def paths(self) -> ApiResult[tuple[str, ...]]:
        """Return the paths of all files of the tree, committed or not, without ignored ones."""
        try:
            await self._stage()
            return Ok(tuple((await self._git("ls-files", "-z")).split("\0")[:-1]))
        except GitFailed as failed:
            return failed.told

    async def snapshot(self) -> ApiResult[str]:
        """Return Git's hash of the files of the tree as they are, without ignored ones."""
        try:
            await self._stage()
            return Ok(await self._git("write-tree"))
        except GitFailed as failed:
            return failed.told

    async def merged(self, branch: str) -> ApiResult[str]:
        """Return Git's hash of the files that a merge of HEAD into `branch` of the server would give.

        The error is of kind `conflict` if they cannot be merged.
        """
        if not is_branch_name(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            return Ok(await self._git("merge-tree", "--write-tree", f"refs/remotes/origin/{branch}", "HEAD"))
        except GitFailed as failed:
            return replace(failed.told, kind="conflict")

    async def commit(self, message: str, *, name: str, email: str, at: datetime) -> ApiResult[bool]:
        """Commit all changes in the tree, or the merge that is in it; return whether there was anything to commit."""
        who = {f"GIT_{role}_{part}": value for role in _ROLES for part, value in (("NAME", name), ("EMAIL", email))}
        when = {f"GIT_{role}_DATE": f"{at:%Y-%m-%dT%H:%M:%S+00:00}" for role in _ROLES}
        try:
            await self._stage()
            is_merge = (self.repository / GIT / _MERGE_HEAD).exists()
            if not is_merge and not await self._git("diff", "--cached", "--name-only", *PLAIN):
                return Ok(data=False)
            await self._git("commit", "--quiet", "--no-verify", "--file=-", given=message, more=who | when)
        except GitFailed as failed:
            return failed.told
        return Ok(data=True)

    async def head(self) -> ApiResult[str]:
        """Return the newest commit of the branch."""
        try:
            return Ok(await self._git("rev-parse", "HEAD"))
        except GitFailed as failed:
            return failed.told

    async def changes(self, base: str, *, merged: str = "") -> ApiResult[BranchChanges]:
        """Return what the branch adds to the commit `base`.

        If its newest commit is the merge of `merged` into `base`, the files are compared with `merged`.
        """
        try:
            return Ok(await self._changes(base, "HEAD", merged=merged))
        except GitFailed as failed:
            return failed.told

    async def staged(self, base: str, path: str = "", *, merged: str = "") -> ApiResult[BranchChanges]:
        """Return what a commit of the whole tree, or of one file or folder, would add to the commit `base`.

        `commits` counts that commit too. If it would complete the merge of `merged`, the files are compared with that.
        """
        try:
            await self._stage()
            return Ok(await self._changes(base, "--cached", path=path, merged=merged))
        except GitFailed as failed:
            return failed.told

    async def restore(self, base: str, path: str) -> ApiResult[None]:
        """Restore a file or a folder to its state in the commit `base`; what is not in there is deleted."""
        try:
            await self._stage()
            paths = _only(path) or ("--", ":/")
            await self._git("restore", f"--source={base}", "--staged", "--worktree", *paths)
        except GitFailed as failed:
            return failed.told
        return Ok(None)

    async def log(self, base: str, path: str) -> ApiResult[str]:
        """Return the last commits up to `base` that changed a file or folder, one line each."""
        try:
            form = "--format=%h %ad %an: %s"
            return Ok(await self._git("log", f"-{_MOST_COMMITS}", form, "--date=short", base, *_only(path)))
        except GitFailed as failed:
            return failed.told

    async def blame(self, base: str, path: str, first: int, last: int) -> ApiResult[str]:
        """Return the commit up to `base` that each line of a file comes from."""
        try:
            return Ok(await self._git("blame", "--date=short", f"-L{first},{last}", base, "--", path))
        except GitFailed as failed:
            return failed.told

    async def save(self, base: str, file: Path) -> ApiResult[None]:
        """Write all differences from the commit `base` into a file, for `load`."""
        try:
            await self._stage()
            output = f"--output={await asyncio.to_thread(file.resolve)}"
            await self._git("diff", "--cached", "--binary", "--full-index", output, *PLAIN, base)
        except GitFailed as failed:
            return failed.told
        return Ok(None)

    async def save_branch(self, branch: str, file: Path) -> ApiResult[None]:
        """Write what `branch` of the server adds to its default branch into a file, for `load`."""
        if not is_branch_name(branch):
            return Err(f"{branch!r} is nothing to hand to git", "invalid")
        try:
            output = f"--output={await asyncio.to_thread(file.resolve)}"
            ends = f"refs/remotes/origin/HEAD...refs/remotes/origin/{branch}"
            await self._git("diff", "--binary", "--full-index", output, *PLAIN, ends)
        except GitFailed as failed:
            return failed.told
        return Ok(None)

    async def load(self, file: Path) -> ApiResult[None]:
        """Apply the changes that `save` wrote; none of them if one does not fit."""
        try:
            await self._git("apply", "--whitespace=nowarn", "--", str(await asyncio.to_thread(file.resolve)))
        except GitFailed as failed:
            return failed.told
        return Ok(None)

    async def _changes(self, base: str, end: str, *, path: str = "", merged: str = "") -> BranchChanges:
        """Return what `end`, which is a commit or `--cached`, adds to `base`."""
        start, is_staged = merged or base, end == "--cached"
        ends = ("diff", end, start) if is_staged else ("diff", start, end)
        only = _only(path)
        span = ("HEAD", f"^{base}", *([f"^{merged}"] if merged else []))
        counts = await self._git(*ends, "--numstat", "-z", *PLAIN, *only)
        binaries = {line[4:] for line in counts.split("\0") if line[:4] == _BINARY}
        patch = await self._run(*ends, "--irreversible-delete", *PLAIN, *only, most_bytes=_MOST_PATCH_BYTES)
        parents = (await self._git("rev-list", "--parents", "--max-count=1", "HEAD")).split()[1:]
        is_merge = bool(merged) and not is_staged and parents == [base, merged]
        return BranchChanges(
            branch=await self._git("symbolic-ref", "--short", "HEAD"),
            sha=await self._git("rev-parse", "HEAD"),
            commits=int(await self._git("rev-list", "--count", *span)) + is_staged,
            merges=int(await self._git("rev-list", "--count", "--merges", *span)) - is_merge,
            holds_base=await self._git("merge-base", base, "HEAD") == base and (is_staged or is_merge == bool(merged)),
            files=await self._files(await self._git(*ends, "--raw", "-z", "--abbrev=40", *PLAIN, *only), binaries),
            patch=patch.out.strip("\n"),
            stat=(await self._git(*ends, "--shortstat", *PLAIN, *only)).strip(),
            base=start,
            is_whole=not patch.is_cut,
        )

    async def diffs(self, base: str) -> ApiResult[tuple[FileDiff, ...]]:
        """Return how each file of the newest commit differs from the commit `base`; moved files are detected."""
        try:
            span = (*SHOWN, "--find-renames", base, "HEAD")
            raw = await self._git("diff", "--raw", "-z", "--abbrev=40", *span)
            blobs = "".join(f"{one.blob}\n" for one in raw_entries(raw))
            told = await self._git("cat-file", "--batch-check=%(objectname) %(objectsize)", given=blobs)
            fields = (line.partition(" ") for line in told.split("\n"))
            sizes = {name: int(size) for name, _, size in fields if size.isdecimal()}
            return Ok(tuple(file_diffs(raw, await self._git("diff", *span), sizes)))
        except GitFailed as failed:
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

    async def _files(self, raw: str, binaries: set[str]) -> tuple[TreeChange, ...]:
        """Return the changed files of `git diff --raw -z`."""
        found = [(path, mode, blob) for _, mode, _, blob, path in raw_changes(raw)]
        blobs = [blob for _, mode, blob in found if blob.strip("0") and mode != MODULE_MODE]
        told = await self._git("cat-file", "--batch-check=%(objectsize)", given="".join(f"{blob}\n" for blob in blobs))
        sizes = dict(zip(blobs, map(int, told.split()), strict=True))
        pictures = {path for path, _, _ in found if path in binaries and _is_picture(self.tree / path)}
        return tuple(
            TreeChange(
                path,
                sizes.get(blob),
                path in binaries,
                mode == LINK_MODE,
                mode == MODULE_MODE,
                blob if blob.strip("0") else "",
                path in pictures,
            )
            for path, mode, blob in found
        )


def _markers(text: str) -> set[str]:
    """Return the lines of a text that look like conflict markers."""
    return {line for line in text.split("\n") if line.startswith(_MARKERS) or line.rstrip("\r") == _DIVIDER}


def _only(path: str) -> tuple[str, ...]:
    """Return the arguments that limit a command to one file or folder; none for ""."""
    return ("--", f":(top,literal){path}") if path else ()


def _is_picture(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(_PICTURES) or (head.startswith(_WEBP[0]) and head.endswith(_WEBP[1]))
