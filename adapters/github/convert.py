"""PyGithub's objects as the values of `types`.

An attribute that the answer left out would be fetched anew, one request for each; so only those are read that every
answer has, and what is missing elsewhere is told from the address.
"""

from __future__ import annotations

from datetime import UTC, datetime

from adapters.github import sdk
from adapters.github.people import Person
from adapters.github.types import Comment, Issue, IssueState, Repository

GHOST = "ghost"
"""What GitHub calls the author of what an account wrote that is gone."""


def issue(found: sdk.Issue) -> Issue:
    """An issue, or a pull request seen as one."""
    state: IssueState = "closed" if found.state == "closed" else "open"
    return Issue(
        number=found.number,
        title=found.title or "",
        body=found.body or "",
        state=state,
        author=_login(found.user),
        labels=tuple(label.name for label in found.labels or ()),
        assignees=tuple(person.login for person in found.assignees or ()),
        html_url=found.html_url or "",
        created_at=_time(found.created_at),
        updated_at=_time(found.updated_at),
        closed_at=_time(found.closed_at) or None,
        is_pull_request="/pull/" in (found.html_url or ""),
    )


def comment(found: sdk.IssueComment) -> Comment:
    """A comment on an issue or pull request."""
    return Comment(
        id=found.id,
        body=found.body or "",
        author=_login(found.user),
        html_url=found.html_url or "",
        created_at=_time(found.created_at),
        updated_at=_time(found.updated_at),
    )


def repository(found: sdk.Repository) -> Repository:
    """A repository."""
    return Repository(
        full_name=found.full_name,
        description=found.description or "",
        html_url=found.html_url,
        clone_url=found.clone_url or "",
        default_branch=found.default_branch or "",
        private=bool(found.private),
        has_issues=bool(found.has_issues),
    )


def person(found: sdk.NamedUser | sdk.AuthenticatedUser) -> Person:
    """An account."""
    return Person(
        login=found.login,
        name=found.name or "",
        html_url=found.html_url or "",
        is_bot=found.type == "Bot",
        is_organization=found.type == "Organization",
    )


def _login(user: sdk.NamedUser | sdk.Organization | None) -> str:
    return user.login if user else GHOST


def _time(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""
