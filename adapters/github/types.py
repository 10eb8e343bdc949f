"""What GitHub tells us, as far as we use it. Times are ISO-8601 UTC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

IssueState = Literal["open", "closed"]


@dataclass(frozen=True, slots=True)
class Repo:
    """`owner/name`, as GitHub writes it."""

    owner: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def url(self) -> str:
        return f"https://github.com/{self.owner}/{self.name}"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that exists."""

    full_name: str
    description: str
    html_url: str
    clone_url: str
    default_branch: str
    private: bool
    has_issues: bool = True


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue, or a pull request seen as one (`is_pull_request`)."""

    number: int
    title: str
    body: str
    state: IssueState
    author: str
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    html_url: str
    created_at: str
    updated_at: str
    closed_at: str | None = None
    is_pull_request: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on an issue."""

    id: int
    body: str
    author: str
    html_url: str
    created_at: str
    updated_at: str
