"""Repositories with their files and branches, organisations, accounts and search.

Every operation returns `ApiResult`; only our own bugs raise. Files are read and written with PyGithub's requester, as
its objects would encode a path as a whole, follow a list by themselves, or hide the headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from adapters.github import convert
from adapters.github.checks import empty, wrong_login, wrong_place
from adapters.github.types import Account, Issue, Organization, Repo, Repository, first, repo_path
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    from adapters.github.calls import Ask, Callers
import builtins
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from adapters.github.checks import wrong_branch, wrong_path, wrong_sha
from adapters.github.types import Branch, ContentEntry, FileChange, FileContent, GitCommit, GitRef, Tree, in_segments
from adapters.web.client import Failure

MAX_LISTED = 1_000
MAX_FOUND = 100
_FORBIDDEN = 403


class Repositories:
    """Repositories, and the organisations that own them."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def of_organization(
        self,
        org: str,
        *,
        sort: Literal["created", "updated", "pushed", "full_name"] = "created",
        direction: Literal["asc", "desc"] = "desc",
        limit: int = MAX_LISTED,
    ) -> ApiResult[tuple[Repository, ...]]:
        """Return the repositories of an organisation that we may see; each hundred costs a request."""
        what = f"list the repositories of {org}"
        url, asked = f"/orgs/{quote(org, safe='')}/repos", {"type": "all", "sort": sort, "direction": direction}

        def work(ask: Ask) -> tuple[Repository, ...]:
            found = first(limit, ask.pages(url, asked))
            return tuple(convert.repository(ask.told_repository(one)) for one in found)

        return await self._caller(wrong_login(what, org)).read(what, work)

    async def organizations(self, *, limit: int = MAX_LISTED) -> ApiResult[tuple[Organization, ...]]:
        """Return the organisations of our own account."""
        return await self._caller().read(
            "list the organisations of our account",
            lambda ask: tuple(map(convert.organization, first(limit, ask.pages("/user/orgs")))),
        )

    async def pushers(self, repo: Repo, *, limit: int = MAX_LISTED) -> ApiResult[tuple[Account, ...]]:
        """Return the accounts that may push there; none if we may not ask, which requires the right to push."""
        what = f"list who may push to {repo.full_name}"

        def work(ask: Ask) -> tuple[Account, ...]:
            found = first(limit, ask.pages(f"{repo_path(repo)}/collaborators"))
            return tuple(convert.account(one) for one in found if one.get("permissions", {}).get("push") is True)

        found = await self._caller(wrong_place(what, repo)).read(what, work)
        return Ok(()) if isinstance(found, Err) and found.status == _FORBIDDEN and found.kind == "auth" else found

    async def generate(
        self, template: Repo, *, owner: str, name: str, description: str = "", private: bool = False
    ) -> ApiResult[Repository]:
        """Create a repository from a template. The error is of kind `conflict` if there is one of that name."""
        new = Repo(owner, name)
        what = f"create {new.full_name} from {template.full_name}"
        url, body = f"{repo_path(template)}/generate", {"owner": owner, "name": name, "description": description}
        options = {"include_all_branches": False, "private": private}
        return await self._caller(wrong_place(what, template), wrong_place(what, new)).write(
            what, lambda ask: convert.repository(ask.told_repository(ask.send("POST", url, body | options)))
        )

    async def star(self, repo: Repo) -> ApiResult[None]:
        """Star a repository; repeating it changes nothing."""
        what = f"star {repo.full_name}"
        url = f"/user/starred/{repo_path(repo).removeprefix('/repos/')}"
        return await self._caller(wrong_place(what, repo)).write(what, lambda ask: ask.do("PUT", url))


class Accounts:
    """The accounts that our account follows."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def follow(self, login: str) -> ApiResult[None]:
        """Follow an account; repeating it changes nothing."""
        what = f"follow {login}"
        url = f"/user/following/{quote(login, safe='')}"
        return await self._caller(wrong_login(what, login)).write(what, lambda ask: ask.do("PUT", url))


class PlaceSearch:
    """GitHub's search: at most 30 requests a minute, in a separate budget."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def issues(self, query: str, *, limit: int = MAX_FOUND) -> ApiResult[tuple[Issue, ...]]:
        """Return issues and pull requests that match a GitHub search (`repo:o/r is:issue state:open …`), best first."""
        what = "search for issues"

        def work(ask: Ask) -> tuple[Issue, ...]:
            found = first(limit, ask.pages("/search/issues", {"q": query}, items="items"))
            return tuple(convert.issue(ask.told_issue(one)) for one in found)

        return await self._caller(empty(what, "query", query)).read(what, work)


MAX_FILE_CHARS = 5_000
MAX_WRITTEN_BYTES = 1_000_000
MAX_BRANCHES = 1_000


class Contents:
    """Files of a repository, one by one; `ref` and `branch` are the default branch if they are ""."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def list(self, repo: Repo, path: str = "", *, ref: str = "") -> ApiResult[tuple[ContentEntry, ...]]:
        """Return the entries of a folder, of the root if `path` is ""; for a file, the file alone."""
        what = f"list {path or 'the files'} in {repo.full_name}"

        def work(ask: Ask) -> tuple[ContentEntry, ...]:
            found = ask.get(_contents(repo, path), _at(ref))
            return tuple(map(convert.content_entry, found if isinstance(found, builtins.list) else [found]))

        return await self._caller(
            wrong_place(what, repo), (wrong_path(what, path) if path else None), _wrong_ref(what, ref)
        ).read(what, work)

    async def tree(self, repo: Repo, ref: str) -> ApiResult[Tree]:
        """Return all files on a branch, in one request; if there are more than 100,000 GitHub leaves some out."""
        what = f"list all files in {repo.full_name}"

        def work(ask: Ask) -> Tree:
            found = ask.get(f"{repo_path(repo)}/git/trees/{quote(ref, safe='')}", {"recursive": "1"})
            files = (one for one in found["tree"] if one["type"] != "tree")
            return Tree(tuple(map(convert.tree_entry, files)), found.get("truncated") is True)

        return await self._caller(wrong_place(what, repo), empty(what, "ref", ref), _wrong_ref(what, ref)).read(
            what, work
        )

    async def read(
        self, repo: Repo, path: str, *, ref: str = "", max_chars: int = MAX_FILE_CHARS
    ) -> ApiResult[FileContent]:
        """Return the text of a file, at most `max_chars` characters; an `invalid` `Err` for a folder or non-text."""
        what = f"read {path} in {repo.full_name}"

        def work(ask: Ask) -> FileContent:
            found = ask.get(_contents(repo, path), _at(ref))
            if isinstance(found, builtins.list) or found["type"] != "file":
                raise Failure(Err(f"could not read {path}: it is no file", kind="invalid"))
            size, sha = int(found["size"]), str(found["sha"])
            if found.get("encoding") != "base64":
                return FileContent(path, "", sha, size, truncated=size > 0)
            content = b64decode(found["content"])
            if b"\0" in content:
                raise Failure(Err(f"could not read {path}: it is no text", kind="invalid"))
            text = content.decode("utf-8", errors="replace")
            return FileContent(path, text[:max_chars], sha, size, truncated=len(text) > max_chars)

        return await self._caller(wrong_place(what, repo), wrong_path(what, path), _wrong_ref(what, ref)).read(
            what, work
        )

    async def blob(self, repo: Repo, sha: str) -> ApiResult[bytes]:
        """Return a whole file, text or not, by the hash of its content."""
        what = f"read a file of {repo.full_name}"
        url = f"{repo_path(repo)}/git/blobs/{sha}"
        return await self._caller(wrong_place(what, repo), empty(what, "file", sha), wrong_sha(what, sha)).read(
            what, lambda ask: b64decode(ask.get(url)["content"])
        )

    async def write(
        self, repo: Repo, path: str, text: str, *, message: str, branch: str = "", sha: str = ""
    ) -> ApiResult[FileChange]:
        """Write a file in one commit.

        Args:
            repo: the repository.
            path: its path from the root.
            text: the whole file.
            message: the message of the commit.
            branch: the branch that gets the commit.
            sha: the hash of the file that is overwritten, "" for a new file. The error is of kind `conflict` if another
                file is there.

        """
        what = f"write {path} in {repo.full_name}"
        wrong = wrong_place(what, repo) or wrong_path(what, path) or empty(what, "message", message)
        if wrong := wrong or _wrong_ref(what, branch) or wrong_sha(what, sha):
            return wrong
        if len(text.encode()) > MAX_WRITTEN_BYTES:
            return Err(f"could not {what}: it has more than {MAX_WRITTEN_BYTES:,} bytes", kind="invalid")
        body = {"message": message, "content": b64encode(text.encode()).decode()}
        body |= {name: value for name, value in (("branch", branch), ("sha", sha)) if value}
        return await self._caller().write(
            what, lambda ask: convert.file_change(path, ask.send("PUT", _contents(repo, path), body))
        )


class Refs:
    """Branches of a repository. Creating one is atomic: of several attempts, one succeeds."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def branches(self, repo: Repo, *, limit: int = MAX_BRANCHES) -> ApiResult[tuple[Branch, ...]]:
        """Return all branches, by name."""
        what = f"list the branches of {repo.full_name}"
        url = f"{repo_path(repo)}/branches"
        return await self._caller(wrong_place(what, repo)).read(
            what, lambda ask: tuple(map(convert.branch, first(limit, ask.pages(url))))
        )

    async def get(self, repo: Repo, branch: str) -> ApiResult[GitRef]:
        """Return one branch; `Err` of kind `not_found` if there is none."""
        what = f"read the branch {branch} of {repo.full_name}"
        url = f"{repo_path(repo)}/git/ref/{_heads(branch)}"
        return await self._caller(wrong_place(what, repo), wrong_branch(what, branch)).read(
            what, lambda ask: convert.git_ref(ask.get(url))
        )

    async def matching(self, repo: Repo, prefix: str, *, limit: int = MAX_BRANCHES) -> ApiResult[tuple[GitRef, ...]]:
        """Return the branches whose name begins with `prefix`, for example `soul/`."""
        what = f"list the branches {prefix}… of {repo.full_name}"
        url = f"{repo_path(repo)}/git/matching-refs/{_heads(prefix)}"
        return await self._caller(wrong_place(what, repo), wrong_branch(what, prefix.removesuffix("/"))).read(
            what, lambda ask: tuple(map(convert.git_ref, first(limit, ask.pages(url))))
        )

    async def create(self, repo: Repo, branch: str, sha: str) -> ApiResult[GitRef]:
        """Create a branch at the commit `sha`. The error is of kind `conflict` if it exists: somebody was first."""
        what = f"create the branch {branch} in {repo.full_name}"
        wrong = wrong_place(what, repo), wrong_branch(what, branch), empty(what, "commit", sha), wrong_sha(what, sha)
        url, body = f"{repo_path(repo)}/git/refs", {"ref": f"refs/heads/{branch}", "sha": sha}
        return await self._caller(*wrong).write(what, lambda ask: convert.git_ref(ask.send("POST", url, body)))

    async def commit(self, repo: Repo, sha: str) -> ApiResult[GitCommit]:
        """Return one commit, with its tree and message."""
        what = f"read the commit {sha} of {repo.full_name}"
        url = f"{repo_path(repo)}/git/commits/{sha}"
        return await self._caller(wrong_place(what, repo), empty(what, "commit", sha), wrong_sha(what, sha)).read(
            what, lambda ask: convert.git_commit(ask.get(url))
        )

    async def create_empty_commit(
        self, repo: Repo, parent: GitCommit, *, message: str, name: str, email: str, date: str
    ) -> ApiResult[GitCommit]:
        """Store a commit on top of `parent` that changes nothing, on no branch.

        Its author and date (ISO-8601 UTC) are given, so that the same call stores the same commit again.
        """
        what = f"store a commit in {repo.full_name}"
        author = {"name": name, "email": email, "date": date}
        body = {"message": message, "tree": parent.tree, "parents": [parent.sha], "author": author}
        url = f"{repo_path(repo)}/git/commits"
        return await self._caller(
            wrong_place(what, repo), empty(what, "message", message), wrong_sha(what, parent.sha)
        ).write(what, lambda ask: convert.git_commit(ask.send("POST", url, body)))

    async def delete(self, repo: Repo, branch: str) -> ApiResult[None]:
        """Delete a branch; it is a success if it is already gone."""
        what = f"delete the branch {branch} of {repo.full_name}"
        if wrong := wrong_place(what, repo) or wrong_branch(what, branch):
            return wrong
        url = f"{repo_path(repo)}/git/refs/{_heads(branch)}"
        done = await self._caller().write(what, lambda ask: ask.do("DELETE", url))
        return Ok(None) if isinstance(done, Err) and done.kind == "not_found" and done.status == _GONE else done


_GONE = 422


def _wrong_ref(what: str, ref: str) -> Err | None:
    return wrong_branch(what, ref) if ref else None


def _contents(repo: Repo, path: str) -> str:
    return f"{repo_path(repo)}/contents/{in_segments(path)}"


def _at(ref: str) -> dict[str, str] | None:
    return {"ref": ref} if ref else None


def _heads(branch: str) -> str:
    """Return a branch as a ref in an address: GitHub accepts its slashes encoded."""
    return quote(f"heads/{branch}", safe="")
