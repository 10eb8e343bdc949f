"""What the tools for repositories on GitHub take: described in `skills/repository-tools`. Empty means "not given"."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from local_tools.workspace_inputs import InRepository


class IssueListInput(InRepository):
    """The newest issues of a repository."""

    state: Literal["open", "closed", "all"] = "open"
    limit: int = Field(default=30, ge=1, le=100)


class OrgReposInput(BaseModel):
    """The repositories of an organisation, those in front into which somebody pushed last."""

    org: str
    limit: int = Field(default=30, ge=1, le=100)


class AccountInput(BaseModel):
    """An account."""

    username: str


class IssueCreateInput(InRepository):
    """A new issue."""

    title: str
    body: str = ""
    labels: list[str] = Field(default_factory=list)
    assignees: list[str] = Field(default_factory=list)


class IssueUpdateInput(InRepository):
    """A change of an issue; what is empty stays as it is."""

    issue_number: int = Field(ge=1)
    title: str = ""
    body: str = ""
    state: Literal["open", "closed", ""] = ""
    labels: list[str] = Field(default_factory=list)
    assignees: list[str] = Field(default_factory=list)
