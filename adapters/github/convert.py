"""PyGithub's objects as the values of `types`.

What an answer left out PyGithub would fetch, one request for each object; so each is taken as whole before it is read.
Raises `ValueError` where something is missing that must be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from adapters.github import sdk
from adapters.github.people import GitHubPerson
from adapters.github.types import Comment, Issue, IssueState, Repository

C = TypeVar("C", bound=sdk.CompletableGithubObject)
GHOST = "ghost"
"""What GitHub calls the author of what an account wrote that is gone."""

_SHOWN_CHARS = 300


def issue(found: sdk.Issue) -> Issue:
    """An issue, or a pull request seen as one."""
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
        node_id=found.node_id or "",
    )


def comment(found: sdk.IssueComment | sdk.PullRequestComment) -> Comment:
    """A comment on an issue or pull request, or on a line of one."""
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
    """A repository."""
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
    """An account."""
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


def number(value: int | None) -> int:
    """A number that must be there."""
    if not value:
        raise ValueError("a number is missing")
    return value


def login(user: sdk.NamedUser | sdk.Organization | None) -> str:
    """The login of an account; `GHOST` for one that is gone."""
    return text(whole(user).login) if user else GHOST


def account_id(user: sdk.NamedUser | sdk.Organization | None) -> int:
    """The numeric id of an account; 0 for one that is gone."""
    return (whole(user).id or 0) if user else 0


def whole(found: C) -> C:
    """The same object, which fetches nothing from now on."""
    found._set_complete()  # noqa: SLF001 - PyGithub has no other way to say it
    return found


def text(value: str | None) -> str:
    """A text that must be there."""
    if not value:
        raise ValueError("a text is missing")
    return value


def time(moment: datetime | None) -> str:
    """A moment that must be there, as ISO-8601 UTC."""
    if moment is None:
        raise ValueError("a time is missing")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pulls(told: Mapping[str, Any]) -> Literal["all", "collaborators", "nobody"]:
    """Who may open pull requests; PyGithub knows no attribute for it."""
    if told.get("has_pull_requests") is False:
        return "nobody"
    return "collaborators" if told.get("pull_request_creation_policy") == "collaborators_only" else "all"
