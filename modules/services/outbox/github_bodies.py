"""The bodies of acts on GitHub: one frozen type for each kind of intent.

The owner is shown an act as GitHub receives it. If that says too little, as for a push, `about` is the line that
describes the act and `text` what follows it.
"""

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
    """A value that is stored as JSON."""

    model_config = ConfigDict(
        frozen=True, extra="allow", validate_by_name=True, validate_by_alias=True, defer_build=True
    )

    def stored(self) -> dict[str, Any]:
        """Return the JSON object of this value: the fields that were given, and those unknown to this version."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Body(StoredValue):
    """The base of all bodies."""

    @property
    def subject(self) -> str:
        """The URI or DID that the act is done to; "" if there is none."""
        return ""

    @property
    def public_text(self) -> str:
        """The words that Bluesky shows under the SOUL's name; "" if there are none."""
        return ""

    @property
    def preview(self) -> str:
        """The text that the owner is shown; "" if there is none."""
        return self.public_text

    @property
    def short_preview(self) -> str:
        """What the owner is shown on a single line; "" if there is nothing."""
        return self.preview

    @property
    def deed(self) -> str:
        """What it does, in one line for the owner, without the words that it publishes; "" if its kind says it."""
        return ""

    @property
    def as_json(self) -> str:
        """The body as it is stored."""
        return json_of(self.stored())


class OfCommitment(Body):
    """A body that may belong to a commitment.

    `source` is where the commitment was made: `bluesky`, `space`, or `found` for a room that the owner never named. It
    is `github` for an answer in a thread on GitHub, and `workspace` for work in a watched workspace; neither belongs to
    a commitment.
    `host_request` and `host_named` say whether the host of a room asked for the act, or named the repository.
    """

    commitment_id: StrictStr = Field(default="", alias="promise")
    source: StrictStr = ""
    host_request: StrictBool = Field(default=False, alias="host_wish")
    host_named: StrictBool = False


def json_of(stored: Mapping[str, Any]) -> str:
    """Return the JSON text of a body in the form that is stored."""
    return json.dumps(stored, sort_keys=True, separators=(",", ":"))


Names = tuple[StrictStr, ...]
_Sha = Annotated[StrictStr, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?$")]
MOST_LINE_COMMENTS = 10
"""The most line comments of one review."""
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
        """What people read there; "" if there is nothing to read."""
        return without_html_comments(getattr(self, "body", "")).strip()


class _OnIssue(OnGitHub):
    """An act on issue or pull request `number`."""

    number: _Number


class OfTask(OnGitHub):
    """An act that may be done for a task of a plan: `task` is its key ("" for none), `epoch` the claim.

    `epoch` is 0 once the task was offered, when the act needs no claim any more.
    """

    task: StrictStr = ""
    epoch: StrictInt = 0


class IssueBody(OnGitHub):
    """A new issue, assigned to the SOUL itself if `assignees` is empty.

    If the text of an open issue holds `only_one`, none is made; "" makes it in any case.
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

    `line` is the id of the line comment of a pull request that it answers; 0 for none.
    """

    kind: ClassVar[Literal["issue_comment"]] = "issue_comment"
    does: ClassVar[str] = "comment on {0.repo}#{0.number}"
    number: int
    body: StrictStr
    line: StrictInt = 0


class IssueUpdateBody(_OnIssue):
    """A change of the given fields of issue `number`.

    `title` and `body` are not changed if they are "", the others if they are None. `over` is the SHA-256 of the body
    that was read: if the body is another when this is sent, nothing is changed; "" overwrites any body. `last_comment`
    is the id of the newest comment that was read, 0 if there was none: if somebody else commented since, nothing is
    changed; None changes it whatever was said. The `tasks` whose titles are missing are added to the plan that is the
    body at that time; with them there is no `body`.
    """

    kind: ClassVar[Literal["issue_update"]] = "issue_update"
    title: StrictStr = ""
    body: StrictStr = ""
    state: Literal["open", "closed"] | None = None
    labels: Names | None = None
    assignees: Names | None = None
    over: Annotated[StrictStr, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    last_comment: StrictInt | None = None
    tasks: tuple[Task, ...] = ()

    @property
    def words(self) -> str:
        return "\n\n".join(filter(None, (super().words, *map(format_task_markdown, self.tasks))))

    @property
    def deed(self) -> str:
        return f"{_CHANGES[self.state]} {self.repo}#{self.number}"


class LabelBody(_OnIssue):
    """Labels to add to and to remove from issue `number`; all others stay."""

    kind: ClassVar[Literal["label"]] = "label"
    add: Names = ()
    remove: Names = ()

    @property
    def deed(self) -> str:
        return f"label {self.repo}#{self.number}: {', '.join(self.add) or 'less'}"


class AssigneeBody(_OnIssue):
    """Accounts to assign issue `number` to, and one to unassign unless it is the only one."""

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
    """The deletion of the SOUL's comment `comment_id` on issue or pull request `number`."""

    kind: ClassVar[Literal["comment_deletion"]] = "comment_deletion"
    does: ClassVar[str] = "delete our comment {0.comment_id} on {0.repo}#{0.number}"
    comment_id: _Number


class StarBody(OnGitHub):
    """A star for the repository."""

    kind: ClassVar[Literal["star"]] = "star"
    does: ClassVar[str] = "star for {0.repo}"


class AccountFollowBody(OnGitHub):
    """A follow of an account. `repo` is the repository of its page, `login/login`."""

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
    """A request to accounts to review pull request `number`."""

    kind: ClassVar[Literal["review_request"]] = "review_request"
    reviewers: Annotated[Names, Field(min_length=1)]

    @property
    def deed(self) -> str:
        return f"review of {self.repo}#{self.number} by {', '.join(self.reviewers)}"


class ReviewBody(_OnIssue):
    """A review of commit `commit_id` of pull request `number` ("" for the newest), with comments on its lines."""

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


class MergeBody(_OnIssue, OfTask):
    """The merge of pull request `number` if its newest commit is still `head_sha` ("" for any commit).

    It is not merged if a review with a higher id than `last_review`, the newest one when it was proposed, asks for
    changes.
    """

    kind: ClassVar[Literal["merge"]] = "merge"
    does: ClassVar[str] = "merge {0.repo}#{0.number}"
    method: Literal["squash", "merge", "rebase"] = "squash"
    title: StrictStr = ""
    message: StrictStr = ""
    head_sha: _Sha = ""
    last_review: StrictInt = 0


class BranchUpdateBody(_OnIssue):
    """The merge of its base into the branch of pull request `number`, which GitHub makes if there is no conflict.

    Nothing is done unless the newest commit of the branch is `head_sha`.
    """

    kind: ClassVar[Literal["branch_update"]] = "branch_update"
    does: ClassVar[str] = "update the branch of {0.repo}#{0.number}"
    head_sha: Annotated[_Sha, Field(min_length=40)]


class RefBody(OfTask):
    """The deletion of `branch` if its newest commit is `sha` ("" for any).

    `create` is read from the homes of earlier versions, which created branches so; it is never sent.
    """

    kind: ClassVar[Literal["ref"]] = "ref"
    does: ClassVar[str] = "{0.action} the branch {0.branch} of {0.repo}"
    action: Literal["create", "delete"]
    branch: StrictStr
    sha: _Sha = ""


class ContentsBody(OfTask):
    """A new file, written in one commit on the default branch; nothing is changed if another file is there.

    `content` is the whole file, `message` that of the commit.
    """

    kind: ClassVar[Literal["contents"]] = "contents"
    does: ClassVar[str] = "{0.path} in {0.repo}: {0.message}"
    path: StrictStr
    content: StrictStr
    message: StrictStr

    @property
    def words(self) -> str:
        return self.content

    @property
    def is_new_file(self) -> bool:
        """Whether it names no branch and no file to replace, as those of earlier versions did; they are never sent."""
        beside = self.model_extra or {}
        return not (beside.get("branch") or beside.get("sha"))


class PushBody(OfTask):
    """A push of the commit `sha` of a local clone to `branch` by Git.

    `folder` is the path of the clone in the home; if it is gone, the push fails. `before` is the commit at the tip of
    the remote branch, "" for a new branch: if the tip is another when this is sent, nothing is pushed. `paths` are the
    changed files. `summary_text` is its author's summary, and `description_text` the new text of its pull request after
    the push; "" for no change.
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

    If its owner has a repository whose name begins with `only_one`, none is made; "" makes it in any case.
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
"""The kinds that GitHub counts as creating content, and notifies people of."""
NOT_IN_A_REPOSITORY: frozenset[GitHubKind] = frozenset({"account_follow", "repository"})
"""The kinds that need no existing repository."""

_CHANGES = {"closed": "close", "open": "reopen", None: "change"}

B = TypeVar("B", bound=OnGitHub)
_SAID = ("title", "body", "message")


def body_digest(body: str) -> str:
    """Return the SHA-256 of the body of an issue in hexadecimal digits, the same for any kind of line ends."""
    return hashlib.sha256(body.replace("\r\n", "\n").rstrip().encode()).hexdigest()


def without_closing(body: B) -> B:
    """Return the body without words that close issues. A file's content, and an issue changed with `over`, stay."""
    if isinstance(body, IssueUpdateBody) and body.over:
        return body
    said = {name: text for name in _SAID if (text := getattr(body, name, ""))}
    return body.model_copy(update={name: without_closing_words(text) for name, text in said.items()})
