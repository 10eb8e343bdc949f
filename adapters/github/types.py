"""Values from and for GitHub, checked and cut to its limits. Times are ISO-8601 UTC."""

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
    """An account. Its numeric id identifies it; its login is only its present name, and is never compared.

    An id of 0 is unknown: the account is gone, or GitHub did not tell.
    """

    id: int
    login: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class GitHubPerson:
    """An account: `name` is its display name, "" if none; `is_bot` is as GitHub says.

    `website` and `bio` are from its profile, cut at 300 characters; "" if none.
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
    """Whether the account that asked may push there; False if GitHub did not say."""
    pulls: Literal["all", "collaborators", "nobody"] = "all"
    """Who may open pull requests there; "all" if GitHub did not say."""
    created_at: str = ""
    """ISO-8601 UTC, to the second; "" if GitHub did not say."""
    id: int = 0
    """Identifies the repository, whatever its name; 0 if GitHub did not say."""
    pushed_at: str = ""
    """When a branch last changed, ISO-8601 UTC; "" if GitHub did not say."""

    @property
    def repo(self) -> Repo:
        """Its owner and name."""
        owner, _, name = self.full_name.partition("/")
        return Repo(owner, name)


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue, or a pull request in the form of one (`is_pull_request`)."""

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
    comments: int = field(default=0, compare=False)
    node_id: str = field(default="", compare=False)

    @property
    def version(self) -> str:
        """What changes with it, also by a second comment within one second: GitHub's times are in whole seconds."""
        return f"{self.updated_at} {self.comments}"

    @property
    def account(self) -> Account:
        """Its author."""
        return Account(self.author_id, self.author)

    @property
    def closer(self) -> Account:
        """The account that closed it; id 0 if not known."""
        return Account(self.closed_by_id, self.closed_by)

    @property
    def place(self) -> Repo:
        """The repository in which it was found; another one than was asked for if that has moved."""
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
    """A comment on one line, 0 if it is about a whole file; `hunk` shows the changes down to that line.

    `answers` is the id of the comment that began the discussion of the line, 0 for that comment itself.
    """

    review_id: int
    path: str
    line: int
    hunk: str
    comment: Comment
    answers: int = 0

    @property
    def body(self) -> str:
        """Its text."""
        return self.comment.body

    @property
    def talk(self) -> int:
        """The id of the comment that began the discussion."""
        return self.answers or self.comment.id


@dataclass(frozen=True, slots=True)
class PullBranch:
    """One end of a pull request: a branch, its newest commit, and its repository ("" if that is gone).

    `repo_id` identifies that repository; 0 if it is gone.
    """

    ref: str
    sha: str
    repo: str = ""
    repo_id: int = 0


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request.

    Attributes:
        requested_reviewers: the accounts whose review is awaited.
        mergeable: None while GitHub still computes it, and in lists, which do not tell it.
        mergeable_state: `clean` if nothing prevents a merge, `unstable` if a check failed or is still running, `dirty`
            for a conflict, `behind`, `blocked` and more; "" in lists.
        additions: added lines; None in lists, like `deletions` and `changed_files`.
        merge_commit_sha: the commit of its merge, "" before.

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
        """Whether its branch is in another repository than its base, or in one that is gone."""
        return not self.head.repo_id or self.head.repo_id != self.base.repo_id

    @property
    def merged(self) -> bool:
        """Whether it was merged."""
        return self.merged_at is not None


@dataclass(frozen=True, slots=True)
class PullFile:
    """A file that a pull request changes: its path, `status` (`added`, `renamed`, …), and counts of changed lines.

    `patch` is "" for a file that is too large or not text, as `.gitattributes` may mark any file; the counts are then
    0. `previous_path` is its old path, "" unless it was moved; `sha` is the blob of its present content.
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
    """A review's comment on line `line` of the file `path`, counted after the changes."""

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


VERDICTS = frozenset[ReviewState]({"APPROVED", "CHANGES_REQUESTED", "DISMISSED"})


def latest_verdicts(reviews: Iterable[Review]) -> dict[int, Review]:
    """Return the last verdict of each account by its id, including dismissed ones. `reviews` are oldest first."""
    return {one.author_id: one for one in reviews if one.state in VERDICTS}


def newest_review(reviews: Iterable[Review]) -> int:
    """Return the id of the newest review, 0 if there is none. Ids grow; times are in whole seconds."""
    return max((one.id for one in reviews), default=0)


@dataclass(frozen=True, slots=True)
class Merge:
    """The result of merging a pull request."""

    sha: str
    merged: bool
    message: str


@dataclass(frozen=True, slots=True)
class NotificationSubject:
    """The subject of a notification; `url` is its API address, "" if it has none."""

    title: str
    url: str
    type: str


@dataclass(frozen=True, slots=True)
class GitHubNotification:
    """A notification. `id` is that of its thread, which is used to mark it as read."""

    id: str
    reason: str
    unread: bool
    updated_at: str
    subject: NotificationSubject
    repo: Repo


@dataclass(frozen=True, slots=True)
class NotificationPoll:
    """The result of one poll of the notifications.

    Attributes:
        items: newest first; empty if nothing changed.
        changed: whether anything changed since the last poll (GitHub answers 304 otherwise, which costs nothing).
        poll_interval_s: the least wait before the next poll that GitHub asks for, in seconds.
        complete: whether all pages were read.
        marker: for the next poll, once these were processed; "" if that must read everything again.

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
    """All files on a branch, without folders; `truncated` if GitHub left some out."""

    entries: tuple[ContentEntry, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class FileContent:
    """The text of a file.

    Attributes:
        path: its path from the root of the repository.
        text: at most 5,000 characters of it, or as many as were asked for.
        sha: the hash of the whole file; a write that overwrites it must name this.
        size: the size of the whole file, in bytes.
        truncated: whether `text` is only its beginning.

    """

    path: str
    text: str
    sha: str
    size: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that was written: its new sha and the commit."""

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
    """The known facts about a token: its account's login and id, and the scopes of a classic token.

    `kind` follows from the prefix of the token, and from whether GitHub tells its scopes.
    """

    login: str
    kind: TokenKind
    scopes: tuple[str, ...] = ()
    id: int = 0


T = TypeVar("T")
TITLE_MAX_CHARS = 256
PAGE = 100
"""The most items on one page of a list."""
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FENCE_ROOM = 16
_CUT = "\n\n[…]"


def fit_body(text: str) -> str:
    """Return at most `GITHUB_BODY_MAX_CHARS` characters; a cut text ends in `[…]`, outside of any code block."""
    if len(text) <= GITHUB_BODY_MAX_CHARS:
        return text
    room = GITHUB_BODY_MAX_CHARS - len(_CUT)
    kept = text[: room - _FENCE_ROOM]
    closed = close_code(kept)
    return (closed if len(closed) <= room else kept) + _CUT


def fit_title(text: str) -> str:
    """Return the text as one line of at most 256 characters."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_MAX_CHARS else f"{line[: TITLE_MAX_CHARS - 1]}…"


def is_repo(repo: Repo) -> bool:
    """Return whether a repository can have this owner and name."""
    return bool(_OWNER.fullmatch(repo.owner) and _NAME.fullmatch(repo.name)) and repo.name not in {".", ".."}


def is_login(login: str) -> bool:
    """Return whether an account can have this login; bots end in `[bot]`."""
    return bool(_OWNER.fullmatch(login.removesuffix("[bot]")))


def is_token(token: str) -> bool:
    """Return whether this can be sent as a token."""
    return bool(_TOKEN.fullmatch(token))


def is_sha(sha: str) -> bool:
    """Return whether this is the full hash of a commit or a blob."""
    return bool(_SHA.fullmatch(sha))


def is_path(path: str) -> bool:
    """Return whether a file in a repository can have this path, from the root and without a leading slash."""
    return bool(path) and all(part not in {"", ".", "..", ".git"} for part in path.split("/")) and "\0" not in path


def repo_path(repo: Repo) -> str:
    """Return the address of a repository, from the root of the API."""
    return f"/repos/{quote(repo.owner, safe='')}/{quote(repo.name, safe='')}"


def in_segments(path: str) -> str:
    """Return the path of a file for a URL: each segment encoded, the slashes kept."""
    return quote(path, safe="/")


def first(limit: int, found: Iterable[T]) -> Iterable[T]:
    """Return up to `limit` items; pages that are not needed are not requested."""
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
    """An issue, pull request or discussion with its URL; `url` always has a scheme."""

    owner: str
    repo: str
    type: Kind
    number: int
    url: str

    @property
    def place(self) -> Repo:
        """Its repository."""
        return Repo(self.owner, self.repo)

    @property
    def key(self) -> tuple[str, str, Kind, int]:
        """Equal for all URLs of the same issue, pull request or discussion."""
        return self.owner.lower(), self.repo.lower(), self.type, self.number


def parse_github_url(url: str) -> GitHubUrl | None:
    """Return what a URL points to, or None. The scheme may be missing; what follows the number is ignored."""
    found = _URL.match(url.strip())
    return _from_match(found) if found else None


def extract_github_urls(text: str) -> list[GitHubUrl]:
    """Return all URLs in a text, each target once, in order; also those that follow the one before without a space."""
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
    """Return the number at the end of `…/issues/N` or `…/pulls/N`; None for anything else."""
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
