"""The types of the GitHub life. Logins are compared without regard to case."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Literal

from adapters.github.types import Comment, Issue, ReviewComment
from common.clock import parse_iso
from modules.services.agent.tools.types import Revision
from modules.services.github_threads import WaitingThread
from modules.services.outbox.github_bodies import IssueCommentBody, ReactionBody, ReviewBody
from modules.services.workspaces.trust import TrustedAccounts

Urgency = Literal["high", "medium", "low", "none"]


class ResponseCode(StrEnum):
    """Why a thread is answered or not: one for each row of the table, and for what comes before and after it."""

    FINISHED = "finished"
    CONCLUDED = "concluded"
    UNWELCOME = "unwelcome"
    NOTHING_NEW = "nothing-new"
    CLOSED = "closed"
    OWN_LAST = "own-last"
    OWNER_REQUEST = "owner-request"
    RITUAL_MEMO = "ritual-memo"
    PEERS_ONLY = "peers-only"
    ENOUGH_SAID = "enough-said"
    NEW_COMMENTS = "new-comments"
    MENTIONED = "mentioned"
    MENTIONED_IN_BODY = "mentioned-in-body"
    REVIEW_REQUESTED = "review-requested"
    WORKSPACE_ISSUE = "workspace-issue"
    NOT_ADDRESSED = "not-addressed"
    REVIEW_NOT_AWAITED = "review-not-awaited"
    REVIEW_GIVEN = "review-given"
    REVIEW_BY_TEST = "review-by-test"


@dataclass(frozen=True, slots=True)
class ResponseDecision:
    """Whether a thread is answered: the code for programs, the reason for people, and how urgent it is."""

    code: ResponseCode
    reason: str
    urgency: Urgency = "none"

    @property
    def responds(self) -> bool:
        """Whether the thread is to be answered."""
        return self.urgency != "none"


@dataclass(frozen=True, slots=True)
class ThreadOptions:
    """What is known about a thread besides its text.

    Attributes:
        is_owner_request: the owner showed it to us.
        is_review_requested: it is a pull request for which our review is requested by name, and not given yet.
        is_workspace_issue: it is an issue of a workspace of ours.

    """

    is_owner_request: bool = False
    is_review_requested: bool = False
    is_workspace_issue: bool = False


@dataclass(frozen=True, slots=True)
class IssueThread:
    """An issue or pull request with its comments, oldest first; with `line`, only the comments on that line.

    `read_until` is the time of the newest comment that we had read when we last answered or chose silence.
    """

    issue: Issue
    comments: tuple[Comment, ...] = ()
    line: ReviewComment | None = None
    read_until: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is neither closed nor merged."""
        return self.issue.state == "open"

    @property
    def digest(self) -> str:
        """A hash of the title, the texts and the assignees."""
        said = (one.body for one in self.comments)
        words = (self.issue.title, self.issue.body, *sorted(self.issue.assignees), *said)
        return sha256("\0".join(words).encode()).hexdigest()

    @property
    def unread(self) -> tuple[Comment, ...]:
        """The comments that were written after `read_until`."""
        read = self.read_until
        return tuple(one for one in self.comments if read is None or parse_iso(one.created_at) > read)

    def by(self, login: str) -> tuple[Comment, ...]:
        """Return the comments of one account."""
        return tuple(one for one in self.comments if one.author.lower() == login.lower())

    def later_than(self, login: str) -> tuple[Comment, ...]:
        """Return what others wrote after the last comment of an account or while it arose; all if it wrote none."""
        places = [place for place, one in enumerate(self.comments) if one.author.lower() == login.lower()]
        if not places:
            return self.comments
        unread = self.unread if self.read_until else ()
        missed = (one for one in self.comments[: places[-1]] if one in unread and one.author.lower() != login.lower())
        return (*missed, *self.comments[places[-1] + 1 :])


@dataclass(frozen=True, slots=True)
class IssueTurn:
    """The subject of a turn about a thread, which may write one comment there, or none.

    Attributes:
        waiting: what led to the turn.
        thread: the thread as it was read for the turn.
        login: our account.
        hold: why a comment must wait for the owner's approval; "" if it need not.
        told: the text of our own prompt, without the words of others.

    """

    waiting: WaitingThread
    thread: IssueThread
    login: str
    hold: str = ""
    told: str = ""
    revision: Revision = field(default_factory=Revision)

    def comment(self, text: str) -> IssueCommentBody:
        """Return the comment with this text."""
        return IssueCommentBody(
            source="github",
            repo=self.waiting.repo,
            number=self.thread.issue.number,
            body=text,
            line=self.waiting.line,
        )

    def heart(self) -> ReactionBody:
        """Return the heart reaction with which we leave a thread."""
        return ReactionBody(source="github", repo=self.waiting.repo, number=self.thread.issue.number, reaction="heart")


@dataclass(frozen=True, slots=True)
class ReviewTurn(IssueTurn):
    """The subject of a turn about a pull request, which may write one review of the commit `head_sha`, or none."""

    head_sha: str = ""

    @property
    def part(self) -> str:
        """The name by which the outbox accepts only one review of that commit."""
        return review_part(self.waiting, self.head_sha)

    def review(self, text: str) -> ReviewBody:
        """Return the review with this text."""
        return ReviewBody(
            source="github",
            repo=self.waiting.repo,
            number=self.thread.issue.number,
            event="COMMENT",
            body=text,
            commit_id=self.head_sha,
        )


def review_part(waiting: WaitingThread, head_sha: str) -> str:
    """Return the name by which the outbox knows our review of one commit of a pull request."""
    return f"review:{waiting.key}@{head_sha}"


@dataclass(frozen=True, slots=True)
class KnownParticipants:
    """What is known about the participants: our login, whose words count, and the logins of our peers."""

    login: str
    people: TrustedAccounts
    peers: Collection[str] = ()
