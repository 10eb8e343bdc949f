"""Converts PyGithub's objects, and JSON that has no such object, to the values of `types`.

PyGithub would fetch what an answer left out, with one request for each object; so each is marked complete before it is
read. Raises `ValueError` or `KeyError` if a required part is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from adapters.github.history import Labelling
from adapters.github.types import (
    Account,
    Branch,
    Comment,
    ContentEntry,
    FileChange,
    GitCommit,
    GitHubNotification,
    GitHubPerson,
    GitRef,
    Issue,
    IssueState,
    Merge,
    NotificationSubject,
    Organization,
    PullBranch,
    PullFile,
    PullRequest,
    Repo,
    Repository,
    Review,
    ReviewComment,
    ReviewState,
)

if TYPE_CHECKING:
    from adapters.github import sdk

C = TypeVar("C", bound="sdk.CompletableGithubObject")
GHOST = "ghost"
"""GitHub's author of posts whose account is gone."""

_SHOWN_CHARS = 300
_LINK_MODE = "120000"
_REVIEW_STATES: dict[str, ReviewState] = {
    "APPROVED": "APPROVED",
    "CHANGES_REQUESTED": "CHANGES_REQUESTED",
    "COMMENTED": "COMMENTED",
    "DISMISSED": "DISMISSED",
    "PENDING": "PENDING",
}


def issue(found: sdk.Issue) -> Issue:
    """Return an issue, or a pull request as an issue."""
    whole(found)
    state: IssueState = "closed" if found.state == "closed" else "open"
    return Issue(
        number=number(found.number),
        title=text(found.title),
        body=found.body or "",
        state=state,
        author=login(found.user),
        labels=tuple(text(whole(label).name) for label in found.labels or ()),
        assignees=tuple(login(person) for person in found.assignees or ()),
        html_url=text(found.html_url),
        created_at=time(found.created_at),
        updated_at=time(found.updated_at),
        closed_at=time(found.closed_at) if found.closed_at else None,
        is_pull_request=found.pull_request is not None,
        closed_by=login(found.closed_by) if found.closed_by else "",
        author_id=account_id(found.user),
        closed_by_id=account_id(found.closed_by),
        comments=found.comments or 0,
        node_id=found.node_id or "",
    )


def comment(found: sdk.IssueComment | sdk.PullRequestComment) -> Comment:
    """Return a comment on an issue or pull request, or on a line of one."""
    whole(found)
    return Comment(
        id=number(found.id),
        body=found.body or "",
        author=login(found.user),
        html_url=text(found.html_url),
        created_at=time(found.created_at),
        updated_at=time(found.updated_at),
        author_id=account_id(found.user),
        node_id=found.node_id or "",
    )


def repository(found: sdk.Repository) -> Repository:
    """Return a repository."""
    whole(found)
    return Repository(
        full_name=text(found.full_name),
        description=found.description or "",
        html_url=text(found.html_url),
        clone_url=found.clone_url or "",
        created_at=time(found.created_at) if found.created_at else "",
        default_branch=found.default_branch or "",
        private=bool(found.private),
        has_issues=bool(found.has_issues),
        archived=bool(found.archived),
        is_template=bool(found.is_template),
        can_push=bool(found.permissions and found.permissions.push),
        pulls=_pulls(found.raw_data),
        id=found.id or 0,
        pushed_at=time(found.pushed_at) if found.pushed_at else "",
    )


def person(found: sdk.NamedUser) -> GitHubPerson:
    """Return an account."""
    whole(found)
    return GitHubPerson(
        login=text(found.login),
        name=found.name or "",
        html_url=found.html_url or "",
        is_bot=found.type == "Bot",
        website=(found.blog or "")[:_SHOWN_CHARS],
        bio=(found.bio or "")[:_SHOWN_CHARS],
        id=account_id(found),
    )


def pull_request(found: sdk.PullRequest) -> PullRequest:
    """Return a pull request."""
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
    """Return a changed file."""
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
    """Return a review."""
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
    """Return a comment on a line; `line` is that of the original commit if the newest no longer has it."""
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
    """Return the result of a merge."""
    return Merge(text(found.sha), bool(found.merged), found.message or "")


def tree_entry(found: dict[str, Any]) -> ContentEntry:
    """Return a file, link or submodule of a tree."""
    path = str(found["path"])
    kind = "submodule" if found["type"] == "commit" else "symlink" if found.get("mode") == _LINK_MODE else "file"
    return ContentEntry(path.rpartition("/")[2], path, kind, str(found["sha"]), int(found.get("size") or 0))


def content_entry(found: dict[str, Any]) -> ContentEntry:
    """Return a file or folder."""
    return ContentEntry(found["name"], found["path"], found["type"], found.get("sha") or "", found.get("size") or 0)


def file_change(path: str, found: dict[str, Any]) -> FileChange:
    """Return a file that was written."""
    return FileChange(path, text(found["content"]["sha"]), text(found["commit"]["sha"]))


def git_ref(found: dict[str, Any]) -> GitRef:
    """Return a branch or tag by its full name."""
    return GitRef(text(found["ref"]), text(found["object"]["sha"]))


def git_commit(found: dict[str, Any]) -> GitCommit:
    """Return a commit of the Git database API."""
    parents = tuple(text(one["sha"]) for one in found["parents"])
    return GitCommit(text(found["sha"]), text(found["tree"]["sha"]), found["message"] or "", parents)


def branch(found: dict[str, Any]) -> Branch:
    """Return a branch."""
    return Branch(text(found["name"]), text(found["commit"]["sha"]))


def account(found: dict[str, Any]) -> Account:
    """Return an account with its id."""
    return Account(int(found["id"]), text(found["login"]))


def labelling(found: dict[str, Any]) -> Labelling:
    """Return the event that a label was added to an issue or removed."""
    by = account(found["actor"]) if found.get("actor") else Account(0, GHOST)
    return Labelling(text(found["label"]["name"]), by, found["event"] == "labeled", text(found["created_at"]))


def organization(found: dict[str, Any]) -> Organization:
    """Return an organisation."""
    return Organization(text(found["login"]), found.get("description") or "")


def notification(found: dict[str, Any]) -> GitHubNotification:
    """Return a notification."""
    subject, repo = found["subject"], found["repository"]
    return GitHubNotification(
        id=text(found["id"]),
        reason=text(found["reason"]),
        unread=bool(found["unread"]),
        updated_at=text(found["updated_at"]),
        subject=NotificationSubject(subject.get("title") or "", subject.get("url") or "", subject.get("type") or ""),
        repo=Repo(text(repo["owner"]["login"]), text(repo["name"])),
    )


def _end(part: sdk.PullRequestPart) -> PullBranch:
    repo = text(whole(part.repo).full_name) if part.repo else ""
    return PullBranch(text(part.ref), text(part.sha), repo, (part.repo.id or 0) if part.repo else 0)


def number(value: int | None) -> int:
    """Return a number; raise `ValueError` if it is missing."""
    if not value:
        raise ValueError("a number is missing")
    return value


def login(user: sdk.NamedUser | sdk.Organization | None) -> str:
    """Return the login of an account; `GHOST` if it is gone."""
    return text(whole(user).login) if user else GHOST


def account_id(user: sdk.NamedUser | sdk.Organization | None) -> int:
    """Return the numeric id of an account; 0 if it is gone."""
    return (whole(user).id or 0) if user else 0


def whole(found: C) -> C:
    """Mark an object as complete, so that it fetches nothing, and return it."""
    found._set_complete()  # noqa: SLF001 - PyGithub has no other way to say it
    return found


def text(value: str | None) -> str:
    """Return a text; raise `ValueError` if it is missing."""
    if not value:
        raise ValueError("a text is missing")
    return value


def time(moment: datetime | None) -> str:
    """Return a moment as ISO-8601 UTC; raise `ValueError` if it is missing."""
    if moment is None:
        raise ValueError("a time is missing")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pulls(told: Mapping[str, Any]) -> Literal["all", "collaborators", "nobody"]:
    """Return who may open pull requests; PyGithub has no attribute for it."""
    if told.get("has_pull_requests") is False:
        return "nobody"
    return "collaborators" if told.get("pull_request_creation_policy") == "collaborators_only" else "all"
