"""What GitHub tells us, and what we send there, checked and cut to what GitHub takes. Times are ISO-8601 UTC."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeVar
from urllib.parse import quote

from common.constants import GITHUB_BODY_MAX_CHARS
from common.text.markdown import close_code

IssueState = Literal["open", "closed"]
ReviewState = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"]
ReviewEvent = Literal["APPROVE", "REQUEST_CHANGES", "COMMENT"]
MergeMethod = Literal["squash", "merge", "rebase"]
QueueStanding = Literal["none", "out", "in"]
Reaction = Literal["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"]
TokenKind = Literal["classic", "fine_grained", "app", "unknown"]


@dataclass(frozen=True, slots=True)
class Account:
    """An account. Its numeric id says who it is; its login is what it is called now, and is never compared.

    An id of 0 is nobody's: that of an account which is gone, or which GitHub did not tell.
    """

    id: int
    login: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class GitHubPerson:
    """An account: `name` is what it calls itself, "" if nothing; `is_bot` by GitHub's word.

    `website` and `bio` are what its page shows, cut at 300 characters; "" if nothing.
    """

    login: str
    name: str
    html_url: str
    is_bot: bool = False
    website: str = ""
    bio: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class Repo:
    """`owner/name`, as GitHub writes it."""

    owner: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


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
    archived: bool = False
    is_template: bool = False
    can_push: bool = False
    """Whether the account that asked may push there; False where GitHub did not say."""
    pulls: Literal["all", "collaborators", "nobody"] = "all"
    """Who may open pull requests there; "all" where GitHub did not say."""
    created_at: str = ""
    """ISO-8601 UTC, to the second; "" where GitHub did not say."""
    id: int = 0
    """It says which repository this is, whatever it is called; 0 where GitHub did not say."""
    pushed_at: str = ""
    """When a branch changed last, ISO-8601 UTC; "" where GitHub did not say."""

    @property
    def repo(self) -> Repo:
        """Its owner and name."""
        owner, _, name = self.full_name.partition("/")
        return Repo(owner, name)


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
    closed_by: str = ""
    author_id: int = 0
    closed_by_id: int = 0
    node_id: str = field(default="", compare=False)

    @property
    def account(self) -> Account:
        """Its author."""
        return Account(self.author_id, self.author)

    @property
    def closer(self) -> Account:
        """Who closed it; nobody where that is not known."""
        return Account(self.closed_by_id, self.closed_by)

    @property
    def place(self) -> Repo:
        """The repository in which it was found, which is another one than was asked where that has moved."""
        owner, name = self.html_url.rsplit("/", 4)[-4:-2]
        return Repo(owner, name)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on an issue."""

    id: int
    body: str
    author: str
    html_url: str
    created_at: str
    updated_at: str
    author_id: int = 0
    node_id: str = field(default="", compare=False)

    @property
    def account(self) -> Account:
        """Its author."""
        return Account(self.author_id, self.author)


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """What is said of one line, 0 where it is about a whole file; `hunk` shows the changes down to that line.

    `answers` is the id of the comment that begins the talk about the line, 0 for that comment itself.
    """

    review_id: int
    path: str
    line: int
    hunk: str
    comment: Comment
    answers: int = 0

    @property
    def body(self) -> str:
        """What it says."""
        return self.comment.body

    @property
    def talk(self) -> int:
        """The id of the comment that begins the talk."""
        return self.answers or self.comment.id


@dataclass(frozen=True, slots=True)
class PullBranch:
    """One end of a pull request: a branch, its newest commit, and its repository ("" if that is gone).

    `repo_id` says which repository that is; 0 if it is gone.
    """

    ref: str
    sha: str
    repo: str = ""
    repo_id: int = 0


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request.

    Attributes:
        requested_reviewers: those whose review is awaited.
        mergeable: None while GitHub still computes it, and in lists, which do not tell it.
        mergeable_state: `clean` where nothing keeps it from being merged, `unstable` where a check failed or is not
            done yet, `dirty` for a conflict, `behind`, `blocked` and more; "" in lists.
        additions: lines; as `deletions` and `changed_files` None in lists.
        merge_commit_sha: the commit that it became, "" before.

    """

    number: int
    title: str
    body: str
    state: IssueState
    author: str
    head: PullBranch
    base: PullBranch
    html_url: str
    created_at: str
    updated_at: str
    draft: bool = False
    merged_at: str | None = None
    closed_at: str | None = None
    requested_reviewers: tuple[Account, ...] = ()
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    mergeable: bool | None = None
    mergeable_state: str = ""
    additions: int | None = None
    deletions: int | None = None
    changed_files: int | None = None
    merge_commit_sha: str = ""
    author_id: int = 0

    @property
    def account(self) -> Account:
        """Its author."""
        return Account(self.author_id, self.author)

    @property
    def is_from_fork(self) -> bool:
        """Whether its branch lies in another repository than the one it is offered to, or in one that is gone."""
        return not self.head.repo_id or self.head.repo_id != self.base.repo_id

    @property
    def merged(self) -> bool:
        """Whether it was merged."""
        return self.merged_at is not None


@dataclass(frozen=True, slots=True)
class PullFile:
    """A file that a pull request changes: its path, its `status` (`added`, `renamed`, …), and its lines new and gone.

    `patch` is "" for what is too large, or counts as no text, as `.gitattributes` may let any file; then the lines are
    0. `previous_path` is where it stood, "" unless it was moved; `sha` is the blob of what it holds now.
    """

    path: str
    status: str
    additions: int
    deletions: int
    patch: str = ""
    previous_path: str = ""
    sha: str = ""


@dataclass(frozen=True, slots=True)
class LineComment:
    """What a review says of line `line` of the file `path`, as the pull request leaves it."""

    path: str
    line: int
    body: str


@dataclass(frozen=True, slots=True)
class Review:
    """A review of a pull request. `submitted_at` is "" for one that is pending."""

    id: int
    author: str
    body: str
    state: ReviewState
    submitted_at: str
    commit_id: str
    html_url: str
    author_id: int = 0


@dataclass(frozen=True, slots=True)
class Merge:
    """What came of merging a pull request."""

    sha: str
    merged: bool
    message: str


@dataclass(frozen=True, slots=True)
class NotificationSubject:
    """What a notification is about; `url` is the interface's address of it, "" if it has none."""

    title: str
    url: str
    type: str


@dataclass(frozen=True, slots=True)
class GitHubNotification:
    """A notification. `id` is that of its thread, by which it is marked as read."""

    id: str
    reason: str
    unread: bool
    updated_at: str
    subject: NotificationSubject
    repo: Repo
    last_read_at: str | None = None


@dataclass(frozen=True, slots=True)
class NotificationPoll:
    """One look at the notifications.

    Attributes:
        items: newest first; empty where nothing changed.
        changed: whether anything changed since the look before (GitHub answers 304 otherwise, which costs nothing).
        poll_interval_s: GitHub asks not to look again sooner, in seconds.
        complete: whether all pages were read.
        marker: to be handed to the next look once these were taken in; "" if that must see everything again.

    """

    items: tuple[GitHubNotification, ...]
    changed: bool
    poll_interval_s: int
    complete: bool = True
    marker: str = ""


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """A file or folder in a repository; `type` is GitHub's: file, dir, symlink or submodule."""

    name: str
    path: str
    type: str
    sha: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Tree:
    """Everything on a branch, folders apart; `truncated` where GitHub left some of it out."""

    entries: tuple[ContentEntry, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class FileContent:
    """The text of a file.

    Attributes:
        path: from the root of the repository.
        text: at most 5,000 characters of it, or as many as were asked for.
        sha: of the whole file; what overwrites it must name this.
        size: of the whole file, in bytes.
        truncated: whether `text` is only its beginning.

    """

    path: str
    text: str
    sha: str
    size: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that was written or deleted: its new sha ("" if deleted) and the commit that did it."""

    path: str
    sha: str
    commit_sha: str


@dataclass(frozen=True, slots=True)
class GitRef:
    """A branch or tag by its full name (`refs/heads/…`), and the commit that it points to."""

    ref: str
    sha: str


@dataclass(frozen=True, slots=True)
class GitCommit:
    """A commit: its tree, its message, and the commits it follows."""

    sha: str
    tree: str
    message: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch and its newest commit."""

    name: str
    sha: str


@dataclass(frozen=True, slots=True)
class Organization:
    """An organisation."""

    login: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class TokenRights:
    """What is known of a token of an account: its login, its id, and the scopes of a classic token.

    `kind` follows from how the token begins, and from whether GitHub tells its scopes.
    """

    login: str
    kind: TokenKind
    scopes: tuple[str, ...] = ()
    id: int = 0


T = TypeVar("T")
TITLE_MAX_CHARS = 256
PAGE = 100
"""The most that one page of a list holds."""
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FENCE_ROOM = 16
_CUT = "\n\n[…]"


def fit_body(text: str) -> str:
    """At most `GITHUB_BODY_MAX_CHARS` characters; what is cut ends in `[…]`, outside of any code block."""
    if len(text) <= GITHUB_BODY_MAX_CHARS:
        return text
    room = GITHUB_BODY_MAX_CHARS - len(_CUT)
    kept = text[: room - _FENCE_ROOM]
    closed = close_code(kept)
    return (closed if len(closed) <= room else kept) + _CUT


def fit_title(text: str) -> str:
    """One line of at most 256 characters."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_MAX_CHARS else f"{line[: TITLE_MAX_CHARS - 1]}…"


def is_repo(repo: Repo) -> bool:
    """Whether a repository can be called that."""
    return bool(_OWNER.fullmatch(repo.owner) and _NAME.fullmatch(repo.name)) and repo.name not in {".", ".."}


def is_login(login: str) -> bool:
    """Whether an account can be called that; bots end in `[bot]`."""
    return bool(_OWNER.fullmatch(login.removesuffix("[bot]")))


def is_token(token: str) -> bool:
    """Whether this can be sent as a token."""
    return bool(_TOKEN.fullmatch(token))


def is_sha(sha: str) -> bool:
    """Whether it is the full name of a commit or a blob."""
    return bool(_SHA.fullmatch(sha))


def is_path(path: str) -> bool:
    """Whether a file in a repository can have this path, from the root and without a leading slash."""
    return bool(path) and all(part not in {"", ".", "..", ".git"} for part in path.split("/")) and "\0" not in path


def repo_path(repo: Repo) -> str:
    """The address of a repository, from the root of the interface."""
    return f"/repos/{quote(repo.owner, safe='')}/{quote(repo.name, safe='')}"


def in_segments(path: str) -> str:
    """A path of a file for an address: each segment encoded, the slashes kept."""
    return quote(path, safe="/")


def first(limit: int, found: Iterable[T]) -> Iterable[T]:
    """Up to `limit` of them; a page that is not needed is not asked for."""
    return islice(found, limit)


Kind = Literal["issue", "pull", "discussion"]
HOSTS = ("github.com", "www.github.com")
_KINDS: dict[str, Kind] = {"issues": "issue", "pull": "pull", "discussions": "discussion"}
_PATH = (
    r"/(?P<owner>[\w-]{1,100})/(?P<name>[\w.-]{1,100})/(?P<kind>issues|pull|discussions)/(?P<number>[1-9]\d{0,9})"
    r"(?!(?!https?://|(?:www\.)?github\.com/)[\w-])(?!\u2026|\.\.)"
)
_URL = re.compile(
    rf"(?:(?P<scheme>https?)://)?(?P<host>(?<![\w.-])[\w.-]{{1,253}}(?::\d{{1,5}})?){_PATH}", re.ASCII | re.IGNORECASE
)
_GLUED = re.compile(rf"(?P<scheme>)(?P<host>(?:www\.)?github\.com){_PATH}", re.ASCII | re.IGNORECASE)
_SPACE = re.compile(r"\s")
_API_NUMBER = re.compile(r"/(?:issues|pulls)/(\d+)/?(?:[?#].*)?")
_BEFORE = re.compile(r"[\w@./:-]", re.ASCII)


@dataclass(frozen=True, slots=True)
class GitHubUrl:
    """An issue, pull request or discussion, by its address; `url` always has a scheme."""

    owner: str
    repo: str
    type: Kind
    number: int
    url: str

    @property
    def place(self) -> Repo:
        """The repository it stands in."""
        return Repo(self.owner, self.repo)

    @property
    def key(self) -> tuple[str, str, Kind, int]:
        """The same for all addresses of the same thing."""
        return self.owner.lower(), self.repo.lower(), self.type, self.number


def parse_github_url(url: str) -> GitHubUrl | None:
    """What a URL points to, or None. A scheme may be missing; what follows the number (`#…`, `/files`) is ignored."""
    found = _URL.match(url.strip())
    return _from_match(found) if found else None


def extract_github_urls(text: str) -> list[GitHubUrl]:
    """All that are named in a text, each thing once, in order; also those that no space parts from the one before."""
    found: list[GitHubUrl | None] = []
    end, known = 0, False
    while match := (_GLUED.match(text, end) if known else None) or _URL.search(text, end):
        start = match.start()
        parted = _SPACE.search(text, end, start) is not None
        glued = match["scheme"] is not None and (start == end or (known and not parted))
        one = _from_match(match) if not start or glued or not _BEFORE.match(text[start - 1]) else None
        found.append(one)
        end, known = match.end(), one is not None
    return _once(found)


def extract_number_from_api_url(url: str) -> int | None:
    """The number at the end of `…/issues/N` or `…/pulls/N`; None for anything else."""
    found = _API_NUMBER.search(url)
    return int(found[1]) if found and found.end() == len(url) else None


def _from_match(found: re.Match[str]) -> GitHubUrl | None:
    owner, name = found["owner"], found["name"]
    if found["host"].lower() not in HOSTS or not is_repo(Repo(owner, name)):
        return None
    url = found[0] if found["scheme"] else f"https://{found[0]}"
    return GitHubUrl(owner, name, _KINDS[found["kind"].lower()], int(found["number"]), url)


def _once(found: Iterable[GitHubUrl | None]) -> list[GitHubUrl]:
    once: dict[tuple[str, str, Kind, int], GitHubUrl] = {}
    for one in found:
        if one:
            once.setdefault(one.key, one)
    return list(once.values())
