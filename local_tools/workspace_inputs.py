"""The inputs of the workspace tools; `skills/workspace-tools` describes them. Empty always means "not given"."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from common.schemas import repository_name
from common.text.strings import account_name

AccountName = Annotated[str, AfterValidator(account_name)]
"""A handle, a login or a DID as a model gives it: alone, after an @, or as the address of a profile."""
RepoName = Annotated[str, AfterValidator(lambda said: repository_name(said.strip()) or said)]
"""A repository as a model gives it: `owner/repo`, the name alone, or the address of a page of it."""
LongText = Annotated[str, Field(max_length=20_000)]
"""What GitHub shows under a title. A longer text is refused, not cut."""
Labels = Annotated[list[str], Field(default_factory=list, max_length=100)]
"""As many as GitHub lets an issue have."""


class WorkspaceCreateInput(BaseModel):
    """A workspace in the organisation that the owner set. `org` is hidden from the model: another one is refused."""

    name: str
    description: str = ""
    org: Annotated[str, SkipJsonSchema()] = ""


class WorkspaceFindInput(BaseModel):
    """An organisation; by default the one that the owner set."""

    org: AccountName = ""


class InRepository(BaseModel):
    """A repository; by default that of the turn's thread, else the only workspace that is watched.

    `owner` is hidden from the model: `repo` is `owner/repo`. A model that gives them separately is understood.
    """

    owner: Annotated[AccountName, SkipJsonSchema()] = ""
    repo: RepoName = ""


class MemoInput(InRepository):
    """An issue that records a thought."""

    title: str
    body: LongText = ""
    labels: Labels


class PlanTask(BaseModel):
    """A task. `estimate` is hidden from the model: no rule reads it."""

    title: str
    description: str = ""
    estimate: Annotated[str, SkipJsonSchema()] = ""
    dependencies: list[str] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list)


class PlanInput(InRepository):
    """A plan of work."""

    title: str
    goal: str
    context: str = ""
    tasks: list[PlanTask]
    verification: list[str] = Field(default_factory=list)


class TaskInput(InRepository):
    """A task of a plan, to be taken or left alone."""

    task: int = Field(ge=1)
    plan: int = Field(default=0, ge=0)
    leave: bool = False


class FinishInput(InRepository):
    """The end of the work in a workspace."""

    summary: LongText
