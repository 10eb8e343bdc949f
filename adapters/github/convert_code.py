"""PyGithub's objects, and the JSON that it has no objects for, as the values of `types`: all that is about code.

Raises `ValueError` or `KeyError` where something is missing that must be there.
"""

from __future__ import annotations

from typing import Any

from adapters.github import sdk
from adapters.github.convert import GHOST, account_id, comment, login, number, text, time, whole
from adapters.github.history import Labelling
from adapters.github.line_comments import ReviewComment
from adapters.github.types import (
    Account,
    Branch,
    ContentEntry,
    FileChange,
    GitCommit,
    GitHubNotification,
    GitRef,
    IssueState,
    Label,
    Merge,
    NotificationSubject,
    Organization,
    PullBranch,
    PullFile,
    PullRequest,
    Repo,
    Review,
    ReviewState,
)

_LINK_MODE = "120000"
_REVIEW_STATES: dict[str, ReviewState] = {
    "APPROVED": "APPROVED",
    "CHANGES_REQUESTED": "CHANGES_REQUESTED",
    "COMMENTED": "COMMENTED",
    "DISMISSED": "DISMISSED",
    "PENDING": "PENDING",
}


def pull_request(found: sdk.PullRequest) -> PullRequest:
    """A pull request."""
    whole(found)
    state: IssueState = "closed" if found.state == "closed" else "open"
    return PullRequest(
        number=number(found.number),
        title=text(found.title),
        body=found.body or "",
        state=state,
        author=login(found.user),
        head=_end(found.head),
        base=_end(found.base),
        html_url=text(found.html_url),
        created_at=time(found.created_at),
        updated_at=time(found.updated_at),
        draft=bool(found.draft),
        merged_at=time(found.merged_at) if found.merged_at else None,
        closed_at=time(found.closed_at) if found.closed_at else None,
        requested_reviewers=tuple(Account(account_id(one), login(one)) for one in found.requested_reviewers or ()),
        labels=tuple(text(whole(one).name) for one in found.labels or ()),
        assignees=tuple(login(person) for person in found.assignees or ()),
        mergeable=found.mergeable,
        mergeable_state=found.mergeable_state or "",
        additions=found.additions,
        deletions=found.deletions,
        changed_files=found.changed_files,
        merge_commit_sha=(found.merge_commit_sha or "") if found.merged_at else "",
        author_id=account_id(found.user),
    )


def pull_file(found: sdk.File) -> PullFile:
    """A changed file."""
    return PullFile(
        path=text(found.filename),
        status=text(found.status),
        additions=found.additions or 0,
        deletions=found.deletions or 0,
        patch=found.patch or "",
        previous_path=found.previous_filename or "",
        sha=found.sha or "",
    )


def review(found: sdk.PullRequestReview) -> Review:
    """A review."""
    return Review(
        id=number(found.id),
        author=login(found.user),
        body=found.body or "",
        state=_REVIEW_STATES[found.state.upper()],
        submitted_at=time(found.submitted_at) if found.submitted_at else "",
        commit_id=found.commit_id or "",
        html_url=text(found.html_url),
        author_id=account_id(found.user),
    )


def review_comment(found: sdk.PullRequestComment) -> ReviewComment:
    """A comment on a line; the line is that of the commit it was written for where the newest has it no more."""
    whole(found)
    return ReviewComment(
        review_id=found.pull_request_review_id or 0,
        path=text(found.path),
        line=found.line or found.original_line or 0,
        hunk=found.diff_hunk or "",
        comment=comment(found),
        answers=found.in_reply_to_id or 0,
    )


def merge(found: sdk.PullRequestMergeStatus) -> Merge:
    """What came of a merge."""
    return Merge(text(found.sha), bool(found.merged), found.message or "")


def tree_entry(found: dict[str, Any]) -> ContentEntry:
    """A file, link or submodule of a tree."""
    path = str(found["path"])
    kind = "submodule" if found["type"] == "commit" else "symlink" if found.get("mode") == _LINK_MODE else "file"
    return ContentEntry(path.rpartition("/")[2], path, kind, str(found["sha"]), int(found.get("size") or 0))


def content_entry(found: dict[str, Any]) -> ContentEntry:
    """A file or folder."""
    return ContentEntry(found["name"], found["path"], found["type"], found.get("sha") or "", found.get("size") or 0)


def file_change(path: str, found: dict[str, Any]) -> FileChange:
    """A file that was written or deleted."""
    content = found.get("content")
    return FileChange(path, text(content["sha"]) if content else "", text(found["commit"]["sha"]))


def git_ref(found: dict[str, Any]) -> GitRef:
    """A branch or tag by its full name."""
    return GitRef(text(found["ref"]), text(found["object"]["sha"]))


def git_commit(found: dict[str, Any]) -> GitCommit:
    """A commit as the Git database interface has it."""
    parents = tuple(text(one["sha"]) for one in found["parents"])
    return GitCommit(text(found["sha"]), text(found["tree"]["sha"]), found["message"] or "", parents)


def branch(found: dict[str, Any]) -> Branch:
    """A branch."""
    return Branch(text(found["name"]), text(found["commit"]["sha"]))


def label(found: dict[str, Any]) -> Label:
    """A label of a repository."""
    return Label(text(found["name"]), found.get("color") or "", found.get("description") or "")


def account(found: dict[str, Any]) -> Account:
    """An account."""
    return Account(int(found["id"]), text(found["login"]))


def labelling(found: dict[str, Any]) -> Labelling:
    """That a label was put on an issue, or taken away."""
    by = account(found["actor"]) if found.get("actor") else Account(0, GHOST)
    return Labelling(text(found["label"]["name"]), by, found["event"] == "labeled", text(found["created_at"]))


def organization(found: dict[str, Any]) -> Organization:
    """An organisation."""
    return Organization(text(found["login"]), found.get("description") or "")


def notification(found: dict[str, Any]) -> GitHubNotification:
    """A notification."""
    subject, repo = found["subject"], found["repository"]
    return GitHubNotification(
        id=text(found["id"]),
        reason=text(found["reason"]),
        unread=bool(found["unread"]),
        updated_at=text(found["updated_at"]),
        subject=NotificationSubject(subject.get("title") or "", subject.get("url") or "", subject.get("type") or ""),
        repo=Repo(text(repo["owner"]["login"]), text(repo["name"])),
        last_read_at=found.get("last_read_at"),
    )


def _end(part: sdk.PullRequestPart) -> PullBranch:
    repo = text(whole(part.repo).full_name) if part.repo else ""
    return PullBranch(text(part.ref), text(part.sha), repo, (part.repo.id or 0) if part.repo else 0)
