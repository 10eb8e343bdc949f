"""The bodies of what is done on GitHub: one frozen type for each kind of intent.

What the owner is shown of an act follows from what GitHub gets. Where that says too little, as of a push, `about` is
the line that tells of it and `text` what follows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from adapters.github.types import LineComment
from common.text.github_text import without_closing_words
from common.text.markdown import without_html_comments
from modules.services.plans.plan_text import format_task_markdown
from modules.services.plans.types import Task


class StoredValue(BaseModel):
    """A value that is kept as JSON."""

    model_config = ConfigDict(
        frozen=True, extra="allow", validate_by_name=True, validate_by_alias=True, defer_build=True
    )

    def stored(self) -> dict[str, Any]:
        """The JSON object of this value: the fields that were given, and those that this version does not know."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Body(StoredValue):
    """What all bodies can tell."""

    @property
    def subject(self) -> str:
        """The uri or did that the act is done to; "" if it stands alone."""
        return ""

    @property
    def public_text(self) -> str:
        """The words that Bluesky shows under our name; "" if there are none."""
        return ""

    @property
    def preview(self) -> str:
        """The text that the owner is shown; "" if there is none."""
        return self.public_text

    @property
    def short_preview(self) -> str:
        """What the owner is shown where there is room for one line; "" if there is nothing."""
        return self.preview

    @property
    def deed(self) -> str:
        """What it does, in one line for the owner, without the words that it publishes; "" where its kind says it."""
        return ""

    @property
    def as_json(self) -> str:
        """The body as it is stored."""
        return json_of(self.stored())


class OfCommitment(Body):
    """A body that may belong to a commitment.

    `source` is where the commitment was made: `bluesky`, `space`, or `found` for a room that the owner never named. It
    is `github` for an answer in a thread on GitHub, and `workspace` for work in a workspace that is watched; neither
    belongs to a commitment.
    `host_request` and `host_named` say that the host of a room asked for the act, or named the repository.
    """

    commitment_id: StrictStr = Field(default="", alias="promise")
    source: StrictStr = ""
    host_request: StrictBool = Field(default=False, alias="host_wish")
    host_named: StrictBool = False


def json_of(stored: Mapping[str, Any]) -> str:
    """The JSON object of a body as it is stored."""
    return json.dumps(stored, sort_keys=True, separators=(",", ":"))


Names = tuple[StrictStr, ...]
_Sha = Annotated[StrictStr, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?$")]
MOST_LINE_COMMENTS = 10
"""So many lines one review speaks of."""
_Number = Annotated[StrictInt, Field(ge=1)]


class OnGitHub(OfCommitment):
    """An act in the repository `repo` (`owner/name`); `does` says what it does, without the words that it publishes."""

    does: ClassVar[str] = "{0.repo}"
    repo: Annotated[StrictStr, Field(pattern=r"^[^/\s]+/[^/\s]+$")]
    text: StrictStr = ""
    about: StrictStr = ""

    @property
    def preview(self) -> str:
        return "\n\n".join(filter(None, (self.about or self.summary, self.text or self.words)))

    @property
    def short_preview(self) -> str:
        return self.about or self.summary

    @property
    def deed(self) -> str:
        return self.does.format(self)

    @property
    def summary(self) -> str:
        """What it does, in one line, with its title."""
        return ": ".join(filter(None, (self.deed, getattr(self, "title", ""))))

    @property
    def words(self) -> str:
        """What people read there; "" if nothing is."""
        return without_html_comments(getattr(self, "body", "")).strip()


class _OnIssue(OnGitHub):
    """An act on issue or pull request `number`."""

    number: _Number


class OfTask(OnGitHub):
    """An act that may be done for a task of a plan: `task` is its key ("" for none), `epoch` the claim."""

    task: StrictStr = ""
    epoch: StrictInt = 0


class IssueBody(OnGitHub):
    """A new issue, assigned to ourselves where `assignees` is empty.

    Where the text of an open issue holds `only_one`, none is made; "" makes it in any case.
    """

    kind: ClassVar[Literal["issue"]] = "issue"
    does: ClassVar[str] = "issue in {0.repo}"
    body: StrictStr
    title: StrictStr
    labels: Names = ()
    assignees: Names = ()
    only_one: StrictStr = ""


class IssueCommentBody(_OnIssue):
    """A comment on issue or pull request `number`.

    `line` is the id of the comment on a line of a pull request that it answers; with 0 it answers none.
    """

    kind: ClassVar[Literal["issue_comment"]] = "issue_comment"
    does: ClassVar[str] = "comment on {0.repo}#{0.number}"
    number: int
    body: StrictStr
    line: StrictInt = 0


class IssueUpdateBody(_OnIssue):
    """A change of issue `number`: of what is given.

    `title` and `body` stay as they are where they are "", the others where they are None. `over` is the SHA-256 of the
    body that was read: where another stands there by then, nothing is changed; "" overwrites whatever stands there.
    `tasks` are added to the plan that stands there by then, those whose titles it lacks; with them there is no `body`.
    """

    kind: ClassVar[Literal["issue_update"]] = "issue_update"
    title: StrictStr = ""
    body: StrictStr = ""
    state: Literal["open", "closed"] | None = None
    labels: Names | None = None
    assignees: Names | None = None
    over: Annotated[StrictStr, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    tasks: tuple[Task, ...] = ()

    @property
    def words(self) -> str:
        return "\n\n".join(filter(None, (super().words, *map(format_task_markdown, self.tasks))))

    @property
    def deed(self) -> str:
        return f"{_CHANGES[self.state]} {self.repo}#{self.number}"


class LabelBody(_OnIssue):
    """Labels that issue `number` gets, and labels that it loses; all others stay."""

    kind: ClassVar[Literal["label"]] = "label"
    add: Names = ()
    remove: Names = ()

    @property
    def deed(self) -> str:
        return f"label {self.repo}#{self.number}: {', '.join(self.add) or 'less'}"


class AssigneeBody(_OnIssue):
    """Accounts to which issue `number` is assigned, and one from which it is taken unless it is the only one."""

    kind: ClassVar[Literal["assignee"]] = "assignee"
    add: Names = ()
    remove: StrictStr = ""

    @property
    def deed(self) -> str:
        return (
            f"assign {self.repo}#{self.number} to {', '.join(self.add)}"
            if self.add
            else f"unassign {self.repo}#{self.number} from {self.remove}"
        )


class ReactionBody(_OnIssue):
    """A reaction to issue or pull request `number`."""

    kind: ClassVar[Literal["reaction"]] = "reaction"
    does: ClassVar[str] = "{0.reaction} on {0.repo}#{0.number}"
    reaction: Literal["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"]


class CommentDeletionBody(_OnIssue):
    """The deletion of our comment `comment_id` on issue or pull request `number`."""

    kind: ClassVar[Literal["comment_deletion"]] = "comment_deletion"
    does: ClassVar[str] = "delete our comment {0.comment_id} on {0.repo}#{0.number}"
    comment_id: _Number


class StarBody(OnGitHub):
    """A star for the repository."""

    kind: ClassVar[Literal["star"]] = "star"
    does: ClassVar[str] = "star for {0.repo}"


class AccountFollowBody(OnGitHub):
    """That an account is followed. `repo` is the repository of its page, `login/login`."""

    kind: ClassVar[Literal["account_follow"]] = "account_follow"
    does: ClassVar[str] = "follow {0.login} on GitHub"

    @property
    def login(self) -> str:
        """The account."""
        return self.repo.partition("/")[0]


class PullRequestBody(OfTask):
    """A pull request from `head` (`branch`, or `owner:branch` of a fork) into the branch `base`."""

    kind: ClassVar[Literal["pull_request"]] = "pull_request"
    does: ClassVar[str] = "pull request in {0.repo}"
    title: StrictStr
    body: StrictStr
    head: StrictStr
    base: StrictStr
    draft: StrictBool = False

    @property
    def words(self) -> str:
        return f"{self.head} → {self.base}\n\n{super().words}"


class ReviewRequestBody(_OnIssue):
    """The accounts that are asked to review pull request `number`."""

    kind: ClassVar[Literal["review_request"]] = "review_request"
    reviewers: Annotated[Names, Field(min_length=1)]

    @property
    def deed(self) -> str:
        return f"review of {self.repo}#{self.number} by {', '.join(self.reviewers)}"


class ReviewBody(_OnIssue):
    """A review of pull request `number`, of its commit `commit_id` (the newest where it is ""), also line by line."""

    kind: ClassVar[Literal["review"]] = "review"
    event: Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
    body: StrictStr = ""
    commit_id: _Sha = ""
    comments: Annotated[tuple[LineComment, ...], Field(max_length=MOST_LINE_COMMENTS)] = ()

    @property
    def deed(self) -> str:
        return f"{self.event.lower().replace('_', ' ')} {self.repo}#{self.number}"

    @property
    def words(self) -> str:
        lines = (f"{one.path}:{one.line}: {one.body}" for one in self.comments)
        return "\n\n".join(filter(None, (super().words, *lines)))


class MergeBody(_OnIssue):
    """The merge of pull request `number`, if its newest commit is `head_sha` still ("" for whichever it is)."""

    kind: ClassVar[Literal["merge"]] = "merge"
    does: ClassVar[str] = "merge {0.repo}#{0.number}"
    method: Literal["squash", "merge", "rebase"] = "squash"
    title: StrictStr = ""
    message: StrictStr = ""
    head_sha: _Sha = ""


class BranchUpdateBody(_OnIssue):
    """The merge of its base into the branch of pull request `number`, which GitHub makes if it is clean.

    Nothing is done unless the newest commit of the branch is `head_sha`.
    """

    kind: ClassVar[Literal["branch_update"]] = "branch_update"
    does: ClassVar[str] = "update the branch of {0.repo}#{0.number}"
    head_sha: Annotated[_Sha, Field(min_length=40)]


class RefBody(OfTask):
    """The branch `branch`, created on the commit `sha`, or deleted.

    With `own_commit` it is created on an empty commit upon `sha` whose message names the intent: then nobody else's
    branch of the same name can be taken for ours, also where an answer was lost. A lock needs that.
    """

    kind: ClassVar[Literal["ref"]] = "ref"
    does: ClassVar[str] = "{0.action} the branch {0.branch} of {0.repo}"
    action: Literal["create", "delete"]
    branch: StrictStr
    sha: _Sha = ""
    own_commit: StrictBool = False


class ContentsBody(OfTask):
    """A file that is written, or deleted, in one commit on `branch` ("" for the default branch).

    `content` is the whole file; None deletes it. `sha` is that of the file as it was read, "" where there was none;
    where another stands there by then, nothing is changed. `message` is that of the commit.
    """

    kind: ClassVar[Literal["contents"]] = "contents"
    does: ClassVar[str] = "{0.path} in {0.repo}: {0.message}"
    path: StrictStr
    content: StrictStr | None
    message: StrictStr
    branch: StrictStr = ""
    sha: _Sha = ""

    @property
    def words(self) -> str:
        return self.content or ""


class PushBody(OfTask):
    """The commit `sha` of a clone of ours, pushed to `branch` by Git.

    `folder` is where the clone lies, from the home; where it is gone by then the push fails. `before` is the commit on
    which the branch stands there, "" where it is new: where another stands there by then, nothing is pushed. `paths`
    are the files that it changes. `summary_text` is what whoever wrote it says of it, and `description_text` what its
    pull request says once it is pushed; "" for nothing new.
    """

    kind: ClassVar[Literal["push"]] = "push"
    does: ClassVar[str] = "push to {0.branch} of {0.repo}"
    branch: StrictStr
    sha: Annotated[_Sha, Field(min_length=40)]
    folder: StrictStr
    before: _Sha = ""
    paths: Names = ()
    summary_text: StrictStr = ""
    description_text: StrictStr = ""


class RepositoryBody(OnGitHub):
    """The repository `repo`, made from `template` (`owner/name`).

    Where its owner has a repository whose name begins with `only_one`, none is made; "" makes it in any case.
    """

    kind: ClassVar[Literal["repository"]] = "repository"
    does: ClassVar[str] = "workspace {0.repo}"
    template: Annotated[StrictStr, Field(pattern=r"^[^/\s]+/[^/\s]+$")]
    description: StrictStr = ""
    private: StrictBool = False
    only_one: StrictStr = ""

    @property
    def words(self) -> str:
        return f"from {self.template}\n{self.description}"


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
    | BranchUpdateBody
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
    "branch_update",
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

_CHANGES = {"closed": "close", "open": "reopen", None: "change"}

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
