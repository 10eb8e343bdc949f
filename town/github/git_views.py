"""What lies in a Git repository, in the words of GitHub's interface."""

from __future__ import annotations

from base64 import encodebytes
from collections.abc import Callable
from urllib.parse import quote

from town.github.git_values import ChangedFile, Commit, Signature, TreeEntry
from town.github.values import GitHubAccount, Json, StoredRepo
from town.github.views import GitHubViews, moment, node_id

NOREPLY = "@users.noreply.github.com"
_UNSIGNED = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}
_CONTENT_KINDS = {"blob": "file", "tree": "dir", "commit": "submodule"}


class GitViews:
    """The views of one repository. `find` gives the account of a login."""

    def __init__(self, views: GitHubViews, repo: StoredRepo, find: Callable[[str], GitHubAccount | None]) -> None:
        self._views = views
        self._find = find
        self._api = f"{views.base}/repos/{repo.full_name}"
        self._page = f"{views.base}/{repo.full_name}"

    def ref(self, name: str, sha: str) -> Json:
        """A reference."""
        return {
            "ref": name,
            "node_id": node_id("Ref", name),
            "url": f"{self._api}/git/{quote(name)}",
            "object": {"type": "commit", "sha": sha, "url": f"{self._api}/git/commits/{sha}"},
        }

    def short_branch(self, name: str, sha: str) -> Json:
        """A branch in a list."""
        return {"name": name, "commit": {"sha": sha, "url": f"{self._api}/commits/{sha}"}, "protected": False}

    def branch(self, name: str, commit: Commit) -> Json:
        """A branch by itself."""
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
        """A commit; with what it changed, if `files` is given."""
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
        """A commit as the Git database interface has it."""
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
        """A tree."""
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
        """The content of a file."""
        return {
            "sha": sha,
            "node_id": node_id("Blob", sha),
            "size": len(content),
            "url": f"{self._api}/git/blobs/{sha}",
            "content": encodebytes(content).decode(),
            "encoding": "base64",
        }

    def content(self, entry: TreeEntry, ref: str, content: bytes | None = None) -> Json:
        """An entry of a folder; a file by itself if `content` is given."""
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
        """A changed file; `sha` is the commit in which it stands as it is now."""
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
        """How a head stands to a base: `ends` are the base, their merge base and the head."""
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
