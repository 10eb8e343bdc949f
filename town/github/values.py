"""The values of the town's GitHub, what can go wrong between a client and it, and its refusals with GitHub's messages.

At most one of `STRIKES` hits a request; `CONDITIONS` apply in addition: a request may be slow, and a read stale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from common.clock import Clock
from town import faults
from town.faults import bad_gateway
from town.serving import drop, until_gone

Json: TypeAlias = dict[str, Any]
AccountKind = Literal["User", "Bot", "Organization"]
State = Literal["open", "closed"]
ReviewState = Literal["PENDING", "COMMENTED", "APPROVED", "CHANGES_REQUESTED", "DISMISSED"]
PullPolicy = Literal["all", "collaborators_only"]
ThreadReason = Literal["mention", "author", "comment", "review_requested", "assign", "subscribed"]
EventKind = Literal[
    "issue_opened",
    "issue_changed",
    "issue_deleted",
    "comment_written",
    "comment_deleted",
    "pushed",
    "pull_opened",
    "pull_reviewed",
    "pull_merged",
]
ALL_SCOPES = ("repo", "notifications", "read:org", "user")
REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


class Refusal(Exception):
    """An answer other than success: a status, GitHub's message, and the errors by field."""

    def __init__(self, status: int, message: str, errors: tuple[Json | str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors


def not_found() -> Refusal:
    """Return the refusal of what does not exist or may not be seen."""
    return Refusal(404, "Not Found")


def forbidden() -> Refusal:
    """Return the refusal of what only accounts that may push can do."""
    return Refusal(403, "Must have admin rights to Repository.")


def unprocessable(resource: str, field_name: str, code: str, **more: object) -> Refusal:
    """Return the refusal of an invalid field of the body."""
    return Refusal(422, "Validation Failed", ({"resource": resource, "field": field_name, "code": code, **more},))


@dataclass(frozen=True, slots=True)
class GitHubAccount:
    """An account. `token` authenticates it; "" for an account that never uses the API."""

    id: int
    login: str
    name: str
    kind: AccountKind
    token: str
    created_at: datetime
    website: str = ""


@dataclass(frozen=True, slots=True)
class GitHubLabel:
    """A label of a repository."""

    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(frozen=True, slots=True)
class StoredEdit:
    """One version of a text: the whole text, who wrote it, and when."""

    id: int
    text: str
    editor: GitHubAccount
    at: datetime


@dataclass(slots=True)
class StoredComment:
    """A comment in its current form."""

    id: int
    body: str
    author: GitHubAccount
    created_at: datetime
    updated_at: datetime
    reactions: list[StoredReaction] = field(default_factory=list)
    edits: list[StoredEdit] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StoredReaction:
    """Somebody's reaction to an issue or a comment."""

    id: int
    content: str
    author: GitHubAccount
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredLabelling:
    """A record that somebody added a label to an issue (`added`) or removed it."""

    id: int
    label: GitHubLabel
    by: GitHubAccount
    added: bool
    at: datetime


@dataclass(slots=True)
class StoredIssue:
    """An issue in its current form; a pull request if `is_pull`."""

    id: int
    number: int
    title: str
    body: str | None
    author: GitHubAccount
    created_at: datetime
    updated_at: datetime
    state: State = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: GitHubAccount | None = None
    is_pull: bool = False
    labels: list[GitHubLabel] = field(default_factory=list)
    assignees: list[GitHubAccount] = field(default_factory=list)
    comments: list[StoredComment] = field(default_factory=list)
    labellings: list[StoredLabelling] = field(default_factory=list)
    reactions: list[StoredReaction] = field(default_factory=list)
    edits: list[StoredEdit] = field(default_factory=list)


@dataclass(slots=True)
class StoredReview:
    """A review; `commit` is the head that was reviewed, `submitted_at` is None while it is pending."""

    id: int
    author: GitHubAccount
    state: ReviewState
    body: str
    commit: str
    submitted_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredLineComment:
    """A comment on a line of a pull request's diff; `hunk` is its part of the diff, down to that line."""

    id: int
    review_id: int
    author: GitHubAccount
    body: str
    path: str
    line: int
    commit: str
    hunk: str
    created_at: datetime
    in_reply_to: int | None = None


@dataclass(slots=True)
class StoredPull:
    """A pull request's fields beyond its issue; `head` and `base` are commits, `head_ref` and `base_ref` branches.

    `mergeable` is valid for the pair of commits for which it was computed, base and head. `queued_at` and `queued_by`
    say when, and by whom, it was added to the merge queue, while it is there.
    """

    issue: StoredIssue
    head_ref: str
    base_ref: str
    head: str
    base: str
    draft: bool = False
    merged_at: datetime | None = None
    merged_by: GitHubAccount | None = None
    merge_commit: str | None = None
    requested: list[GitHubAccount] = field(default_factory=list)
    reviews: list[StoredReview] = field(default_factory=list)
    line_comments: list[StoredLineComment] = field(default_factory=list)
    mergeable: tuple[str, str, bool] | None = None
    queued_at: datetime | None = None
    queued_by: GitHubAccount | None = None
    fork: StoredRepo | None = None
    """The repository that holds its head, if that is another one."""

    @property
    def number(self) -> int:
        return self.issue.number

    @property
    def is_open(self) -> bool:
        return self.issue.state == "open"


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """A test result of a commit, in the older of GitHub's two forms."""

    id: int
    sha: str
    state: str
    context: str
    description: str | None
    target_url: str | None
    creator: GitHubAccount
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """An application's test result of a commit; `conclusion` is None until it is completed."""

    id: int
    sha: str
    name: str
    status: str
    conclusion: str | None
    started_at: datetime
    completed_at: datetime | None


@dataclass(slots=True)
class StoredRepo:
    """A repository; `issues` by number, None for a deleted one."""

    id: int
    owner: GitHubAccount
    name: str
    description: str
    created_at: datetime
    private: bool = False
    archived: bool = False
    has_issues: bool = True
    is_template: bool = False
    default_branch: str = "main"
    has_pulls: bool = True
    pull_policy: PullPolicy = "all"
    needs_up_to_date: bool = False
    """Whether a pull request can be merged only while its branch holds the newest commit of its base."""
    dismisses_stale: bool = False
    """Whether a push to a pull request dismisses its approvals."""
    has_merge_queue: bool = False
    """Whether pull requests are merged only through a queue."""
    queue_is_closed: bool = False
    """Whether even accounts that may push cannot add a pull request to the queue."""
    pushed_at: datetime | None = None
    collaborators: set[str] = field(default_factory=set)
    stars: set[str] = field(default_factory=set)
    labels: dict[str, GitHubLabel] = field(default_factory=dict)
    issues: dict[int, StoredIssue | None] = field(default_factory=dict)
    pulls: dict[int, StoredPull] = field(default_factory=dict)
    statuses: list[StoredStatus] = field(default_factory=list)
    checks: list[StoredCheck] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"


@dataclass(frozen=True, slots=True)
class StoredInvitation:
    """An unanswered invitation to work in a repository."""

    id: int
    repo_id: int
    invitee: GitHubAccount
    inviter: GitHubAccount
    created_at: datetime


@dataclass(slots=True)
class StoredThread:
    """One account's notification of one issue or pull request; `comment_id` is the comment that caused it last."""

    id: int
    account: GitHubAccount
    repo_id: int
    issue: StoredIssue
    cause: ThreadReason
    updated_at: datetime
    unread: bool = True
    last_read_at: datetime | None = None
    done: bool = False
    comment_id: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """An access token of an account; `scopes` is None for a fine-grained token and for an application's."""

    account: GitHubAccount
    scopes: tuple[str, ...] | None = ALL_SCOPES
    is_of_app: bool = False

    @property
    def is_fine_grained(self) -> bool:
        return self.scopes is None


@dataclass(frozen=True, slots=True)
class GitHubEvent:
    """A change of an issue, or of the branches of a repository (`pushed`, number 0)."""

    kind: EventKind
    repo: str
    number: int
    by: str


def edit_text(
    of: StoredIssue | StoredComment, text: str | None, *, by: GitHubAccount, at: datetime, new_id: Callable[[], int]
) -> None:
    """Change the text of an issue or a comment; None keeps it.

    The history begins with the first edit, which also adds the original text.
    """
    if text is None or text == (of.body or ""):
        return
    if not of.edits:
        of.edits.append(StoredEdit(new_id(), of.body or "", of.author, of.created_at))
    of.edits.append(StoredEdit(new_id(), text, by, at))
    of.body = text


_DOCUMENTATION = "https://docs.github.com/rest"


def refusal_response(refusal: Refusal) -> JSONResponse:
    """Return the answer to a refused request."""
    body: Json = {"message": refusal.message}
    if refusal.errors:
        body["errors"] = list(refusal.errors)
    return JSONResponse({**body, "documentation_url": _DOCUMENTATION, "status": str(refusal.status)}, refusal.status)


SECONDARY = (
    "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. "
    "Please retry your request again later."
)
_PLAIN = {
    "server_error": (500, "Server Error"),
    "unavailable": (503, "No server is currently available to service your request."),
    "rate_limited": (403, "API rate limit exceeded for user ID 1."),
    "secondary_limit": (403, SECONDARY),
    "too_many": (429, SECONDARY),
    "suspended": (403, "Sorry. Your account was suspended."),
    "elsewhere": (301, "Moved Permanently"),
}
_ELSEWHERE = "http://elsewhere.example/"


def broken(fault: Fault, request: Request, clock: Clock) -> Response | None:
    """Return the answer of a fault that replaces the operation; None for a fault that strikes only afterwards."""
    if fault.kind in DOING:
        return None
    if fault.kind == "lost_request":
        return drop(request)
    if fault.kind == "bad_gateway":
        return bad_gateway()
    answer = refusal_response(Refusal(*_PLAIN[fault.kind]))
    match fault.kind:
        case "rate_limited":
            reset = str(int(clock.now().timestamp() + fault.seconds))
            answer.headers.update(
                {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
            )
        case "secondary_limit" | "too_many":
            answer.headers["retry-after"] = f"{fault.seconds:.0f}"
        case "elsewhere":
            answer.headers["location"] = _ELSEWHERE
    return answer


async def spoil(fault: Fault, answer: Response, request: Request, clock: Clock) -> Response:
    """Return the answer that a fault leaves after the operation."""
    if fault.kind == "lost_answer":
        return drop(request)
    if fault.kind == "garbled":
        return Response(b'{"id": 1, "title": "cut sho', answer.status_code, media_type="application/json")
    await until_gone(request, clock.sleep(fault.seconds))
    return answer


FaultKind = Literal[
    "server_error",  # 500
    "bad_gateway",  # 502 with an HTML body
    "unavailable",  # 503
    "rate_limited",  # 403, the hour's requests are used up; the limit resets after `seconds`
    "secondary_limit",  # 403 with retry-after, though requests are left
    "too_many",  # 429 with retry-after
    "suspended",  # 403, the account is suspended
    "elsewhere",  # 301 to another host
    "garbled",  # do it, but answer with invalid JSON
    "hang",  # do it, but answer only after `seconds`
    "lost_request",  # drop the connection before anything is done
    "lost_answer",  # do it, then drop the connection
    "slow",  # do it only after a random time of up to `seconds`, also if the client has left meanwhile
    "stale",  # a GET shows the state of a random time up to `seconds` ago
]
CONDITIONS: frozenset[FaultKind] = frozenset({"slow", "stale"})
STRIKES: frozenset[FaultKind] = frozenset(get_args(FaultKind)) - CONDITIONS
DOING: frozenset[FaultKind] = frozenset({"garbled", "hang", "lost_answer"})
Fault: TypeAlias = faults.Fault[FaultKind]


class GitHubFaults(faults.ArmedFaults[FaultKind]):
    """The armed faults of the town's GitHub."""

    kinds = get_args(FaultKind)
