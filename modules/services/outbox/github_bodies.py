"""The bodies of what is done on GitHub: one frozen type for each kind of intent.

`text` and `about` are the long and the short preview, for the owner. What GitHub gets stands in the other fields.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, ClassVar, Literal, TypeVar, get_args

from pydantic import Field, StrictBool, StrictInt, StrictStr

from common.text.github_text import without_closing_words
from modules.services.outbox.body_base import OfCommitment

Names = tuple[StrictStr, ...]
_Sha = Annotated[StrictStr, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?$")]
_Number = Annotated[StrictInt, Field(ge=1)]


class OnGitHub(OfCommitment):
    """An act in the repository `repo` (`owner/name`)."""

    repo: Annotated[StrictStr, Field(pattern=r"^[^/\s]+/[^/\s]+$")]
    text: StrictStr = ""
    about: StrictStr = ""

    @property
    def preview(self) -> str:
        return self.text

    @property
    def short_preview(self) -> str:
        return self.about or self.text


class IssueBody(OnGitHub):
    """A new issue, assigned to ourselves where `assignees` is empty."""

    kind: ClassVar[Literal["issue"]] = "issue"
    body: StrictStr
    title: StrictStr
    labels: Names = ()
    assignees: Names = ()


class IssueCommentBody(OnGitHub):
    """A comment on issue or pull request `number`."""

    kind: ClassVar[Literal["issue_comment"]] = "issue_comment"
    body: StrictStr
    number: int


class IssueUpdateBody(OnGitHub):
    """A change of issue `number`: of what is given.

    `title` and `body` stay as they are where they are "", the others where they are None. `over` is the SHA-256 of the
    body that was read: where another stands there by then, nothing is changed; "" overwrites whatever stands there.
    """

    kind: ClassVar[Literal["issue_update"]] = "issue_update"
    number: _Number
    title: StrictStr = ""
    body: StrictStr = ""
    state: Literal["open", "closed"] | None = None
    labels: Names | None = None
    assignees: Names | None = None
    over: Annotated[StrictStr, Field(pattern=r"^([0-9a-f]{64})?$")] = ""


class LabelBody(OnGitHub):
    """Labels that issue `number` gets, and labels that it loses; all others stay."""

    kind: ClassVar[Literal["label"]] = "label"
    number: _Number
    add: Names = ()
    remove: Names = ()


class AssigneeBody(OnGitHub):
    """Accounts to which issue `number` is assigned, and one from which it is taken unless it is the only one."""

    kind: ClassVar[Literal["assignee"]] = "assignee"
    number: _Number
    add: Names = ()
    remove: StrictStr = ""


class ReactionBody(OnGitHub):
    """A reaction to issue or pull request `number`."""

    kind: ClassVar[Literal["reaction"]] = "reaction"
    number: _Number
    reaction: Literal["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"]


class CommentDeletionBody(OnGitHub):
    """The deletion of our comment `comment_id` on issue or pull request `number`."""

    kind: ClassVar[Literal["comment_deletion"]] = "comment_deletion"
    number: _Number
    comment_id: _Number


class StarBody(OnGitHub):
    """A star for the repository."""

    kind: ClassVar[Literal["star"]] = "star"


class AccountFollowBody(OnGitHub):
    """That an account is followed. `repo` is the repository of its page, `login/login`."""

    kind: ClassVar[Literal["account_follow"]] = "account_follow"

    @property
    def login(self) -> str:
        """The account."""
        return self.repo.partition("/")[0]


class PullRequestBody(OnGitHub):
    """A pull request from `head` (`branch`, or `owner:branch` of a fork) into the branch `base`."""

    kind: ClassVar[Literal["pull_request"]] = "pull_request"
    title: StrictStr
    body: StrictStr
    head: StrictStr
    base: StrictStr
    draft: StrictBool = False


class ReviewRequestBody(OnGitHub):
    """The accounts that are asked to review pull request `number`."""

    kind: ClassVar[Literal["review_request"]] = "review_request"
    number: _Number
    reviewers: Annotated[Names, Field(min_length=1)]


class ReviewBody(OnGitHub):
    """A review of pull request `number`, of its commit `commit_id` (the newest where it is "")."""

    kind: ClassVar[Literal["review"]] = "review"
    number: _Number
    event: Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
    body: StrictStr = ""
    commit_id: _Sha = ""


class MergeBody(OnGitHub):
    """The merge of pull request `number`, if its newest commit is `head_sha` still ("" for whichever it is)."""

    kind: ClassVar[Literal["merge"]] = "merge"
    number: _Number
    method: Literal["squash", "merge", "rebase"] = "squash"
    title: StrictStr = ""
    message: StrictStr = ""
    head_sha: _Sha = ""


class RefBody(OnGitHub):
    """The branch `branch`, created on the commit `sha`, or deleted.

    With `own_commit` it is created on an empty commit upon `sha` whose message names the intent: then nobody else's
    branch of the same name can be taken for ours, also where an answer was lost. A lock needs that.
    """

    kind: ClassVar[Literal["ref"]] = "ref"
    action: Literal["create", "delete"]
    branch: StrictStr
    sha: _Sha = ""
    own_commit: StrictBool = False


class ContentsBody(OnGitHub):
    """A file that is written, or deleted, in one commit on `branch` ("" for the default branch).

    `content` is the whole file; None deletes it. `sha` is that of the file as it was read, "" where there was none;
    where another stands there by then, nothing is changed. `message` is that of the commit.
    """

    kind: ClassVar[Literal["contents"]] = "contents"
    path: StrictStr
    content: StrictStr | None
    message: StrictStr
    branch: StrictStr = ""
    sha: _Sha = ""


class PushBody(OnGitHub):
    """The commit `sha` of a clone of ours, pushed to `branch` by Git.

    `folder` is where the clone lies, from the home; where it is gone by then the push fails. `before` is the commit on
    which the branch stands there, "" where it is new: where another stands there by then, nothing is pushed. `paths`
    are the files that it changes.
    """

    kind: ClassVar[Literal["push"]] = "push"
    branch: StrictStr
    sha: Annotated[_Sha, Field(min_length=40)]
    folder: StrictStr
    before: _Sha = ""
    paths: Names = ()


class RepositoryBody(OnGitHub):
    """The repository `repo`, made from `template` (`owner/name`).

    Where its owner has a repository whose name begins with `only_one`, none is made; "" makes it in any case.
    """

    kind: ClassVar[Literal["repository"]] = "repository"
    template: Annotated[StrictStr, Field(pattern=r"^[^/\s]+/[^/\s]+$")]
    description: StrictStr = ""
    private: StrictBool = False
    only_one: StrictStr = ""


GitHubBody = (
    IssueBody
    | IssueCommentBody
    | IssueUpdateBody
    | LabelBody
    | AssigneeBody
    | ReactionBody
    | StarBody
    | AccountFollowBody
    | CommentDeletionBody
    | PullRequestBody
    | ReviewRequestBody
    | ReviewBody
    | MergeBody
    | RefBody
    | ContentsBody
    | PushBody
    | RepositoryBody
)
GitHubKind = Literal[
    "issue",
    "issue_comment",
    "issue_update",
    "label",
    "assignee",
    "reaction",
    "star",
    "account_follow",
    "comment_deletion",
    "pull_request",
    "review_request",
    "review",
    "merge",
    "ref",
    "contents",
    "push",
    "repository",
]
GITHUB_KINDS: tuple[GitHubKind, ...] = get_args(GitHubKind)
"""The kinds of intents that go to GitHub."""
CREATING: frozenset[GitHubKind] = frozenset({"issue", "issue_comment", "pull_request", "review", "repository"})
"""What GitHub counts as content that is created, and notifies people of."""
NOT_IN_A_REPOSITORY: frozenset[GitHubKind] = frozenset({"account_follow", "repository"})
"""What is done in no repository that is there already."""

B = TypeVar("B", bound=OnGitHub)
_SAID = ("title", "body", "message")


def body_digest(body: str) -> str:
    """The SHA-256 of the body of an issue in hexadecimal digits, whatever its line ends are."""
    return hashlib.sha256(body.replace("\r\n", "\n").rstrip().encode()).hexdigest()


def without_closing(body: B) -> B:
    """Return a body that closes no issue by what it says. A file, and a text that is changed in places, stay."""
    if isinstance(body, IssueUpdateBody) and body.over:
        return body
    said = {name: text for name in _SAID if (text := getattr(body, name, ""))}
    return body.model_copy(update={name: without_closing_words(text) for name, text in said.items()})
