"""The parameters of a commitment, by its kind: the object `params` of a line of `pending_commitments.jsonl`.

A model may have written them: a value of a wrong type counts as absent, and unknown names are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from common.schemas import CommitmentType

_NUMBER_DIGITS = 9


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    """Convert a number of at least 1, also from a text such as `#7`; None for anything else."""
    if isinstance(value, str):
        digits = value.strip().removeprefix("#")
        value = int(digits) if digits.isdecimal() and len(digits) <= _NUMBER_DIGITS else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 1 <= value < 10**_NUMBER_DIGITS else None


def _plan(value: object) -> object:
    given = value if isinstance(value, Mapping) else {}
    return value if all(isinstance(given.get(name), str) for name in ("title", "body")) else None


Text = Annotated[str, BeforeValidator(_text)]
Exact = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]
Flag = Annotated[bool, BeforeValidator(lambda value: value is True)]
Number = Annotated[int | None, BeforeValidator(_number)]


class ReadyPlan(BaseModel):
    """A plan as its issue will contain it."""

    title: str
    body: str


class _Params(BaseModel):
    """The parameters that every commitment may have.

    Attributes:
        title: its title.
        description: the body of what is made.
        content: another name for it that models use.
        target: the exact target that was claimed for it in the room.
        host_request: the host of a room, or the owner, asked for it.
        host_named: the host of a room named the repository in its own words.
        found_room: it was made in a room that was only discovered, and that the owner never named.
        undelivered: the room has not echoed the words in which it was made.
        room_id: the room in which it was made; "" if the room gave no id.

    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True, defer_build=True
    )

    title: Text = ""
    description: Text = ""
    content: Text = ""
    target: Exact = ""
    host_request: Flag = False
    host_named: Flag = Field(default=False, alias="hostNamedRepo")
    found_room: Flag = False
    undelivered: Flag = False
    room_id: Text = ""

    def as_json(self) -> dict[str, Any]:
        """Return the object in the line: all values that are not the default, under the names used there."""
        return self.model_dump(by_alias=True, exclude_defaults=True)


class _OnGitHub(_Params):
    """The repository; `repo` or `repo_name` may contain its whole URL, and an explicit `owner` wins."""

    repo: Text = ""
    owner: Text = ""
    repo_name: Text = ""


class IssueParams(_OnGitHub):
    """The number of issues; `memo`: the issue records a conversation."""

    type: Literal["create_issue"] = Field(default="create_issue", exclude=True)
    count: Number = None
    memo: Flag = False


class PlanParams(_OnGitHub):
    """The plan, once it was made."""

    type: Literal["create_plan"] = Field(default="create_plan", exclude=True)
    plan: Annotated[ReadyPlan | None, BeforeValidator(_plan)] = None


class CommentParams(_OnGitHub):
    """The issue to comment on; `body` is the text if there is no `description`."""

    type: Literal["comment_issue"] = Field(default="comment_issue", exclude=True)
    issue_number: Number = None
    body: Text = ""


class PostParams(_Params):
    """The post; `text` is used if there is no `content`."""

    type: Literal["post_bluesky"] = Field(default="post_bluesky", exclude=True)
    text: Text = ""


GitHubParams = IssueParams | PlanParams | CommentParams
CommitmentParams = GitHubParams | PostParams

_READ: TypeAdapter[CommitmentParams] = TypeAdapter(
    Annotated[CommitmentParams, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)


def read_params(kind: CommitmentType, given: Mapping[str, Any]) -> CommitmentParams:
    """Return the parameters of a commitment of this kind."""
    return _READ.validate_python({**given, "type": kind})
