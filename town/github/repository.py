"""A bare Git repository on disk: its references, files, commits and merges, each by `git` itself.

Only this module starts `git` for the town's GitHub: every process has a deadline and ignores users' settings. A branch
changes only by compare-and-swap, which `git update-ref` makes atomic, also against a push.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

from adapters.git.client import drain

DEADLINE_S = 30.0
_AT_ONCE = 6


class GitError(Exception):
    """A `git` failed; `code` is -1 if it timed out or could not be started."""

    def __init__(self, command: str, code: int, told: str) -> None:
        super().__init__(f"git {command} ended with {code}: {told[-500:]}")
        self.code = code
        self.told = told


@dataclass(frozen=True, slots=True)
class Output:
    """The standard output of a `git`, and its exit code."""

    text: bytes
    code: int


class GitProcess:
    """Runs `git` in bare repositories, a few at once."""

    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def run(
        self,
        folder: Path,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        fine: Collection[int] = (0,),
    ) -> Output:
        """Run `git` in `folder` and return its output. Raises `GitError` for any exit code not in `fine`."""
        async with self._places, self.started(folder, *arguments, env=env) as process:
            try:
                async with asyncio.timeout(self._deadline_s):
                    out, errors = await process.communicate(stdin)
            except TimeoutError as error:
                raise GitError(arguments[0], -1, "it took too long") from error
        code = process.returncode or 0
        if code not in fine:
            raise GitError(arguments[0], code, errors.decode(errors="replace"))
        return Output(out, code)

    @asynccontextmanager
    async def started(
        self, folder: Path, *arguments: str, env: Mapping[str, str] | None = None
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Start `git` with pipes and yield the process; on exit, kill it and its children."""
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                *arguments,
                cwd=folder,
                env={**_environment(folder), **(env or {})},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise GitError(arguments[0], -1, "git is not installed (apt-get install git)") from error
        try:
            yield process
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            await drain(process)


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
    }


NO_COMMIT = "0" * 40
EntryKind = Literal["blob", "tree", "commit"]
ChangeKind = Literal["added", "removed", "modified", "renamed"]


@dataclass(frozen=True, slots=True)
class Signature:
    """Who made a commit, and when."""

    name: str
    email: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit; `sha`, `tree` and `parents` are object names of 40 hexadecimal digits."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry of a tree; `size` in bytes, 0 for anything but a file; `path` from the root."""

    path: str
    kind: EntryKind
    mode: str
    sha: str
    size: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs between two commits. `patch` is its part of the diff, "" for a binary file."""

    path: str
    kind: ChangeKind
    sha: str
    additions: int
    deletions: int
    patch: str
    previous_path: str = ""


_CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
[http]
\treceivepack = true
[gc]
\tauto = 0
[uploadpack]
\tallowAnySHA1InWant = true
[receive]
\thideRefs = refs/pull
"""
_COMMIT_FORMAT = "--format=tformat:%H%x00%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B%x00"
_COMMIT_FIELDS = 10
_DIFF = ("-M", "--no-color", "--no-ext-diff", "--no-textconv")
_SHA = re.compile(r"[0-9a-f]{40}")
_CONFLICT = 1


def is_sha(text: str) -> bool:
    """Return whether this is the full name of an object."""
    return _SHA.fullmatch(text) is not None


class GitRepository:
    """The repository in `folder`, created on first use. With `pinned`, those are its references for reads."""

    def __init__(
        self, folder: Path, git: GitProcess, *, default_branch: str = "main", pinned: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.git = git
        self._pinned = pinned
        if not folder.exists():
            for part in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
                (folder / part).mkdir(parents=True)
            (folder / "config").write_text(_CONFIG, encoding="ascii")
            (folder / "HEAD").write_text(f"ref: refs/heads/{default_branch}\n", encoding="utf-8")

    # References

    async def refs(self) -> dict[str, str]:
        """Return the commits by the full names of their references, sorted by name."""
        if self._pinned is not None:
            return dict(self._pinned)
        # NOTE(self): every reference is a file, because nothing packs them here; a `git` takes a hundred times as long.
        found: dict[str, str] = {}
        for folder, _, names in os.walk(self.folder / "refs"):
            for file in (Path(folder) / name for name in names if not name.endswith(".lock")):
                with suppress(FileNotFoundError):
                    if is_sha(sha := file.read_text(encoding="ascii").strip()):
                        found[file.relative_to(self.folder).as_posix()] = sha
        return dict(sorted(found.items()))

    async def resolve(self, name: str) -> str | None:
        """Return the commit that a branch, tag, full reference or object name means; None if there is none."""
        refs = await self.refs()
        for candidate in (f"refs/heads/{name}", f"refs/tags/{name}", name, f"refs/{name}"):
            if candidate in refs:
                return refs[candidate]
        return name if is_sha(name) and await self.has(name) else None

    async def has(self, sha: str) -> bool:
        """Return whether this commit is here."""
        return (await self.git.run(self.folder, "cat-file", "-e", f"{sha}^{{commit}}", fine=(0, 1, 128))).code == 0

    async def set_ref(self, name: str, new: str, *, old: str) -> bool:
        """Move a reference from `old` to `new` (`NO_COMMIT` for none); return False if it was not at `old`."""
        command = ("-d", name, old) if new == NO_COMMIT else (name, new, old)
        return (await self.git.run(self.folder, "update-ref", *command, fine=(0, 1, 128))).code == 0

    async def point(self, name: str, sha: str) -> None:
        """Point a reference of the service's own at a commit, wherever it was."""
        await self.git.run(self.folder, "update-ref", name, sha)

    # Files

    async def entry(self, commit: str, path: str) -> TreeEntry | None:
        """Return the entry at `path` in a commit, the root's tree for ""; None if there is none."""
        if not path:
            return TreeEntry("", "tree", "040000", await self._line("rev-parse", f"{commit}^{{tree}}"), 0)
        found = _entries(await self._text("ls-tree", "-z", "-l", "--full-tree", commit, "--", path.rstrip("/")))
        return next((one for one in found if one.path == path.rstrip("/")), None)

    async def entries(self, commit: str, path: str = "", *, deep: bool = False) -> list[TreeEntry]:
        """Return the entries of a folder of a commit, or with `deep` everything below it, sorted by path."""
        options = ("-r", "-t") if deep else ()
        where = ("--", f"{path.rstrip('/')}/") if path else ()
        return _entries(await self._text("ls-tree", "-z", "-l", "--full-tree", *options, commit, *where))

    async def blob(self, sha: str) -> bytes | None:
        """Return the content of a file; None if there is no such object."""
        found = await self.git.run(self.folder, "cat-file", "blob", sha, fine=(0, 128))
        return None if found.code else found.text

    async def write_blob(self, content: bytes) -> str:
        """Store a file's content and return its name."""
        return await self._line("hash-object", "-w", "--stdin", stdin=content)

    async def tree_with(self, commit: str | None, files: Mapping[str, str | None]) -> str:
        """Return the tree of a commit after setting files, by path, to the named contents or removing them (None).

        Raises `GitError` for an invalid path.
        """
        lines = "".join(f"100644 {sha}\t{path}\0" if sha else f"0 {NO_COMMIT}\t{path}\0" for path, sha in files.items())
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
            if commit:
                await self.git.run(self.folder, "read-tree", commit, env=index)
            given = lines.encode()
            await self.git.run(self.folder, "update-index", "-z", "--add", "--index-info", stdin=given, env=index)
            return (await self.git.run(self.folder, "write-tree", env=index)).text.decode().strip()

    # Commits

    async def write_commit(
        self, tree: str, parents: Sequence[str], message: str, author: Signature, committer: Signature | None = None
    ) -> str:
        """Store a commit and return its name."""
        made = committer or author
        env = {
            **{f"GIT_AUTHOR_{name}": value for name, value in _signed(author).items()},
            **{f"GIT_COMMITTER_{name}": value for name, value in _signed(made).items()},
        }
        named = [part for parent in parents for part in ("-p", parent)]
        return await self._line("commit-tree", tree, *named, stdin=message.encode(), env=env)

    async def commit(self, sha: str) -> Commit | None:
        """Return a commit; None if there is none of that name."""
        found = await self.git.run(
            self.folder, "log", _COMMIT_FORMAT, "--max-count=1", f"{sha}^{{commit}}", "--", fine=(0, 128)
        )
        return None if found.code else _commits(found.text.decode(errors="replace"))[0]

    async def commits(
        self, until: str, *, since: str = "", path: str = "", limit: int = 1_000, oldest_first: bool = False
    ) -> list[Commit]:
        """Return the commits in `until` and not in `since`, newest first; only those that change `path` if given."""
        what = [until, *([f"^{since}"] if since else []), *(["--", path] if path else [])]
        order = ("--reverse",) if oldest_first else ()
        return _commits(await self._text("log", _COMMIT_FORMAT, f"--max-count={limit}", *order, *what))

    async def merge_base(self, one: str, other: str) -> str | None:
        """Return the newest common ancestor of both; None if there is none."""
        found = await self.git.run(self.folder, "merge-base", one, other, fine=(0, 1))
        return found.text.decode().strip() or None

    async def count(self, until: str, since: str) -> int:
        """Return how many commits are in `until` and not in `since`."""
        return int(await self._line("rev-list", "--count", until, f"^{since}"))

    async def merge_tree(self, base: str, head: str) -> str | None:
        """Return the tree of a merge of two commits; None if they conflict or have no common ancestor."""
        found = await self.git.run(self.folder, "merge-tree", "--write-tree", base, head, fine=(0, _CONFLICT, 128))
        return None if found.code else found.text.decode().split("\n", 1)[0].strip()

    async def empty_tree(self) -> str:
        """Store the tree without files and return its name."""
        return await self._line("hash-object", "-t", "tree", "-w", "--stdin")

    async def diff(self, old: str, new: str) -> str:
        """Return the difference of two commits or trees as `git diff` writes it."""
        return await self._text("diff", *_DIFF, old, new)

    async def changes(self, old: str, new: str) -> list[ChangedFile]:
        """Return the files that differ between two commits or trees, sorted by path."""
        listed = await self._text("diff", *_DIFF, "--raw", "-z", "--no-abbrev", old, new)
        return changed_files(listed, await self.diff(old, new))

    async def copy_from(self, other: GitRepository, shas: Sequence[str]) -> None:
        """Copy these commits from another repository, with all that they need."""
        if shas:
            # NOTE(self): `uploadpack.allowAnySHA1InWant` of the other repository allows fetching commits by name.
            await self.git.run(self.folder, "fetch", "--quiet", "--no-tags", str(other.folder), *shas)

    async def _text(self, *arguments: str) -> str:
        return (await self.git.run(self.folder, *arguments)).text.decode(errors="replace")

    async def _line(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        return (await self.git.run(self.folder, *arguments, stdin=stdin, env=env)).text.decode().strip()


def _signed(who: Signature) -> dict[str, str]:
    return {"NAME": who.name, "EMAIL": who.email, "DATE": f"{int(who.at.timestamp())} +0000"}


def _entries(listed: str) -> list[TreeEntry]:
    """Return the entries of `git ls-tree -z -l`."""
    entries = []
    for line in filter(None, listed.split("\0")):
        about, _, path = line.partition("\t")
        mode, kind, sha, size = about.split()
        entries.append(TreeEntry(path, cast("EntryKind", kind), mode, sha, int(size) if size.isdecimal() else 0))
    return entries


def _commits(listed: str) -> list[Commit]:
    """Return the commits of `git log` in `_COMMIT_FORMAT`."""
    fields = listed.split("\0")
    commits = []
    for start in range(0, len(fields) - _COMMIT_FIELDS, _COMMIT_FIELDS):
        sha, tree, parents, name, email, at, name_2, email_2, at_2, message = fields[start : start + _COMMIT_FIELDS]
        author, committer = Signature(name, email, _at(at)), Signature(name_2, email_2, _at(at_2))
        commit = Commit(sha.lstrip("\n"), tree, tuple(parents.split()), author, committer, message)
        commits.append(replace(commit, message=message.rstrip("\n")))
    return commits


def _at(seconds: str) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)


_SECTION = re.compile(r"^(?=diff --git )", re.MULTILINE)
_KINDS: dict[str, ChangeKind] = {"A": "added", "D": "removed", "R": "renamed", "C": "added"}


def changed_files(listed: str, diff: str) -> list[ChangedFile]:
    """Return the changed files of `git diff --raw -z`, each with its part of the matching `git diff`."""
    sections = iter([section for section in _SECTION.split(diff) if section])
    files = []
    for row in _rows(listed):
        _, _, old, new, status, path, previous = row
        # A file that became a link, or the reverse, has two sections: removed in one, added in the other.
        own = [next(sections) for _ in range(2 if status == "T" else 1)]
        patch = "\n".join(one[one.index("\n@@ ") + 1 :].rstrip("\n") for one in own if "\n@@ " in one)
        files.append(
            ChangedFile(
                path,
                _KINDS.get(status, "modified"),
                old if new == NO_COMMIT else new,
                _count(patch, "+"),
                _count(patch, "-"),
                patch,
                previous,
            )
        )
    return files


def _rows(listed: str) -> list[tuple[str, str, str, str, str, str, str]]:
    """Return modes, names of contents, kind of change, path, and former path of each changed file."""
    parts = iter(listed.split("\0"))
    rows = []
    for about in filter(None, parts):
        old_mode, new_mode, old, new, status = about.removeprefix(":").split(" ")
        path = next(parts)
        path, previous = (next(parts), path) if status[0] in "RC" else (path, "")
        rows.append((old_mode, new_mode, old, new, status[0], path, previous))
    return rows


def _count(patch: str, sign: Literal["+", "-"]) -> int:
    return sum(line.startswith(sign) for line in patch.split("\n"))
