"""What the tools for repositories and pull requests take: described in skills. Empty means "not given"."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from local_tools.bluesky_inputs import AccountName
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

    username: AccountName


class IssueCreateInput(InRepository):
    """A new issue. `assignees` is not asked for: without them it is assigned to the SOUL."""

    title: str
    body: str = ""
    labels: list[str] = Field(default_factory=list)
    assignees: Annotated[list[str], SkipJsonSchema()] = Field(default_factory=list)


class IssueUpdateInput(InRepository):
    """A change of an issue; what is empty stays as it is."""

    issue_number: int = Field(ge=1)
    title: str = ""
    body: str = ""
    state: Literal["open", "closed", ""] = ""
    labels: list[str] = Field(default_factory=list)
    assignees: list[str] = Field(default_factory=list)


class OwnOrgsInput(BaseModel):
    """The organisations of our own account."""


class PullInput(InRepository):
    """A pull request."""

    pull_number: int = Field(ge=1)


class ThreadCommentInput(InRepository):
    """A comment on an issue or a pull request, which its address names, or its number and repository."""

    body: str
    url: str = ""
    number: int = Field(default=0, ge=0)


class PullCommentInput(PullInput):
    """A comment on it."""

    body: str


class PullReviewInput(PullInput):
    """A review of it."""

    event: Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
    body: str = ""


class PullMergeInput(PullInput):
    """Its merge, as one commit."""


class PullCreateInput(InRepository):
    """A new pull request, from the branch `head` into `base`, the default branch if none is given."""

    title: str
    head: str
    body: str = ""
    base: str = ""
    draft: bool = False
