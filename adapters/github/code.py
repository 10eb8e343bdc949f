"""Files and branches. Every operation answers `ApiResult`; only our own bugs raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from adapters.github.checks import empty, wrong_branch, wrong_path, wrong_place
from adapters.github.texts import is_sha
from adapters.github.types import Branch, ContentEntry, FileChange, FileContent, GitCommit, GitRef, Repo, Tree
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    from adapters.github.calls import Caller

MAX_FILE_CHARS = 5_000
MAX_WRITTEN_BYTES = 1_000_000
MAX_BRANCHES = 1_000


class Contents:
    """Files of a repository, one by one; `ref` and `branch` are the default branch where they are ""."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller

    async def list(self, repo: Repo, path: str = "", *, ref: str = "") -> ApiResult[tuple[ContentEntry, ...]]:
        """What a folder holds, the root where `path` is ""; of a file, the file alone."""
        what = f"list {path or 'the files'} in {repo.full_name}"
        if wrong := wrong_place(what, repo) or (wrong_path(what, path) if path else None) or _wrong_ref(what, ref):
            return wrong
        return await self._caller().read(what, lambda ask: ask.contents.list(repo, path, ref=ref))

    async def tree(self, repo: Repo, ref: str) -> ApiResult[Tree]:
        """Return all files on a branch, in one request; of more than 100,000 GitHub leaves some out."""
        what = f"list all files in {repo.full_name}"
        if wrong := wrong_place(what, repo) or empty(what, "ref", ref) or _wrong_ref(what, ref):
            return wrong
        return await self._caller().read(what, lambda ask: ask.contents.tree(repo, ref))

    async def read(
        self, repo: Repo, path: str, *, ref: str = "", max_chars: int = MAX_FILE_CHARS
    ) -> ApiResult[FileContent]:
        """The text of a file, at most `max_chars` characters of it; of kind `invalid` for a folder and for no text."""
        what = f"read {path} in {repo.full_name}"
        if wrong := wrong_place(what, repo) or wrong_path(what, path) or _wrong_ref(what, ref):
            return wrong
        return await self._caller().read(what, lambda ask: ask.contents.read(repo, path, ref=ref, max_chars=max_chars))

    async def write(
        self, repo: Repo, path: str, text: str, *, message: str, branch: str = "", sha: str = ""
    ) -> ApiResult[FileChange]:
        """Write a file in one commit.

        Args:
            repo: where.
            path: from the root.
            text: the whole file.
            message: of the commit.
            branch: that gets the commit.
            sha: of the file that is overwritten, "" for a new one. The error is of kind `conflict` where another stands
                there.

        """
        what = f"write {path} in {repo.full_name}"
        wrong = wrong_place(what, repo) or wrong_path(what, path) or empty(what, "message", message)
        if wrong := wrong or _wrong_ref(what, branch) or _wrong_sha(what, sha):
            return wrong
        if len(text.encode()) > MAX_WRITTEN_BYTES:
            return Err(f"could not {what}: it has more than {MAX_WRITTEN_BYTES:,} bytes", kind="invalid")
        return await self._caller().write(
            what, lambda ask: ask.contents.write(repo, path, text=text, message=message, branch=branch, sha=sha)
        )

    async def delete(self, repo: Repo, path: str, *, message: str, sha: str, branch: str = "") -> ApiResult[FileChange]:
        """Delete a file in one commit; `sha` as in `write`."""
        what = f"delete {path} in {repo.full_name}"
        wrong = wrong_place(what, repo) or wrong_path(what, path) or empty(what, "message", message)
        if wrong := wrong or empty(what, "sha", sha) or _wrong_ref(what, branch) or _wrong_sha(what, sha):
            return wrong
        return await self._caller().write(
            what, lambda ask: ask.contents.delete(repo, path, message=message, branch=branch, sha=sha)
        )


class Refs:
    """Branches of a repository. Making one is atomic: of several who try, one succeeds."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller

    async def branches(self, repo: Repo, *, limit: int = MAX_BRANCHES) -> ApiResult[tuple[Branch, ...]]:
        """All branches, by name."""
        what = f"list the branches of {repo.full_name}"
        if wrong := wrong_place(what, repo):
            return wrong
        return await self._caller().read(what, lambda ask: ask.refs.branches(repo, limit=limit))

    async def get(self, repo: Repo, branch: str) -> ApiResult[GitRef]:
        """One branch; of kind `not_found` where there is none."""
        what = f"read the branch {branch} of {repo.full_name}"
        if wrong := wrong_place(what, repo) or wrong_branch(what, branch):
            return wrong
        return await self._caller().read(what, lambda ask: ask.refs.get(repo, branch))

    async def matching(self, repo: Repo, prefix: str, *, limit: int = MAX_BRANCHES) -> ApiResult[tuple[GitRef, ...]]:
        """The branches whose name begins with `prefix`, for example `soul/`."""
        what = f"list the branches {prefix}… of {repo.full_name}"
        if wrong := wrong_place(what, repo) or wrong_branch(what, prefix.removesuffix("/")):
            return wrong
        return await self._caller().read(what, lambda ask: ask.refs.matching(repo, prefix, limit=limit))

    async def create(self, repo: Repo, branch: str, sha: str) -> ApiResult[GitRef]:
        """Make a branch at the commit `sha`. The error is of kind `conflict` where it exists: somebody was first."""
        what = f"create the branch {branch} in {repo.full_name}"
        wrong = wrong_place(what, repo) or wrong_branch(what, branch) or empty(what, "commit", sha)
        if wrong := wrong or _wrong_sha(what, sha):
            return wrong
        return await self._caller().write(what, lambda ask: ask.refs.create(repo, branch, sha))

    async def commit(self, repo: Repo, sha: str) -> ApiResult[GitCommit]:
        """One commit, with its tree and message."""
        what = f"read the commit {sha} of {repo.full_name}"
        if wrong := wrong_place(what, repo) or empty(what, "commit", sha) or _wrong_sha(what, sha):
            return wrong
        return await self._caller().read(what, lambda ask: ask.refs.commit(repo, sha))

    async def create_empty_commit(
        self, repo: Repo, parent: GitCommit, *, message: str, name: str, email: str, date: str
    ) -> ApiResult[GitCommit]:
        """Store a commit upon `parent` that changes nothing, on no branch.

        Its author and its date (ISO-8601 UTC) are given, so that the same call stores the same commit again.
        """
        what = f"store a commit in {repo.full_name}"
        if wrong := wrong_place(what, repo) or empty(what, "message", message) or _wrong_sha(what, parent.sha):
            return wrong
        commit = GitCommit("", parent.tree, message, (parent.sha,))
        author = {"name": name, "email": email, "date": date}
        return await self._caller().write(what, lambda ask: ask.refs.create_commit(repo, commit, author=author))

    async def delete(self, repo: Repo, branch: str) -> ApiResult[None]:
        """Delete a branch; one that is gone already is a success."""
        what = f"delete the branch {branch} of {repo.full_name}"
        if wrong := wrong_place(what, repo) or wrong_branch(what, branch):
            return wrong
        done = await self._caller().write(what, lambda ask: ask.refs.delete(repo, branch))
        return Ok(None) if isinstance(done, Err) and done.kind == "not_found" and done.status == _GONE else done


_GONE = 422


def _wrong_ref(what: str, ref: str) -> Err | None:
    return wrong_branch(what, ref) if ref else None


def _wrong_sha(what: str, sha: str) -> Err | None:
    return None if not sha or is_sha(sha) else Err(f"could not {what}: no commit or file has that sha", kind="invalid")
