"""PyGithub's objects as the values of `types`.

What an answer left out PyGithub would fetch, one request for each object; so each is taken as whole before it is read.
Raises `ValueError` where something is missing that must be there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeVar

from adapters.github import sdk
from adapters.github.people import Person
from adapters.github.types import Comment, Issue, IssueState, Repository

C = TypeVar("C", bound=sdk.CompletableGithubObject)
GHOST = "ghost"
"""What GitHub calls the author of what an account wrote that is gone."""

_SHOWN_CHARS = 300


def issue(found: sdk.Issue) -> Issue:
    """An issue, or a pull request seen as one."""
    _whole(found)
    state: IssueState = "closed" if found.state == "closed" else "open"
    return Issue(
        number=number(found.number),
        title=_text(found.title),
        body=found.body or "",
        state=state,
        author=_login(found.user),
        labels=tuple(_text(_whole(label).name) for label in found.labels or ()),
        assignees=tuple(_login(person) for person in found.assignees or ()),
        html_url=_text(found.html_url),
        created_at=_time(found.created_at),
        updated_at=_time(found.updated_at),
        closed_at=_time(found.closed_at) if found.closed_at else None,
        is_pull_request="/pull/" in found.html_url,
        closed_by=_login(found.closed_by) if found.closed_by else "",
    )


def comment(found: sdk.IssueComment) -> Comment:
    """A comment on an issue or pull request."""
    _whole(found)
    return Comment(
        id=number(found.id),
        body=found.body or "",
        author=_login(found.user),
        html_url=_text(found.html_url),
        created_at=_time(found.created_at),
        updated_at=_time(found.updated_at),
    )


def repository(found: sdk.Repository) -> Repository:
    """A repository."""
    _whole(found)
    return Repository(
        full_name=_text(found.full_name),
        description=found.description or "",
        html_url=_text(found.html_url),
        clone_url=found.clone_url or "",
        default_branch=found.default_branch or "",
        private=bool(found.private),
        has_issues=bool(found.has_issues),
        archived=bool(found.archived),
        is_template=bool(found.is_template),
        is_fork=bool(found.fork),
        can_push=bool(found.permissions and found.permissions.push),
    )


def person(found: sdk.NamedUser) -> Person:
    """An account."""
    _whole(found)
    return Person(
        login=_text(found.login),
        name=found.name or "",
        html_url=found.html_url or "",
        is_bot=found.type == "Bot",
        is_organization=found.type == "Organization",
        website=(found.blog or "")[:_SHOWN_CHARS],
        bio=(found.bio or "")[:_SHOWN_CHARS],
    )


def number(value: int | None) -> int:
    """A number that must be there."""
    if not value:
        raise ValueError("a number is missing")
    return value


def _login(user: sdk.NamedUser | sdk.Organization | None) -> str:
    return _text(_whole(user).login) if user else GHOST


def _whole(found: C) -> C:
    found._set_complete()  # noqa: SLF001 - PyGithub has no other way to say it
    return found


def _text(value: str | None) -> str:
    if not value:
        raise ValueError("a text is missing")
    return value


def _time(moment: datetime | None) -> str:
    if moment is None:
        raise ValueError("a time is missing")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
