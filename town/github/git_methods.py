"""References, branches, commits and files: one function for each operation of the API, with GitHub's messages."""

import binascii
from base64 import b64decode, encodebytes
from collections.abc import Callable, Mapping
from urllib.parse import quote

from common.clock import parse_iso_or_none
from town.github import bodies
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.pulls import after_push
from town.github.repository import NO_COMMIT, ChangedFile, Commit, GitError, Signature, TreeEntry, is_sha
from town.github.values import GitHubAccount, Json, Refusal, StoredRepo, not_found, unprocessable
from town.github.views import GitHubViews, moment, node_id

NOREPLY = "@users.noreply.github.com"
_UNSIGNED = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
_CONTENT_KINDS = {"blob": "file", "tree": "dir", "commit": "submodule"}


class GitViews:
    """Renders the Git objects of one repository. `find` returns the account of a login."""

    def __init__(self, views: GitHubViews, repo: StoredRepo, find: Callable[[str], GitHubAccount | None]) -> None:
        self._views = views
        self._find = find
        self._api = f"{views.base}/repos/{repo.full_name}"
        self._page = f"{views.base}/{repo.full_name}"

    def ref(self, name: str, sha: str) -> Json:
        """Return a reference."""
        return {
            "ref": name,
            "node_id": node_id("Ref", name),
            "url": f"{self._api}/git/{quote(name)}",
            "object": {"type": "commit", "sha": sha, "url": f"{self._api}/git/commits/{sha}"},
        }

    def short_branch(self, name: str, sha: str) -> Json:
        """Return a branch as shown in a list."""
        return {"name": name, "commit": {"sha": sha, "url": f"{self._api}/commits/{sha}"}, "protected": False}

    def branch(self, name: str, commit: Commit) -> Json:
        """Return a branch as shown by itself."""
        url = f"{self._api}/branches/{quote(name)}"
        return {
            "name": name,
            "commit": self.commit(commit),
            "_links": {"self": url, "html": f"{self._page}/tree/{quote(name)}"},
            "protected": False,
            "protection": {"enabled": False, "required_status_checks": _NO_CHECKS},
            "protection_url": f"{url}/protection",
        }

    def commit(self, commit: Commit, files: list[ChangedFile] | None = None) -> Json:
        """Return a commit; with its changes, if `files` is given."""
        url = f"{self._api}/commits/{commit.sha}"
        shown: Json = {
            "sha": commit.sha,
            "node_id": node_id("Commit", commit.sha),
            "commit": {
                "author": _signature(commit.author),
                "committer": _signature(commit.committer),
                "message": commit.message,
                "tree": {"sha": commit.tree, "url": f"{self._api}/git/trees/{commit.tree}"},
                "url": f"{self._api}/git/commits/{commit.sha}",
                "comment_count": 0,
                "verification": _UNSIGNED,
            },
            "url": url,
            "html_url": f"{self._page}/commit/{commit.sha}",
            "comments_url": f"{url}/comments",
            "author": self._account(commit.author),
            "committer": self._account(commit.committer),
            "parents": [
                {"sha": sha, "url": f"{self._api}/commits/{sha}", "html_url": f"{self._page}/commit/{sha}"}
                for sha in commit.parents
            ],
        }
        if files is not None:
            added, dropped = sum(file.additions for file in files), sum(file.deletions for file in files)
            shown["stats"] = {"additions": added, "deletions": dropped, "total": added + dropped}
            shown["files"] = [self.file(file, commit.sha) for file in files]
        return shown

    def git_commit(self, commit: Commit) -> Json:
        """Return a commit in the format of the Git database API."""
        url = f"{self._api}/git"
        return {
            "sha": commit.sha,
            "node_id": node_id("Commit", commit.sha),
            "url": f"{url}/commits/{commit.sha}",
            "html_url": f"{self._page}/commit/{commit.sha}",
            "author": _signature(commit.author),
            "committer": _signature(commit.committer),
            "tree": {"sha": commit.tree, "url": f"{url}/trees/{commit.tree}"},
            "message": commit.message,
            "parents": [
                {"sha": sha, "url": f"{url}/commits/{sha}", "html_url": f"{self._page}/commit/{sha}"}
                for sha in commit.parents
            ],
            "verification": _UNSIGNED,
        }

    def tree(self, sha: str, entries: list[TreeEntry]) -> Json:
        """Return a tree."""
        at = f"{self._api}/git"
        shown = [
            {
                "path": entry.path,
                "mode": entry.mode,
                "type": entry.kind,
                "sha": entry.sha,
                "url": f"{at}/{entry.kind}s/{entry.sha}",
                **({"size": entry.size} if entry.kind == "blob" else {}),
            }
            for entry in entries
        ]
        return {"sha": sha, "url": f"{at}/trees/{sha}", "tree": shown, "truncated": False}

    def blob(self, sha: str, content: bytes) -> Json:
        """Return the content of a file."""
        return {
            "sha": sha,
            "node_id": node_id("Blob", sha),
            "size": len(content),
            "url": f"{self._api}/git/blobs/{sha}",
            "content": encodebytes(content).decode(),
            "encoding": "base64",
        }

    def content(self, entry: TreeEntry, ref: str, content: bytes | None = None) -> Json:
        """Return an entry of a folder, or a file by itself if `content` is given."""
        path, is_file = quote(entry.path), entry.kind == "blob"
        git_kind = "blobs" if is_file else "trees"
        url = f"{self._api}/contents/{path}?ref={quote(ref)}"
        git_url = f"{self._api}/git/{git_kind}/{entry.sha}"
        html_url = f"{self._page}/{'blob' if is_file else 'tree'}/{quote(ref)}/{path}"
        shown: Json = {
            "name": entry.name,
            "path": entry.path,
            "sha": entry.sha,
            "size": entry.size,
            "url": url,
            "html_url": html_url,
            "git_url": git_url,
            "download_url": f"{self._page}/raw/{quote(ref)}/{path}" if is_file else None,
            "type": _CONTENT_KINDS[entry.kind],
            "_links": {"self": url, "git": git_url, "html": html_url},
        }
        if content is not None:
            shown |= {"content": encodebytes(content).decode(), "encoding": "base64"}
        return shown

    def file(self, file: ChangedFile, sha: str) -> Json:
        """Return a changed file; `sha` is the commit that holds its new version."""
        path = quote(file.path)
        shown: Json = {
            "sha": file.sha,
            "filename": file.path,
            "status": file.kind,
            "additions": file.additions,
            "deletions": file.deletions,
            "changes": file.additions + file.deletions,
            "blob_url": f"{self._page}/blob/{sha}/{path}",
            "raw_url": f"{self._page}/raw/{sha}/{path}",
            "contents_url": f"{self._api}/contents/{path}?ref={sha}",
        }
        if file.patch:
            shown["patch"] = file.patch
        if file.previous_path:
            shown["previous_filename"] = file.previous_path
        return shown

    def comparison(
        self, ends: tuple[Commit, Commit, Commit], ahead: list[Commit], files: list[ChangedFile], behind: int
    ) -> Json:
        """Return the comparison of a head with a base: `ends` are the base, their merge base and the head."""
        base, middle, head = ends
        page = f"{self._page}/compare/{base.sha}...{head.sha}"
        relation = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind"}
        return {
            "url": f"{self._api}/compare/{base.sha}...{head.sha}",
            "html_url": page,
            "permalink_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "base_commit": self.commit(base),
            "merge_base_commit": self.commit(middle),
            "status": relation.get((bool(ahead), behind > 0), "identical"),
            "ahead_by": len(ahead),
            "behind_by": behind,
            "total_commits": len(ahead),
            "commits": [self.commit(commit) for commit in ahead],
            "files": [self.file(file, head.sha) for file in files],
        }

    def _account(self, who: Signature) -> Json | None:
        account = self._find(who.email.removesuffix(NOREPLY)) if who.email.endswith(NOREPLY) else None
        return self._views.user(account) if account else None


_NO_CHECKS = {"enforcement_level": "off", "contexts": [], "checks": []}


def _signature(who: Signature) -> Json:
    return {"name": who.name, "email": who.email, "date": moment(who.at)}


_HEADS = "refs/heads/"
_REF_PARTS = 3


def views_of(call: GitHubCall) -> GitViews:
    """Return the views of the repository that the path names. Raises `Refusal`."""
    return GitViews(call.views, call.repo, call.network.find)


def signed(call: GitHubCall, account: GitHubAccount) -> Signature:
    """Return an account as the author of a commit made now."""
    return Signature(account.name or account.login, f"{account.login}{NOREPLY}", call.network.clock.now())


def pushing(call: GitHubCall) -> tuple[GitHubAccount, StoredRepo]:
    """Return the caller and the repository, if the caller may push there. Raises `Refusal`."""
    writer, repo = call.writer, call.repo
    call.network.check_writable(repo)
    if not call.network.may_push(repo, writer):
        raise not_found() if repo.private else Refusal(403, "Resource not accessible by personal access token")
    return writer, repo


async def commit_at(call: GitHubCall, name: str) -> Commit:
    """Return the commit that a name means. Raises `Refusal`."""
    sha = await call.git.resolve(name)
    commit = await call.git.commit(sha) if sha else None
    if commit is None:
        raise Refusal(422, f"No commit found for SHA: {name}")
    return commit


# References


async def _create_ref(call: GitHubCall) -> Answer:
    _, repo = pushing(call)
    await _some_refs(call)
    name, sha = bodies.text(call.body, "ref", required=True) or "", bodies.text(call.body, "sha", required=True) or ""
    if len(name.split("/")) < _REF_PARTS or not name.startswith("refs/"):
        raise Refusal(422, "Reference name must start with 'refs/' and contain at least three components.")
    if not is_sha(sha):
        raise Refusal(422, f"The sha parameter must be exactly 40 characters and contain only [0-9a-f]: {sha}")
    if not await call.git.set_ref(name, sha, old=NO_COMMIT):
        taken = name in await call.git.refs()
        missing = not taken and not await call.git.has(sha)
        raise Refusal(422, _why_no_ref(taken=taken, missing=missing))
    await after_push(call.network, repo, call.writer)
    return Answer(views_of(call).ref(name, sha), 201)


def _why_no_ref(*, taken: bool, missing: bool) -> str:
    if taken:
        return "Reference already exists"
    return "Object does not exist" if missing else "Reference update failed"


async def _ref(call: GitHubCall) -> Answer:
    name = f"refs/{call.path['ref']}"
    sha = (await _some_refs(call)).get(name)
    if sha is None:
        raise not_found()
    return Answer(views_of(call).ref(name, sha))


async def _matching_refs(call: GitHubCall) -> Answer:
    start, refs = f"refs/{call.path['ref']}", await _some_refs(call)
    return Answer([views_of(call).ref(name, sha) for name, sha in refs.items() if name.startswith(start)])


async def _some_refs(call: GitHubCall) -> Mapping[str, str]:
    """Return all references. Raises `Refusal` if there is none: `/git/…` is refused until a first commit."""
    refs = await call.git.refs()
    if not refs:
        raise Refusal(409, "Git Repository is empty.")
    return refs


async def _move_ref(call: GitHubCall) -> Answer:
    _, repo = pushing(call)
    name, new = f"refs/{call.path['ref']}", bodies.text(call.body, "sha", required=True) or ""
    old = (await _some_refs(call)).get(name)
    if old is None:
        raise Refusal(422, "Reference does not exist")
    if not is_sha(new) or not await call.git.has(new):
        raise Refusal(422, "Object does not exist")
    if call.body.get("force") is not True and await call.git.merge_base(old, new) != old:
        raise Refusal(422, "Update is not a fast forward")
    if not await call.git.set_ref(name, new, old=old):
        raise Refusal(409, "Reference cannot be updated")
    await after_push(call.network, repo, call.writer)
    return Answer(views_of(call).ref(name, new))


async def _delete_ref(call: GitHubCall) -> Answer:
    _, repo = pushing(call)
    name = f"refs/{call.path['ref']}"
    if name == f"{_HEADS}{repo.default_branch}":
        raise Refusal(422, "Cannot delete the default branch")
    old = (await _some_refs(call)).get(name)
    if old is None or not await call.git.set_ref(name, NO_COMMIT, old=old):
        raise Refusal(422, "Reference does not exist")
    await after_push(call.network, repo, call.writer)
    return Answer(None, 204)


async def _branches(call: GitHubCall) -> Answer:
    views = views_of(call)
    refs = (await call.git.refs()).items()
    found = [(name.removeprefix(_HEADS), sha) for name, sha in refs if name.startswith(_HEADS)]
    return call.page(found, lambda one: views.short_branch(*one))


async def _branch(call: GitHubCall) -> Answer:
    name = call.path["branch"]
    sha = (await call.git.refs()).get(f"{_HEADS}{name}")
    commit = await call.git.commit(sha) if sha else None
    if commit is None:
        raise Refusal(404, "Branch not found")
    return Answer(views_of(call).branch(name, commit))


# Commits


async def _commits(call: GitHubCall) -> Answer:
    views = views_of(call)
    await _some_refs(call)
    start = await call.git.resolve(call.query.get("sha") or call.repo.default_branch)
    if start is None:
        raise not_found()
    found = await call.git.commits(start, path=call.query.get("path", ""))
    return call.page(found, views.commit)


async def _commit(call: GitHubCall) -> Answer:
    commit = await commit_at(call, call.path["ref"])
    before = commit.parents[0] if commit.parents else await call.git.empty_tree()
    return Answer(views_of(call).commit(commit, await call.git.changes(before, commit.sha)))


async def _git_commit(call: GitHubCall) -> Answer:
    await _some_refs(call)
    commit = await call.git.commit(call.path["sha"]) if is_sha(call.path["sha"]) else None
    if commit is None:
        raise not_found()
    return Answer(views_of(call).git_commit(commit))


async def _create_git_commit(call: GitHubCall) -> Answer:
    writer, _ = pushing(call)
    await _some_refs(call)
    message, tree = (bodies.text(call.body, field, required=True) or "" for field in ("message", "tree"))
    parents = bodies.names(call.body, "parents") or []
    missing = [sha for sha in parents if not is_sha(sha) or not await call.git.has(sha)]
    if missing:
        raise Refusal(422, "Parent SHA does not exist or is not a commit object")
    if not is_sha(tree):
        raise Refusal(422, "Tree SHA does not exist")
    author = _named(call.body, "author", signed(call, writer))
    try:
        sha = await call.git.write_commit(tree, parents, message, author, _named(call.body, "committer", author))
    except GitError as error:
        raise Refusal(422, "Tree SHA does not exist") from error
    return Answer(views_of(call).git_commit(await commit_at(call, sha)), 201)


async def _compare(call: GitHubCall) -> Answer:
    ends = call.path["ends"].split("...")
    if [bool(end) for end in ends] != [True, True]:
        raise not_found()
    shas = [await call.git.resolve(end.rpartition(":")[2]) for end in ends]
    middle = await call.git.merge_base(shas[0], shas[1]) if shas[0] and shas[1] else None
    if not (middle and shas[0] and shas[1]):
        raise not_found()
    base, head, common = [await commit_at(call, sha) for sha in (shas[0], shas[1], middle)]
    ahead = await call.git.commits(head.sha, since=base.sha, oldest_first=True)
    files = await call.git.changes(common.sha, head.sha)
    behind = await call.git.count(base.sha, head.sha)
    return Answer(views_of(call).comparison((base, common, head), ahead, files, behind))


async def _tree(call: GitHubCall) -> Answer:
    await _some_refs(call)
    sha = await call.git.resolve(call.path["sha"]) or call.path["sha"]
    try:
        entries = await call.git.entries(sha, deep=bool(call.query.get("recursive")))
    except GitError as error:
        raise not_found() from error
    return Answer(views_of(call).tree(sha, entries))


async def _blob(call: GitHubCall) -> Answer:
    await _some_refs(call)
    content = await call.git.blob(call.path["sha"]) if is_sha(call.path["sha"]) else None
    if content is None:
        raise not_found()
    return Answer(views_of(call).blob(call.path["sha"], content))


# Files


async def _content(call: GitHubCall) -> Answer:
    ref, path, views = call.query.get("ref") or call.repo.default_branch, _path(call), views_of(call)
    commit = await call.git.resolve(ref)
    if commit is None:
        raise Refusal(404, f"No commit found for the ref {ref}" if await call.git.refs() else _EMPTY)
    found = await call.git.entry(commit, path)
    if found is None:
        raise not_found()
    if found.kind == "tree":
        return Answer([views.content(one, ref) for one in await call.git.entries(commit, path)])
    return Answer(views.content(found, ref, await call.git.blob(found.sha) or b""))


async def _put_content(call: GitHubCall) -> Answer:
    path = _path(call)
    content = _decoded(bodies.text(call.body, "content", required=True) or "")
    ref, before = await _branch_to_write(call, path)
    blob = await call.git.write_blob(content)
    commit = await _committed(call, ref, before, {path: blob})
    entry = await call.git.entry(commit.sha, path)
    views = views_of(call)
    new = before is None or await call.git.entry(before, path) is None
    shown = views.content(entry, ref.removeprefix(_HEADS)) if entry else None
    return Answer({"content": shown, "commit": views.git_commit(commit)}, 201 if new else 200)


async def _delete_content(call: GitHubCall) -> Answer:
    path = _path(call)
    if bodies.text(call.body, "sha", required=True) is None:
        raise unprocessable("Blob", "sha", "missing_field")
    ref, before = await _branch_to_write(call, path)
    if before is None or await call.git.entry(before, path) is None:
        raise not_found()
    commit = await _committed(call, ref, before, {path: None})
    return Answer({"content": None, "commit": views_of(call).git_commit(commit)})


async def _branch_to_write(call: GitHubCall, path: str) -> tuple[str, str | None]:
    """Return the full name of the branch to write, and its commit. To change a file, the body must name its sha.

    Raises `Refusal`, with 409 if the file has changed since.
    """
    _, repo = pushing(call)
    branch, given = bodies.text(call.body, "branch") or repo.default_branch, bodies.text(call.body, "sha")
    refs = await call.git.refs()
    before = refs.get(f"{_HEADS}{branch}")
    if before is None and (refs or branch != repo.default_branch):
        raise Refusal(404, f"Branch {branch} not found")
    there = await call.git.entry(before, path) if before else None
    if there and not given:
        raise Refusal(422, 'Invalid request.\n\n"sha" wasn\'t supplied.')
    if (there or given) and (there is None or there.sha != given):
        raise Refusal(409, f"{path} does not match {given}")
    return f"{_HEADS}{branch}", before


async def _committed(call: GitHubCall, ref: str, before: str | None, files: Mapping[str, str | None]) -> Commit:
    """Commit these changes to files as the new head of the branch. Raises `Refusal`."""
    writer, repo = pushing(call)
    message = bodies.text(call.body, "message", required=True) or ""
    own = signed(call, writer)
    author = _named(call.body, "author", own)
    try:
        tree = await call.git.tree_with(before, files)
    except GitError as error:
        raise Refusal(422, "path contains a malformed path component") from error
    parents = [before] if before else []
    sha = await call.git.write_commit(tree, parents, message, author, _named(call.body, "committer", author))
    if not await call.git.set_ref(ref, sha, old=before or NO_COMMIT):
        raise Refusal(409, f"{ref} is at another commit than expected ({before or 'none'})")
    await after_push(call.network, repo, writer)
    return await commit_at(call, sha)


def _named(body: Json, field: str, other: Signature) -> Signature:
    """Return who made the commit according to the body, or `other`."""
    given = body.get(field)
    if not isinstance(given, dict):
        return other
    at = parse_iso_or_none(bodies.text(given, "date"))
    name, email = (bodies.text(given, key, required=True) or "" for key in ("name", "email"))
    return Signature(name, email, at or other.at)


def _decoded(content: str) -> bytes:
    try:
        return b64decode("".join(content.split()), validate=True)
    except binascii.Error as error:
        raise Refusal(422, "content is not valid Base64") from error


def _path(call: GitHubCall) -> str:
    """Return the path in the address, without a slash at its ends. Raises `Refusal`."""
    path = str(call.path.get("path", "")).strip("/")
    if any(part in {"", ".", "..", ".git"} for part in path.split("/")) and path:
        raise Refusal(422, "path contains a malformed path component")
    return path


_EMPTY = "This repository is empty."
IN_REPO: dict[str, dict[str, Handler]] = {
    "/git/refs": {"POST": _create_ref},
    "/git/refs/{ref:path}": {"PATCH": _move_ref, "DELETE": _delete_ref},
    "/git/ref/{ref:path}": {"GET": _ref},
    "/git/matching-refs/{ref:path}": {"GET": _matching_refs},
    "/git/commits": {"POST": _create_git_commit},
    "/git/commits/{sha}": {"GET": _git_commit},
    "/git/trees/{sha:path}": {"GET": _tree},
    "/git/blobs/{sha}": {"GET": _blob},
    "/branches": {"GET": _branches},
    "/branches/{branch:path}": {"GET": _branch},
    "/commits": {"GET": _commits},
    "/commits/{ref:path}": {"GET": _commit},
    "/compare/{ends:path}": {"GET": _compare},
    "/contents": {"GET": _content},
    "/contents/{path:path}": {"GET": _content, "PUT": _put_content, "DELETE": _delete_content},
}
